//! Expiry of pending requests: one task per session checks the deadlines while a request is pending.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Session;
use super::pending::Waiter;
use crate::fault::Fault;

/// Resolution of the deadlines.
const TICK: Duration = Duration::from_millis(50);

impl Session {
    /// Starts the task that checks the deadlines.
    pub(super) fn watch_deadlines(self: &Arc<Self>) {
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

    /// Ends the expired requests; true when no request is pending any more.
    fn expire(self: &Arc<Self>) -> bool {
        let expired = self.pending.lock().expired(Instant::now());
        for number in expired {
            if let Some(request) = self.settle(number) {
                tracing::warn!(server = self.upstream(), "a request timed out");
                self.send_cancellation(number, "timeout");
                if matches!(request.waiter, Waiter::Call { .. }) {
                    self.check_liveness();
                }
                self.deliver(request, Err(Fault::Timeout));
            }
        }
        self.is_open() && self.pending.lock().requests.is_empty()
    }
}
