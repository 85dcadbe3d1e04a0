//! Calls that wait until a server has listed what it has announced to have changed: those that were
//! approved for a tool as it was shown.

use std::sync::atomic::Ordering;

use model::ListKind;
use tokio::time::timeout;

use super::Session;
use crate::lists::bit;

/// Fetches of lists for whose ends a call waits at most. The first may have begun before what was
/// announced last; the next one has all that was announced before the call waited. A server that
/// announces a change whenever it is asked for its lists keeps no call waiting for ever.
const FETCHES_AWAITED_MAX: usize = 2;

impl Session {
    /// Whether its server has announced other tools than it has listed until now.
    #[must_use]
    pub fn is_relisting(&self) -> bool {
        let stale = self.stale.load(Ordering::SeqCst);
        stale & bit(ListKind::Tools) != 0 || self.relisting.is_fetching()
    }

    /// Waits until its server has listed the tools that it had announced before, or the session has
    /// ended: for as long as a request waits for its answer, at most.
    pub async fn relisted(&self) {
        let mut ended = self.ended.subscribe();
        let wait = async {
            for _ in 0..FETCHES_AWAITED_MAX {
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
