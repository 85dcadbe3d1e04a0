//! Plans in events: several proposals that are decided about as one.

use std::sync::Arc;

use model::{Capabilities, Digest, Narrowing, OperationId, ParticipantId};

use super::Terms;
use crate::Handles;

/// One step of a plan that is proposed.
#[derive(Debug)]
pub struct PlanStep<H: Handles> {
    /// A new, unguessable id for the step's life as a proposal.
    pub proposal: OperationId,
    /// The proposed request. The digest of the first step is one of all steps, and each step has the
    /// number of approvals that the plan needs.
    pub terms: Terms,
    /// Content of the proposed request, in full; of the first step, of all.
    pub content: H::Content,
    /// The public name under which it was proposed.
    pub public: Option<Arc<str>>,
}

/// A plan that a participant proposes: [`PLAN_STEPS_MIN`](crate::PLAN_STEPS_MIN) to
/// [`PLAN_STEPS_MAX`](crate::PLAN_STEPS_MAX) calls of tools at servers, which run one after the other.
#[derive(Debug)]
pub struct ProposePlan<'a, H: Handles> {
    /// The proposer.
    pub by: &'a ParticipantId,
    /// Its capabilities, if it is not in the topic and proposes through the API.
    pub outside: Option<&'a Arc<Capabilities>>,
    /// The part of its capabilities that its access token is good for; `None` is all of them.
    pub narrowing: Option<&'a Narrowing>,
    /// Its steps, in their order.
    pub steps: Vec<PlanStep<H>>,
}

/// The answer to [`Effect::StepDue`](crate::Effect::StepDue): a step of an approved plan runs now,
/// if the approval still counts for it.
#[derive(Debug)]
pub struct RunStep<'a, H: Handles> {
    /// The step.
    pub proposal: OperationId,
    /// The digest of the step with what its server lists now; `None` if it cannot be made any more.
    pub current: Option<Digest>,
    /// The id of the envelope that announces the approval in the room.
    pub fulfilment: &'a str,
    /// The shell's part of the approval; `None` if it cannot be recorded, which stops the plan.
    pub ruling: Option<H::Ruling>,
}
