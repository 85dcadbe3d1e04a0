//! The transport of 2024-11-05: one event stream down, POSTs to an endpoint that the stream names up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use platform::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wire::sse::Decoder;

use crate::contract::{Inbox, LinkFailure, SendMeta, Unsent};
use crate::http::HttpSpec;
use crate::http::peer::Peer;

/// A server of the older transport.
#[derive(Debug)]
pub(crate) struct SseLink(Arc<Core>);

struct Core {
    peer: Peer,
    inbox: Arc<dyn Inbox>,
    sending: AtomicUsize,
    closed: AtomicBool,
    reader: Mutex<Option<AbortHandle>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("server", &self.peer.name).finish_non_exhaustive()
    }
}

async fn endpoint(body: &mut Incoming, events: &mut Decoder) -> Result<String, LinkFailure> {
    loop {
        match events.next_event() {
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                return String::from_utf8(event.data.to_vec())
                    .map_err(|_| LinkFailure::Garbage("the endpoint is not UTF-8".to_owned()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => return Err(LinkFailure::TooLarge),
            None => more(body, events).await?,
        }
    }
}

/// Reads the next piece of the stream; its end is an error.
async fn more(body: &mut Incoming, events: &mut Decoder) -> Result<(), LinkFailure> {
    match body.frame().await {
        Some(Ok(frame)) => {
            if let Ok(chunk) = frame.into_data() {
                events.push(&chunk);
            }
            Ok(())
        }
        Some(Err(error)) => Err(LinkFailure::Broken(error.to_string())),
        None => Err(LinkFailure::Broken("the stream ended".to_owned())),
    }
}

async fn read(core: Arc<Core>, mut body: Incoming, mut events: Decoder) {
    let why = loop {
        match events.next_event() {
            Some(Ok(event)) if event.data.is_empty() => {}
            Some(Ok(event)) if event.event.as_deref().is_none_or(|name| name == "message") => {
                core.inbox.frame(event.data, None);
            }
            Some(Ok(_)) => {}
            // What it was, nobody can say; whoever waits for it will wait no longer than its time.
            Some(Err(_)) => tracing::warn!(server = &*core.peer.name, "an event is too long"),
            None => {
                if let Err(failure) = more(&mut body, &mut events).await {
                    break failure;
                }
            }
        }
    };
    core.end(why);
}

impl Core {
    fn end(&self, why: LinkFailure) {
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
    pub(crate) async fn new(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkFailure> {
        let peer = Peer::new(spec)?;
        let reply = peer.get(None).await?;
        let reply = peer.success(reply).await?;
        if !reply.is_stream() {
            return Err(LinkFailure::Garbage("no event stream".to_owned()));
        }
        let mut body = reply.body;
        let mut events = Decoder::new(peer.limits.frame_bytes_max);
        let endpoint = timeout(peer.limits.head, endpoint(&mut body, &mut events));
        let endpoint = endpoint.await.map_err(|_| LinkFailure::Timeout)??;
        if !peer.redirect(endpoint.trim()) {
            return Err(LinkFailure::Garbage("the endpoint is on another origin".to_owned()));
        }
        let core = Arc::new(Core {
            peer,
            inbox,
            sending: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            reader: Mutex::default(),
        });
        let reader = tokio::spawn(read(Arc::clone(&core), body, events));
        *core.reader.lock() = Some(reader.abort_handle());
        Ok(Self(core))
    }

    pub(crate) fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), Unsent> {
        let core = &self.0;
        if core.closed.load(Ordering::SeqCst) {
            return Err(Unsent::Closed);
        }
        if frame.len() > core.peer.limits.frame_bytes_max {
            return Err(Unsent::TooLarge);
        }
        if core.sending.fetch_add(1, Ordering::SeqCst) >= core.peer.limits.requests_max {
            core.sending.fetch_sub(1, Ordering::SeqCst);
            return Err(Unsent::Busy);
        }
        tokio::spawn(post(Arc::clone(core), frame, meta));
        Ok(())
    }

    pub(crate) fn set_version(&self, version: &str) {
        self.0.peer.set_version(version);
    }

    pub(crate) fn close(&self) {
        self.0.end(LinkFailure::Closed);
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// POSTs one message; the answer to a request comes on the event stream.
async fn post(core: Arc<Core>, frame: Bytes, meta: SendMeta) {
    let sent = timeout(core.peer.limits.head, async {
        let reply = core.peer.success(core.peer.post(frame, meta.headers.as_deref()).await?).await?;
        core.peer.collect(reply.body).await?;
        Ok(())
    });
    let outcome = sent.await.unwrap_or(Err(LinkFailure::Timeout));
    core.sending.fetch_sub(1, Ordering::SeqCst);
    match (outcome, meta.request) {
        (Ok(()), _) => {}
        (Err(failure), Some(request)) => core.inbox.failed(request, failure),
        (Err(failure), None) => {
            tracing::debug!(server = &*core.peer.name, %failure, "a notification was not taken");
        }
    }
}
