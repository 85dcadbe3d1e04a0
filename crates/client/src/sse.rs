//! HTTP+SSE transport of 2024-11-05: one event stream down, and POSTs up to an endpoint that the stream names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use platform::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wire::sse::Decoder;

use crate::error::{LinkError, SendError};
use crate::http::HttpSpec;
use crate::http::peer::Peer;
use crate::inbox::Inbox;
use crate::transport::SendMeta;

/// A link to a server of the older transport.
#[derive(Debug)]
pub(crate) struct SseLink(Arc<SseState>);

/// What the tasks of one link share.
struct SseState {
    peer: Peer,
    inbox: Arc<dyn Inbox>,
    /// Messages on their way.
    sending: AtomicUsize,
    closed: AtomicBool,
    reader: Mutex<Option<AbortHandle>>,
}

impl std::fmt::Debug for SseState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseState").field("server", &self.peer.name).finish_non_exhaustive()
    }
}

impl SseState {
    /// Ends the link: stops the reader and reports the reason to the inbox. Does nothing when the link has ended before.
    fn end(&self, why: LinkError) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(reader) = self.reader.lock().take() {
            reader.abort();
        }
        self.inbox.closed(why);
    }
}

impl SseLink {
    pub(crate) async fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        let peer = Peer::new(spec)?;
        let reply = peer.get(None).await?;
        let reply = peer.success(reply).await?;
        if !reply.is_stream() {
            return Err(LinkError::Malformed("no event stream".to_owned()));
        }
        let mut body = reply.body;
        let mut events = Decoder::new(peer.limits.frame_bytes_max);
        let endpoint = timeout(peer.limits.head, endpoint(&mut body, &mut events));
        let endpoint = endpoint.await.map_err(|_| LinkError::Timeout)??;
        if !peer.redirect(endpoint.trim()) {
            return Err(LinkError::Malformed("the endpoint is on another origin".to_owned()));
        }
        let state = Arc::new(SseState {
            peer,
            inbox,
            sending: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            reader: Mutex::default(),
        });
        let reader = tokio::spawn(read(Arc::clone(&state), body, events));
        *state.reader.lock() = Some(reader.abort_handle());
        Ok(Self(state))
    }

    pub(crate) fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let state = &self.0;
        if state.closed.load(Ordering::SeqCst) {
            return Err(SendError::Closed);
        }
        if frame.len() > state.peer.limits.frame_bytes_max {
            return Err(SendError::TooLarge);
        }
        if state.sending.fetch_add(1, Ordering::SeqCst) >= state.peer.limits.requests_max {
            state.sending.fetch_sub(1, Ordering::SeqCst);
            return Err(SendError::Busy);
        }
        tokio::spawn(post(Arc::clone(state), frame, meta));
        Ok(())
    }

    pub(crate) fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }

    pub(crate) fn close(&self) {
        self.0.end(LinkError::Closed);
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// Reads events up to the one that names the endpoint.
async fn endpoint(body: &mut Incoming, events: &mut Decoder) -> Result<String, LinkError> {
    loop {
        match events.next_event() {
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                return String::from_utf8(event.data.to_vec())
                    .map_err(|_| LinkError::Malformed("the endpoint is not UTF-8".to_owned()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => return Err(LinkError::TooLarge),
            None => more(body, events).await?,
        }
    }
}

/// Reads the next piece of the stream. The end of the stream is an error.
async fn more(body: &mut Incoming, events: &mut Decoder) -> Result<(), LinkError> {
    match body.frame().await {
        Some(Ok(frame)) => {
            if let Ok(chunk) = frame.into_data() {
                events.push(&chunk);
            }
            Ok(())
        }
        Some(Err(error)) => Err(LinkError::Broken(error.to_string())),
        None => Err(LinkError::Broken("the stream ended".to_owned())),
    }
}

/// Hands messages to the inbox until the stream ends.
async fn read(state: Arc<SseState>, mut body: Incoming, mut events: Decoder) {
    let why = loop {
        match events.next_event() {
            Some(Ok(event)) if event.data.is_empty() => {}
            Some(Ok(event)) if event.event.as_deref().is_none_or(|name| name == "message") => {
                state.inbox.frame(event.data, None);
            }
            Some(Ok(_)) => {}
            // The request that it may answer is not known; its caller waits no longer than its own time limit.
            Some(Err(_)) => tracing::warn!(server = &*state.peer.name, "an event is too long"),
            None => {
                if let Err(error) = more(&mut body, &mut events).await {
                    break error;
                }
            }
        }
    };
    state.end(why);
}

/// POSTs one message. The answer to a request arrives on the event stream.
async fn post(state: Arc<SseState>, frame: Bytes, meta: SendMeta) {
    let sent = timeout(state.peer.limits.head, async {
        let reply = state.peer.success(state.peer.post(frame, meta.headers.as_deref()).await?).await?;
        state.peer.collect(reply.body).await
    });
    let outcome = sent.await.unwrap_or(Err(LinkError::Timeout));
    state.sending.fetch_sub(1, Ordering::SeqCst);
    match (outcome, meta.request) {
        (Ok(_), _) => {}
        (Err(error), Some(request)) => state.inbox.failed(request, error),
        (Err(error), None) => {
            tracing::debug!(server = &*state.peer.name, %error, "the server did not accept a notification");
        }
    }
}
