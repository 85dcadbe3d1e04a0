//! Held, parked and resumed operations: those that wait for a proposal. `pausing.rs` has those that
//! wait for answers.
//!
//! A held call waits for the decision about its proposal. When its caller has been answered for now
//! it is *parked*: it is no longer open at any link, and its caller comes back with
//! [`Event::Resume`](crate::Event::Resume), which the topic admits like any request. An operation
//! of a built-in tool waits in the same way.

use std::sync::Arc;

use model::{LinkId, Narrowing, OperationId, Outcome, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    effect::{AdmittedBy, Cause, Effect, Verdict},
    event::{Parked, Resume},
    members::Member,
    operations::{Handle, Operation, State},
    refusals, requests,
};

/// The reason of a proposal whose call was cancelled after its server had it.
const CANCELLED: &str = "the call was cancelled while it ran: it may have been carried out";

/// A caller that is back, with the request that it came with.
pub(crate) struct Returning<'a, H: Handles> {
    pub(crate) link: LinkId,
    /// The id of the request's life: a new one if it waits for a proposal, else the paused call's.
    pub(crate) operation: OperationId,
    pub(crate) tag: Option<H::Tag>,
    pub(crate) narrowing: Option<&'a Narrowing>,
    pub(crate) call: H::Call,
}

impl<H: Handles> Topic<H> {
    /// Delivers a held call to its server, on the authority of the participant that approved it.
    pub(crate) fn release(&mut self, proposal: OperationId, call: OperationId) {
        self.forget_deadline(call);
        self.operations.turn(
            call,
            State::Delivered {
                proposal: Some(proposal),
            },
        );
        self.hand_over(call);
    }

    /// Sets the time at which the caller of a held call is answered for now.
    pub(crate) fn park_at(&mut self, call: OperationId, until_ms: u64) {
        if let Some(operation) = self.operations.get_mut(call) {
            operation.until_ms = Some(until_ms);
            self.deadlines.insert(until_ms, call);
        }
    }

    /// Removes that time.
    pub(crate) fn forget_deadline(&mut self, call: OperationId) {
        if let Some(until_ms) = self
            .operations
            .get_mut(call)
            .and_then(|open| open.until_ms.take())
        {
            self.deadlines.remove(until_ms, call);
        }
    }

    /// Answers the caller of a held call, or of an operation that waits, for now. The proposal goes
    /// on.
    fn park(&mut self, id: OperationId) {
        self.forget_deadline(id);
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        let state = operation.state;
        let link = operation.link;
        let Some(call) = operation.handle.call().cloned() else {
            return;
        };
        let proposal = match state {
            State::Held {
                proposal: Some(proposal),
            } => {
                // The caller must not rely on a proposal before it is on disk: see `park_late`.
                if self.on_disk(proposal).is_none() {
                    return;
                }
                self.members.finish(link, id);
                self.operations.turn(id, State::Parked { proposal });
                proposal
            }
            State::Waiting { proposal, .. } => {
                self.stop_call(id, Outcome::Ok);
                proposal
            }
            State::Held { proposal: None } | State::Parked { .. } | State::Asked { .. } => return,
            // Questions about it were gathered until now.
            State::Delivered { .. } => return self.pause(id),
            // Its caller did not come back in time.
            State::Paused { .. } | State::Kept => return self.cancel_call(id),
        };
        if let Some(proposal) = self.view_of(proposal) {
            self.effects.push(Effect::Park { call, proposal });
        }
    }

    /// Answers all callers for now whose time has come, with their questions or words about their
    /// proposals, and cancels paused calls whose callers did not come back.
    pub(crate) fn park_due(&mut self) {
        while let Some(id) = self.deadlines.take_due(self.now_ms) {
            self.park(id);
        }
    }

    /// Answers all callers that wait for a proposal for now, before the gateway stops.
    pub(crate) fn stop(&mut self) {
        // Callers that come back from now on are answered at once: see `wait_for`.
        self.stopping = true;
        for id in self
            .operations
            .which(|open| open.state.waits_for_proposal())
        {
            self.park(id);
        }
    }

    /// Goes on with an operation whose caller is back.
    pub(crate) fn resume(&mut self, resume: Resume<'_, H>) {
        let Resume {
            link,
            operation,
            tag,
            parked,
            narrowing,
            call,
        } = resume;
        let back = Returning {
            link,
            operation,
            tag,
            narrowing,
            call,
        };
        match parked {
            Parked::Proposal { proposal, until_ms } => {
                self.resume_waiting(back, proposal, until_ms);
            }
            Parked::Questions { round, answers } => {
                self.members.narrow(link, narrowing);
                self.resume_paused(back, round, answers);
            }
        }
    }

    /// Has a caller that is back wait for its proposal once more, as an operation of the gateway's
    /// own participant.
    fn resume_waiting(&mut self, back: Returning<'_, H>, proposal: OperationId, until_ms: u64) {
        let Returning {
            link,
            operation,
            tag,
            narrowing,
            call,
        } = back;
        if self.operations.contains(operation) {
            return;
        }
        if let Err(refused) = self.pass_limits(link) {
            let cause = refused.cause;
            return self.refuse_request(call, refused.or_else(refusals::plain), cause);
        }
        let proposer = self.proposer_at(link, narrowing, proposal);
        let Some((proposer, server)) = proposer.zip(self.gateway_seat()) else {
            return self.refuse_request(call, refusals::of_return(Cause::Unknown), Cause::Unknown);
        };
        let by = AdmittedBy {
            capabilities: Arc::clone(&proposer.capabilities),
            at: None,
        };
        self.effects.verdict = Some(Verdict::Admitted {
            to: Some(ParticipantId::gateway()),
            own: None,
            by,
        });
        let state = State::Delivered { proposal: None };
        let method = requests::OWN_PROPOSAL;
        let opened = Operation::new(state, link, server, method, Handle::Call(call));
        self.open(operation, Operation { tag, ..opened });
        self.wait_for(operation, proposal, Some(until_ms), true);
    }

    /// The proposer of a proposal, if it is the caller on this link and may come back for it with
    /// this narrowing.
    fn proposer_at(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        proposal: OperationId,
    ) -> Option<&Member<H>> {
        let member = self.members.of_link(link)?;
        let may_return = member.is_caller()
            && self.is_proposer(proposal, &member.id)
            && self.covers_proposal(narrowing, proposal);
        if may_return { Some(member) } else { None }
    }

    /// Holds an operation of the gateway's own participant until a proposal of its caller is over.
    pub(crate) fn wait(
        &mut self,
        operation: OperationId,
        proposal: OperationId,
        until_ms: Option<u64>,
    ) {
        let Some(open) = self.operations.get(operation) else {
            return;
        };
        if !matches!(open.state, State::Delivered { .. }) {
            return;
        }
        let is_theirs = self
            .members
            .of_link(open.link)
            .is_some_and(|caller| self.is_proposer(proposal, &caller.id));
        if !is_theirs {
            return self.refuse_call(operation, Cause::Unknown);
        }
        self.wait_for(operation, proposal, until_ms, false);
    }

    fn wait_for(
        &mut self,
        operation: OperationId,
        proposal: OperationId,
        until_ms: Option<u64>,
        withdraws: bool,
    ) {
        self.operations.turn(
            operation,
            State::Waiting {
                proposal,
                withdraws,
            },
        );
        let Some(awaited) = self.proposals.get_mut(proposal) else {
            // It is over already.
            return self.report(operation, proposal);
        };
        awaited.waiting.push(operation);
        if let Some(until_ms) = until_ms {
            self.park_at(operation, until_ms);
        }
        if self.stopping {
            self.park(operation);
        }
    }

    /// Reports the outcome of a proposal to a caller that waited for it.
    pub(crate) fn report(&mut self, operation: OperationId, proposal: OperationId) {
        let Some(call) = self.stop_call(operation, Outcome::Ok) else {
            return;
        };
        if let Some(proposal) = self.view_of(proposal) {
            self.effects.push(Effect::Report { call, proposal });
        }
    }

    /// Applies the end of a call to the proposal that it belongs to. `failure` is the reason for which
    /// there is no answer, if that is known.
    pub(crate) fn call_is_over(
        &mut self,
        call: OperationId,
        state: State,
        outcome: Outcome,
        failure: Option<&str>,
    ) {
        match state {
            State::Delivered {
                proposal: Some(proposal),
            }
            | State::Paused {
                proposal: Some(proposal),
            } => match outcome {
                Outcome::Ok => self.conclude(proposal, ProposalState::Completed, None),
                Outcome::Error => self.fail(proposal, "the server answered with an error"),
                Outcome::Refused => {
                    self.fail(
                        proposal,
                        failure.unwrap_or("there was no answer to the call"),
                    );
                }
                Outcome::Cancelled => self.fail(proposal, CANCELLED),
            },
            State::Held {
                proposal: Some(proposal),
            }
            | State::Parked { proposal } => {
                if let Some(proposal) = self.proposals.get_mut(proposal) {
                    proposal.call = None;
                }
                // Links leave when the gateway stops, and their proposals last.
                if !self.stopping {
                    self.recall(proposal, "the call behind it was cancelled".into());
                }
            }
            State::Waiting {
                proposal,
                withdraws,
            } => {
                if let Some(awaited) = self.proposals.get_mut(proposal) {
                    awaited.waiting.retain(|other| *other != call);
                }
                if withdraws && outcome == Outcome::Cancelled && !self.stopping {
                    self.recall(proposal, "its caller has stopped waiting".into());
                }
            }
            State::Delivered { proposal: None }
            | State::Paused { proposal: None }
            | State::Kept => {}
            State::Held { proposal: None } | State::Asked { .. } => {}
        }
    }

    /// Whether this participant made a proposal that the topic has on disk.
    fn is_proposer(&self, proposal: OperationId, by: &ParticipantId) -> bool {
        self.on_disk(proposal)
            .is_some_and(|proposal| proposal.terms.by == *by)
    }

    /// Answers the caller of a held call for now, if its time passed while its proposal was being
    /// written.
    pub(crate) fn park_late(&mut self, call: OperationId) {
        let Some(open) = self.operations.get(call) else {
            return;
        };
        if self.stopping || open.until_ms.is_none_or(|until_ms| until_ms <= self.now_ms) {
            self.park(call);
        }
    }
}
