//! What goes into a link and what comes out of one.
//!
//! Owns the words shared by the transports. It must not know JSON-RPC, eras or sessions: a request is a number here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

/// What the inbox says about the request on whose stream a frame came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More may follow for this request.
    Open,
    /// The request has its answer, or nobody waits for it any more.
    Settled,
    /// It was no message at all, or one that is for nobody. A link may read from a peer that makes much noise more slowly.
    Noise,
}

/// The owner of a link, as the link's tasks see it.
///
/// All functions are called from the link's own tasks and must not block.
pub trait Inbox: Send + Sync + 'static {
    /// One JSON-RPC message arrived; `about` is the request on whose HTTP stream it came.
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow;
    /// This request has got no answer and will get none.
    fn failed(&self, request: u64, failure: LinkFailure);
    /// The whole link has ended; called once, after the last frame.
    fn closed(&self, why: LinkFailure);
    /// A message longer than the limit was skipped; `head` is how it began.
    fn skipped(&self, head: &[u8]) {
        let _ = head;
    }
}

/// Why a request, or a whole link, came to nothing. For the log and for decisions, not for callers to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFailure {
    /// The child ended by itself.
    #[error("process ended ({})", .code.map_or_else(|| "by a signal".to_owned(), |c| format!("exit code {c}")))]
    Exited {
        /// Its exit code; none after a signal.
        code: Option<i32>,
    },
    /// The connection or the stream broke; what was sent may have run.
    #[error("connection lost: {0}")]
    Broken(String),
    /// No connection could be made; nothing was sent.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The server's certificate is not one that this machine trusts for its name; nothing was sent.
    #[error("certificate not trusted: {0}")]
    Untrusted(String),
    /// The server took the connection but did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// An HTTP status that is no success.
    #[error("HTTP status {status}")]
    Http {
        /// The status code.
        status: u16,
        /// The body, up to the frame limit.
        body: Bytes,
    },
    /// The server does not know the session any more; nothing was run.
    #[error("the server no longer knows the session")]
    SessionGone,
    /// The server wants other credentials.
    #[error("the server refused the credentials (HTTP 401)")]
    Unauthorized,
    /// A message was longer than the limit.
    #[error("message longer than the limit")]
    TooLarge,
    /// The answer is not what the transport prescribes.
    #[error("unreadable answer: {0}")]
    Garbage(String),
    /// The server is a participant that is not here; nothing was sent.
    #[error("not here")]
    Away,
    /// The server is a participant that left; what was sent may have run.
    #[error("it left")]
    Left,
    /// The link was closed from this side.
    #[error("closed")]
    Closed,
}

impl LinkFailure {
    /// True where the request is known not to have been run, so that it may be sent again.
    #[must_use]
    pub fn not_run(&self) -> bool {
        matches!(
            self,
            Self::SessionGone | Self::Unreachable(_) | Self::Untrusted(_) | Self::Unauthorized | Self::Away
        )
    }
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The queue, or the number of open requests, is at its limit.
    #[error("queue is full")]
    Busy,
    /// The link has ended.
    #[error("link is closed")]
    Closed,
    /// The message alone is longer than the queue may be.
    #[error("message longer than the limit")]
    TooLarge,
}

/// What goes with a message.
#[derive(Debug, Clone, Default)]
pub struct SendMeta {
    /// The number of the request; none for notifications and answers.
    pub request: Option<u64>,
    /// Headers for HTTP links only (the modern era mirrors the body there); most messages have none.
    pub headers: Option<Box<HeaderMap>>,
    /// In whose name it is sent, for links to participants only; nobody is the owner of the link.
    pub from: Option<Arc<str>>,
}

impl SendMeta {
    /// A request without headers of its own.
    #[must_use]
    pub fn request(number: u64) -> Self {
        Self { request: Some(number), ..Self::default() }
    }
}

/// How long each step of an orderly end may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From closing stdin (or sending DELETE) to the next step.
    pub eof: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// From SIGKILL to giving up.
    pub kill: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { eof: Duration::from_secs(2), term: Duration::from_secs(2), kill: Duration::from_secs(1) }
    }
}

/// What carries the messages of a link that somebody else has opened. What comes back is told to the inbox by whoever
/// gave the carrier.
///
/// All functions are called from the link's owner and must not block.
pub trait Carrier: Send + Sync + 'static {
    /// Takes one JSON-RPC message.
    ///
    /// # Errors
    /// [`Unsent`] when it is not taken; then nothing was sent.
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), Unsent>;
    /// Nobody waits for this request any more.
    fn cancel(&self, request: u64);
    /// The link is closed from its owner's side.
    fn close(&self);
}
