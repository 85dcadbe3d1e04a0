//! Knowledge of a branch about the rules of a topic.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a rule of the topic could take something of a call.
#[derive(Debug, Default)]
pub(crate) struct BranchRules {
    tighten: AtomicBool,
}

impl BranchRules {
    /// Whether one could.
    pub(crate) fn tighten(&self) -> bool {
        self.tighten.load(Ordering::Acquire)
    }

    /// Notes it.
    pub(crate) fn note(&self, tighten: bool) {
        self.tighten.store(tighten, Ordering::Release);
    }
}
