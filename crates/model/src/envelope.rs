//! Owns the envelope: one thing that happens, who says it to whom, and its bytes.
//! Must not know how any wire writes one.

use bytes::Bytes;

use crate::{Kind, OperationId, ParticipantId};

/// The two eras of MCP. A payload is written in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Revisions 2024-11-05 to 2025-11-25: a handshake opens a session.
    Legacy,
    /// Revision 2026-07-28: every request stands alone.
    Modern,
}

/// The bytes that somebody wrote, never opened by the topic. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The era whose form the bytes have.
    pub era: Era,
    /// The bytes as they came.
    pub bytes: Bytes,
}

/// One thing that happens in a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// What is done.
    pub kind: Kind,
    /// Who does it. Only the door writes this.
    pub from: ParticipantId,
    /// Whom it is for; empty means everybody in the topic.
    pub to: Vec<ParticipantId>,
    /// The request that this opens, or that it belongs to.
    pub operation: Option<OperationId>,
    /// What is said.
    pub payload: Payload,
}
