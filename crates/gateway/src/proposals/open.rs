//! Openings of proposals: from an envelope, or from a held call.

use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId, Refusal};
use topic::Terms;
use wire::mcpx::Envelope;
use wire::mcpx::check;

use super::content::Proposed;
use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::link::Link;
use crate::live::Server;

/// A proposal before the topic has taken it.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Its id, which cannot be guessed.
    pub(crate) id: OperationId,
    /// The proposal in full.
    pub(crate) content: Arc<Proposed>,
    by: ParticipantId,
    to: Vec<ParticipantId>,
    digest: Digest,
    expires_ms: u64,
}

impl Draft {
    /// The proposal as the topic takes it.
    pub(crate) fn terms(&self) -> Terms<'_> {
        todo!()
    }
}

/// Holds a call as a proposal.
pub(crate) fn held(dispatch: &Arc<Dispatch>, call: &Arc<Call>, to: &ParticipantId, server: &Server, own: Option<Arc<str>>) {
    todo!()
}

/// The proposal that an envelope makes whose payload agrees with its kind.
///
/// # Errors
/// Why it cannot be proposed; the audit log has it then.
pub(crate) fn of_envelope(
    dispatch: &Dispatch,
    link: &Link,
    envelope: &Envelope,
    call: &check::Call,
) -> Result<Draft, Refusal> {
    todo!()
}
