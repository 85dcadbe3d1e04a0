//! Violations: envelopes of a topic that break the protocol or go beyond the sender's capabilities,
//! counted by what they break.

use std::sync::atomic::{AtomicU64, Ordering};

/// Rule that an envelope breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The sender's capabilities.
    Capability,
    /// The rule that `from` is the sender.
    Sender,
    /// The form of an envelope.
    Malformed,
    /// The rule that kind and payload agree, or that an answer is that of a participant that was
    /// asked.
    Mismatch,
}

/// Number of violations of each kind.
#[derive(Debug, Default)]
pub(crate) struct Violations {
    capability: AtomicU64,
    sender: AtomicU64,
    malformed: AtomicU64,
    mismatch: AtomicU64,
}

impl Violations {
    pub(crate) fn count(&self, violation: Violation) {
        let count = match violation {
            Violation::Capability => &self.capability,
            Violation::Sender => &self.sender,
            Violation::Malformed => &self.malformed,
            Violation::Mismatch => &self.mismatch,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts by the names that metrics have for them.
    pub(crate) fn all(&self) -> [(&'static str, u64); 4] {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("capability", count(&self.capability)),
            ("sender", count(&self.sender)),
            ("malformed", count(&self.malformed)),
            ("mismatch", count(&self.mismatch)),
        ]
    }
}
