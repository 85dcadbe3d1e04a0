//! Request with which the caller of a call waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use platform::Mutex;

/// The caller was answered for now. Before that it waits with the request that it made first.
const AWAY: u8 = 1;
/// The caller waits with the request in `back`.
const BACK: u8 = 2;

/// The request with which the caller of a call waits. Only effects of the call change it, one at a
/// time.
pub(super) struct Waiter<C> {
    /// [`AWAY`], [`BACK`], or neither: few callers come back, and the others take no lock.
    with: AtomicU8,
    /// The last request with which the caller came back.
    back: Mutex<Option<Arc<C>>>,
}

impl<C> Default for Waiter<C> {
    fn default() -> Self {
        Self {
            with: AtomicU8::new(0),
            back: Mutex::new(None),
        }
    }
}

impl<C> Waiter<C> {
    /// Whether the caller was answered for now and is not back.
    pub(super) fn is_away(&self) -> bool {
        self.with.load(Ordering::Acquire) == AWAY
    }

    /// The request with which the caller came back, if it waits with one.
    pub(super) fn back(&self) -> Option<Arc<C>> {
        if self.with.load(Ordering::Acquire) == BACK {
            self.back.lock().clone()
        } else {
            None
        }
    }

    /// The caller is answered for now.
    pub(super) fn leave(&self) {
        self.with.store(AWAY, Ordering::Release);
    }

    /// The caller waits with this request.
    pub(super) fn come_back(&self, by: Arc<C>) {
        let before = self.back.lock().replace(by);
        self.with.store(BACK, Ordering::Release);
        // Not under the lock: it may be the last holder of that request.
        drop(before);
    }
}
