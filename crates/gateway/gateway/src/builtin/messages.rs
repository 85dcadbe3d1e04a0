//! Built-in tools `say` and `read_messages`: an MCP client in the room of its topic.
//!
//! A message goes the way of every envelope ([`Dispatch::send_message`]). Reading needs the topic's replay
//! ring to be kept for readers.

use std::{pin::pin, sync::Arc, time::Duration};

use auth::Purpose;
use json::visible;
use model::{Capability, KindRef, ParticipantId, Refusal, RefusalCode};
use platform::{random, unix_ms};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};
use topic::{Cursor, PlacedMessage, Replay};
use wire::mcpx::Envelope;
use wire::time::rfc3339;

use super::{arguments, safe_text};
use crate::room_message::SentMessage;
use crate::{call::Call, dispatch::Dispatch};

/// Messages of one answer, without a `limit`.
const PAGE_MESSAGES: usize = 50;
/// Most messages of one answer.
pub const PAGE_MESSAGES_MAX: usize = 200;
/// Bytes of all payloads in one answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Longest payload that is returned whole, in bytes. Of a longer one the beginning is returned.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Time that a cursor is valid, in seconds.
pub const CURSOR_SECS: u64 = 24 * 3600;
const CURSOR: Purpose = Purpose {
    name: "messages",
    valid_ms: CURSOR_SECS * 1000,
};

/// Sends a message in the caller's name.
pub(super) async fn say(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<SentMessage, Refusal> {
    let message = arguments::read(&call.request)?;
    dispatch.send_message(call.requester(), message).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    cursor: Option<String>,
    limit: Option<usize>,
    kind: Option<String>,
    #[serde(default)]
    wait_seconds: u64,
}

/// A page of messages.
#[derive(Serialize)]
pub(super) struct MessagePage {
    messages: Vec<ShownMessage>,
    /// The number of the gateway process that assigns the offsets.
    epoch: u64,
    cursor: String,
    more: bool,
    gap: bool,
}

#[derive(Serialize)]
struct ShownMessage {
    /// Its place among all envelopes of the topic.
    offset: u64,
    /// When it took that place.
    received: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<String>,
    from: String,
    to: Vec<String>,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

/// A payload that is too long.
#[derive(Serialize)]
struct Cut {
    begins: String,
    bytes: usize,
}

/// Reads messages since a cursor, or since the caller joined.
pub(super) async fn read(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<MessagePage, Refusal> {
    let ReadArguments {
        cursor,
        limit,
        kind,
        wait_seconds,
    } = arguments::read(&call.request)?;
    let pattern = kind.as_deref().map(Capability::parse).transpose();
    let pattern =
        pattern.map_err(|error| malformed(&format!("`kind` is no pattern of kinds: {error}")))?;
    let me = &call.link.participant.id;
    let mut from = match &cursor {
        Some(cursor) => open(&dispatch, me, cursor)?,
        None => beginning(&dispatch, &call),
    };
    let until =
        Instant::now() + Duration::from_secs(wait_seconds).min(dispatch.settings().limits.hold);
    let limit = limit.unwrap_or(PAGE_MESSAGES).clamp(1, PAGE_MESSAGES_MAX);
    let reader = Reader {
        me: me.as_str(),
        pattern: pattern.as_ref(),
        limit,
    };
    let mut stopping = dispatch.stopping.subscribe();
    let mut gap = false;
    loop {
        let mut published = pin!(dispatch.room.published());
        // Before the look: a message that comes after it wakes this reader.
        published.as_mut().enable();
        let since = dispatch.with(|topic| topic.kept().readable.then(|| topic.messages(me, from)));
        let since = since.ok_or_else(unreadable)?;
        gap |= !since.complete;
        let (messages, next, more) = reader.page(&since);
        let left = until.saturating_duration_since(Instant::now());
        if !messages.is_empty() || more || gap || left.is_zero() || dispatch.is_stopping() {
            return Ok(MessagePage {
                messages,
                epoch: next.epoch,
                cursor: seal(&dispatch, me, next),
                more,
                gap,
            });
        }
        from = next;
        tokio::select! {
            _ = timeout(left, published) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
}

/// Cursor of a caller that names none: where its link joined, or where the topic began to keep
/// messages after that.
fn beginning(dispatch: &Dispatch, call: &Call) -> Cursor {
    dispatch.with(|topic| {
        let next = topic.next_message();
        let joined = topic
            .readable_since(call.link.id)
            .filter(|joined| joined.epoch == next.epoch);
        joined.unwrap_or(Cursor { offset: 0, ..next })
    })
}

fn unreadable() -> Refusal {
    Refusal::new(
        RefusalCode::Unsupported,
        "the messages of this topic are not kept for readers",
    )
    .hint("the operator can have them kept: builtin = [\"room\"]")
}

fn malformed(why: &str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, why.to_owned())
}

/// Seals a cursor for one participant in one topic, so that no participant reads further back than
/// it could.
fn seal(dispatch: &Dispatch, who: &ParticipantId, cursor: Cursor) -> String {
    let state = format!("{}:{cursor}", dispatch.name());
    CURSOR.seal(&dispatch.context.sealer, who, unix_ms(), random(), &state)
}

fn open(dispatch: &Dispatch, who: &ParticipantId, cursor: &str) -> Result<Cursor, Refusal> {
    let state = CURSOR.open(&dispatch.context.sealer, who, unix_ms(), cursor);
    let parts = state.as_deref().and_then(|text| text.rsplit_once(':'));
    let here = parts.filter(|(topic, _)| *topic == dispatch.name().as_str());
    here.and_then(|(_, cursor)| cursor.parse().ok())
        .ok_or_else(|| {
            malformed("this cursor is not known here")
                .hint("leave it out to begin where you joined")
        })
}

/// Reader of the messages: its name, the kinds that it wants, and the number of messages.
struct Reader<'r> {
    me: &'r str,
    pattern: Option<&'r Capability>,
    limit: usize,
}

impl Reader<'_> {
    /// The messages for the reader, up to the limits of an answer; the place behind the last
    /// message that was looked at, and whether there is more.
    fn page(&self, since: &Replay<Arc<Envelope>>) -> (Vec<ShownMessage>, Cursor, bool) {
        let mut messages = Vec::new();
        let mut bytes = 0_usize;
        for placed in &since.messages {
            let envelope = &placed.message;
            if !self.wants(envelope) {
                continue;
            }
            let len = envelope.payload().len().min(PAYLOAD_BYTES_MAX);
            if messages.len() >= self.limit || bytes.saturating_add(len) > ANSWER_BYTES_MAX {
                return (
                    messages,
                    Cursor {
                        offset: placed.offset,
                        ..since.next
                    },
                    true,
                );
            }
            bytes += len;
            messages.push(shown(placed));
        }
        (messages, since.next, false)
    }

    /// Whether a message is to everybody, to the reader, or from the reader, and of a kind that the
    /// reader wants.
    fn wants(&self, envelope: &Envelope) -> bool {
        let directed = || envelope.is_broadcast() || envelope.to().any(|to| to == self.me);
        let is_wanted = |pattern: &Capability| {
            KindRef::parse(envelope.kind()).is_ok_and(|kind| pattern.admits(kind))
        };
        self.pattern.is_none_or(is_wanted) && (envelope.from() == self.me || directed())
    }
}

fn shown(placed: &PlacedMessage<Arc<Envelope>>) -> ShownMessage {
    let envelope = &placed.message;
    let payload = std::str::from_utf8(envelope.payload()).unwrap_or_default();
    let whole = Some(payload)
        .filter(|payload| payload.len() <= PAYLOAD_BYTES_MAX)
        .and_then(safe_text::raw);
    let cut = || Cut {
        begins: safe_text::beginning(payload, PAYLOAD_BYTES_MAX),
        bytes: payload.len(),
    };
    ShownMessage {
        offset: placed.offset,
        received: rfc3339(placed.received_ms),
        id: visible::lines(envelope.id()),
        ts: envelope.ts().map(visible::lines),
        from: visible::lines(envelope.from()),
        to: envelope.to().map(visible::lines).collect(),
        kind: visible::lines(envelope.kind()),
        correlation_id: envelope.correlation_id().map(visible::lines),
        cut: whole.is_none().then(cut),
        payload: whole,
    }
}

#[cfg(test)]
mod tests;
