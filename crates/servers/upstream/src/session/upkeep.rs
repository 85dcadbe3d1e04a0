//! Upkeep of an open session: failures for the status, deadlines of pending requests, liveness
//! check of a child, era check of a modern server.

use std::time::{Duration, Instant};
use std::{sync::Arc, sync::atomic::Ordering};

use client::LinkError;
use model::RefusalCode;
use wire::mcp::Era;

use super::{Failure, Session, SessionEvent, pending::Waiter};
use crate::fault::Fault;

impl Session {
    /// Why the open session counts as degraded, in words for callers.
    pub(crate) fn failure(&self) -> Option<String> {
        self.health
            .failure
            .lock()
            .as_ref()
            .map(|failure| failure.why.clone())
    }

    /// Whether the server could be reached with the last request.
    pub(crate) fn is_reachable(&self) -> bool {
        self.health
            .failure
            .lock()
            .as_ref()
            .is_none_or(|failure| !failure.is_down)
    }

    /// Records a failed request: others may fail like it.
    pub(super) fn record_failure(&self, fault: &Fault) {
        let refusal = self.refusal(fault);
        let is_down = refusal.code == RefusalCode::UpstreamDown;
        *self.health.failure.lock() = Some(Failure {
            why: refusal.message.into_owned(),
            is_down,
        });
        self.health.failing.store(true, Ordering::Relaxed);
        self.emit(SessionEvent::State);
    }

    /// Records an answer: it clears the failure.
    pub(super) fn record_answer(&self) {
        let failing = &self.health.failing;
        if failing.load(Ordering::Relaxed) && failing.swap(false, Ordering::Relaxed) {
            *self.health.failure.lock() = None;
            self.emit(SessionEvent::State);
        }
    }

    /// Checks after a timeout whether a child is alive: pings it, and closes the session if the
    /// child sends nothing at all for as long as a start may take. The supervisor then opens a new
    /// session.
    pub(super) fn check_liveness(self: &Arc<Self>) {
        self.record_failure(&Fault::Timeout);
        if self.over_http() || self.health.silent.swap(true, Ordering::SeqCst) {
            return;
        }
        let me = Arc::clone(self);
        tokio::spawn(async move {
            let method = match me.era() {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            };
            let patience = me.setup.spec.config.timeouts.start;
            let answer = me.ask(me.era(), method, &[], patience).await;
            let silent = me.health.silent.swap(false, Ordering::SeqCst);
            if silent && matches!(answer, Err(Fault::Timeout | Fault::Unsent(_))) && me.is_open() {
                tracing::error!(server = me.upstream(), "the server hangs; restarting it");
                me.end(Fault::Link(LinkError::Timeout));
                me.close().await;
            }
        });
    }

    /// Checks whether a server that answered like no modern server still is one. If not, the
    /// session closes, and the next one detects the era again.
    pub(super) fn check_era(self: &Arc<Self>) {
        if self.health.checking_era.swap(true, Ordering::SeqCst) {
            return;
        }
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(fault) = me.request_result(Era::Modern, "server/discover", &[]).await {
                tracing::warn!(server = me.upstream(), %fault, "the server is no longer modern; closing the session");
                me.close().await;
            }
            me.health.checking_era.store(false, Ordering::SeqCst);
        });
    }
}

/// Resolution of the deadlines.
const TICK: Duration = Duration::from_millis(50);

impl Session {
    /// Starts the task that checks the deadlines.
    pub(super) fn watch_deadlines(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        let timer = Arc::clone(&self.timer);
        tokio::spawn(async move {
            loop {
                timer.notified().await;
                loop {
                    tokio::time::sleep(TICK).await;
                    let Some(session) = session.upgrade() else {
                        return;
                    };
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
