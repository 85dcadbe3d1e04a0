//! Inbox of a session: answers, notifications and questions of the server, dispatched to their
//! receivers.

use std::sync::{Arc, Weak};
use std::{sync::atomic::Ordering, time::Instant};

use bytes::Bytes;
use client::{Flow, LinkError, LinkInbox};
use json::Splice;
use model::{Answer, Marks, Notice, Outcome, Payload, Range};
use wire::mcp::Era;
use wire::mcp::{ListKind, Params, code, meta, relay};
use wire::rpc::{Id, Message, MessageKind, read_batch};

use super::{Session, SessionEvent, pending::Waiter};
use crate::session_api::{CallEvents, SessionKey};
use crate::{fault::Fault, lists};

/// Messages in one batch of a server (2025-03-26).
const BATCH_LEN_MAX: usize = 256;
/// Unreadable messages that are logged one by one; later ones are logged when their count doubles.
const UNREADABLE_LOGGED: u64 = 20;
/// The part of an unreadable message at either end in which its id is looked for, in bytes.
const ID_BYTES_MAX: usize = 256;
/// The mark with which some programs begin UTF-8 texts.
const UTF8_MARK: &[u8] = "\u{FEFF}".as_bytes();
/// Logged part of an unreadable message, in bytes.
const UNREADABLE_BYTES: usize = 200;

/// The session as its link sees it; the link does not keep the session alive.
pub(crate) struct SessionInbox(pub(crate) Weak<Session>);

impl LinkInbox for SessionInbox {
    fn frame(&self, frame: Bytes, stream_of: Option<u64>) -> Flow {
        match self.0.upgrade() {
            Some(session) => session.frame(frame, stream_of),
            None => Flow::Settled,
        }
    }

    fn failed(&self, request: u64, failure: LinkError) {
        if let Some(session) = self.0.upgrade() {
            session.failed(request, failure);
        }
    }

    fn session_gone(&self) {
        if let Some(session) = self.0.upgrade() {
            session.begin_reopen();
        }
    }

    fn stream_refused(&self, failure: &LinkError) {
        if let Some(session) = self.0.upgrade() {
            session.doubts_stream(failure);
        }
    }

    fn closed(&self, why: LinkError) {
        if let Some(session) = self.0.upgrade() {
            // The supervisor reports an end before the handshake as a failed start.
            if matches!(why, LinkError::Closed | LinkError::Disconnected)
                || session.handshake().is_none()
            {
                tracing::debug!(server = session.upstream(), %why, "session closed");
            } else {
                tracing::warn!(server = session.upstream(), %why, "session lost");
            }
            session.end(Fault::Link(why));
        }
    }

    fn skipped(&self, head: &[u8]) {
        if let Some(session) = self.0.upgrade()
            && let Some(number) = answer_number(head)
        {
            session.finish(number, Err(Fault::Link(LinkError::TooLarge)));
        }
    }
}

/// The request number of an answer that cannot be parsed: at its start, `{"jsonrpc":"2.0","id":7,`,
/// or at its end, `,"id":7}`, in any spacing.
fn answer_number(answer: &[u8]) -> Option<u64> {
    let head = compact(answer.get(..ID_BYTES_MAX).unwrap_or(answer));
    let id = head
        .strip_prefix("{\"jsonrpc\":\"2.0\",\"id\":")
        .or_else(|| head.strip_prefix("{\"id\":"));
    if let Some(integer) = id.and_then(LeadingInteger::read)
        && integer.rest.starts_with(',')
    {
        return Some(integer.number);
    }
    // A request or notification has no answer's number, wherever it says what.
    let is_answer =
        head.starts_with("{\"jsonrpc\":\"2.0\",\"result\":") || head.starts_with("{\"result\":");
    if !is_answer {
        return None;
    }
    let tail = answer.get(answer.len().saturating_sub(ID_BYTES_MAX)..);
    let tail = compact(tail.unwrap_or(answer));
    let (_, id) = tail.rsplit_once(",\"id\":")?;
    let integer = LeadingInteger::read(id)?;
    // A brace more, and it is the id of something inside of the answer.
    match integer.rest {
        "}" | ",\"jsonrpc\":\"2.0\"}" => Some(integer.number),
        _ => None,
    }
}

/// A text without white space; bytes that are no UTF-8 are replaced.
fn compact(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The integer at the start of a text, `7` or `7.0`.
struct LeadingInteger<'t> {
    number: u64,
    rest: &'t str,
}

impl<'t> LeadingInteger<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = text.split_at_checked(end)?;
        let rest = match rest.strip_prefix('.') {
            Some(fraction) => fraction.trim_start_matches('0'),
            None => rest,
        };
        Some(Self {
            number: digits.parse().ok()?,
            rest,
        })
    }
}

impl Session {
    /// Handles one frame. `stream_of` is the request on whose response stream it came.
    fn frame(self: &Arc<Self>, frame: Bytes, stream_of: Option<u64>) -> Flow {
        // RFC 8259 section 8.1: a mark before the text may be ignored.
        let frame = if frame.starts_with(UTF8_MARK) {
            frame.slice(UTF8_MARK.len()..)
        } else {
            frame
        };
        // Written only if it changes: this is on the path of every message.
        if self.health.silent.load(Ordering::Relaxed) {
            self.health.silent.store(false, Ordering::Relaxed);
        }
        if frame.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            match read_batch(&frame, BATCH_LEN_MAX) {
                Ok(batch) => {
                    for message in batch.into_iter().flatten() {
                        let _ = self.dispatch(message, stream_of);
                    }
                }
                Err(error) => return self.unreadable(&frame, stream_of, &error.message),
            }
        } else {
            match Message::read_or_return(frame) {
                Ok(message) => {
                    if self.dispatch(message, stream_of) == Flow::Noise {
                        return Flow::Noise;
                    }
                }
                Err((error, frame)) => return self.unreadable(&frame, stream_of, &error.message),
            }
        }
        match stream_of {
            Some(number) if self.pending.lock().is_settled(number) => Flow::Settled,
            Some(_) | None => Flow::Open,
        }
    }

    fn dispatch(self: &Arc<Self>, message: Message, stream_of: Option<u64>) -> Flow {
        match message.shape() {
            MessageKind::Result | MessageKind::Error => self.answered(message, stream_of),
            MessageKind::Notification => return self.notified(&message, stream_of),
            MessageKind::Request => self.handle_question(message, stream_of),
        }
        Flow::Open
    }

    /// Handles an answer. An error without an id belongs to the request on whose stream it came.
    fn answered(self: &Arc<Self>, message: Message, stream_of: Option<u64>) {
        let number = match message.id() {
            Some(id) => id.as_number(),
            None => stream_of,
        };
        match number {
            Some(number) if self.doubts_answer(number, &message) => {}
            Some(number) => self.settle_answer(number, message),
            None => tracing::debug!(server = self.upstream(), "dropped an answer without an id"),
        }
    }

    /// Ends a request with its answer.
    pub(super) fn settle_answer(&self, number: u64, message: Message) {
        let Some(request) = self.settle(number) else {
            tracing::debug!(
                server = self.upstream(),
                "dropped an answer without a pending request"
            );
            return;
        };
        self.record_answer();
        if message.shape() == MessageKind::Result {
            self.doubts.prove();
        }
        // The known header annotations are out of date.
        if self.over_http()
            && message
                .error_object()
                .is_some_and(|error| error.code == code::HEADER_MISMATCH)
        {
            self.mark_stale(lists::bit(ListKind::Tools));
        }
        self.deliver(request, Ok(message));
    }

    /// Gives the caller of a request in protobuf its answer, a payload field.
    pub(crate) fn relayed(&self, number: u64, outcome: Outcome, field: Bytes) {
        if self.health.silent.load(Ordering::Relaxed) {
            self.health.silent.store(false, Ordering::Relaxed);
        }
        if let Some(request) = self.settle(number) {
            self.record_answer();
            self.deliver_answer(
                request,
                Ok(Answer {
                    outcome,
                    payload: Payload::proto(field, Range::default()),
                }),
            );
        }
    }

    /// Handles the failure of one request.
    fn failed(self: &Arc<Self>, number: u64, failure: LinkError) {
        // The end of the stream on which a refusal came says nothing new.
        if self.pending.lock().is_doubted(number) {
            return;
        }
        if let LinkError::SessionGone | LinkError::SessionReplaced = failure
            && self.await_reopen(number, failure == LinkError::SessionGone)
        {
            return;
        }
        if let Some(message) = error_in(&failure)
            && self.await_headers(number, &message)
        {
            return;
        }
        if !self.doubts_failure(number, &failure) {
            self.fail(number, failure);
        }
    }

    /// Ends a request that has failed.
    pub(super) fn fail(self: &Arc<Self>, number: u64, failure: LinkError) {
        if let Some(message) = error_in(&failure) {
            return self.finish(number, Ok(message));
        }
        if self.handshake().is_some() {
            tracing::warn!(server = self.upstream(), %failure, "a request failed");
        }
        if matches!(
            failure,
            LinkError::Http {
                status: 400 | 404 | 405,
                ..
            }
        ) && self.era() == Era::Modern
        {
            self.check_era();
        }
        let is_of_account = matches!(failure, LinkError::Account(_));
        let fault = Fault::Link(failure);
        // An account without a token says nothing about the server.
        if !is_of_account {
            self.record_failure(&fault);
        }
        self.finish(number, Err(fault));
    }

    fn notified(self: &Arc<Self>, message: &Message, stream_of: Option<u64>) -> Flow {
        match message.method() {
            "notifications/progress" => self.progress(message),
            "notifications/cancelled" => self.question_cancelled(message),
            "notifications/subscriptions/acknowledged" => {
                if let Some(number) = listen_request(message).or(stream_of) {
                    self.acknowledged.send_replace(number);
                }
            }
            "notifications/tools/list_changed" => self.lists_changed(&[ListKind::Tools]),
            "notifications/prompts/list_changed" => self.lists_changed(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => {
                self.lists_changed(&[ListKind::Resources, ListKind::Templates, ListKind::Skills])
            }
            // For all subscribers of the resource, or the owner of the task, on whatever stream it
            // came.
            "notifications/resources/updated"
            | "notifications/tasks/status"
            | "notifications/tasks" => {
                self.notify_gateway(message);
            }
            method => {
                let log = method == "notifications/message";
                match self.call_of(stream_of, log) {
                    Some(events) => {
                        if let Ok(params) = Params::read(message) {
                            events.notice(relay::decode_notice(&params, self.era()));
                        }
                    }
                    // On a shared session a log message may belong to any caller's call.
                    None if log && *self.key() == SessionKey::Shared => return Flow::Noise,
                    None => self.notify_gateway(message),
                }
            }
        }
        Flow::Open
    }

    /// Passes on a notification that belongs to no call.
    fn notify_gateway(self: &Arc<Self>, message: &Message) {
        if let Ok(params) = Params::read(message) {
            self.emit(SessionEvent::Notice(relay::decode_notice(
                &params,
                self.era(),
            )));
        }
    }

    /// The call of a message that names none: by its stream, or with `or_only` the only pending
    /// call.
    fn call_of(&self, stream_of: Option<u64>, or_only: bool) -> Option<Arc<dyn CallEvents>> {
        let pending = self.pending.lock();
        let number = match stream_of {
            Some(number) => number,
            None if or_only => pending.only_call()?,
            None => return None,
        };
        match &pending.requests.get(&number)?.waiter {
            Waiter::Call { events, .. } => Some(Arc::clone(events)),
            Waiter::Own(_) => None,
        }
    }

    fn progress(self: &Arc<Self>, message: &Message) {
        let Ok(params) = Params::read(message) else {
            return;
        };
        let Some(number) = params.progress_token().and_then(|token| token.as_number()) else {
            return;
        };
        let mut pending = self.pending.lock();
        let Some(request) = pending.extend(number, Instant::now()) else {
            drop(pending);
            // A call that became a task keeps its progress token (2025-11-25, "Task Progress
            // Notifications").
            if self.tasks() > 0 {
                self.notify_gateway(message);
            }
            return;
        };
        let Waiter::Call {
            events,
            progress: Some(token),
            ..
        } = &request.waiter
        else {
            return;
        };
        let events = Arc::clone(events);
        let token = token.clone();
        drop(pending);
        let Some(id) = Id::read(&token) else {
            return;
        };
        let mut splice = Splice::new();
        params.edit().set_progress_token(&id).finish(&mut splice);
        let notice = relay::decode_notice(&params, self.era());
        let payload = Payload {
            bytes: message.edited(&splice),
            marks: Marks::default(),
            ..notice.payload
        };
        events.notice(Notice {
            latest: Some(token),
            payload,
            ..notice
        });
    }

    /// Records that the server announced changes of these lists.
    fn lists_changed(&self, lists: &[ListKind]) {
        let lists = lists.iter().fold(0, |bits, kind| bits | lists::bit(*kind));
        // Before they are stale, so that the refresh knows of the announcement.
        self.announced.fetch_or(lists, Ordering::SeqCst);
        self.mark_stale(lists);
    }

    /// Has all lists fetched again.
    pub fn list_again(&self) {
        self.mark_stale(lists::ALL);
    }

    /// Has these lists fetched again, and with all of them all subscriptions made again (legacy).
    /// `lists` is a set of bits.
    pub(crate) fn mark_stale(&self, lists: u64) {
        self.stale.fetch_or(lists, Ordering::SeqCst);
        self.upkeep.notify_one();
    }

    /// Logs and counts a message that cannot be parsed. The request that it answers, if it says
    /// which, ends at once.
    fn unreadable(&self, line: &Bytes, stream_of: Option<u64>, why: &str) -> Flow {
        let count = self.unreadable.fetch_add(1, Ordering::Relaxed);
        if count < UNREADABLE_LOGGED || (count + 1).is_power_of_two() {
            let head = String::from_utf8_lossy(line.get(..UNREADABLE_BYTES).unwrap_or(line));
            tracing::warn!(
                server = self.upstream(),
                count = count + 1,
                why,
                "not a message: {}",
                head.escape_debug()
            );
            self.keep_noise(&head);
        }
        if let Some(number) = answer_number(line) {
            let fault = Fault::Link(LinkError::Malformed(why.to_owned()));
            self.record_failure(&fault);
            self.finish(number, Err(fault));
            return if stream_of == Some(number) {
                Flow::Settled
            } else {
                Flow::Noise
            };
        }
        if let Some(number) = stream_of
            && let Some(request) = self.pending.lock().requests.get_mut(&number)
        {
            request.garbled = true;
        }
        Flow::Noise
    }
}

/// The answer in a failure: an HTTP error whose body is a JSON-RPC error is one.
fn error_in(failure: &LinkError) -> Option<Message> {
    let LinkError::Http { body, .. } = failure else {
        return None;
    };
    Message::read(body.clone())
        .ok()
        .filter(|message| message.shape() == MessageKind::Error)
}

/// The listen request that a modern notification belongs to.
fn listen_request(message: &Message) -> Option<u64> {
    let params = Params::read(message).ok()?;
    let raw = params.meta_raw(meta::SUBSCRIPTION_ID)?;
    Id::read(raw)?.as_number()
}

#[cfg(test)]
mod tests {
    use super::answer_number;

    #[test]
    fn answers_that_cannot_be_parsed_are_matched_by_the_bytes_around_their_id() {
        for (head, number) in [
            (
                r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"te"#,
                Some(17),
            ),
            (r#"{ "id": 3, "jsonrpc""#, Some(3)),
            (
                r#"{"jsonrpc":"2.0","id":17.0,"result":{"a":NaN}}"#,
                Some(17),
            ),
            (
                r#"{"jsonrpc":"2.0","result":{"a":NaN}, "id": 17}"#,
                Some(17),
            ),
            (r#"{"result":{"a":NaN},"id":17,"jsonrpc":"2.0"}"#, Some(17)),
            (r#"{"jsonrpc":"2.0","result":{"a":NaN,"id":17}}"#, None),
            (
                r#"{"jsonrpc":"2.0","method":"x","params":{"a":NaN},"id":17}"#,
                None,
            ),
            (r#"{"jsonrpc":"2.0","id":17.5,"result":{"a":NaN}}"#, None),
            (r#"{"jsonrpc":"2.0","id":"17","result""#, None),
            (r#"{"jsonrpc":"2.0","id":17"#, None),
            ("garbage", None),
        ] {
            assert_eq!(answer_number(head.as_bytes()), number, "{head}");
        }
    }
}
