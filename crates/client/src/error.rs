//! Link errors: failed requests and links, messages that were not sent.

use bytes::Bytes;

/// Why a request, or a whole link, failed. It is meant for logs and decisions, not for callers to read.
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
    /// This machine does not trust the server's certificate for the server's name; nothing was sent.
    #[error("certificate not trusted: {0}")]
    Untrusted(String),
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
    /// The server does not know the session in which this was sent; it ran nothing, and another session is open or being opened.
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
    /// What the participant sent before fills its share of the queue.
    #[error("too much of one participant waits already")]
    Share,
    /// The link has ended.
    #[error("link is closed")]
    Closed,
    /// The message alone is longer than the limit.
    #[error("message longer than the limit")]
    TooLarge,
}

/// Why an account has no token for a request. People read it; it has no token, no secret and no URL with one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountFault {
    /// The operator, or the caller where accounts are theirs, has to sign in.
    #[error("the server wants a sign-in")]
    LoginNeeded,
    /// The same, since the server's authorization server refused to renew the token.
    #[error("the authorization server refused to renew the sign-in")]
    LoginLost,
    /// The token is good and its scopes are too narrow for this request.
    #[error("the request needs the scopes `{0}`")]
    ScopesNeeded(String),
    /// The scopes are too narrow, and signing in again has not changed that.
    #[error("the server wants the scopes `{0}` and has not granted them in {1} sign-ins")]
    ScopesRefused(String, usize),
    /// The authorization server registers no clients by itself, and none is configured.
    #[error("{0} registers no clients by itself")]
    ClientNeeded(String),
    /// What the server or its authorization server says about itself is not acceptable.
    #[error("{0}")]
    MetadataRefused(String),
    /// The authorization server refused a token to a machine.
    #[error("the authorization server refused a token: {0}")]
    Refused(String),
    /// The authorization server cannot be reached; the account is tried again.
    #[error("the authorization server cannot be reached: {why}")]
    Waiting {
        /// The reason.
        why: String,
        /// Milliseconds until the next attempt.
        retry_after_ms: u64,
    },
    /// Another sign-in, or another configuration of the server, has replaced the one that the request was for.
    #[error("another sign-in or configuration is in force")]
    Replaced,
    /// The sign-in cannot be kept: the gateway has no key to seal it, or its journal fails.
    #[error("{0}")]
    NotKept(String),
}

impl AccountFault {
    /// Whether only a person, or the operator, can change it: no request succeeds meanwhile.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::LoginNeeded
            | Self::LoginLost
            | Self::ClientNeeded(_)
            | Self::MetadataRefused(_)
            | Self::Refused(_)
            | Self::NotKept(_) => true,
            Self::ScopesNeeded(_) | Self::ScopesRefused(..) | Self::Waiting { .. } | Self::Replaced => false,
        }
    }
}
