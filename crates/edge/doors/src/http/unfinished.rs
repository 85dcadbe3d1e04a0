//! Beginnings of senders that are not known: what has arrived of a handshake, a head or a first
//! frame, on the account of its address.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use platform::{Mutex, Share, Taken};

/// Bytes of an unfinished handshake, head or first frame that are on no account: the first buffer
/// of a connection has them.
const UNFINISHED_FREE_BYTES: usize = 8 * 1024;

/// Bytes that have arrived of something that is not whole yet, of a sender that is not known: a
/// handshake, a head, a first frame.
#[derive(Default)]
pub(super) struct Unfinished {
    bytes: AtomicUsize,
    taken: Mutex<Option<Taken>>,
}

impl Unfinished {
    /// The number of bytes while nothing is counted.
    const WHOLE: usize = usize::MAX;

    /// Counts what was read, on this account; without one its sender is known, and nothing is
    /// counted. False if there is no room.
    pub(super) fn grow(&self, more: usize, account: impl FnOnce() -> Option<Arc<Share>>) -> bool {
        let before = self.bytes.load(Ordering::Relaxed);
        if before == Self::WHOLE {
            return true;
        }
        let bytes = before.saturating_add(more);
        self.bytes.store(bytes, Ordering::Relaxed);
        if bytes <= UNFINISHED_FREE_BYTES {
            return true;
        }
        let mut taken = self.taken.lock();
        if let Some(taken) = &mut *taken {
            return taken.grow(more).is_ok();
        }
        let Some(account) = account() else {
            self.bytes.store(Self::WHOLE, Ordering::Relaxed);
            return true;
        };
        *taken = account.take(bytes).ok();
        taken.is_some()
    }

    /// It is whole. What follows is not counted here.
    pub(super) fn end(&self) {
        if self.bytes.swap(Self::WHOLE, Ordering::Relaxed) > UNFINISHED_FREE_BYTES {
            *self.taken.lock() = None;
        }
    }

    /// The next one begins.
    pub(super) fn begin(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }
}
