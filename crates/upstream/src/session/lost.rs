//! Sessions that a server lost without a 404: refusals that may say so are checked with a list that the session has had before.
//!
//! Servers tell it by other statuses, by errors of their own, in the body of a 200 or on a pipe, as a bridge does whose server was
//! restarted. Words decide nothing here: a session is lost if the server refuses the list in the same way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::LinkError;
use model::{Coding, ListKind};
use platform::Mutex;
use wire::mcp::Era;
use wire::mcp::code::URL_ELICITATION_REQUIRED;
use wire::rpc::{Message, MessageKind, code};

use super::Session;
use crate::fault::Fault;

/// How long a check waits for the server.
const CHECK: Duration = Duration::from_secs(5);
/// For how long a refusal is not checked again after a check has found the session alive.
const CLEARED: Duration = Duration::from_secs(5);

/// How a server refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// By this HTTP status.
    Status(u16),
    /// By an error with this code.
    Error(i64),
    /// By an answer that is no message.
    Unreadable,
}

impl Refused {
    /// The refusal of this kind that a failure is; `None` if it says nothing about the session.
    fn of_failure(failure: &LinkError, is_garbled: bool) -> Option<Self> {
        match failure {
            LinkError::Http { status, body } => {
                let message = Message::read(body.clone()).ok();
                message.as_ref().and_then(Self::of_answer).or(Self::of_status(*status))
            }
            LinkError::Unauthorized => Some(Self::Status(401)),
            LinkError::Malformed(_) => Some(Self::Unreadable),
            LinkError::Broken(_) if is_garbled => Some(Self::Unreadable),
            LinkError::Broken(_)
            | LinkError::Exited { .. }
            | LinkError::Unreachable(_)
            | LinkError::Untrusted(_)
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
        matches!(status, 400..=499 | 500).then_some(())?;
        (!matches!(status, 405 | 408 | 413 | 414 | 415 | 425 | 429 | 431)).then_some(Self::Status(status))
    }

    /// Errors that are about the request say nothing about the session.
    fn of_answer(answer: &Message) -> Option<Self> {
        let code = answer.error_object()?.code;
        let is_of_request =
            matches!(code, code::PARSE_ERROR | code::METHOD_NOT_FOUND | URL_ELICITATION_REQUIRED);
        (!is_of_request).then_some(Self::Error(code))
    }

    /// Whether the server has run nothing if it refuses all requests like this. A server that fails may have begun.
    fn is_unread(self) -> bool {
        self != Self::Status(500)
    }
}

/// A request whose refusal waits for the check of its session.
pub(super) struct Doubted {
    number: u64,
    refused: Refused,
    end: Result<Message, LinkError>,
}

/// What is known of the session since its last handshake.
#[derive(Default)]
pub(super) struct Doubts {
    /// Whether the server has answered a request with a result.
    proven: AtomicBool,
    /// The refusal that the last check found to be none of the session, and when.
    cleared: Mutex<Option<(Refused, Instant)>>,
}

impl Doubts {
    /// Takes that the session is good: the server has answered in it.
    pub(super) fn prove(&self) {
        if !self.proven.load(Ordering::Relaxed) {
            self.proven.store(true, Ordering::Relaxed);
        }
    }

    /// Takes that another session was opened.
    pub(super) fn renew(&self) {
        self.proven.store(false, Ordering::Relaxed);
        *self.cleared.lock() = None;
    }

    fn wants_check(&self, refused: Refused) -> bool {
        let is_cleared = |(known, at): (Refused, Instant)| known == refused && at.elapsed() < CLEARED;
        self.proven.load(Ordering::Relaxed) && !self.cleared.lock().is_some_and(is_cleared)
    }
}

impl Session {
    /// Whether the end of a failed request waits until the session is checked.
    pub(super) fn doubts_failure(self: &Arc<Self>, number: u64, failure: &LinkError) -> bool {
        // Whatever an account is refused is about the account.
        if matches!(failure, LinkError::Unauthorized) && self.setup.environment.accounts.is_some() {
            return false;
        }
        let is_garbled = self.pending.lock().requests.get(&number).is_some_and(|request| request.garbled);
        let Some(refused) = Refused::of_failure(failure, is_garbled) else { return false };
        self.doubt(Some(Doubted { number, refused, end: Err(failure.clone()) }), refused)
    }

    /// Whether an answer waits until the session is checked: it is an error that may be about the session.
    pub(super) fn doubts_answer(self: &Arc<Self>, number: u64, answer: &Message) -> bool {
        if answer.shape() != MessageKind::Error {
            return false;
        }
        let Some(refused) = Refused::of_answer(answer) else { return false };
        self.doubt(Some(Doubted { number, refused, end: Ok(answer.clone()) }), refused)
    }

    /// Has the session checked after a refusal of what is no request.
    pub(super) fn doubts_stream(self: &Arc<Self>, failure: &LinkError) {
        if let Some(refused) = Refused::of_failure(failure, false) {
            self.doubt(None, refused);
        }
    }

    fn doubt(self: &Arc<Self>, doubted: Option<Doubted>, refused: Refused) -> bool {
        let is_session = self.era() == Era::Legacy && self.coding() == Coding::Json;
        if !is_session || !self.doubts.wants_check(refused) {
            return false;
        }
        let Some(list) = self.known_list() else { return false };
        let mut pending = self.pending.lock();
        // One that was sent twice is not sent again.
        let is_kept = doubted.as_ref().is_none_or(|doubted| pending.is_kept(doubted.number));
        if !is_kept || pending.ended.is_some() || pending.awaiting_reopen.is_some() {
            return false;
        }
        match &mut pending.awaiting_check {
            Some(waiting) => waiting.extend(doubted),
            None => {
                pending.awaiting_check = Some(doubted.into_iter().collect());
                let me = Arc::clone(self);
                tokio::spawn(async move { me.check_session(list, refused).await });
            }
        }
        true
    }

    /// A list that the server has answered.
    fn known_list(&self) -> Option<&'static str> {
        let manifest = self.manifest();
        let lists = [
            (ListKind::Tools, "tools/list"),
            (ListKind::Resources, "resources/list"),
            (ListKind::Prompts, "prompts/list"),
        ];
        lists.into_iter().find(|(kind, _)| !manifest.list(*kind).items.is_empty()).map(|(_, method)| method)
    }

    async fn check_session(self: Arc<Self>, list: &str, refused: Refused) {
        let answer = match self.request_once(Era::Legacy, list, CHECK) {
            Ok(mut asked) => asked.answer().await,
            Err(fault) => Err(fault),
        };
        let again = match &answer {
            Ok(message) => Refused::of_answer(message),
            Err(Fault::Link(failure)) => Refused::of_failure(failure, true),
            Err(_) => None,
        };
        let is_gone = matches!(answer, Err(Fault::Link(LinkError::SessionGone)));
        let is_lost = is_gone || again == Some(refused);
        if !is_lost {
            *self.doubts.cleared.lock() = Some((refused, Instant::now()));
        }
        let doubted = {
            let mut pending = self.pending.lock();
            let doubted = pending.awaiting_check.take().unwrap_or_default();
            if is_lost && pending.ended.is_none() && pending.awaiting_reopen.is_none() {
                pending.awaiting_reopen = Some(Vec::new());
                let me = Arc::clone(&self);
                tokio::spawn(async move { me.reopen().await });
            }
            doubted
        };
        for Doubted { number, refused: its, end } in doubted {
            let is_unread = is_lost && its == refused && its.is_unread();
            if !(is_unread && self.await_reopen(number, false)) {
                match end {
                    Ok(answer) => self.settle_answer(number, answer),
                    Err(failure) => self.fail(number, failure),
                }
            }
        }
    }
}
