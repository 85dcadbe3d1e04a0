//! A call as rules see it.

use model::{Digest, KindRef, OperationId, ParticipantId};

use crate::arguments::{Arguments, ArgumentsError};

/// Way in which a call came before the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallStage {
    /// Its sender may make it without approval. Only rules that reject or ask look at it.
    Direct,
    /// It waits for a decision.
    Proposed,
}

/// A call or proposal, with all that rules may ask about it. Its arguments must be those that run:
/// the canonical text that a decision is bound to.
#[derive(Debug, Clone, Copy)]
pub struct RuledCall<'a> {
    /// The operation.
    pub operation: OperationId,
    /// The participant that makes the call or proposes it.
    pub proposer: &'a ParticipantId,
    /// The participant that is to run it.
    pub to: &'a ParticipantId,
    /// The kind of its request.
    pub kind: KindRef<'a>,
    /// The arguments, or why they cannot be judged.
    pub arguments: Result<&'a Arguments, &'a ArgumentsError>,
    /// Names of members that the call has beside target and arguments, without those of the
    /// protocol. An approving rule matches no call with such a member.
    pub beside: &'a [&'a str],
    /// Digest of the target's definition as its server lists it now.
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL.
    pub server: Option<Digest>,
    /// The time, in milliseconds since 1970. It must not go back: where a clock was set back, the
    /// latest time that was seen.
    pub at_ms: u64,
}
