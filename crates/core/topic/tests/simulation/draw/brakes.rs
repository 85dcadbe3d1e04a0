//! Participants that are paused and resumed, and rejections by envelopes.

use model::{OperationId, ParticipantId};
use topic::{Brake, Intent};

use crate::{
    books::{deals::Deal, envelopes::Envelope, unpublished::Unpublished},
    names::{CALLERS, id},
    numbers::{Effect, Event, RoomEffect},
    turn::{Decided, Turn},
    world::World,
};

impl World {
    /// Pauses a participant, present or absent, or resumes one.
    pub(crate) fn brakes(&mut self) {
        let all: Vec<ParticipantId> = self.books.braked.iter().cloned().collect();
        match self.beside.pick(&all).cloned() {
            Some(braked) if self.beside.below(3) > 0 => self.brake(&braked, false),
            Some(_) | None => {
                let one = id(self.beside.any(&CALLERS));
                self.brake(&one, true);
            }
        }
    }

    pub(crate) fn brake(&mut self, participant: &ParticipantId, is_braked: bool) {
        let toggles = self.books.braked.contains(participant) != is_braked;
        let is_shown = self.books.is_seen(participant) && toggles;
        if is_braked {
            self.books.braked.insert(participant.clone());
        } else {
            self.books.braked.remove(participant);
        }
        let brake = is_braked.then(|| Brake {
            by: id("operator"),
            reason: None,
            since_ms: self.now_ms,
        });
        let turn = Turn {
            regrants: is_shown.then(|| participant.clone()),
            changes: is_shown.then(|| participant.clone()).into_iter().collect(),
            ..Turn::default()
        };
        let renews = self.books.listener_of(participant).filter(|_| is_shown);
        let effects = self.live(Event::Brake { participant, brake }, turn);
        let is_claim = |effect: &Effect| matches!(effect, Effect::Claimed { .. });
        assert!(
            effects.all.iter().all(is_claim),
            "what it has begun goes on"
        );
        let is_renewal = |effect: &&RoomEffect| matches!(effect, RoomEffect::Renew { .. });
        let renewed = effects.room.iter().filter(is_renewal).count();
        assert_eq!(renewed, usize::from(renews.is_some()));
        assert_eq!(self.topic.is_braked(participant), is_braked);
        self.books.count(match (is_braked, is_shown) {
            (true, true) => "braked",
            (true, false) => "braked while absent, or once more",
            (false, _) => "released",
        });
    }

    /// An envelope that rejects a proposal.
    pub(crate) fn rejects(&mut self) {
        let proposal = self.any_deal(Deal::is_known);
        let Some(deal) = self.books.deals.get(&proposal).cloned() else {
            return;
        };
        if self.books.deal_of(&deal.envelope) != Some(proposal) {
            return;
        }
        let drawn = Envelope {
            link: self.speaker(),
            id: format!("r{}", self.number()),
            kind: "portmoot/reject".to_owned(),
            to: self.addressees(),
            correlation: Some(deal.envelope),
            token: self.token(),
            tightening: None,
        };
        self.rejects_by(proposal, drawn);
    }

    fn rejects_by(&mut self, proposal: OperationId, drawn: Envelope) {
        let by = self.books.owner(drawn.link);
        let decided = Decided {
            by: by.unwrap_or_else(ParticipantId::gateway),
            ruling: self.number(),
            outside: None,
            token: drawn.token.clone(),
            digests: None,
            withdraws: false,
            approves: false,
            extends: false,
            amends: None,
            fulfilment: None,
            requested: true,
            named: Vec::new(),
        };
        let acts = self.books.peek(&drawn, self.now_ms).is_acted_on();
        let mut turn = Turn {
            waits: true,
            ..Turn::default()
        };
        if acts {
            self.books.decides(proposal, decided.ruling);
            turn.decision = Some((proposal, decided.clone()));
        }
        let link = drawn.link;
        let (kind, token) = (drawn.kind.clone(), drawn.token.clone());
        let intent = Intent::Rejection {
            reason: Some("no".into()),
            ruling: Some(decided.ruling),
        };
        let (_, waiting, effects) = self.sends_waiting(drawn, turn, intent);
        let Some(message) = waiting.filter(|_| acts) else {
            return;
        };
        let own = decided.ruling;
        let is_refused =
            |effect: &Effect| matches!(effect, Effect::RefuseDecision(one) if one.ruling == own);
        if effects.all.iter().any(is_refused) {
            return;
        }
        let is_stored = |effect: &Effect| matches!(effect, Effect::Store { .. });
        if !effects.all.iter().any(is_stored) {
            self.queues(proposal, decided);
        }
        self.books.count("rejected by an envelope");
        self.books.unpublished.push(Unpublished {
            proposal,
            own: false,
            proposes: false,
            rejects: true,
            link,
            kind,
            token,
            message,
        });
    }
}
