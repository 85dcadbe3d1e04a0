//! The end of what takes too long: one task per session looks at the deadlines while anything is open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::fault::Fault;
use super::Session;
use super::calls::Waiter;

/// How exactly a deadline is kept.
const TICK: Duration = Duration::from_millis(50);

impl Session {
    /// Begins to look at the deadlines.
    pub(super) fn keep_time(self: &Arc<Self>) {
        let (session, timer) = (Arc::downgrade(self), Arc::clone(&self.timer));
        tokio::spawn(async move {
            loop {
                timer.notified().await;
                loop {
                    tokio::time::sleep(TICK).await;
                    let Some(session) = session.upgrade() else { return };
                    if session.expire() {
                        break;
                    }
                    if !session.is_open() {
                        return;
                    }
                }
            }
        });
    }

    /// Ends what is over; true when nothing is open any more.
    fn expire(self: &Arc<Self>) -> bool {
        let expired = self.open().expired(Instant::now());
        for number in expired {
            if let Some(open) = self.settle(number) {
                tracing::warn!(server = self.upstream(), "a request got no answer in time");
                self.call_off(number, "timeout");
                if matches!(open.waiter, Waiter::Call { .. }) {
                    self.suspect();
                }
                self.tell(open, Err(Fault::Timeout));
            }
        }
        self.is_open() && self.open().len() == 0
    }
}
