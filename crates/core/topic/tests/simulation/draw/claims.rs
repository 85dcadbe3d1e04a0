//! Participants that say that they look at a proposal.

use std::sync::Arc;

use model::Capabilities;
use topic::{Claiming, Verdict};

use crate::{
    names::{CALLERS, id},
    numbers::Event,
    turn::{Decided, Turn},
    world::World,
};

impl World {
    pub(crate) fn claim(&mut self) {
        let proposal = self.any_deal(|_| true);
        let full = Arc::new(Capabilities::full());
        let here: Vec<_> = self
            .books
            .links
            .values()
            .map(|link| link.participant.clone())
            .collect();
        let one = self.beside.pick(&here).cloned();
        // One that is in the topic, or an operator that is not.
        let (by, outside) = match one.filter(|_| !self.beside.one_in(4)) {
            Some(one) => (one, None),
            None => (id("operator"), Some(&full)),
        };
        let by = if self.beside.one_in(8) {
            id(self.beside.any(&CALLERS))
        } else {
            by
        };
        let outside = outside.filter(|_| by == id("operator"));
        let token = self.token();
        let claims = Decided {
            by: by.clone(),
            ruling: 0,
            outside: outside.cloned(),
            token: token.clone(),
            digests: None,
            withdraws: false,
            approves: false,
            extends: false,
            amends: None,
            fulfilment: None,
            requested: false,
            named: Vec::new(),
        };
        let may = self.books.may_claim(proposal, &claims);
        if may.is_ok() {
            self.books.claims_from_now(proposal, &claims);
        }
        let claiming = Claiming {
            proposal,
            by: &by,
            outside,
            narrowing: token.as_ref(),
            at_ms: self.now_ms,
        };
        let effects = self.live(Event::Claim(claiming), Turn::default());
        assert_eq!(effects.verdict, may.err().map(Verdict::Refused));
        assert_eq!(effects.refusal.is_some(), may.is_err());
        if may.is_err() {
            self.books.count("claim refused");
        }
    }
}
