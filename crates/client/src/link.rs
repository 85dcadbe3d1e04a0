//! Links to MCP servers, whatever the transport.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{LinkError, SendError};
use crate::guard::Guard;
use crate::http::{HttpLink, HttpSpec};
use crate::inbox::Inbox;
use crate::local::{AnswerFn, LocalLink};
use crate::sse::SseLink;
use crate::stdio::{StdioLink, StdioSpec};
use crate::transport::{CloseTimeouts, CustomTransport, SendMeta};

/// A link to one MCP server. It carries JSON-RPC messages as bytes in both directions; what arrives goes to its
/// [`Inbox`]. Dropping it ends the server's process, if it has one.
#[derive(Debug)]
pub struct Link(LinkKind);

#[derive(Debug)]
enum LinkKind {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
    Local(LocalLink),
    Custom(Custom),
}

struct Custom(Arc<dyn CustomTransport>);

impl fmt::Debug for Custom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Custom")
    }
}

impl Link {
    /// Starts a child process, and the tasks that read and write its pipes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn stdio(spec: &StdioSpec, inbox: Arc<dyn Inbox>, guard: Option<Guard>) -> io::Result<Self> {
        StdioLink::new(spec, inbox, guard).map(|link| Self(LinkKind::Stdio(link)))
    }

    /// A link to a Streamable HTTP server. It connects with the first message.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] when the URL cannot be used.
    pub fn http(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        HttpLink::new(spec, inbox).map(|link| Self(LinkKind::Http(link)))
    }

    /// Opens the event stream of a 2024-11-05 server and waits for the endpoint that the server names.
    ///
    /// # Errors
    /// When there is no stream, no endpoint in time, or an endpoint on another origin.
    pub async fn sse(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkError> {
        SseLink::new(spec, inbox).await.map(|link| Self(LinkKind::Sse(link)))
    }

    /// A link to a server in this process, which answers each message before [`Link::send`] returns.
    pub fn local(answer: Arc<AnswerFn>, inbox: Arc<dyn Inbox>) -> Self {
        Self(LinkKind::Local(LocalLink::new(answer, inbox)))
    }

    /// A link over a transport that another component has opened, for example to a server that dialed in.
    pub fn custom(transport: Arc<dyn CustomTransport>) -> Self {
        Self(LinkKind::Custom(Custom(transport)))
    }

    /// Hands a message to the link; never waits. The frame must be one JSON text. Over stdio, raw line breaks in it
    /// become spaces.
    ///
    /// # Errors
    /// [`SendError`] when the queue is full or the link has ended; then nothing was sent.
    pub fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        match &self.0 {
            LinkKind::Stdio(link) => link.send(frame),
            LinkKind::Http(link) => link.send(frame, meta),
            LinkKind::Sse(link) => link.send(frame, meta),
            LinkKind::Local(link) => {
                link.send(frame, meta.request);
                Ok(())
            }
            LinkKind::Custom(link) => link.0.send(frame, meta),
        }
    }

    /// Stops waiting for the answer to a request. Over HTTP this closes its stream, which cancels it in the modern era.
    pub fn cancel(&self, request: u64) {
        match &self.0 {
            LinkKind::Stdio(_) | LinkKind::Sse(_) | LinkKind::Local(_) => {}
            LinkKind::Http(link) => link.cancel(request),
            LinkKind::Custom(link) => link.0.cancel(request),
        }
    }

    /// Sets the protocol version that later HTTP messages carry in a header (legacy era, after the handshake).
    pub fn set_version(&self, version: &str) {
        match &self.0 {
            LinkKind::Stdio(_) | LinkKind::Local(_) | LinkKind::Custom(_) => {}
            LinkKind::Http(link) => link.set_version(version),
            LinkKind::Sse(link) => link.set_version(version),
        }
    }

    /// Forgets the HTTP session, so that the next handshake opens another one.
    pub fn forget_session(&self) {
        match &self.0 {
            LinkKind::Stdio(_) | LinkKind::Sse(_) | LinkKind::Local(_) | LinkKind::Custom(_) => {}
            LinkKind::Http(link) => link.forget_session(),
        }
    }

    /// Opens the stream for messages that belong to no request (legacy Streamable HTTP). Does nothing on other links.
    pub fn listen(&self) {
        match &self.0 {
            LinkKind::Stdio(_) | LinkKind::Sse(_) | LinkKind::Local(_) | LinkKind::Custom(_) => {}
            LinkKind::Http(link) => link.listen(),
        }
    }

    /// Whether the transport is a [`CustomTransport`].
    #[must_use]
    pub fn is_custom(&self) -> bool {
        matches!(self.0, LinkKind::Custom(_))
    }

    /// Whether each request has a stream of its own, so that the link knows which request a message belongs to.
    #[must_use]
    pub fn has_request_streams(&self) -> bool {
        matches!(self.0, LinkKind::Http(_) | LinkKind::Local(_))
    }

    /// Process id of the child, if there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.0 {
            LinkKind::Stdio(link) => Some(link.pid()),
            LinkKind::Http(_) | LinkKind::Sse(_) | LinkKind::Local(_) | LinkKind::Custom(_) => None,
        }
    }

    /// Closes the link. A child process gets the end of its stdin, then its group SIGTERM, then SIGKILL; an HTTP session
    /// gets DELETE. Returns when that is done or the time is up.
    pub async fn close(&self, timeouts: CloseTimeouts) {
        match &self.0 {
            LinkKind::Stdio(link) => link.close(timeouts).await,
            LinkKind::Http(link) => link.close(timeouts).await,
            LinkKind::Sse(link) => link.close(),
            LinkKind::Local(_) => {}
            LinkKind::Custom(link) => link.0.close(),
        }
    }
}
