//! Faults of sessions: causes of a missing answer, and the refusals that callers see.

use client::{LinkError, SendError};
use model::{Refusal, RefusalCode};
use wire::mcp::Era;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The link failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link did not accept the request.
    #[error(transparent)]
    Unsent(#[from] SendError),
    /// The server ended after a handshake of this era, while its lists were fetched.
    #[error("connection lost: the server ended while its lists were fetched")]
    Ended(Era),
    /// The server did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The server answered with an error or with an unusable result.
    #[error("{0}")]
    Answer(String),
    /// A server of proto-mcp speaks another major version, or refuses the gateway's.
    #[error("{0}")]
    Version(String),
    /// The configuration of the server cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The server is this gateway, or lists what this gateway lists.
    #[error("{0}")]
    Itself(&'static str),
}

impl Fault {
    /// The refusal for callers: it never contains a command, a path, a URL or the server's output.
    pub(crate) fn refusal(&self, server: &str) -> Refusal {
        use RefusalCode::{UpstreamBusy, UpstreamDown, UpstreamFailed, UpstreamTimeout};
        if let Self::Link(LinkError::Account(fault)) = self {
            return fault.refusal(server);
        }
        let (code, what, hint) = match self {
            Self::Link(failure) => link(failure),
            Self::Unsent(SendError::Busy) => (UpstreamBusy, "is busy", "try again later"),
            Self::Unsent(SendError::Share) => (
                UpstreamBusy,
                "has yet to read what you sent before",
                "send less at once",
            ),
            Self::Unsent(SendError::TooLarge) => {
                (RefusalCode::TooLarge, "takes no message of this size", "")
            }
            Self::Unsent(SendError::TooDeep) => (
                RefusalCode::TooLarge,
                "takes no message that is nested so deep",
                "",
            ),
            Self::Unsent(SendError::Closed) => (UpstreamDown, "is not running", RESTARTING),
            Self::Ended(_) => (
                UpstreamFailed,
                "broke the connection before it answered",
                "",
            ),
            Self::Timeout => (UpstreamTimeout, "did not answer in time", ""),
            Self::Answer(_) | Self::Version(_) => (UpstreamFailed, "gave an unusable answer", ""),
            Self::Unusable(_) => (
                UpstreamDown,
                "cannot start as it is configured",
                "tell the operator",
            ),
            Self::Itself(_) => (
                UpstreamDown,
                "leads back to this gateway",
                "tell the operator: it must be removed",
            ),
        };
        let refusal = Refusal::new(code, format!("the server `{server}` {what}"));
        match self {
            // The reader's own words.
            Self::Link(LinkError::Malformed(why)) => refusal.hint(why.clone()),
            _ if hint.is_empty() => refusal,
            _ => refusal.hint(hint),
        }
    }
}

impl Fault {
    /// The fault of a server that names these gateways, itself first, if this gateway is among
    /// them.
    pub(crate) fn of_gateways(named: &[String], own: &str) -> Option<Self> {
        match named.iter().position(|id| id == own)? {
            0 => Some(Self::Itself("this is the gateway itself")),
            _ => Some(Self::Itself(
                "this is the gateway itself, through other gateways",
            )),
        }
    }

    /// Whether the server runs, and may not have understood what it read or not speak this version
    /// of it.
    pub(crate) fn is_of_protocol(&self) -> bool {
        match self {
            Self::Timeout | Self::Version(_) | Self::Ended(_) => true,
            Self::Link(
                LinkError::Exited { .. } | LinkError::Broken(_) | LinkError::Malformed(_),
            ) => true,
            Self::Link(_)
            | Self::Unsent(_)
            | Self::Answer(_)
            | Self::Unusable(_)
            | Self::Itself(_) => false,
        }
    }

    /// Whether the fault says nothing about what the server speaks: it has read nothing of what it
    /// was asked, or looked only at who asks.
    pub(crate) fn says_nothing_of_era(&self) -> bool {
        match self {
            Self::Link(failure) => match failure {
                LinkError::Unreachable(_)
                | LinkError::Untrusted(_)
                | LinkError::NotTls
                | LinkError::Unauthorized
                | LinkError::Account(_)
                | LinkError::NotConnected
                | LinkError::Closed => true,
                LinkError::Exited { .. }
                | LinkError::Broken(_)
                | LinkError::Disconnected
                | LinkError::Timeout
                | LinkError::Http { .. }
                | LinkError::SessionGone
                | LinkError::SessionReplaced
                | LinkError::TooLarge
                | LinkError::Malformed(_) => false,
            },
            Self::Unsent(_) | Self::Unusable(_) | Self::Itself(_) => true,
            Self::Ended(_) | Self::Timeout | Self::Answer(_) | Self::Version(_) => false,
        }
    }

    /// Advice to operators about the fault, if there is any.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Link(LinkError::Untrusted(_)) => Some(
                "if its authority is one of your own, name the file of that: ca = \"FILE.pem\" in the server's table",
            ),
            Self::Link(LinkError::NotTls) => {
                Some("if it is meant to have no TLS, write http:// (or ws:// or tcp://) in its URL")
            }
            _ => None,
        }
    }

    /// The cause, for operators: it may contain an exit code, an HTTP status, the name of a program
    /// or the server's words, but no arguments, path or URL.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Link(LinkError::Unreachable(why)) => why.clone(),
            Self::Link(_)
            | Self::Unsent(_)
            | Self::Ended(_)
            | Self::Timeout
            | Self::Answer(_)
            | Self::Version(_)
            | Self::Unusable(_)
            | Self::Itself(_) => self.to_string(),
        }
    }
}

const RESTARTING: &str = "the gateway is restarting it; try again later";

fn link(failure: &LinkError) -> (RefusalCode, &'static str, &'static str) {
    use RefusalCode::{UpstreamDown, UpstreamFailed, UpstreamTimeout};
    match failure {
        LinkError::Exited { .. } => (UpstreamFailed, "exited before it answered", RESTARTING),
        LinkError::Broken(_) => (
            UpstreamFailed,
            "broke the connection before it answered",
            "",
        ),
        LinkError::Unreachable(_) => (UpstreamDown, "cannot be reached", "try again later"),
        LinkError::Untrusted(_) => (UpstreamDown, "has an untrusted certificate", ""),
        LinkError::NotTls => (UpstreamDown, "does not speak TLS", ""),
        LinkError::Timeout => (UpstreamTimeout, "did not answer in time", ""),
        LinkError::Http { .. } => (UpstreamFailed, "answered with an HTTP error", ""),
        LinkError::SessionGone | LinkError::SessionReplaced => {
            (UpstreamFailed, "ended the session", "try again")
        }
        LinkError::Unauthorized => (UpstreamFailed, "rejects the gateway's credentials", ""),
        // The account says it.
        LinkError::Account(_) => (RefusalCode::UpstreamLoginNeeded, "wants a sign-in", ""),
        LinkError::TooLarge => (
            UpstreamFailed,
            "gave an answer longer than the limit",
            "the operator can raise `line_bytes_max` in [server.limits]",
        ),
        LinkError::Malformed(_) => (UpstreamFailed, "gave an answer that cannot be parsed", ""),
        LinkError::NotConnected => (
            UpstreamDown,
            "is not connected",
            "it serves while it is connected; try again later",
        ),
        LinkError::Disconnected => (
            UpstreamFailed,
            "disconnected before it answered",
            "it may have carried out the request",
        ),
        LinkError::Closed => (UpstreamDown, "was stopped", ""),
    }
}
