//! Why a request came to nothing, inside; and what of it is told outside.

use client::{LinkError, SendError};
use model::{Refusal, RefusalCode};

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The link failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It was not taken.
    #[error(transparent)]
    Unsent(#[from] SendError),
    /// No answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The answer was an error, or not what it must be.
    #[error("{0}")]
    Answer(String),
}

impl Fault {
    /// What may be told outside: never a command, a path, a URL or what the server printed.
    pub(super) fn refusal(&self, server: &str) -> Refusal {
        use RefusalCode::{UpstreamBusy, UpstreamDown, UpstreamFailed, UpstreamTimeout};
        let (code, what, hint) = match self {
            Self::Link(failure) => link(failure),
            Self::Unsent(SendError::Busy) => (UpstreamBusy, "is busy", "try again later"),
            Self::Unsent(SendError::TooLarge) => (RefusalCode::TooLarge, "takes no message of this size", ""),
            Self::Unsent(SendError::Closed) => (UpstreamDown, "is not running", RESTARTED),
            Self::Timeout => (UpstreamTimeout, "did not answer in time", ""),
            Self::Answer(_) => (UpstreamFailed, "gave an answer that cannot be used", ""),
        };
        let refusal = Refusal::new(code, format!("the server `{server}` {what}"));
        if hint.is_empty() { refusal } else { refusal.hint(hint) }
    }
}

const RESTARTED: &str = "it is being started again; try again later";

fn link(failure: &LinkError) -> (RefusalCode, &'static str, &'static str) {
    use RefusalCode::{UpstreamDown, UpstreamFailed, UpstreamTimeout};
    match failure {
        LinkError::Exited { .. } => (UpstreamFailed, "ended before it answered", RESTARTED),
        LinkError::Broken(_) => (UpstreamFailed, "broke the connection before it answered", ""),
        LinkError::Unreachable(_) => (UpstreamDown, "cannot be reached", "try again later"),
        LinkError::Untrusted(_) => (UpstreamDown, "has a certificate that is not trusted", ""),
        LinkError::Timeout => (UpstreamTimeout, "did not answer in time", ""),
        LinkError::Http { .. } => (UpstreamFailed, "answered with an HTTP error", ""),
        LinkError::SessionGone => (UpstreamFailed, "has ended the session", "try again"),
        LinkError::Unauthorized => (UpstreamFailed, "does not accept the gateway's credentials", ""),
        LinkError::TooLarge => (UpstreamFailed, "gave an answer longer than the limit", ""),
        LinkError::Malformed(_) => (UpstreamFailed, "gave an answer that cannot be read", ""),
        LinkError::NotConnected => {
            (UpstreamDown, "is not here", "it serves while it is connected; try again later")
        }
        LinkError::Disconnected => {
            (UpstreamFailed, "left before it answered", "it may have done what was asked")
        }
        LinkError::Closed => (UpstreamDown, "was stopped", ""),
    }
}
