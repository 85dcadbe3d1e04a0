//! What accompanies a message, how long closing may take, and transports that other crates provide.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::error::SendError;

/// What accompanies a message.
#[derive(Debug, Clone, Default)]
pub struct SendMeta {
    /// The number of the request; `None` for notifications and answers.
    pub request: Option<u64>,
    /// Headers, for HTTP links only. The modern era repeats parts of the body there; most messages have none.
    pub headers: Option<Box<HeaderMap>>,
    /// The participant in whose name the message is sent, for links to participants only. `None` is the link's owner.
    pub from: Option<Arc<str>>,
}

impl SendMeta {
    /// A request without headers.
    #[must_use]
    pub fn request(number: u64) -> Self {
        Self { request: Some(number), ..Self::default() }
    }
}

/// How long each step of closing a link may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseTimeouts {
    /// From closing stdin, or sending DELETE, to the next step.
    pub eof: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// From SIGKILL to giving up.
    pub kill: Duration,
}

impl Default for CloseTimeouts {
    /// 2 s, 2 s and 1 s.
    fn default() -> Self {
        Self { eof: Duration::from_secs(2), term: Duration::from_secs(2), kill: Duration::from_secs(1) }
    }
}

/// The transport of a link that another component has opened. That component reports what arrives to the link's inbox.
///
/// The link's owner calls these functions, which must not block.
pub trait CustomTransport: Send + Sync + 'static {
    /// Takes one JSON-RPC message.
    ///
    /// # Errors
    /// [`SendError`] when it is not taken; then nothing was sent.
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError>;
    /// Stops waiting for the answer to a request.
    fn cancel(&self, request: u64);
    /// Closes the link from its owner's side.
    fn close(&self);
}
