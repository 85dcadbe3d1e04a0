//! A link of any transport, as its owner holds it.
//!
//! It must not know what a message means.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::contract::{Bounds, Carrier, Inbox, LinkFailure, SendMeta, Unsent};
use crate::guard::Guard;
use crate::http::{HttpLink, HttpSpec};
use crate::local::{Answerer, LocalLink};
use crate::sse::SseLink;
use crate::stdio::{StdioLink, StdioSpec};

/// A way to one MCP server. Dropping it ends the server's process, if it has one.
#[derive(Debug)]
pub struct Link(Transport);

#[derive(Debug)]
enum Transport {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
    Local(LocalLink),
    Carried(Carried),
}

/// A link that somebody else keeps open.
struct Carried(Arc<dyn Carrier>);

impl fmt::Debug for Carried {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Carried")
    }
}

impl Link {
    /// Starts a child and the tasks that read and write its pipes. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn stdio(spec: &StdioSpec, inbox: Arc<dyn Inbox>, guard: Option<Guard>) -> io::Result<Self> {
        StdioLink::new(spec, inbox, guard).map(|link| Self(Transport::Stdio(link)))
    }

    /// A link to a Streamable HTTP server. Nothing is connected before the first message.
    ///
    /// # Errors
    /// [`LinkFailure::Unreachable`] when the URL cannot be used.
    pub fn http(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkFailure> {
        HttpLink::new(spec, inbox).map(|link| Self(Transport::Http(link)))
    }

    /// Opens the event stream of a 2024-11-05 server and waits for the endpoint that it names.
    ///
    /// # Errors
    /// When there is no stream, no endpoint in time, or an endpoint on another origin.
    pub async fn sse(spec: &HttpSpec, inbox: Arc<dyn Inbox>) -> Result<Self, LinkFailure> {
        SseLink::new(spec, inbox).await.map(|link| Self(Transport::Sse(link)))
    }

    /// A link to a server in this process, which answers each message on the spot.
    pub fn local(answerer: Arc<Answerer>, inbox: Arc<dyn Inbox>) -> Self {
        Self(Transport::Local(LocalLink::new(answerer, inbox)))
    }

    /// A link that somebody else keeps open: to a server that has dialled in.
    pub fn carried(carrier: Arc<dyn Carrier>) -> Self {
        Self(Transport::Carried(Carried(carrier)))
    }

    /// Hands a message over; never waits. The frame must be one JSON text; raw line breaks in it become spaces on stdio.
    ///
    /// # Errors
    /// [`Unsent`] when the queue is full or the link has ended; then nothing was sent.
    pub fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), Unsent> {
        match &self.0 {
            Transport::Stdio(link) => link.send(frame),
            Transport::Http(link) => link.send(frame, meta),
            Transport::Sse(link) => link.send(frame, meta),
            Transport::Local(link) => {
                link.send(frame, meta.request);
                Ok(())
            }
            Transport::Carried(link) => link.0.send(frame, meta),
        }
    }

    /// Stops waiting for a request. Over HTTP its stream is closed, which in the modern era is the cancellation.
    pub fn cancel(&self, request: u64) {
        match &self.0 {
            Transport::Stdio(_) | Transport::Sse(_) | Transport::Local(_) => {}
            Transport::Http(link) => link.cancel(request),
            Transport::Carried(link) => link.0.cancel(request),
        }
    }

    /// Sets the protocol version that every later HTTP message carries in its header (legacy era, after the handshake).
    pub fn set_version(&self, version: &str) {
        match &self.0 {
            Transport::Stdio(_) | Transport::Local(_) | Transport::Carried(_) => {}
            Transport::Http(link) => link.set_version(version),
            Transport::Sse(link) => link.set_version(version),
        }
    }

    /// Forgets the HTTP session, so that the next handshake begins another one.
    pub fn forget_session(&self) {
        match &self.0 {
            Transport::Stdio(_) | Transport::Sse(_) | Transport::Local(_) | Transport::Carried(_) => {}
            Transport::Http(link) => link.forget_session(),
        }
    }

    /// Opens the stream for messages that belong to no request (legacy Streamable HTTP); elsewhere it does nothing.
    pub fn listen(&self) {
        match &self.0 {
            Transport::Stdio(_) | Transport::Sse(_) | Transport::Local(_) | Transport::Carried(_) => {}
            Transport::Http(link) => link.listen(),
        }
    }

    /// Whether somebody else keeps it open ([`Link::carried`]).
    #[must_use]
    pub fn is_carried(&self) -> bool {
        matches!(self.0, Transport::Carried(_))
    }

    /// Process id of the child, if there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.0 {
            Transport::Stdio(link) => Some(link.pid()),
            Transport::Http(_) | Transport::Sse(_) | Transport::Local(_) | Transport::Carried(_) => None,
        }
    }

    /// True where each request has a stream of its own, so that what comes on it belongs to it.
    #[must_use]
    pub fn attributes(&self) -> bool {
        matches!(self.0, Transport::Http(_) | Transport::Local(_))
    }

    /// Ends the link in order: a child's stdin is closed, then SIGTERM, then SIGKILL to its group; an HTTP session gets
    /// DELETE. Returns when that is done or the bounds are used up.
    pub async fn close(&self, bounds: Bounds) {
        match &self.0 {
            Transport::Stdio(link) => link.close(bounds).await,
            Transport::Http(link) => link.close(bounds).await,
            Transport::Sse(link) => link.close(),
            Transport::Local(_) => {}
            Transport::Carried(link) => link.0.close(),
        }
    }
}
