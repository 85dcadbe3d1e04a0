//! Both ends of a link: the transport that takes messages, and the inbox that receives them.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;
use model::Coding;
use platform::Share;

use crate::error::{LinkError, SendError};
use crate::processes::Root;

/// The delivery options of a message.
#[derive(Debug, Clone, Default)]
pub struct SendMeta {
    /// The number of the request; `None` for notifications and answers.
    pub request: Option<u64>,
    /// Coding of the message, for links of proto-mcp: they translate JSON.
    pub coding: Coding,
    /// Headers, for HTTP links only. The modern era repeats parts of the body there; most messages
    /// have none.
    pub headers: Option<Box<HeaderMap>>,
    /// The participant in whose name the message is sent, for links to participants only. `None` is
    /// the link's owner.
    pub from: Option<Arc<str>>,
    /// The account of the message while it waits for a slow child process.
    pub unsent: Option<Arc<Share>>,
}

impl SendMeta {
    /// A request without headers.
    #[must_use]
    pub fn request(number: u64) -> Self {
        Self {
            request: Some(number),
            ..Self::default()
        }
    }
}

/// Carrier of a link's messages: a pipe, HTTP, a server in this process, or a connection that
/// another crate has opened. What arrives it gives to the link's [`LinkInbox`]. Its functions never
/// block.
pub trait LinkTransport: Send + Sync + 'static {
    /// Takes one JSON-RPC message; never waits. The frame must be one JSON text. Over stdio, raw
    /// line breaks in it become spaces.
    ///
    /// # Errors
    /// [`SendError`] when it is not taken; then nothing was sent.
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError>;

    /// Stops waiting for the answer to a request. Over HTTP this closes its stream, which cancels
    /// it in the modern era.
    fn cancel(&self, _request: u64) {}

    /// Sets the protocol version that later HTTP messages carry in a header (legacy era, after the
    /// handshake).
    fn set_version(&self, _version: &str) {}

    /// Forgets the HTTP session, so that the next handshake opens another one.
    fn forget_session(&self) {}

    /// Opens the connection again on which a session depends (HTTP+SSE), so that the next handshake
    /// has another one. Other transports do nothing.
    fn connect_again(&self) -> Connecting<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Waits until the server has taken the notifications and answers that were sent before, for a
    /// bounded time. On a transport that keeps all messages in order there is nothing to wait for.
    fn flush(&self) -> Closing<'_> {
        Box::pin(std::future::ready(()))
    }

    /// Opens the stream for messages that belong to no request (legacy Streamable HTTP), and waits
    /// for a bounded time until the server has answered: what it sends earlier has no stream to
    /// come on. Other transports do nothing.
    fn listen(&self) -> Closing<'_> {
        Box::pin(std::future::ready(()))
    }

    /// Whether each message is sent in a participant's name ([`SendMeta::from`]).
    fn names_senders(&self) -> bool {
        false
    }

    /// Whether each request has a stream of its own, so that the link knows which request a message
    /// belongs to.
    fn has_request_streams(&self) -> bool {
        false
    }

    /// Whether the server may keep something from one call to the next, as far as the link can know.
    fn keeps_state(&self) -> bool {
        true
    }

    /// Whether the sign-in in whose name its messages are sent has ended or was replaced. They go
    /// on in that name, and no other; the link is to be closed.
    fn is_void(&self) -> bool {
        false
    }

    /// Process id of the child, if there is one.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// Root of the processes of the child, if there is one.
    fn process(&self) -> Option<Root> {
        None
    }

    /// Closes the link. A child process gets the end of its stdin, then its group SIGTERM, then
    /// SIGKILL; an HTTP session gets DELETE. The future ends when that is done or the time is up.
    fn close(&self) -> Closing<'_>;
}

/// The close of a link, or another step of it, as it goes on.
pub type Closing<'l> = Pin<Box<dyn Future<Output = ()> + Send + 'l>>;

/// The opening of a connection as it goes on.
pub type Connecting<'l> = Pin<Box<dyn Future<Output = Result<(), LinkError>> + Send + 'l>>;

/// The verdict of the inbox on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The request on whose stream the message arrived is still open; more may follow.
    Open,
    /// That request has its answer, or its caller gave up. The link stops reading its stream.
    Settled,
    /// It was not a message, or not one for anyone here. A link may slow down a peer that sends
    /// many of these.
    Noise,
}

/// Receives what arrives on a link.
///
/// The link's own tasks call these functions, which must not block.
pub trait LinkInbox: Send + Sync + 'static {
    /// One JSON-RPC message arrived. `about` is the request on whose HTTP stream it arrived.
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow;
    /// This request has no answer and will not get one.
    fn failed(&self, request: u64, error: LinkError);
    /// The server no longer knows the HTTP session, as a message showed that is no request. The
    /// link goes on.
    fn session_gone(&self) {}
    /// The server refused the stream that belongs to no request, which it had opened before. The
    /// link goes on.
    fn stream_refused(&self, failure: &LinkError) {
        let _ = failure;
    }
    /// The link has ended. Called once, after the last message.
    fn closed(&self, why: LinkError);
    /// A message longer than the limit was skipped; `head` is its beginning.
    fn skipped(&self, head: &[u8]) {
        let _ = head;
    }
}
