//! Streamable HTTP transport: each message is a POST, its answer a JSON body or an event stream.

pub(crate) mod connect;
pub(crate) mod endpoint;
mod exchange;
pub(crate) mod peer;
mod requests;
pub(crate) mod socket;
mod spec;
mod state;
pub(crate) mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::time::timeout;

use self::requests::OutgoingRequest;
use self::state::LinkState;
use crate::error::{LinkError, SendError};
use crate::inbox::Inbox;
use crate::transport::{CloseTimeouts, SendMeta};
use peer::Peer;
pub use spec::{HttpLimits, HttpSpec};

/// A link to a Streamable HTTP server.
#[derive(Debug)]
pub(crate) struct HttpLink(Arc<LinkState>);

impl HttpLink {
    pub(crate) fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        let peer = Peer::new(spec)?;
        Ok(Self(Arc::new(LinkState::new(peer, inbox))))
    }

    pub(crate) fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.0;
        let limits = &state.peer.limits;
        if frame.len() > limits.frame_bytes_max {
            return Err(if state.is_closed() { SendError::Closed } else { SendError::TooLarge });
        }
        let Some(number) = meta.request else { return self.note(frame, meta) };
        let mut requests = state.requests();
        // Checked under the lock, so that a link that ends stops each request that it has accepted.
        if state.is_closed() {
            return Err(SendError::Closed);
        }
        if requests.len() >= limits.requests_max {
            return Err(SendError::Busy);
        }
        let request = OutgoingRequest { number, frame, headers: meta.headers };
        requests
            .open(request, |request| tokio::spawn(exchange::run(Arc::clone(state), request)).abort_handle());
        Ok(())
    }

    /// Sends a notification or an answer.
    fn note(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.0;
        if state.is_closed() {
            return Err(SendError::Closed);
        }
        if state.notes.fetch_add(1, Ordering::SeqCst) >= state.peer.limits.requests_max {
            state.notes.fetch_sub(1, Ordering::SeqCst);
            return Err(SendError::Busy);
        }
        tokio::spawn(exchange::note(Arc::clone(state), frame, meta.headers));
        Ok(())
    }

    pub(crate) fn cancel(&self, request: u64) {
        self.0.requests().abort(request);
    }

    pub(crate) fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }

    pub(crate) fn forget_session(&self) {
        self.0.peer.forget_session();
        if let Some(listener) = self.0.listener.lock().take() {
            listener.abort();
        }
    }

    pub(crate) fn listen(&self) {
        let mut listener = self.0.listener.lock();
        if listener.is_none() && !self.0.is_closed() {
            *listener = Some(tokio::spawn(exchange::listen(Arc::clone(&self.0))).abort_handle());
        }
    }

    pub(crate) async fn close(&self, timeouts: CloseTimeouts) {
        let was_open = !self.0.is_closed();
        self.0.end(LinkError::Closed);
        if was_open && self.0.peer.has_session() {
            let _ = timeout(timeouts.eof, self.0.peer.delete()).await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.0.end(LinkError::Closed);
    }
}
