//! Owns the life of one request, from its opening to its one outcome.
//! Must not know how it was routed, nor what its payload says.

use crate::{LinkId, OperationId};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The other side answered with a result.
    Ok,
    /// The other side answered with an error of its own.
    Error,
    /// No answer could be had; a refusal says why.
    Refused,
    /// Whoever asked took it back.
    Cancelled,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationState {
    /// Delivered, and nothing came back yet.
    Open,
    /// Over. Nothing that comes later counts.
    Settled(Outcome),
}

/// One request, as everybody who watches may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// The link that opened it; answer, progress and questions go there.
    pub link: LinkId,
    /// Where it stands.
    pub state: OperationState,
}
