//! Calls that wait until a server has listed what it has announced to have changed: those that were
//! approved for a tool as it was shown.

use std::sync::atomic::Ordering;

use model::ListKind;
use tokio::time::timeout;

use super::Session;
use crate::lists::bit;

impl Session {
    /// Whether its server has announced other tools than it has listed until now.
    #[must_use]
    pub fn is_relisting(&self) -> bool {
        let stale = self.stale.load(Ordering::SeqCst);
        stale & bit(ListKind::Tools) != 0 || self.relisting.is_fetching()
    }

    /// Waits until its server has listed the tools that it has announced, or the session has ended: for
    /// as long as a request waits for its answer, at most.
    pub async fn relisted(&self) {
        let mut ended = self.ended.subscribe();
        let wait = async {
            loop {
                let fetched = self.relisting.fetched();
                tokio::pin!(fetched);
                // Before the look, so that no end of a fetch is missed.
                fetched.as_mut().enable();
                if !self.is_relisting() {
                    return;
                }
                self.relisting.note_awaited();
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
