//! Faults of sessions: why a request has no answer, and the refusal that callers see.

use client::{LinkFailure, Unsent};
use model::{Refusal, RefusalCode};

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The link failed.
    #[error(transparent)]
    Link(#[from] LinkFailure),
    /// The link did not accept the request.
    #[error(transparent)]
    Unsent(#[from] Unsent),
    /// The server did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The server answered with an error or with an unusable result.
    #[error("{0}")]
    Answer(String),
}

impl Fault {
    /// The refusal for callers: it never contains a command, a path, a URL or the server's output.
    pub(crate) fn refusal(&self, server: &str) -> Refusal {
        use RefusalCode::{UpstreamBusy, UpstreamDown, UpstreamFailed, UpstreamTimeout};
        let (code, what, hint) = match self {
            Self::Link(failure) => link(failure),
            Self::Unsent(Unsent::Busy) => (UpstreamBusy, "is busy", "try again later"),
            Self::Unsent(Unsent::TooLarge) => (RefusalCode::TooLarge, "takes no message of this size", ""),
            Self::Unsent(Unsent::Closed) => (UpstreamDown, "is not running", RESTARTING),
            Self::Timeout => (UpstreamTimeout, "did not answer in time", ""),
            Self::Answer(_) => (UpstreamFailed, "gave an unusable answer", ""),
        };
        let refusal = Refusal::new(code, format!("the server `{server}` {what}"));
        if hint.is_empty() { refusal } else { refusal.hint(hint) }
    }
}

const RESTARTING: &str = "the gateway is restarting it; try again later";

fn link(failure: &LinkFailure) -> (RefusalCode, &'static str, &'static str) {
    use RefusalCode::{UpstreamDown, UpstreamFailed, UpstreamTimeout};
    match failure {
        LinkFailure::Exited { .. } => (UpstreamFailed, "exited before it answered", RESTARTING),
        LinkFailure::Broken(_) => (UpstreamFailed, "broke the connection before it answered", ""),
        LinkFailure::Unreachable(_) => (UpstreamDown, "cannot be reached", "try again later"),
        LinkFailure::Untrusted(_) => (UpstreamDown, "has an untrusted certificate", ""),
        LinkFailure::Timeout => (UpstreamTimeout, "did not answer in time", ""),
        LinkFailure::Http { .. } => (UpstreamFailed, "answered with an HTTP error", ""),
        LinkFailure::SessionGone => (UpstreamFailed, "ended the session", "try again"),
        LinkFailure::Unauthorized => (UpstreamFailed, "rejects the gateway's credentials", ""),
        LinkFailure::TooLarge => (UpstreamFailed, "gave an answer longer than the limit", ""),
        LinkFailure::Garbage(_) => (UpstreamFailed, "gave an answer that cannot be parsed", ""),
        LinkFailure::Away => {
            (UpstreamDown, "is not connected", "it serves while it is connected; try again later")
        }
        LinkFailure::Left => {
            (UpstreamFailed, "disconnected before it answered", "it may have carried out the request")
        }
        LinkFailure::Closed => (UpstreamDown, "was stopped", ""),
    }
}
