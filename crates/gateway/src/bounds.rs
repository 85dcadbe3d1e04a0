//! Memory bounds of waiting messages: of one stream, and of all streams of a participant.

use std::{sync::Arc, time::Duration};

use access::config::Limits;
use platform::Share;

/// Bytes that may wait unsent in one stream. Beyond it, progress notifications are merged, then the stream ends.
pub const STREAM_UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bounds of a stream.
#[derive(Debug)]
pub struct Bounds {
    /// Messages that may wait unsent.
    pub unsent_messages_max: usize,
    /// Their bytes.
    pub unsent_bytes_max: usize,
    /// Sent messages that a resumable stream keeps for a client that resumes it.
    pub replay_messages_max: usize,
    /// Their bytes.
    pub replay_bytes_max: usize,
    /// One MCPx envelope, bytes.
    pub envelope_bytes_max: usize,
    /// Interval of keep-alive comments on a silent stream.
    pub keep_alive: Duration,
    /// The participant's share of the bytes that are held for all streams together.
    pub held: Arc<Share>,
}

impl Bounds {
    /// The configured bounds. All streams of a participant have one share, `held`.
    pub fn new(limits: &Limits, held: Arc<Share>) -> Arc<Self> {
        Arc::new(Self {
            unsent_messages_max: limits.queue_len_max,
            unsent_bytes_max: STREAM_UNSENT_BYTES_MAX.min(limits.held_bytes_max),
            replay_messages_max: limits.resume_events_max,
            replay_bytes_max: limits.resume_bytes_max,
            envelope_bytes_max: limits.envelope_bytes_max,
            // A timer without an interval would never sleep.
            keep_alive: limits.keep_alive.max(Duration::from_millis(10)),
            held,
        })
    }
}
