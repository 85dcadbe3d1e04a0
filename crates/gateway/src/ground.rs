//! What everything in the gateway stands on: one clock, one source of ids, one seal.
//!
//! Must not know what the time or the ids are for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use auth::Sealer;
use model::{LinkId, OperationId};
use platform::{millis, random};

/// The clock and the ids of one gateway.
#[derive(Debug)]
pub struct Ground {
    begun: Instant,
    sealer: Sealer,
    links: AtomicU64,
    operations: AtomicU64,
    /// Upper half of every operation id, so that ids of two runs differ.
    run: u64,
}

impl Ground {
    /// A ground whose handles are sealed with these keys.
    pub fn new(sealer: Sealer) -> Self {
        let run = u64::from_le_bytes(random());
        Self { begun: Instant::now(), sealer, links: AtomicU64::new(1), operations: AtomicU64::new(1), run }
    }

    /// What seals session ids and cursors.
    pub fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Milliseconds since the gateway began; never goes back.
    pub fn now_ms(&self) -> u64 {
        millis(self.begun.elapsed())
    }

    /// A new link.
    pub fn link(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed))
    }

    /// A new operation. Not secret: what is told outside as a handle is sealed or random.
    pub fn operation(&self) -> OperationId {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        OperationId((u128::from(self.run) << 64) | u128::from(number))
    }
}

impl room::Stamps for Ground {
    fn now_ms(&self) -> u64 {
        self.now_ms()
    }

    fn envelope_id(&self) -> String {
        self.operation().to_string()
    }
}
