//! Owns what becomes of a proposal: who may decide, and the two steps of every decision and every end.
//! Must not know how a call is held or carried out beyond setting it going.

use std::sync::Arc;

use model::{Capabilities, KindRef, OperationId, ParticipantId, ProposalState};

use crate::{
    admission::{Verdict, judge},
    effect::{Cause, Effect, Effects, Record},
    event::Decision,
    names::public_name,
    proposals::{Phase, Proposal, Ruling},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn decide(
        &mut self,
        effects: &mut Effects,
        now_ms: u64,
        id: OperationId,
        by: &ParticipantId,
        outside: Option<&Capabilities>,
        decision: Decision<'_>,
    ) {
        if let Err(cause) = self.may_decide(now_ms, id, by, outside, decision) {
            return refuse(effects, id, by, cause);
        }
        let (state, reason) = match decision {
            Decision::Approve { .. } => (ProposalState::Running, None),
            Decision::Reject { reason } => (ProposalState::Rejected, reason),
            Decision::Withdraw { reason } => (ProposalState::Withdrawn, reason),
        };
        let reason = reason.map(Arc::from);
        self.rule(effects, id, Ruling { by: by.clone(), state, reason, forced: false });
    }

    fn rule(&mut self, effects: &mut Effects, id: OperationId, ruling: Ruling) {
        let Ruling { by, state, reason, .. } = ruling.clone();
        self.proposals.turn(id, Phase::Deciding(ruling));
        effects.push(Effect::Store { proposal: id, what: Record::Decided { by, state, reason } });
    }

    fn may_decide(
        &self,
        now_ms: u64,
        id: OperationId,
        by: &ParticipantId,
        outside: Option<&Capabilities>,
        decision: Decision<'_>,
    ) -> Result<(), Cause> {
        let proposal = self.proposals.get(id).filter(|proposal| proposal.phase != Phase::Opening);
        let proposal = proposal.ok_or(Cause::Unknown)?;
        let own = proposal.by == *by;
        match decision {
            Decision::Withdraw { .. } if !own => return Err(Cause::NotAdmitted),
            Decision::Withdraw { .. } => {}
            Decision::Approve { .. } | Decision::Reject { .. } if own => return Err(Cause::Own),
            Decision::Approve { .. } | Decision::Reject { .. } => {
                let capabilities = self.capabilities(by).map(Arc::as_ref).or(outside);
                if !capabilities.is_some_and(|capabilities| self.covers(capabilities, proposal)) {
                    return Err(Cause::NotAdmitted);
                }
            }
        }
        match (&proposal.phase, decision) {
            (Phase::Pending, _) if proposal.expires_ms <= now_ms => Err(Cause::Expired),
            (Phase::Pending, Decision::Approve { digest }) if digest != proposal.digest => {
                Err(Cause::Differs)
            }
            (Phase::Pending, _) => Ok(()),
            _ => Err(Cause::Decided),
        }
    }

    /// Whether whoever has these capabilities could make the proposed request: as an envelope under the
    /// upstream's own name, or as a call under its public one.
    pub(crate) fn covers(&self, capabilities: &Capabilities, proposal: &Proposal) -> bool {
        let (method, context) = (proposal.method.as_str(), proposal.context.as_deref());
        let said = KindRef::request(method, context)
            .is_ok_and(|kind| capabilities.admits(kind, &proposal.addressees()));
        said || self
            .as_called(proposal)
            .is_some_and(|(public, at)| judge(capabilities, method, Some(&public), at) == Verdict::Admit)
    }

    /// The public name and the upstream of what is proposed, if it is a call that an MCP client could make.
    pub(crate) fn as_called<'a>(&self, proposal: &'a Proposal) -> Option<(Arc<str>, &'a str)> {
        let [upstream] = &*proposal.to else { return None };
        let names = self.catalog.names(self.catalog.index(upstream)?).filter(|names| !names.builtin)?;
        let public = match (&proposal.public, &proposal.context) {
            (Some(public), _) => public.clone(),
            (None, Some(own)) if proposal.method.names_an_entry() && !names.prefix.is_empty() => {
                public_name(&names.prefix, own).into()
            }
            (None, own) => own.clone()?,
        };
        Some((public, upstream.as_str()))
    }

    /// What was asked to be written down is written down.
    pub(crate) fn stored(&mut self, effects: &mut Effects, id: OperationId) {
        let Some(proposal) = self.proposals.get(id) else { return };
        match proposal.phase.clone() {
            Phase::Opening => self.opened(effects, id),
            Phase::Deciding(ruling) if ruling.state == ProposalState::Running => {
                self.approved(effects, id, ruling);
            }
            Phase::Deciding(ruling) => self.end(effects, id, ruling.state, ruling.reason),
            Phase::Ending(state, reason) => self.end(effects, id, state, reason),
            Phase::Pending | Phase::Running => {}
        }
    }

    /// What was asked to be written down could not be.
    pub(crate) fn not_stored(&mut self, effects: &mut Effects, id: OperationId) {
        let Some(proposal) = self.proposals.get_mut(id) else { return };
        match proposal.phase.clone() {
            Phase::Opening => self.not_opened(effects, id),
            Phase::Deciding(ruling) if ruling.forced => {
                self.end(effects, id, ruling.state, ruling.reason);
            }
            Phase::Deciding(ruling) => {
                let recalled = proposal.recalled.take();
                self.proposals.turn(id, Phase::Pending);
                refuse(effects, id, &ruling.by, Cause::LogUnavailable);
                if let Some(reason) = recalled {
                    self.recall(effects, id, reason);
                }
            }
            // It is over all the same. After a restart it is settled once more: never run again.
            Phase::Ending(state, reason) => self.end(effects, id, state, reason),
            Phase::Pending | Phase::Running => {}
        }
    }

    fn approved(&mut self, effects: &mut Effects, id: OperationId, ruling: Ruling) {
        let Some(proposal) = self.proposals.get_mut(id) else { return };
        let (recalled, call) = (proposal.recalled.take(), proposal.call);
        if let Some(reason) = recalled {
            // Whoever proposed it is gone, and nothing was begun.
            refuse(effects, id, &ruling.by, Cause::Moot);
            return self.ending(effects, id, ProposalState::Withdrawn, Some(reason));
        }
        self.proposals.turn(id, Phase::Running);
        effects.push(Effect::Approved { proposal: id, by: ruling.by });
        if let Some(call) = call {
            self.let_go(effects, id, call);
        }
    }

    pub(crate) fn outcome(
        &mut self,
        effects: &mut Effects,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        let running = self.proposals.get(id).is_some_and(|proposal| proposal.phase == Phase::Running);
        if running && matches!(state, ProposalState::Completed | ProposalState::Failed) {
            self.ending(effects, id, state, reason);
        }
    }

    pub(crate) fn tick(&mut self, effects: &mut Effects, now_ms: u64) {
        while let Some((expires_ms, id)) = self.proposals.first_to_expire()
            && expires_ms <= now_ms
        {
            self.ending(effects, id, ProposalState::Expired, None);
        }
    }

    fn ending(
        &mut self,
        effects: &mut Effects,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        self.proposals.turn(id, Phase::Ending(state, reason.clone()));
        effects.push(Effect::Store { proposal: id, what: Record::Ended { state, reason } });
    }

    /// Takes a proposal out of the book, tells its end, and ends the call that is held behind it.
    fn end(
        &mut self,
        effects: &mut Effects,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        let Some(proposal) = self.proposals.remove(id) else { return };
        let told = reason.clone();
        effects.push(Effect::Told { proposal: id, by: proposal.by, state, reason: told });
        if let Some(call) = proposal.call {
            self.refuse_held(effects, call, state, reason.as_deref());
        }
    }

    /// Takes a proposal back without being asked: its proposer or the call behind it is gone. What is
    /// approved already goes on.
    pub(crate) fn recall(&mut self, effects: &mut Effects, id: OperationId, reason: Arc<str>) {
        let Some(proposal) = self.proposals.get_mut(id) else { return };
        match proposal.phase {
            Phase::Pending => {
                let by = proposal.by.clone();
                let state = ProposalState::Withdrawn;
                self.rule(effects, id, Ruling { by, state, reason: Some(reason), forced: true });
            }
            Phase::Opening | Phase::Deciding(_) => proposal.recalled = Some(reason),
            Phase::Running | Phase::Ending(..) => {}
        }
    }

    /// Takes back what a participant may no longer propose; everything, if it is cut off.
    pub(crate) fn recall_of(&mut self, effects: &mut Effects, by: &ParticipantId, cut_off: bool) {
        for id in self.proposals.of(by) {
            let Some(proposal) = self.proposals.get(id) else { continue };
            let still = self.capabilities(by).is_some_and(|own| self.may_still(own, proposal));
            if cut_off || !still {
                let why = if cut_off {
                    "its proposer was cut off"
                } else {
                    "its proposer may no longer propose it"
                };
                self.recall(effects, id, why.into());
            }
        }
    }

    fn may_still(&self, capabilities: &Capabilities, proposal: &Proposal) -> bool {
        let (method, context) = (proposal.method.as_str(), proposal.context.as_deref());
        let said = KindRef::proposal(method, context)
            .is_ok_and(|kind| capabilities.admits(kind, &proposal.addressees()));
        let held = || {
            let (public, upstream) = self.as_called(proposal)?;
            let kind = KindRef::proposal(method, Some(&public)).ok()?;
            Some(capabilities.admits(kind, &[upstream]))
        };
        said || held() == Some(true) || self.covers(capabilities, proposal)
    }
}

fn refuse(effects: &mut Effects, id: OperationId, by: &ParticipantId, cause: Cause) {
    let refusal = Box::new(refusals::of_decision(cause));
    effects.push(Effect::RefuseDecision { proposal: id, by: by.clone(), refusal, cause });
}
