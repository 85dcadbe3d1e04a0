//! Streamable HTTP transport: each message is a POST, its answer a JSON body or an event stream.

pub(crate) mod connect;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod peer;
mod requests;
pub(crate) mod socket;
mod spec;
pub(crate) mod state;
pub(crate) mod stream;

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;

use self::requests::OutgoingRequest;
use self::state::LinkState;
use crate::error::{LinkError, SendError};
use crate::inbox::Inbox;
use crate::transport::{CloseTimeouts, Closing, LinkTransport, SendMeta};
use peer::Peer;
pub use spec::{HttpLimits, HttpSpec};

/// A link to a Streamable HTTP server.
pub(crate) struct HttpLink(Arc<LinkState>);

impl HttpLink {
    pub(crate) fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        let peer = Peer::new(spec)?;
        Ok(Self(Arc::new(LinkState::new(peer, inbox))))
    }
}

impl LinkTransport for HttpLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.0;
        let Some(number) = meta.request else { return exchange::note(state, frame, meta) };
        let limits = &state.peer.limits;
        if frame.len() > limits.frame_bytes_max {
            return Err(if state.is_closed() { SendError::Closed } else { SendError::TooLarge });
        }
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
    fn cancel(&self, request: u64) {
        self.0.requests().abort(request);
    }
    fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }
    fn forget_session(&self) {
        self.0.peer.forget_session();
        if let Some(listener) = self.0.listener.lock().take() {
            listener.abort();
        }
    }
    fn listen(&self) {
        let mut listener = self.0.listener.lock();
        if listener.is_none() && !self.0.is_closed() {
            *listener = Some(tokio::spawn(exchange::listen(Arc::clone(&self.0))).abort_handle());
        }
    }
    fn has_request_streams(&self) -> bool {
        true
    }
    fn close(&self, timeouts: CloseTimeouts) -> Closing<'_> {
        Box::pin(async move {
            let was_open = !self.0.is_closed();
            self.0.end(LinkError::Closed);
            if was_open && self.0.peer.has_session() {
                let _ = timeout(timeouts.eof, self.0.peer.delete()).await;
            }
        })
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.0.end(LinkError::Closed);
    }
}
