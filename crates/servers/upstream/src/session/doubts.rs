//! Refusals that may mean that a server no longer knows its session, and what is known of the
//! session meanwhile.
//!
//! Plain data: no I/O, and nothing of the session itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::LinkError;
use platform::Mutex;
use wire::mcp::code::URL_ELICITATION_REQUIRED;
use wire::rpc::{Message, code};

/// Time that a refusal is not checked again after a check has found the session alive.
const CLEARED: Duration = Duration::from_secs(5);

/// Form in which a server refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// By this HTTP status.
    Status(u16),
    /// By an error with this code.
    Error(i64),
    /// By an answer that is no message.
    Unreadable,
}

impl Refused {
    /// The refusal of this kind that a failure is; `None` if it says nothing about the session.
    pub(super) fn of_failure(failure: &LinkError, is_garbled: bool) -> Option<Self> {
        match failure {
            LinkError::Http { status, body } => {
                let message = Message::read(body.clone()).ok();
                message
                    .as_ref()
                    .and_then(Self::of_answer)
                    .or(Self::of_status(*status))
            }
            LinkError::Unauthorized => Some(Self::Status(401)),
            LinkError::Malformed(_) => Some(Self::Unreadable),
            LinkError::Broken(_) if is_garbled => Some(Self::Unreadable),
            LinkError::Broken(_)
            | LinkError::Exited { .. }
            | LinkError::Unreachable(_)
            | LinkError::Untrusted(_)
            | LinkError::NotTls
            | LinkError::Timeout
            | LinkError::SessionGone
            | LinkError::SessionReplaced
            | LinkError::Account(_)
            | LinkError::TooLarge
            | LinkError::NotConnected
            | LinkError::Disconnected
            | LinkError::Closed => None,
        }
    }

    /// Statuses that are about time, size or load say nothing about the session.
    fn of_status(status: u16) -> Option<Self> {
        match status {
            405 | 408 | 413 | 414 | 415 | 425 | 429 | 431 => None,
            400..=500 => Some(Self::Status(status)),
            _ => None,
        }
    }

    /// Errors that are about the request say nothing about the session.
    pub(super) fn of_answer(answer: &Message) -> Option<Self> {
        let code = answer.error_object()?.code;
        let is_of_request = matches!(
            code,
            code::PARSE_ERROR | code::METHOD_NOT_FOUND | URL_ELICITATION_REQUIRED
        );
        (!is_of_request).then_some(Self::Error(code))
    }

    /// Whether the server has run nothing if it refuses all requests like this. A server that fails
    /// may have begun.
    pub(super) fn is_unread(self) -> bool {
        self != Self::Status(500)
    }
}

/// A request whose refusal waits for the check of its session.
pub(super) struct Doubted {
    pub(super) number: u64,
    pub(super) refused: Refused,
    pub(super) end: Result<Message, LinkError>,
}

/// Knowledge about the session since its last handshake.
#[derive(Default)]
pub(super) struct Doubts {
    /// Whether the server has answered a request with a result.
    proven: AtomicBool,
    /// The refusal that the last check found to be none of the session, and when.
    cleared: Mutex<Option<(Refused, Instant)>>,
}

impl Doubts {
    /// Records that the session is good: the server has answered in it.
    pub(super) fn prove(&self) {
        if !self.proven.load(Ordering::Relaxed) {
            self.proven.store(true, Ordering::Relaxed);
        }
    }

    /// Records that another session was opened.
    pub(super) fn renew(&self) {
        self.proven.store(false, Ordering::Relaxed);
        *self.cleared.lock() = None;
    }

    /// Takes that a check has found this refusal to be none of the session.
    pub(super) fn clear(&self, refused: Refused) {
        *self.cleared.lock() = Some((refused, Instant::now()));
    }

    /// Whether a refusal is a reason to check the session.
    pub(super) fn wants_check(&self, refused: Refused) -> bool {
        let is_cleared =
            |(known, at): (Refused, Instant)| known == refused && at.elapsed() < CLEARED;
        self.proven.load(Ordering::Relaxed) && !self.cleared.lock().is_some_and(is_cleared)
    }
}
