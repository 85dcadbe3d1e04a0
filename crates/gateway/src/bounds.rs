//! Memory bounds of waiting messages: of one stream, and of all streams together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{sync::Arc, time::Duration};

use access::config::Limits;

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
    /// Bytes held for all streams together.
    pub held: Arc<Held>,
}

impl Bounds {
    /// The configured bounds. All streams share `held`.
    pub fn new(limits: &Limits, held: Arc<Held>) -> Arc<Self> {
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

/// A bounded count of bytes in memory.
#[derive(Debug)]
pub struct Held {
    bytes: AtomicUsize,
    max: usize,
}

impl Held {
    /// A count of zero with this bound.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), max })
    }

    /// Whether the bound allows this many bytes more.
    pub fn has_room(&self, more: usize) -> bool {
        self.bytes.load(Ordering::Relaxed).saturating_add(more) <= self.max
    }

    /// The count.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes, even beyond the bound: see [`Held::has_room`].
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes that were added.
    pub fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that are subtracted when this is dropped.
#[derive(Debug)]
pub struct Share {
    held: Arc<Held>,
    bytes: usize,
}

impl Share {
    /// A share of zero bytes.
    pub fn new(held: &Arc<Held>) -> Self {
        Self { held: Arc::clone(held), bytes: 0 }
    }

    /// Adds bytes. Returns false, and adds none, if there is no room.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let room = self.held.has_room(bytes);
        if room {
            self.held.add(bytes);
            self.bytes += bytes;
        }
        room
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.held.remove(self.bytes);
    }
}
