//! Request with which the caller of a call waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use platform::Mutex;

/// The caller waits with the request that it made first.
const FIRST: u8 = 0;
/// It was answered for now.
const AWAY: u8 = 1;
/// It waits with the request in `later`.
const LATER: u8 = 2;

/// The request with which the caller of a call waits.
pub(super) enum WaitsWith<C> {
    /// The one that it made first.
    First,
    /// One with which it came back after an answer for now.
    Later(Arc<C>),
    /// None: it was answered for now.
    Nothing,
}

/// Keeps the request with which the caller of a call waits. Only effects of the call change it, one
/// at a time.
pub(crate) struct Waiter<C> {
    /// [`FIRST`], [`AWAY`] or [`LATER`]: few callers come back, and the others take no lock.
    state: AtomicU8,
    /// The last request with which the caller came back.
    later: Mutex<Option<Arc<C>>>,
}

impl<C> Default for Waiter<C> {
    fn default() -> Self {
        Self {
            state: AtomicU8::new(FIRST),
            later: Mutex::new(None),
        }
    }
}

impl<C> Waiter<C> {
    /// Whether the caller was answered for now and is not back, as far as the call's effects have
    /// been carried out. Only these may ask: for all others the topic knows.
    pub(crate) fn is_away(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAY
    }

    /// The request with which the caller waits now.
    pub(super) fn waits_with(&self) -> WaitsWith<C> {
        match self.state.load(Ordering::Acquire) {
            AWAY => WaitsWith::Nothing,
            LATER => {
                let later = self.later.lock().clone();
                later.map_or(WaitsWith::First, WaitsWith::Later)
            }
            _ => WaitsWith::First,
        }
    }

    /// The caller is answered for now.
    pub(super) fn leave(&self) {
        self.state.store(AWAY, Ordering::Release);
    }

    /// The caller waits with this request.
    pub(super) fn come_back(&self, by: Arc<C>) {
        let before = self.later.lock().replace(by);
        self.state.store(LATER, Ordering::Release);
        // Not under the lock: it may be the last holder of that request.
        drop(before);
    }
}
