//! Owns the call behind a proposal: held until it is decided, let go when it is approved, and what its end
//! means for the proposal.
//! Must not know who decides.

use std::sync::Arc;

use model::{OperationId, Outcome, ProposalState};

use crate::{
    effect::{Cause, Effect, Effects},
    operations::{Open, Way},
    refusals,
    topic::Topic,
};

impl Topic {
    /// The call that was held goes to its upstream, on the authority of whoever approved it.
    pub(crate) fn let_go(&mut self, effects: &mut Effects, proposal: OperationId, call: OperationId) {
        let (Some(open), Some(own)) = (self.operations.get_mut(call), self.proposals.get(proposal)) else {
            return;
        };
        open.way = Way::Run { proposal };
        let (from, seat) = (open.link, open.upstream);
        let renamed = own.context.clone().filter(|_| own.context != open.context);
        self.to_upstream(effects, seat, |to| Effect::Deliver { operation: call, from, to, own: renamed });
    }

    /// The caller of a held call was answered for now: the call is over, its proposal is not.
    pub(crate) fn release(&mut self, effects: &mut Effects, call: OperationId) {
        let Some(Open { way: Way::Held { proposal: Some(proposal) }, link: to, .. }) =
            self.operations.get(call)
        else {
            return;
        };
        let (proposal, to) = (*proposal, *to);
        if let Some(own) = self.proposals.get_mut(proposal) {
            own.call = None;
        }
        if let Some(open) = self.operations.get_mut(call) {
            open.way = Way::Held { proposal: None };
        }
        let outcome = Outcome::Ok;
        self.close_call(effects, call, outcome);
        effects.push(Effect::Settle { operation: call, to, outcome });
    }

    /// Ends a held call whose proposal ended. One that runs ends with its answer.
    pub(crate) fn refuse_held(
        &mut self,
        effects: &mut Effects,
        call: OperationId,
        state: ProposalState,
        reason: Option<&str>,
    ) {
        let held = self.operations.get(call).is_some_and(|open| matches!(open.way, Way::Held { .. }));
        if !held {
            return;
        }
        if let Some(open) = self.close_call(effects, call, Outcome::Refused) {
            let (refusal, cause) = refusals::of_held(state, reason);
            effects.push(Effect::Refuse {
                operation: call,
                to: open.link,
                refusal: Box::new(refusal),
                cause,
            });
        }
    }

    /// What the end of a call means for the proposal that it belongs to.
    pub(crate) fn call_is_over(&mut self, effects: &mut Effects, way: Way, outcome: Outcome) {
        match way {
            Way::Run { proposal } => {
                let (state, reason) = match outcome {
                    Outcome::Ok => (ProposalState::Completed, None),
                    Outcome::Error => (ProposalState::Failed, Some("the server answered with an error")),
                    Outcome::Refused => (ProposalState::Failed, Some("there was no answer to the call")),
                    Outcome::Cancelled => (ProposalState::Failed, Some("the call was cancelled")),
                };
                self.outcome(effects, proposal, state, reason.map(Arc::from));
            }
            Way::Held { proposal: Some(proposal) } => {
                if let Some(own) = self.proposals.get_mut(proposal) {
                    own.call = None;
                }
                self.recall(effects, proposal, "the call behind it was given up".into());
            }
            Way::Call | Way::Held { proposal: None } | Way::Ask { .. } => {}
        }
    }

    /// Whether an operation may carry out this proposal: approved, nobody has begun, and nothing else than
    /// what was proposed.
    pub(crate) fn may_carry_out(
        &self,
        proposal: OperationId,
        upstream: &model::ParticipantId,
        method: &str,
        context: Option<&str>,
    ) -> Result<(), Cause> {
        let own = self.proposals.get(proposal).ok_or(Cause::Moot)?;
        let same = own.method.as_str() == method && own.context.as_deref() == context;
        let meant = own.to.is_empty() || own.to.contains(upstream);
        if own.is_running() && own.call.is_none() && same && meant { Ok(()) } else { Err(Cause::Moot) }
    }
}
