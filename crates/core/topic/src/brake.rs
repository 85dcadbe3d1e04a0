//! Pause of a participant, as it is kept.

use std::sync::Arc;

use model::ParticipantId;

/// The most participants of one topic that are paused at a time.
pub const BRAKES_MAX: usize = 1000;

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
