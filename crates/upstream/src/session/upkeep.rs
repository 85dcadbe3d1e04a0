//! Upkeep of an open session: failures for the status, liveness check of a child, era check of a modern server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::LinkError;
use wire::mcp::Era;

use super::{Session, SessionEvent};
use crate::fault::Fault;

impl Session {
    /// Why the open session counts as degraded, in words for callers.
    pub(crate) fn failure(&self) -> Option<String> {
        self.health.failure.lock().clone()
    }

    /// Records a failed request: others may fail like it.
    pub(super) fn record_failure(&self, fault: &Fault) {
        *self.health.failure.lock() = Some(self.refusal(fault).message.into_owned());
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

    /// Checks after a timeout whether a child is alive: pings it, and closes the session if the child sends nothing at all for
    /// as long as a start may take. The supervisor then opens a new session.
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

    /// Checks whether a server that answered like no modern server still is one. If not, the session closes, and the next one
    /// detects the era again.
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
