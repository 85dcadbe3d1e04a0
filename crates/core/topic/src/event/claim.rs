//! A claim as a participant makes it.

use std::sync::Arc;

use model::{Capabilities, Narrowing, OperationId, ParticipantId};

/// A claim that a participant makes.
#[derive(Debug, Clone, Copy)]
pub struct Claiming<'a> {
    /// The proposal.
    pub proposal: OperationId,
    /// The participant.
    pub by: &'a ParticipantId,
    /// Its capabilities, if it is not in the topic.
    pub outside: Option<&'a Arc<Capabilities>>,
    /// The part of its capabilities that its access token is good for; `None` is all of them.
    pub narrowing: Option<&'a Narrowing>,
    /// The time in Unix milliseconds, for those who are shown the claim.
    pub at_ms: u64,
}
