//! Pause of a participant.

use std::sync::Arc;

use model::ParticipantId;

/// The pause of a participant, on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brake {
    /// The participant that paused it.
    pub by: ParticipantId,
    /// Why, in words.
    pub reason: Option<Arc<str>>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}
