//! What waiting messages may cost: the bounds of one stream, and the account of all of them together.
//!
//! Must not know what waits, nor for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::config::Limits;

/// Bytes that may wait unsent in one stream. Beyond it progress is merged, then the stream ends (design, section 4, Limits).
pub const STREAM_UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bounds of a stream.
#[derive(Debug)]
pub struct Bounds {
    /// Messages that may wait unsent.
    pub unsent_messages_max: usize,
    /// Their bytes.
    pub unsent_bytes_max: usize,
    /// Messages already sent that a resumable stream keeps for a reader that comes back.
    pub replay_messages_max: usize,
    /// Their bytes.
    pub replay_bytes_max: usize,
    /// One MCPx envelope, bytes.
    pub envelope_bytes_max: usize,
    /// Between two signs of life on a silent stream.
    pub keep_alive: Duration,
    /// Bytes held for all streams together.
    pub held: Arc<Held>,
}

impl Bounds {
    /// The bounds that the configuration sets; `held` is the account that all share.
    pub fn new(limits: &Limits, held: Arc<Held>) -> Arc<Self> {
        Arc::new(Self {
            unsent_messages_max: limits.queue_len_max,
            unsent_bytes_max: STREAM_UNSENT_BYTES_MAX.min(limits.held_bytes_max),
            replay_messages_max: limits.resume_events_max,
            replay_bytes_max: limits.resume_bytes_max,
            envelope_bytes_max: limits.envelope_bytes_max,
            // A period of nothing would never rest.
            keep_alive: limits.keep_alive.max(Duration::from_millis(10)),
            held,
        })
    }
}

/// An account of bytes with a bound.
#[derive(Debug)]
pub struct Held {
    bytes: AtomicUsize,
    max: usize,
}

impl Held {
    /// Nothing is held yet.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), max })
    }

    /// Whether so much more may be held.
    pub fn has_room(&self, more: usize) -> bool {
        self.bytes.load(Ordering::Relaxed).saturating_add(more) <= self.max
    }

    /// How many are held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes bytes; whoever may not exceed the bound asks for room first.
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that they are gone.
    pub fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes on the account that go with their owner.
#[derive(Debug)]
pub struct Share {
    held: Arc<Held>,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    pub fn new(held: &Arc<Held>) -> Self {
        Self { held: Arc::clone(held), bytes: 0 }
    }

    /// Takes more; false when there is no room.
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
