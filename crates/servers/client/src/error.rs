//! Link errors: failed requests and links, messages that were not sent.

use bytes::Bytes;

use crate::account::AccountFault;

/// Why a request, or a whole link, failed. It is meant for logs and decisions, not for callers to
/// read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The child process ended by itself.
    #[error("process ended ({})", .code.map_or_else(|| "by a signal".to_owned(), |c| format!("exit code {c}")))]
    Exited {
        /// Its exit code; `None` after a signal.
        code: Option<i32>,
    },
    /// The connection or the stream broke. The server may have run what was sent.
    #[error("connection lost: {0}")]
    Broken(String),
    /// No connection could be opened; nothing was sent.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// This machine does not trust the server's certificate for the server's name; nothing was
    /// sent.
    #[error("certificate not trusted: {0}")]
    Untrusted(String),
    /// What the server answered to the beginning of TLS is not TLS; nothing was sent.
    #[error("it does not speak TLS")]
    NotTls,
    /// The server accepted the connection but did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The server answered with an HTTP status that is not a success.
    #[error("HTTP status {status}")]
    Http {
        /// The status code.
        status: u16,
        /// The body, up to the limit of a message; empty if it is longer or cannot be read.
        body: Bytes,
    },
    /// The server does not know the session any more; it ran nothing.
    #[error("the server no longer knows the session")]
    SessionGone,
    /// The server does not know the session in which this was sent; it ran nothing, and another
    /// session is open or being opened.
    #[error("the server no longer knows the earlier session")]
    SessionReplaced,
    /// The server rejected the credentials.
    #[error("the server refused the credentials (HTTP 401)")]
    Unauthorized,
    /// The account has no token for the request; the server ran nothing.
    #[error(transparent)]
    Account(AccountFault),
    /// A message was longer than the limit.
    #[error("message longer than the limit")]
    TooLarge,
    /// The answer is not what the transport prescribes.
    #[error("unreadable answer: {0}")]
    Malformed(String),
    /// The server is a participant without a connection; nothing was sent.
    #[error("the participant is not connected")]
    NotConnected,
    /// The server is a participant that disconnected. It may have run what was sent.
    #[error("the participant disconnected")]
    Disconnected,
    /// The link was closed from this side.
    #[error("closed")]
    Closed,
}

/// Why a link did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue, or the number of open requests, is at its limit.
    #[error("queue is full")]
    Busy,
    /// Earlier messages of the participant fill its share of the queue.
    #[error("too much of one participant waits already")]
    Share,
    /// The link has ended.
    #[error("link is closed")]
    Closed,
    /// The message alone is longer than the limit.
    #[error("message longer than the limit")]
    TooLarge,
    /// The message is nested deeper than the other side reads.
    #[error("message nested deeper than the limit")]
    TooDeep,
}
