//! Memory bounds of waiting messages: of one stream, and of all streams of a participant.

use std::sync::Arc;

use config::GatewayLimits;
use platform::Share;

/// Bytes that may wait unsent in one stream. Beyond it, progress notifications are merged, then the
/// stream ends.
pub const STREAM_UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bounds of a participant's streams.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The bounds of each stream.
    pub limits: Arc<GatewayLimits>,
    /// The participant's share of the bytes that are held for all streams together.
    pub held: Arc<Share>,
}

impl Bounds {
    /// Bytes that may wait unsent in one stream.
    pub fn unsent_bytes_max(&self) -> usize {
        STREAM_UNSENT_BYTES_MAX.min(self.limits.held_bytes_max)
    }
}
