//! How well a session is: what is wrong with it although it is open, and what is done about it.
//!
//! It must not know how a session is opened again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::LinkError;
use model::Era;

use super::super::fault::Fault;
use super::Session;

impl Session {
    /// What is wrong although it is open, as it may be told outside.
    pub(in super::super) fn trouble(&self) -> Option<String> {
        self.health.trouble.lock().clone()
    }

    /// A request failed; others may fail like it.
    pub(super) fn unwell(&self, fault: &Fault) {
        *self.health.trouble.lock() = Some(self.refusal(fault).message.into_owned());
        self.health.troubled.store(true, Ordering::Relaxed);
        self.opening.sink.state();
    }

    /// An answer came.
    pub(super) fn well(&self) {
        if self.health.troubled.load(Ordering::Relaxed) && self.health.troubled.swap(false, Ordering::Relaxed)
        {
            *self.health.trouble.lock() = None;
            self.opening.sink.state();
        }
    }

    /// Anything came.
    pub(super) fn heard(&self) {
        if self.health.silent.load(Ordering::Relaxed) {
            self.health.silent.store(false, Ordering::Relaxed);
        }
    }

    /// A call got no answer in time. A child is asked for a sign of life; when nothing at all comes from it for as long as
    /// it may take to start, it hangs: the session ends, and a new one is opened.
    pub(super) fn suspect(self: &Arc<Self>) {
        self.unwell(&Fault::Timeout);
        if self.over_http() || self.health.silent.swap(true, Ordering::SeqCst) {
            return;
        }
        let me = Arc::clone(self);
        tokio::spawn(async move {
            let method = match me.era() {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            };
            let patience = me.opening.spec.config.timeouts.start;
            let answer = match me.ask(me.era(), method, &[], Some(patience)) {
                Ok(mut answer) => answer.answer().await,
                Err(fault) => Err(fault),
            };
            let silent = me.health.silent.swap(false, Ordering::SeqCst);
            if silent && matches!(answer, Err(Fault::Timeout | Fault::Unsent(_))) && me.is_open() {
                tracing::error!(server = me.upstream(), "the server hangs: it is ended and started again");
                me.end(Fault::Link(LinkError::Timeout));
                me.close().await;
            }
        });
    }

    /// Asks a server that answers as no modern one does whether it still is one; if not, the session ends, and the next
    /// finds out again what the server speaks.
    pub(super) fn doubt(self: &Arc<Self>) {
        if self.health.doubted.swap(true, Ordering::SeqCst) {
            return;
        }
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(fault) = me.result(Era::Modern, "server/discover", &[]).await {
                tracing::warn!(server = me.upstream(), %fault, "the server is not modern any more");
                me.close().await;
            }
            me.health.doubted.store(false, Ordering::SeqCst);
        });
    }
}
