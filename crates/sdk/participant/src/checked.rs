//! Strict check of one envelope, as a participant makes it before it acts (MCPx v0.1, 4.3): for
//! bridges and tests.

use bytes::Bytes;
use wire::mcpx::check::{Act, Mismatch, strict};
use wire::mcpx::{Breach, CHAT, Chat, Envelope};

/// Why a participant must not act on a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It is no envelope.
    #[error("{0}")]
    Breach(#[from] Breach),
    /// Its kind and its payload disagree.
    #[error("{0}")]
    Mismatch(#[from] Mismatch),
}

/// Reads a message and checks it as strictly as a participant must. `docs/envelope.schema.json` is
/// the same as far as a schema can say it, and `docs/mcpx-vectors.json` has cases.
///
/// # Errors
/// [`CheckError`].
pub fn check(frame: Bytes) -> Result<(Envelope, Act), CheckError> {
    let envelope = Envelope::receive(frame)?;
    let act = strict(envelope.kind(), envelope.payload_bytes())?;
    if envelope.kind() == CHAT {
        Chat::read(envelope.payload()).map_err(Mismatch::from)?;
    }
    Ok((envelope, act))
}
