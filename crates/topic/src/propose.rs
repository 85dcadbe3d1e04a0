//! Owns how a proposal comes to be: opened, told when it is written down, or brought back after a restart.
//! Must not know what is decided about it.

use model::{OperationId, ParticipantId};

use crate::{
    effect::{Cause, Effect, Effects, Record},
    event::Terms,
    operations::{Method, Way},
    proposals::{Phase, Proposal},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn propose(
        &mut self,
        effects: &mut Effects,
        id: OperationId,
        terms: Terms<'_>,
        held: Option<OperationId>,
    ) {
        if self.proposals.get(id).is_some() {
            return;
        }
        if let Err(cause) = self.may_propose(terms.by, held) {
            let refusal = Box::new(refusals::of_proposal(cause));
            effects.push(Effect::NotProposed { proposal: id, by: terms.by.clone(), refusal, cause });
            if let Some(call) = held.filter(|_| cause != Cause::Moot) {
                self.refuse_call(effects, call, cause);
            }
            return;
        }
        let mut public = None;
        if let Some(open) = held.and_then(|call| self.operations.get_mut(call)) {
            open.way = Way::Held { proposal: Some(id) };
            public.clone_from(&open.context);
        }
        self.proposals.insert(id, Proposal { public, call: held, ..entry(terms, Phase::Opening) });
        effects.push(Effect::Store { proposal: id, what: Record::Opened });
    }

    /// Whether one more proposal of this participant is taken, with this call held behind it.
    fn may_propose(&self, by: &ParticipantId, held: Option<OperationId>) -> Result<(), Cause> {
        if let Some(call) = held {
            let open = self.operations.get(call).ok_or(Cause::Moot)?;
            let own = self.members.of_link(open.link).is_some_and(|member| member.id == *by);
            if open.way != (Way::Held { proposal: None }) || !own {
                return Err(Cause::Moot);
            }
        }
        let full = self.proposals.len() >= self.limits.proposals_max
            || self.proposals.count(by) >= self.limits.proposals_per_participant_max;
        if full { Err(Cause::Limit) } else { Ok(()) }
    }

    pub(crate) fn restore(&mut self, id: OperationId, terms: Terms<'_>) {
        if self.proposals.get(id).is_none() {
            self.proposals.insert(id, entry(terms, Phase::Pending));
        }
    }

    /// The opening was written down: from now on it may be told.
    pub(crate) fn opened(&mut self, effects: &mut Effects, id: OperationId) {
        self.proposals.turn(id, Phase::Pending);
        match self.proposals.get_mut(id).and_then(|proposal| proposal.recalled.take()) {
            // Its proposer went meanwhile: nobody ever hears of it.
            Some(reason) => self.recall(effects, id, reason),
            None => effects.push(Effect::Proposed { proposal: id }),
        }
    }

    /// The opening could not be written down: there is no proposal, and no call behind it.
    pub(crate) fn not_opened(&mut self, effects: &mut Effects, id: OperationId) {
        let Some(proposal) = self.proposals.remove(id) else { return };
        let cause = Cause::LogUnavailable;
        let refusal = Box::new(refusals::of_proposal(cause));
        effects.push(Effect::NotProposed { proposal: id, by: proposal.by, refusal, cause });
        if let Some(call) = proposal.call {
            self.refuse_call(effects, call, cause);
        }
    }
}

fn entry(terms: Terms<'_>, phase: Phase) -> Proposal {
    let Terms { by, method, context, to, digest, expires_ms } = terms;
    Proposal {
        order: 0,
        by: by.clone(),
        method: Method::new(method),
        context: context.map(Into::into),
        public: None,
        to: to.into(),
        digest,
        expires_ms,
        call: None,
        phase,
        recalled: None,
    }
}
