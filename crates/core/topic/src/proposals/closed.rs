//! Digests of the envelopes of proposals that are over.

use std::collections::VecDeque;

use foldhash::HashMap;

/// The most ended proposals whose envelope ids are kept as digests; the first to expire is dropped
/// first.
pub const CLOSED_PROPOSALS_MAX: usize = 100_000;

/// Digests with the times until which they are kept.
#[derive(Debug, Default)]
pub(crate) struct ClosedDigests {
    /// In the order of the times.
    all: VecDeque<(u64, u128)>,
    /// The latest time of each digest: an envelope's id may be used again once its proposal is
    /// forgotten.
    until_ms: HashMap<u128, u64>,
}

impl ClosedDigests {
    /// Adds a digest, or keeps it longer.
    pub(crate) fn add(&mut self, until_ms: u64, digest: u128) {
        let known = self.until_ms.get(&digest);
        if known.is_some_and(|known_ms| *known_ms >= until_ms) {
            return;
        }
        self.until_ms.insert(digest, until_ms);
        self.all.push_back((until_ms, digest));
        if self.all.len() > CLOSED_PROPOSALS_MAX {
            self.forget_first();
        }
    }

    /// Whether a digest is kept.
    pub(crate) fn contains(&mut self, now_ms: u64, digest: u128) -> bool {
        while self
            .all
            .front()
            .is_some_and(|(until_ms, _)| *until_ms <= now_ms)
        {
            self.forget_first();
        }
        self.until_ms.contains_key(&digest)
    }

    fn forget_first(&mut self) {
        let Some((until_ms, digest)) = self.all.pop_front() else {
            return;
        };
        // It may have been kept longer since.
        if self.until_ms.get(&digest) == Some(&until_ms) {
            self.until_ms.remove(&digest);
        }
    }
}
