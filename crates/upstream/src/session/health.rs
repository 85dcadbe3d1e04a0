//! Health record of an open session: the last failure, and which checks are running.

use std::sync::atomic::{AtomicBool, Ordering};

use platform::Mutex;

/// What is known about a session's health.
#[derive(Default)]
pub(super) struct Health {
    /// Set together with `failure`; every answer checks it.
    failing: AtomicBool,
    /// Why the last request failed, in words for callers; the next answer clears it.
    failure: Mutex<Option<String>>,
    /// A check whether the server is still modern is running.
    checking_era: AtomicBool,
    /// A liveness check is running, and the server has sent nothing since it began.
    silent: AtomicBool,
}

impl Health {
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    pub(super) fn record_failure(&self, why: String) {
        *self.failure.lock() = Some(why);
        self.failing.store(true, Ordering::Relaxed);
    }

    /// Clears the failure; true if there was one.
    pub(super) fn clear_failure(&self) -> bool {
        let cleared = self.failing.load(Ordering::Relaxed) && self.failing.swap(false, Ordering::Relaxed);
        if cleared {
            *self.failure.lock() = None;
        }
        cleared
    }

    /// Records that the server sent anything.
    pub(super) fn record_activity(&self) {
        if self.silent.load(Ordering::Relaxed) {
            self.silent.store(false, Ordering::Relaxed);
        }
    }

    /// Begins a liveness check; false while one is running.
    pub(super) fn begin_liveness_check(&self) -> bool {
        !self.silent.swap(true, Ordering::SeqCst)
    }

    /// Ends the liveness check; true if the server sent nothing since it began.
    pub(super) fn end_liveness_check(&self) -> bool {
        self.silent.swap(false, Ordering::SeqCst)
    }

    /// Begins an era check; false while one is running.
    pub(super) fn begin_era_check(&self) -> bool {
        !self.checking_era.swap(true, Ordering::SeqCst)
    }

    pub(super) fn end_era_check(&self) {
        self.checking_era.store(false, Ordering::SeqCst);
    }
}
