//! Requests that the server did not run are sent again, once.
//!
//! A legacy session that the server forgot (404, or what `lost` found) is opened again: a new
//! handshake on the same link, and all subscriptions made again. A modern server that refuses the
//! headers of a call has changed the tool's schema: its tools are listed again.

use std::sync::Arc;

use bytes::Bytes;
use model::Coding;
use wire::mcp::{Era, Params, code};
use wire::rpc::Message;

use super::pending::{HeadersRefused, WrittenRequest};
use super::{Session, SessionEvent};
use crate::{fault::Fault, handshake, lists};

impl Session {
    /// Whether a request of this method may be sent again, so that it is kept.
    pub(super) fn may_resend(&self, method: &str) -> bool {
        match self.era() {
            Era::Legacy => {
                self.keeps_calls && method != "initialize" && self.coding() == Coding::Json
            }
            Era::Modern => self.over_http() && method == "tools/call",
        }
    }

    /// Opens the session again, if it is open and is not being opened.
    pub(super) fn begin_reopen(self: &Arc<Self>) {
        let mut pending = self.pending.lock();
        if pending.ended.is_none() && pending.awaiting_reopen.is_none() {
            pending.awaiting_reopen = Some(Vec::new());
            let me = Arc::clone(self);
            tokio::spawn(async move { me.reopen().await });
        }
    }

    /// Has a request sent again in the session's successor, which is opened first if `is_gone`;
    /// false when it was sent twice already or cannot be sent again.
    pub(super) fn await_reopen(self: &Arc<Self>, number: u64, is_gone: bool) -> bool {
        if !self.pending.lock().is_kept(number) {
            return false;
        }
        if is_gone {
            self.begin_reopen();
        }
        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            return false;
        }
        // None if the request has ended meanwhile.
        let Some(kept) = pending.take_sent(number) else {
            return true;
        };
        if pending.awaiting_reopen.is_some() {
            pending.await_reopen(number, kept);
        } else {
            drop(pending);
            self.send_kept(number, kept);
        }
        true
    }

    pub(super) async fn reopen(self: Arc<Self>) {
        tracing::info!(
            server = self.upstream(),
            "the server forgot the session; opening a new one"
        );
        if let Err(fault) = self.open_again().await {
            tracing::warn!(server = self.upstream(), %fault, "the new session failed");
            self.end(fault);
            return;
        }
        self.doubts.renew();
        // Lists, subscriptions and the log level belonged to the forgotten session.
        self.setup.interest.renew();
        self.mark_stale(lists::ALL);
        let mut again = Vec::new();
        {
            let mut pending = self.pending.lock();
            for number in pending.awaiting_reopen.take().unwrap_or_default() {
                if let Some(sent) = pending.take_sent(number) {
                    again.push((number, sent));
                }
            }
        }
        for (number, sent) in again {
            self.send_kept(number, sent);
        }
    }

    async fn open_again(self: &Arc<Self>) -> Result<(), Fault> {
        if let Some(link) = self.link.get() {
            link.forget_session();
            link.connect_again().await?;
        }
        handshake::initialize(self, None).await
    }

    /// Has a call sent again whose headers the server refused, once the tools are listed again and
    /// if its headers are others then; false when it was sent twice already.
    pub(super) fn await_headers(self: &Arc<Self>, number: u64, refused: &Message) -> bool {
        let is_refused = refused
            .error_object()
            .is_some_and(|error| error.code == code::HEADER_MISMATCH);
        let mut pending = self.pending.lock();
        if !is_refused || self.era() == Era::Legacy || !pending.is_kept(number) {
            return false;
        }
        let waiting = HeadersRefused {
            number,
            answer: refused.clone(),
        };
        if let Some(requests) = &mut pending.awaiting_headers {
            requests.push(waiting);
        } else {
            pending.awaiting_headers = Some(vec![waiting]);
            let me = Arc::clone(self);
            tokio::spawn(async move { me.list_and_resend().await });
        }
        true
    }

    async fn list_and_resend(self: Arc<Self>) {
        tracing::debug!(
            server = self.upstream(),
            "the server refused a call's headers; listing its tools again"
        );
        if let Some(handshake) = self.handshake() {
            let before = self.manifest();
            // `refresh` logs what it cannot fetch.
            let _ = lists::refresh(&self, &handshake, lists::bit(model::ListKind::Tools)).await;
            if !Arc::ptr_eq(&before, &self.manifest()) {
                self.emit(SessionEvent::Changed(&[]));
            }
        }
        let waiting = self
            .pending
            .lock()
            .awaiting_headers
            .take()
            .unwrap_or_default();
        for call in waiting {
            // None if the call has ended meanwhile.
            let kept = self.pending.lock().take_sent(call.number);
            let Some(kept) = kept else {
                continue;
            };
            let headers = self.headers_again(&kept.encoded.frame);
            if headers == kept.headers {
                // Sent as it was, it would be refused again.
                self.finish(call.number, Ok(call.answer));
            } else {
                self.send_kept(call.number, WrittenRequest { headers, ..kept });
            }
        }
    }

    fn headers_again(&self, frame: &Bytes) -> Option<Box<http::HeaderMap>> {
        let message = Message::read(frame.clone()).ok()?;
        let params = Params::read(&message).ok()?;
        self.headers_of(
            self.era(),
            frame,
            params.method(),
            params.target(),
            self.version(),
        )
    }
}
