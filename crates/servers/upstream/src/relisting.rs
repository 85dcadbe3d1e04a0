//! Lists that are fetched again, and calls that wait for them.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The lists of a session that are fetched again, and who waits for them.
#[derive(Default)]
pub(crate) struct Relisting {
    is_fetching: AtomicBool,
    /// Whether a call waits: then no pause after announcements counts.
    is_awaited: AtomicBool,
    fetched: Notify,
}

/// Lists are fetched as long as this lives.
pub(crate) struct Fetching<'a>(&'a Relisting);

impl Relisting {
    /// Begins to fetch. Must be called before the bits of the stale lists are taken: a reader that finds
    /// none then finds that they are fetched.
    pub(crate) fn begin(&self) -> Fetching<'_> {
        self.is_fetching.store(true, Ordering::SeqCst);
        Fetching(self)
    }

    pub(crate) fn is_fetching(&self) -> bool {
        self.is_fetching.load(Ordering::SeqCst)
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }

    /// Notes that a call waits: then no pause after announcements counts.
    pub(crate) fn note_awaited(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
    }

    /// The end of the fetch that runs or comes next.
    pub(crate) fn fetched(&self) -> Notified<'_> {
        self.fetched.notified()
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.0.is_awaited.store(false, Ordering::SeqCst);
        self.0.is_fetching.store(false, Ordering::SeqCst);
        self.0.fetched.notify_waiters();
    }
}
