//! Calls that wait until a server has listed what it has announced to have changed: those that were
//! approved for a tool as it was shown.

use std::sync::atomic::{AtomicBool, Ordering};

use model::ListKind;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::lists::bit;
use crate::session::Session;

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

    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.0.is_awaited.store(false, Ordering::SeqCst);
        self.0.is_fetching.store(false, Ordering::SeqCst);
        self.0.fetched.notify_waiters();
    }
}

impl Session {
    /// Whether its server has announced other tools than it has listed until now.
    #[must_use]
    pub fn is_relisting(&self) -> bool {
        let stale = self.stale.load(Ordering::SeqCst);
        stale & bit(ListKind::Tools) != 0 || self.relisting.is_fetching.load(Ordering::SeqCst)
    }

    /// Waits until its server has listed the tools that it has announced, or the session has ended: for
    /// as long as a request waits for its answer, at most.
    pub async fn relisted(&self) {
        let mut ended = self.ended.subscribe();
        let wait = async {
            loop {
                let fetched = self.relisting.fetched.notified();
                tokio::pin!(fetched);
                // Before the look, so that no end of a fetch is missed.
                fetched.as_mut().enable();
                if !self.is_relisting() {
                    return;
                }
                self.relisting.is_awaited.store(true, Ordering::SeqCst);
                self.upkeep.notify_one();
                tokio::select! {
                    () = fetched => {}
                    _ = ended.wait_for(|ended| *ended) => return,
                }
            }
        };
        let _ = timeout(self.setup.spec.timeout(None), wait).await;
    }
}
