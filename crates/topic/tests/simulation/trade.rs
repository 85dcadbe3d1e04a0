//! Owns the events about proposals: made, decided, written down or not, carried out, and a crash in between.
//! Must not know what is right (see `deals`).

use model::{Capabilities, Digest, KindRef, OperationId, ParticipantId, ProposalState};
use topic::{Decision, Effect, Event, Record, Terms, public_name};

use crate::{
    books::Expected,
    deals::{Deal, Turn},
    world::{CALLERS, NAMES, World, id},
};

const SHOWN: Digest = Digest([1; 32]);

impl World {
    fn expected(turn: Turn) -> Expected {
        Expected { turn, ..Expected::default() }
    }

    /// Any proposal, sometimes one that is over.
    fn any_deal(&mut self, fits: impl Fn(&Deal) -> bool) -> OperationId {
        // Those with a call behind them are few and come first; some are over.
        let (late, call) = (self.prng.one_in(6), !self.prng.one_in(3));
        let held = |deal: &Deal| deal.held.is_some_and(|call| self.books.open.contains_key(&call));
        let mut found = self.books.deals.which(|deal| !deal.over && held(deal) && fits(deal));
        if found.is_empty() || !call {
            found = self.books.deals.which(|deal| (late || !deal.over) && fits(deal));
        }
        self.prng.pick(&found).copied().unwrap_or(OperationId(0))
    }

    /// A held call on its usual way: by chance alone few come that far.
    pub(crate) fn deal(&mut self) {
        for _ in 0..4 {
            self.request();
            if self.books.open.values().any(|open| open.held) {
                self.propose();
                self.journal();
                self.decide();
                self.journal();
                return self.regrant();
            }
        }
    }

    pub(crate) fn propose(&mut self) {
        let waits = self.books.open.iter().find(|(_, open)| open.held && open.proposal.is_none());
        let held = waits.map(|(operation, open)| (*operation, open.clone()));
        let proposal = held.as_ref().map_or_else(|| OperationId(u128::from(self.number())), |held| held.0);
        let long = if self.prng.one_in(4) { 2_000 } else { 40_000 };
        let expires_ms = self.now_ms + self.prng.below(long) as u64;
        let held = held.filter(|_| !self.prng.one_in(20));
        if held.is_none() && !self.prng.one_in(3) {
            return;
        }
        let deal = match held {
            Some((operation, open)) => Deal {
                by: self.books.links[&open.link].clone(),
                method: open.method,
                own: open.own.clone(),
                public: Some(open.public.clone()),
                to: vec![open.upstream.clone()],
                held: Some(operation),
                ..blank(expires_ms)
            },
            None => Deal {
                by: id(self.prng.pick(&CALLERS).unwrap()),
                own: (*self.prng.pick(&NAMES[..6]).unwrap()).to_owned(),
                to: vec![self.any_upstream()],
                ..blank(expires_ms)
            },
        };
        if self.books.deals.all.contains_key(&proposal) {
            return;
        }
        let by = deal.by.clone();
        let mine = |deal: &&Deal| !deal.over && deal.by == by;
        let full =
            self.books.deals.open_len() >= 8 || self.books.deals.all.values().filter(mine).count() >= 4;
        self.books.deals.all.insert(proposal, deal.clone());
        let Deal { method, own, to, held, .. } = deal;
        let terms = Terms { by: &by, method, context: Some(&own), to: &to, digest: SHOWN, expires_ms };
        let effects =
            self.live(Event::Propose { proposal, terms, held }, Self::expected(Turn::Propose(proposal)));
        let refused = effects.iter().any(|effect| matches!(effect, Effect::NotProposed { .. }));
        assert_eq!(refused, full);
        match held.and_then(|call| self.books.open.get_mut(&call)) {
            Some(open) => open.proposal = Some(proposal),
            None if full => {}
            None => assert!(held.is_none()),
        }
    }

    fn could(&self, by: &ParticipantId, outside: Option<&Capabilities>, deal: &Deal) -> bool {
        let here = self.topic.has_participant(by).then(|| &*self.grants[by]);
        let Some(capabilities) = here.or(outside) else { return false };
        let [to] = &*deal.to else { return false };
        let admits = |context: &str| {
            KindRef::request(deal.method, Some(context))
                .is_ok_and(|kind| capabilities.admits(kind, &[to.as_str()]))
        };
        let prefix = self.configured.iter().find(|names| names.id == *to).map(|names| names.prefix.as_str());
        let public = match (&deal.public, prefix) {
            (_, None) => None,
            (Some(public), _) => Some(public.clone()),
            (None, Some("")) => Some(deal.own.clone()),
            (None, Some(prefix)) => Some(public_name(prefix, &deal.own)),
        };
        admits(&deal.own) || public.is_some_and(|public| admits(&public))
    }

    pub(crate) fn decide(&mut self) {
        let proposal = self.any_deal(|_| true);
        let outsider = self.prng.one_in(2);
        let by = id(if outsider { "operator" } else { self.prng.pick(&CALLERS).unwrap() });
        let proposer = self.books.deals.all.get(&proposal).map(|deal| deal.by.clone());
        let by = proposer.filter(|_| self.prng.one_in(6)).unwrap_or(by);
        let full = Capabilities::full();
        let outside = outsider.then_some(&full).filter(|_| !self.prng.one_in(4));
        let decision = match self.prng.below(7) {
            0..2 => Decision::Reject { reason: Some("no") },
            2 => Decision::Withdraw { reason: None },
            3 => Decision::Approve { digest: Digest([2; 32]) },
            _ => Decision::Approve { digest: SHOWN },
        };
        let could = self.books.deals.all.get(&proposal).is_some_and(|deal| self.could(&by, outside, deal));
        let event = Event::Decide { proposal, by: &by, outside, decision };
        let effects = self.live(event, Self::expected(Turn::Decide(proposal, by.clone(), could)));
        assert_eq!(effects.len(), 1, "a decision counts or is refused");
        if matches!(effects[0], Effect::Store { .. }) {
            assert_ne!(decision, Decision::Approve { digest: Digest([2; 32]) }, "not what was shown");
        }
    }

    pub(crate) fn journal(&mut self) {
        let proposal = self.any_deal(|deal| deal.waiting.is_some());
        if self.books.deals.all.get(&proposal).is_some_and(|deal| deal.waiting.is_some()) {
            let stored = !self.prng.one_in(8);
            self.answer_journal(proposal, stored);
        } else {
            // An answer to nothing changes nothing.
            let effects = self.live(Event::Stored { proposal }, Self::expected(Turn::Other));
            assert!(effects.is_empty());
        }
    }

    fn answer_journal(&mut self, proposal: OperationId, stored: bool) {
        self.books.deals.journal(proposal, stored);
        match stored {
            true => self.live(Event::Stored { proposal }, Self::expected(Turn::Stored(proposal))),
            false => self.live(Event::NotStored { proposal }, Self::expected(Turn::NotStored(proposal))),
        };
    }

    /// Carries out a proposal, or something that nobody proposed.
    pub(crate) fn execute(&mut self) {
        let proposal = self.any_deal(|deal| deal.approved == 1);
        let Some(deal) = self.books.deals.all.get(&proposal).cloned() else { return };
        let (link, operation) = (self.any_link(), self.operation());
        let other = self.prng.one_in(8);
        let upstream = if other { self.any_upstream() } else { deal.to[0].clone() };
        let plain = self.prng.one_in(4);
        let fresh = !self.books.open.contains_key(&operation) && self.books.links.contains_key(&link);
        let own = if self.prng.one_in(8) { "something else".to_owned() } else { deal.own };
        let turn = if plain { Turn::Other } else { Turn::Execute(operation, proposal, own.clone()) };
        let expected = Expected { request: fresh.then_some((operation, link)), turn, ..Expected::default() };
        let event = Event::Execute {
            link,
            operation,
            upstream: &upstream,
            method: deal.method,
            context: Some(&own),
            proposal: (!plain).then_some(proposal),
        };
        let effects = self.live(event, expected);
        assert_eq!(effects.is_empty(), !fresh);
        if let (Some(open), true) = (self.books.open.get_mut(&operation), fresh) {
            open.own = own;
        }
    }

    pub(crate) fn release(&mut self) {
        let operation = self.any_open();
        let held = self.books.open.get(&operation).is_some_and(|open| open.held && open.proposal.is_some());
        let proposal = self.books.open.get(&operation).and_then(|open| open.proposal);
        if let Some(deal) = proposal.filter(|_| held).and_then(|own| self.books.deals.all.get_mut(&own)) {
            deal.held = None;
        }
        let ending = held.then_some((operation, model::Outcome::Ok));
        let effects = self.live(Event::Release { operation }, Expected { ending, ..Expected::default() });
        assert_eq!(effects.len(), usize::from(held));
        *self.books.tally.entry("released").or_default() += usize::from(held);
    }

    pub(crate) fn outcome(&mut self) {
        let proposal = self.any_deal(|deal| deal.approved == 1);
        let all = [ProposalState::Completed, ProposalState::Failed, ProposalState::Expired];
        let state = *self.prng.pick(&all).unwrap();
        self.live(Event::Outcome { proposal, state, reason: None }, Expected::default());
    }

    pub(crate) fn tick(&mut self) {
        let due = self.topic.next_expiry_ms().is_some_and(|expires_ms| expires_ms <= self.now_ms);
        let effects = self.live(Event::Tick, Expected::default());
        assert_eq!(!effects.is_empty(), due);
        assert!(self.topic.next_expiry_ms().is_none_or(|expires_ms| expires_ms > self.now_ms));
    }

    /// The process is killed and starts again: what is durable counts, and nothing else.
    pub(crate) fn crash(&mut self) {
        if self.recorded {
            self.log.push("CRASH".to_owned());
        }
        self.topic = Self::topic(&self.configured);
        self.books.forget();
        for proposal in self.books.deals.which(|_| true) {
            // What was being written down may have reached the disk, or not.
            let arrived = self.prng.one_in(2);
            self.books.deals.journal(proposal, arrived);
            let Some(deal) = self.books.deals.all.get_mut(&proposal) else { continue };
            deal.held = None;
            let pending = matches!(deal.durable.last(), Some(Record::Opened));
            assert!(!deal.proposed || !deal.durable.is_empty(), "{proposal} is lost");
            assert!(deal.over || deal.approved == 0 || !pending, "{proposal} would run again");
            if !pending {
                // Decided or never told of; what was approved and has no end is settled by whoever restarts.
                deal.over = true;
                continue;
            }
            assert!(!deal.over || deal.end_lost || !deal.proposed, "{proposal} is over, and comes back");
            (deal.over, deal.proposed) = (false, true);
        }
        for (proposal, deal) in self.books.deals.all.iter().filter(|(_, deal)| !deal.over) {
            let Deal { by, method, own, to, expires_ms, .. } = deal;
            let (context, digest, expires_ms) = (Some(own.as_str()), SHOWN, *expires_ms);
            let terms = Terms { by, method, context, to, digest, expires_ms };
            let effects = self.topic.step(self.now_ms, Event::Restore { proposal: *proposal, terms });
            assert!(effects.is_empty());
        }
        assert_eq!(self.topic.proposals_len(), self.books.deals.open_len());
        self.open();
    }

    /// Every proposal comes to its one end.
    pub(crate) fn settle_deals(&mut self) {
        self.now_ms += 100_000;
        for _ in 0..4 {
            self.live(Event::Tick, Expected::default());
            for proposal in self.books.deals.which(|deal| deal.waiting.is_some()) {
                self.answer_journal(proposal, true);
            }
            for proposal in self.books.deals.which(|deal| !deal.over && deal.approved == 1) {
                let (state, reason) = (ProposalState::Completed, None);
                self.live(Event::Outcome { proposal, state, reason }, Expected::default());
            }
        }
        assert_eq!((self.topic.proposals_len(), self.books.deals.open_len()), (0, 0));
        assert_eq!(self.topic.next_expiry_ms(), None);
    }
}

fn blank(expires_ms: u64) -> Deal {
    Deal {
        by: ParticipantId::gateway(),
        method: "tools/call",
        own: String::new(),
        public: None,
        to: Vec::new(),
        expires_ms,
        held: None,
        waiting: None,
        durable: Vec::new(),
        proposed: false,
        approved: 0,
        runs: 0,
        over: false,
        end_lost: false,
    }
}
