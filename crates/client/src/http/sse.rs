//! HTTP+SSE transport of 2024-11-05: one event stream down, and POSTs up to an endpoint that the stream names.

use std::sync::Arc;

use tokio::time::timeout;

use super::peer::Peer;
use super::spec::HttpSpec;
use super::state::LinkState;
use super::stream::{Events, is_message};
use crate::error::LinkError;
use crate::transport::Inbox;

/// Opens the stream, waits for the endpoint that it names, and reads on.
pub(super) async fn open(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Arc<LinkState>, LinkError> {
    let peer = Peer::new(spec)?;
    let reply = peer.open_stream(None).await?;
    let mut events = Events::new(reply.body, peer.limits.frame_bytes_max);
    let endpoint = timeout(peer.limits.head, endpoint(&mut events));
    let endpoint = endpoint.await.map_err(|_| LinkError::Timeout)??;
    if !peer.redirect(endpoint.trim()) {
        return Err(LinkError::Malformed("the endpoint is on another origin".to_owned()));
    }
    let state = Arc::new(LinkState::new(peer, inbox));
    let reader = tokio::spawn(read(Arc::clone(&state), events));
    *state.listener.lock() = Some(reader.abort_handle());
    Ok(state)
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
