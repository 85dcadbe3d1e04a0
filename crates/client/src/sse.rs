//! HTTP+SSE transport of 2024-11-05: one event stream down, and POSTs up to an endpoint that the stream names.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;

use crate::error::{LinkError, SendError};
use crate::http::peer::Peer;
use crate::http::state::LinkState;
use crate::http::stream::{Events, is_message};
use crate::http::{HttpSpec, exchange};
use crate::inbox::Inbox;
use crate::transport::{CloseTimeouts, Closing, LinkTransport, SendMeta};

/// A link to a server of the older transport.
pub(crate) struct SseLink(Arc<LinkState>);

impl SseLink {
    pub(crate) async fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        let peer = Peer::new(spec)?;
        let reply = peer.get(None).await?;
        let reply = peer.success(reply).await?;
        if !reply.is_stream() {
            return Err(LinkError::Malformed("no event stream".to_owned()));
        }
        let mut events = Events::new(reply.body, peer.limits.frame_bytes_max);
        let endpoint = timeout(peer.limits.head, endpoint(&mut events));
        let endpoint = endpoint.await.map_err(|_| LinkError::Timeout)??;
        if !peer.redirect(endpoint.trim()) {
            return Err(LinkError::Malformed("the endpoint is on another origin".to_owned()));
        }
        let state = Arc::new(LinkState::new(peer, inbox));
        let reader = tokio::spawn(read(Arc::clone(&state), events));
        *state.listener.lock() = Some(reader.abort_handle());
        Ok(Self(state))
    }
}

impl LinkTransport for SseLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        exchange::note(&self.0, frame, meta)
    }
    fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }
    fn close(&self, _: CloseTimeouts) -> Closing<'_> {
        self.0.end(LinkError::Closed);
        Box::pin(async {})
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.0.end(LinkError::Closed);
    }
}

/// Reads events up to the one that names the endpoint.
async fn endpoint(events: &mut Events) -> Result<String, LinkError> {
    loop {
        let event = events.next().await?.map_err(|_| LinkError::TooLarge)?;
        if event.event.as_deref() == Some("endpoint") {
            return String::from_utf8(event.data.to_vec())
                .map_err(|_| LinkError::Malformed("the endpoint is not UTF-8".to_owned()));
        }
    }
}

/// Hands messages to the inbox until the stream ends.
async fn read(state: Arc<LinkState>, mut events: Events) {
    let why = loop {
        match events.next().await {
            Ok(Ok(event)) if is_message(&event) => {
                state.inbox.frame(event.data, None);
            }
            Ok(Ok(_)) => {}
            // The request that it may answer is not known; its caller waits no longer than its own time limit.
            Ok(Err(_)) => tracing::warn!(server = &*state.peer.name, "an event is too long"),
            Err(error) => break error,
        }
    };
    state.end(why);
}
