//! Decisions about proposals: the right to decide, and the two steps of every decision and every
//! end.

use std::sync::Arc;

use model::{Capabilities, KindRef, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    admission::{admits, admits_kind},
    catalog::ClientName,
    effect::{Cause, Effect, ProposalChange, RefusedDecision},
    event::Decision,
    members::Member,
    operations::State,
    proposals::{Phase, Proposal, Ruling},
    refusals,
};

impl<H: Handles> Topic<H> {
    pub(crate) fn decide(&mut self, id: OperationId, ruling: Ruling<H>) {
        match self.may_decide(id, &ruling) {
            Ok(()) => self.settle_decision(id, ruling),
            Err(cause) => self.refuse_ruling(id, ruling, cause),
        }
    }

    /// Takes a decision of a participant that may decide, if the proposal is still open to it.
    fn settle_decision(&mut self, id: OperationId, ruling: Ruling<H>) {
        let is_withheld = ruling.approves.is_some() && self.is_withheld(id);
        let are_away = ruling.approves.is_some() && self.are_away(id, &ruling.named);
        let now_ms = self.now_ms;
        let wall_ms = self.wall_ms;
        let Some(proposal) = self.proposals.get_mut(id) else {
            return self.refuse_ruling(id, ruling, Cause::Decided);
        };
        let cause = match &proposal.phase {
            Phase::Opening if proposal.queued.is_some() => Some(Cause::Decided),
            Phase::Opening => {
                // It is judged once the opening is on disk.
                proposal.queued = Some(Box::new(ruling));
                return;
            }
            Phase::Pending if proposal.terms.is_over(now_ms, wall_ms) => Some(Cause::Expired),
            Phase::Pending if is_withheld => Some(Cause::ToolChanged),
            Phase::Pending => match ruling.approves {
                Some((shown, _)) if shown != proposal.terms.digest => Some(Cause::Differs),
                Some((_, current)) if current != Some(proposal.terms.digest) => {
                    Some(Cause::Redefined)
                }
                Some(_) if are_away => Some(Cause::Away),
                Some(_) | None => None,
            },
            Phase::Deciding(_) | Phase::Running | Phase::Ending(..) => Some(Cause::Decided),
        };
        match cause {
            Some(cause) => self.refuse_ruling(id, ruling, cause),
            None => self.rule(id, ruling),
        }
    }

    /// Whether a server has changed what is proposed, and callers do not get it.
    fn is_withheld(&self, id: OperationId) -> bool {
        let Some(proposal) = self.proposals.known(id) else {
            return false;
        };
        let method = proposal.terms.method.as_str();
        let own = proposal.terms.context.as_deref();
        proposal
            .terms
            .to
            .iter()
            .any(|to| self.withholds(to, method, own))
    }

    /// Whether none of the participants that would carry out a proposal is there, and one may be
    /// back in a moment: an approval would be used up in vain. A configured server is waited for
    /// when it runs.
    fn are_away(&self, id: OperationId, named: &[ParticipantId]) -> bool {
        let Some(Proposal { terms, .. }) = self.proposals.known(id) else {
            return false;
        };
        let asked = if terms.to.is_empty() {
            named
        } else {
            &terms.to
        };
        let mut asked = asked.iter().filter(|one| **one != terms.by);
        let waits = |one: &ParticipantId| self.catalog.index(one).is_some() && !self.serves(one);
        let is_here = |one: &ParticipantId| self.members.of_id(one).is_some_and(Member::is_caller);
        let is_away = |one: &ParticipantId| {
            self.departures
                .is_recent(one, self.now_ms, self.limits.away_ms)
        };
        !asked.clone().any(|one| waits(one) || is_here(one)) && asked.any(is_away)
    }

    fn rule(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Ruling {
            by,
            state,
            reason,
            handle,
            fulfilment,
            ..
        } = ruling.clone();
        self.proposals.turn(id, Phase::Deciding(Box::new(ruling)));
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        proposal.updated_ms = self.now_ms;
        let content = proposal.content.clone();
        let record = ProposalChange::Decided {
            by,
            state,
            reason,
            fulfilment,
            ruling: handle,
        };
        self.effects.push(Effect::Store {
            proposal: id,
            content,
            record,
        });
    }

    /// Whether a participant may decide about a proposal at all.
    fn may_decide(&self, id: OperationId, ruling: &Ruling<H>) -> Result<(), Cause> {
        let proposal = self.proposals.known(id).ok_or(Cause::Unknown)?;
        let own = proposal.terms.by == ruling.by;
        match ruling.state {
            ProposalState::Withdrawn if own => Ok(()),
            ProposalState::Withdrawn => Err(Cause::NotAdmitted),
            _ if own => Err(Cause::Own),
            // Proposals that are over cannot be decided, and their targets may be gone.
            _ if proposal.over.is_some() => Err(Cause::Decided),
            _ => {
                let capabilities = self.capabilities(&ruling.by).or(ruling.outside.as_ref());
                let may = capabilities.is_some_and(|capabilities| match ruling.requested {
                    Some(_) => proposal.is_asked_for(capabilities),
                    None => self.covers_as_call(capabilities, proposal),
                });
                if may { Ok(()) } else { Err(Cause::NotAdmitted) }
            }
        }
    }

    /// Whether a participant with these capabilities could make the proposed request: as an
    /// envelope under the server's own name, or as a call under its public one.
    pub(crate) fn covers(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        proposal.is_asked_for(capabilities) || self.covers_as_call(capabilities, proposal)
    }

    /// Whether it could make the proposed request as MCP clients name it: at each server under the
    /// public name, at other participants by the kind. Decisions without an envelope (API, command
    /// line, built-in tools) are judged so.
    pub(crate) fn covers_as_call(
        &self,
        capabilities: &Capabilities,
        proposal: &Proposal<H>,
    ) -> bool {
        let terms = &proposal.terms;
        let method = proposal.terms.method.as_str();
        if terms.to.is_empty() {
            return proposal.is_asked_for(capabilities);
        }
        terms
            .to
            .iter()
            .all(|to| match self.as_called(proposal, to) {
                ClientName::Public(public) => {
                    admits(capabilities, method, Some(&public), to.as_str())
                }
                ClientName::Hidden => false,
                ClientName::None => {
                    admits_kind(capabilities, method, terms.context.as_deref(), to.as_str())
                }
            })
    }

    /// The public name or URI of what is proposed to a server.
    fn as_called(&self, proposal: &Proposal<H>, server: &ParticipantId) -> ClientName {
        let terms = &proposal.terms;
        let method = proposal.terms.method.as_str();
        let own = terms.context.as_deref();
        // A held call without another spelling was made under this one.
        let is_uri = terms.method.facts().names_in().is_none();
        let held = proposal
            .public
            .as_deref()
            .or(own.filter(|_| is_uri))
            .filter(|_| proposal.held);
        match (held, own) {
            (Some(held), _) => ClientName::Public(held.to_owned()),
            (None, Some(own)) => self.catalog.client_name(server, method, own),
            (None, None) => ClientName::None,
        }
    }

    /// Goes on with a proposal whose latest change is on disk, or undoes a change that the journal
    /// cannot write.
    pub(crate) fn written(&mut self, id: OperationId, stored: bool) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        match proposal.phase.clone() {
            Phase::Opening if stored => self.opened(id),
            Phase::Opening => self.not_opened(id),
            Phase::Deciding(ruling) if stored && ruling.state == ProposalState::Running => {
                self.approved(id, *ruling);
            }
            // If the topic itself withdraws the proposal, it is over even if the journal fails.
            Phase::Deciding(ruling) if stored || ruling.handle.is_none() => {
                self.closed(id, *ruling, stored)
            }
            Phase::Deciding(ruling) => {
                let recalled = proposal.recalled.take();
                self.proposals.turn(id, Phase::Pending);
                self.refuse_ruling(id, *ruling, Cause::LogUnavailable);
                if let Some(reason) = recalled {
                    self.recall(id, reason);
                }
            }
            // The proposal is over even if the journal fails. After a restart it is settled once
            // more, and never runs again.
            Phase::Ending(state, reason) => self.end(id, (state, reason), stored),
            Phase::Pending | Phase::Running => {}
        }
    }

    /// Settles a rejection or withdrawal.
    fn closed(&mut self, id: OperationId, ruling: Ruling<H>, stored: bool) {
        let Ruling {
            by,
            state,
            reason,
            handle,
            ..
        } = ruling;
        if let Some(proposal) = self.proposals.get_mut(id) {
            proposal.decided = Some((by, handle.clone()));
        }
        self.end(id, (state, reason), stored);
        self.effects.extend_ruled(handle);
    }

    /// Ends a proposal with the end of the operation that carries it out, or because no operation
    /// can.
    pub(crate) fn conclude(
        &mut self,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        if self.proposals.get(id).is_some_and(Proposal::is_running) {
            self.ending(id, state, reason);
        }
    }

    /// Ends proposals whose time has run out: pending ones expire, and those that wait for an
    /// answer in the room fail.
    pub(crate) fn expire_due(&mut self) {
        while let Some(id) = self.proposals.due(self.now_ms, self.wall_ms) {
            if self.proposals.get(id).is_some_and(Proposal::is_running) {
                self.ending(
                    id,
                    ProposalState::Failed,
                    Some("there was no answer".into()),
                )
            } else {
                self.ending(id, ProposalState::Expired, None)
            }
        }
    }

    pub(crate) fn ending(
        &mut self,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        self.proposals
            .turn(id, Phase::Ending(state, reason.clone()));
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        let record = ProposalChange::Ended {
            state,
            reason,
            answer: proposal.answer.clone(),
        };
        self.effects.push(Effect::Store {
            proposal: id,
            content: proposal.content.clone(),
            record,
        });
    }

    /// Ends a proposal, and reports its outcome to the callers that wait for it. The proposer's own
    /// requests run only if the end is on disk: otherwise the proposal would be pending again after
    /// a restart, and could run too.
    fn end(
        &mut self,
        id: OperationId,
        (state, reason): (ProposalState, Option<Arc<str>>),
        stored: bool,
    ) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let call = proposal.call.take();
        let waiting = std::mem::take(&mut proposal.waiting);
        let deferred = std::mem::take(&mut proposal.deferred);
        proposal.end_lost = !stored;
        self.proposals.end(id, state, reason, self.now_ms);
        let Some(view) = self.view_of(id) else { return };
        self.effects.push(Effect::Concluded { proposal: view });
        match call.and_then(|call| Some((call, self.operations.get(call)?.state))) {
            Some((call, State::Held { .. })) => self.report(call, id),
            Some((call, State::Parked { .. })) => drop(self.operations.remove(call)),
            Some((_, State::Delivered { .. } | State::Paused { .. } | State::Kept)) => {}
            Some((_, State::Waiting { .. } | State::Asked { .. })) | None => {}
        }
        for operation in waiting {
            self.report(operation, id);
        }
        for requests in deferred {
            if stored {
                self.run_deferred(requests)
            } else {
                self.refuse_room(requests, Cause::LogUnavailable)
            }
        }
    }

    /// Withdraws a proposal whose proposer is gone, or whose held call. An approved one goes on.
    pub(crate) fn recall(&mut self, id: OperationId, reason: Arc<str>) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        match proposal.phase {
            Phase::Pending => {
                let withdrawal = Decision::Withdraw {
                    reason: Some(&reason),
                };
                let ruling = Ruling::new(proposal.terms.by.clone(), withdrawal, None);
                self.rule(id, ruling);
            }
            Phase::Opening | Phase::Deciding(_) => proposal.recalled = Some(reason),
            Phase::Running | Phase::Ending(..) => {}
        }
    }

    /// Withdraws the proposals that a participant may no longer make: all, if it has no access to
    /// the topic.
    pub(crate) fn recall_of(&mut self, by: &ParticipantId, capabilities: Option<&Capabilities>) {
        for id in self.proposals.of(by) {
            let Some(proposal) = self.proposals.get(id) else {
                continue;
            };
            let why = match capabilities {
                None => "its proposer may not be here any more",
                Some(own) if !self.may_still(own, proposal) => {
                    "its proposer may not propose it any more"
                }
                Some(_) => continue,
            };
            self.recall(id, why.into());
        }
    }

    /// Whether a participant with these capabilities could still make the proposal.
    pub(crate) fn may_still(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        let method = proposal.terms.method.as_str();
        let context = proposal.terms.context.as_deref();
        let by_envelope = KindRef::proposal(method, context)
            .is_ok_and(|kind| capabilities.admits(kind, &proposal.addressees()));
        let held = || {
            let [server] = &*proposal.terms.to else {
                return None;
            };
            let ClientName::Public(public) = self.as_called(proposal, server) else {
                return None;
            };
            let kind = KindRef::proposal(method, Some(&public)).ok()?;
            Some(capabilities.admits(kind, &[server.as_str()]))
        };
        by_envelope || held() == Some(true) || self.covers(capabilities, proposal)
    }

    /// Refuses a decision, and the calls that came with it.
    pub(crate) fn refuse_ruling(&mut self, proposal: OperationId, ruling: Ruling<H>, cause: Cause) {
        let Ruling {
            by,
            handle,
            requested,
            ..
        } = ruling;
        let refusal = refusals::of_decision(cause);
        let calls = requested
            .map(|requested| requested.calls)
            .unwrap_or_default();
        let answered = !calls.is_empty();
        for (.., call) in calls {
            self.refuse(call, refusal.clone(), cause);
        }
        if let Some(ruling) = handle {
            let content = self
                .proposals
                .known(proposal)
                .map(|own| own.content.clone());
            let refused = RefusedDecision {
                proposal,
                content,
                by,
                ruling,
                answered,
                refusal,
                cause,
            };
            self.effects.push(Effect::RefuseDecision(refused));
        }
    }
}
