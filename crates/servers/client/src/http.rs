//! HTTP transports: each message is a POST. Its answer is a JSON body or an event stream; over
//! HTTP+SSE it comes on one stream.

mod api;
mod api_message;
pub(crate) mod connect;
pub(crate) mod endpoint;
mod exchange;
mod notes;
mod once;
mod peer;
mod requests;
mod stream;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::{LinkError, SendError};
use crate::transport::{Closing, Connecting, LinkInbox, LinkTransport, SendMeta};

use peer::Peer;
use requests::{LinkState, OutgoingRequest};

pub use api::ApiClient;
pub use api_message::{ApiAnswer, ApiRequest};
pub use once::{Post, dial, exchange, post};
pub use peer::{HttpLimits, HttpSpec};

/// Time that closing waits for the answer to DELETE.
const DELETE: Duration = Duration::from_secs(2);

/// A link to a server over HTTP.
pub(crate) struct HttpLink {
    state: Arc<LinkState>,
    /// Whether the answer to a request comes on the stream of its POST; over HTTP+SSE all come on
    /// one stream.
    request_streams: bool,
}

impl HttpLink {
    /// A link to a Streamable HTTP server. It connects with the first message.
    pub(crate) fn streamable(
        spec: &HttpSpec,
        inbox: Arc<dyn LinkInbox>,
    ) -> Result<Self, LinkError> {
        let state = Arc::new(LinkState::new(Peer::new(spec)?, inbox));
        Ok(Self {
            state,
            request_streams: true,
        })
    }

    /// A link to an HTTP+SSE server, whose stream is open.
    pub(crate) async fn sse(spec: &HttpSpec, inbox: Arc<dyn LinkInbox>) -> Result<Self, LinkError> {
        Ok(Self {
            state: exchange::open_sse(spec, inbox).await?,
            request_streams: false,
        })
    }
}

impl LinkTransport for HttpLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.state;
        let limits = &self.state.peer.limits;
        if state.is_closed() {
            return Err(SendError::Closed);
        }
        if frame.len() > limits.frame_bytes_max {
            return Err(SendError::TooLarge);
        }
        let number = match meta.request {
            None => return exchange::note(state, frame, meta),
            Some(_) if !self.request_streams => return exchange::request(state, frame, meta),
            Some(number) => number,
        };
        let mut requests = state.requests.lock();
        // Checked again under the lock, so that a link that ends stops each request that it has
        // accepted.
        if state.is_closed() {
            return Err(SendError::Closed);
        }
        if requests.len() >= limits.requests_max {
            return Err(SendError::Busy);
        }
        let request = OutgoingRequest {
            number,
            frame,
            headers: meta.headers,
        };
        requests.open(request, |request| {
            tokio::spawn(exchange::run(Arc::clone(state), request)).abort_handle()
        });
        Ok(())
    }
    fn cancel(&self, request: u64) {
        self.state.requests.lock().abort(request);
    }
    fn set_version(&self, version: &str) {
        self.state.peer.set_version(version);
    }
    fn forget_session(&self) {
        self.state.peer.forget_session();
        if let Some(listener) = self.state.listener.lock().take() {
            listener.abort();
        }
    }
    fn connect_again(&self) -> Connecting<'_> {
        Box::pin(async move {
            if self.request_streams {
                Ok(())
            } else {
                exchange::open_stream(&self.state).await
            }
        })
    }
    fn flush(&self) -> Closing<'_> {
        Box::pin(exchange::flush(&self.state))
    }
    fn listen(&self) -> Closing<'_> {
        let (listening, answered) = oneshot::channel();
        let mut listener = self.state.listener.lock();
        if listener.is_none() && !self.state.is_closed() {
            let task = exchange::listen(Arc::clone(&self.state), listening);
            *listener = Some(tokio::spawn(task).abort_handle());
        }
        drop(listener);
        Box::pin(async move { _ = timeout(self.state.peer.limits.listen, answered).await })
    }
    fn keeps_state(&self) -> bool {
        !self.request_streams || self.state.peer.has_session()
    }

    fn has_request_streams(&self) -> bool {
        self.request_streams
    }
    fn is_void(&self) -> bool {
        self.state.peer.is_void()
    }
    fn close(&self) -> Closing<'_> {
        Box::pin(async move {
            let was_open = !self.state.is_closed();
            self.state.end(LinkError::Closed);
            if was_open && self.request_streams && self.state.peer.has_session() {
                let _ = timeout(DELETE, self.state.peer.delete()).await;
            }
        })
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.state.end(LinkError::Closed);
    }
}
