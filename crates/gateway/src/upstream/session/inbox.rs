//! What arrives on a session's link, told apart and sent where it belongs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use client::{Flow, Inbox, LinkFailure};
use json::{Token, Tokens};
use model::Era;
use wire::mcp::{ListKind, Params, code, meta};
use wire::rpc::{Id, Message, Shape, read_batch};

use super::super::fault::Fault;
use super::super::sink::SessionKey;
use super::Session;
use super::calls::Waiter;

/// Messages in one batch of a server (2025-03-26).
const BATCH_LEN_MAX: usize = 256;
/// Unreadable lines that are logged one by one; then only when their number has doubled.
const GARBAGE_LOGGED: u64 = 20;
/// How much of an unreadable line is logged, in bytes.
const GARBAGE_BYTES: usize = 200;

/// The session as its link sees it: the link does not keep it alive.
pub(in super::super) struct Ear(pub(in super::super) Weak<Session>);

impl Inbox for Ear {
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow {
        match self.0.upgrade() {
            Some(session) => session.frame(frame, about),
            None => Flow::Settled,
        }
    }

    fn failed(&self, request: u64, failure: LinkFailure) {
        if let Some(session) = self.0.upgrade() {
            session.failed(request, failure);
        }
    }

    fn closed(&self, why: LinkFailure) {
        if let Some(session) = self.0.upgrade() {
            // What ends before it has begun is a start that failed: told as that.
            if matches!(why, LinkFailure::Closed | LinkFailure::Left) || session.greeted().is_none() {
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
            && let Some(open) = session.settle(number)
        {
            session.tell(open, Err(Fault::Link(LinkFailure::TooLarge)));
        }
    }
}

/// The number of the request that an overlong answer belongs to, where it begins with `{"jsonrpc":"2.0","id":7,` or with
/// `{"id":7,` in any spacing.
fn answer_number(head: &[u8]) -> Option<u64> {
    let mut tokens = Tokens::new(head);
    let mut key = [tokens.next()?, tokens.next()?];
    if key == [Token::Open(b'{'), Token::Text(b"\"jsonrpc\"")] {
        let version = [Token::Colon, Token::Text(b"\"2.0\""), Token::Comma];
        if !version.into_iter().all(|part| tokens.next() == Some(part)) {
            return None;
        }
        key = [Token::Open(b'{'), tokens.next()?];
    }
    if key != [Token::Open(b'{'), Token::Text(b"\"id\"")] || tokens.next()? != Token::Colon {
        return None;
    }
    let Token::Plain(digits) = tokens.next()? else { return None };
    // Without a comma the number may be cut off.
    if tokens.next()? == Token::Comma { Id::read(digits)?.as_number() } else { None }
}

impl Session {
    fn frame(self: &Arc<Self>, frame: Bytes, about: Option<u64>) -> Flow {
        self.heard();
        if frame.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            match read_batch(&frame, BATCH_LEN_MAX) {
                Ok(batch) => {
                    for message in batch.into_iter().flatten() {
                        let _ = self.message(message, about);
                    }
                }
                Err(error) => {
                    self.unreadable(&frame, &error.message);
                    return Flow::Noise;
                }
            }
        } else {
            match Message::read(frame.clone()) {
                Ok(message) => {
                    if self.message(message, about) == Flow::Noise {
                        return Flow::Noise;
                    }
                }
                Err(error) => {
                    self.unreadable(&frame, &error.message);
                    return Flow::Noise;
                }
            }
        }
        match about {
            Some(number) if self.open().get(number).is_none() => Flow::Settled,
            Some(_) | None => Flow::Open,
        }
    }

    fn message(self: &Arc<Self>, message: Message, about: Option<u64>) -> Flow {
        match message.shape() {
            Shape::Result | Shape::Error => self.answered(message, about),
            Shape::Notification => return self.noticed(&message, about),
            Shape::Request => self.asked(message, about),
        }
        Flow::Open
    }

    /// An answer. One without an id (an error) belongs to the request on whose stream it came, or to nobody.
    fn answered(&self, message: Message, about: Option<u64>) {
        let number = match message.id() {
            Some(id) => id.as_number(),
            None => about,
        };
        match number.and_then(|number| self.settle(number)) {
            Some(open) => {
                self.well();
                // The annotations that we know are not the server's any more.
                if self.over_http()
                    && message.error_object().is_some_and(|error| error.code == code::HEADER_MISMATCH)
                {
                    self.outdated(&[ListKind::Tools]);
                }
                self.tell(open, Ok(message));
            }
            None => tracing::debug!(server = self.upstream(), "an answer that nobody waits for"),
        }
    }

    /// A request has got no answer.
    fn failed(self: &Arc<Self>, number: u64, failure: LinkFailure) {
        if failure == LinkFailure::SessionGone && self.stall(number) {
            return;
        }
        // An HTTP error with a JSON-RPC error in it is an answer like any other.
        if let LinkFailure::Http { body, .. } = &failure
            && let Ok(message) = Message::read(body.clone())
            && message.shape() == Shape::Error
        {
            if let Some(open) = self.settle(number) {
                self.tell(open, Ok(message));
            }
            return;
        }
        if self.greeted().is_some() {
            tracing::warn!(server = self.upstream(), %failure, "a request failed");
        }
        if matches!(failure, LinkFailure::Http { status: 400 | 404 | 405, .. }) && self.era() == Era::Modern {
            self.doubt();
        }
        let fault = Fault::Link(failure);
        self.unwell(&fault);
        if let Some(open) = self.settle(number) {
            self.tell(open, Err(fault));
        }
    }

    fn noticed(self: &Arc<Self>, message: &Message, about: Option<u64>) -> Flow {
        match message.method() {
            "notifications/progress" => self.progress(message),
            "notifications/cancelled" => self.withdrawn(message),
            "notifications/subscriptions/acknowledged" => {
                if let Some(number) = subscription(message).or(about) {
                    self.acknowledged.send_replace(number);
                }
            }
            "notifications/tools/list_changed" => self.changed(&[ListKind::Tools]),
            "notifications/prompts/list_changed" => self.changed(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => {
                self.changed(&[ListKind::Resources, ListKind::Templates])
            }
            // For all who follow the resource, or for whoever has the task, on whatever stream it came.
            method @ ("notifications/resources/updated"
            | "notifications/tasks/status"
            | "notifications/tasks") => {
                self.opening.sink.notice(self, method, message.frame().clone());
            }
            method => {
                let frame = message.frame().clone();
                let log = method == "notifications/message";
                match self.belongs(about, log) {
                    Some(sink) => sink.notice(method, frame),
                    // Nobody can be told: on a shared session it may be about anybody's call.
                    None if log && *self.key() == SessionKey::Shared => return Flow::Noise,
                    None => self.opening.sink.notice(self, method, frame),
                }
            }
        }
        Flow::Open
    }

    /// The call to which a message belongs that does not say so itself.
    fn belongs(&self, about: Option<u64>, or_only: bool) -> Option<Arc<dyn super::CallSink>> {
        let open = self.open();
        let number = match about {
            Some(number) => number,
            None if or_only => open.only_call()?,
            None => return None,
        };
        match &open.get(number)?.waiter {
            Waiter::Call { sink, .. } => Some(Arc::clone(sink)),
            Waiter::Own(_) => None,
        }
    }

    fn progress(self: &Arc<Self>, message: &Message) {
        let Ok(params) = Params::read(message) else { return };
        let Some(number) = params.progress_token().and_then(|token| token.as_number()) else { return };
        let (known, found) = {
            let mut open = self.open();
            match open.extend(number, Instant::now()).map(|open| &open.waiter) {
                Some(Waiter::Call { sink, token: Some(token), .. }) => {
                    (true, Some((Arc::clone(sink), token.clone())))
                }
                Some(Waiter::Call { token: None, .. } | Waiter::Own(_)) => (true, None),
                None => (false, None),
            }
        };
        // The call may have become a task, whose token lives on (2025-11-25, "Task Progress Notifications").
        if !known && self.tasks() > 0 {
            return self.opening.sink.notice(self, message.method(), message.frame().clone());
        }
        if let Some((sink, token)) = found {
            let mut splice = json::Splice::new();
            let mut edit = params.edit();
            edit.set_progress_token(&token);
            edit.finish(&mut splice);
            sink.notice(message.method(), message.edited(&splice));
        }
    }

    /// The server says that these lists have changed.
    fn changed(&self, lists: &[ListKind]) {
        self.told.fetch_or(bits(lists), Ordering::SeqCst);
        self.outdated(lists);
    }

    fn outdated(&self, lists: &[ListKind]) {
        let bits = bits(lists);
        self.stale.fetch_or(bits, Ordering::SeqCst);
        self.upkeep.notify_one();
    }

    /// A line that is no message is logged and skipped; many are counted.
    fn unreadable(&self, line: &Bytes, why: &str) {
        let count = self.garbage.fetch_add(1, Ordering::Relaxed);
        if count < GARBAGE_LOGGED || (count + 1).is_power_of_two() {
            let head = String::from_utf8_lossy(line.get(..GARBAGE_BYTES).unwrap_or(line));
            tracing::warn!(
                server = self.upstream(),
                count = count + 1,
                why,
                "not a message: {}",
                head.escape_debug()
            );
        }
    }
}

fn bits(lists: &[ListKind]) -> u64 {
    lists.iter().fold(0, |bits, list| bits | super::super::lists::bit(*list))
}

/// The listen request to which a modern notification belongs.
fn subscription(message: &Message) -> Option<u64> {
    let params = Params::read(message).ok()?;
    let raw = params.meta_raw(meta::SUBSCRIPTION_ID)?;
    wire::rpc::Id::read(raw)?.as_number()
}

#[cfg(test)]
mod tests {
    use super::answer_number;

    #[test]
    fn an_overlong_answer_is_known_by_how_it_begins() {
        for (head, number) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"te"#, Some(17)),
            (r#"{ "id": 3, "jsonrpc""#, Some(3)),
            (r#"{"jsonrpc":"2.0","id":"17","result""#, None),
            (r#"{"jsonrpc":"2.0","id":17"#, None),
            (r#"{"jsonrpc":"1.0","id":17,"result""#, None),
            (r#"{"jsonrpc" : "2.0" ,"id" :4 ,"#, Some(4)),
            (r#"{"id":[1],"#, None),
            (r#"{"id":-1,"#, None),
            ("garbage", None),
            ("", None),
        ] {
            assert_eq!(answer_number(head.as_bytes()), number, "{head}");
        }
    }
}
