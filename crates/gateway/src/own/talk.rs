//! What an MCP client does in the room: it says something, reads what was said, and looks who is there.
//!
//! What is said goes the way of every envelope (`pump::say`). Must not know how a result is written.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{Capabilities, Capability, KindRef, ParticipantId, REQUEST, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use topic::Ear;
use wire::mcp::Params;
use wire::mcpx::{self, CHAT, Chat, Draft, Envelope, Format};

use super::{arguments, shown};
use crate::caller::Caller;
use crate::pump::Pump;
use platform::{random, unix_ms};
use room::{Cursor, RecentMessage, RecentPage};

/// Messages of one answer, if not said otherwise.
const MESSAGES: usize = 50;
/// Messages of one answer.
pub const MESSAGES_MAX: usize = 200;
/// Bytes of all payloads of one answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one payload. Of a longer one the beginning is shown.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// How long a cursor may be used.
pub const CURSOR_SECS: u64 = 24 * 3600;
const CURSOR: &str = "messages";
/// Participants of one page, if not said otherwise, and at most.
const PERSONS: usize = 100;
/// The same, at most.
pub const PERSONS_MAX: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    text: Option<String>,
    kind: Option<String>,
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    to: Vec<String>,
    correlation_id: Option<String>,
}

/// What was said.
#[derive(Serialize)]
pub(super) struct SaidSo {
    id: String,
    kind: String,
    to: Vec<String>,
    /// Those of them who are not here.
    absent: Vec<String>,
}

/// Says something in the caller's own name.
pub(super) async fn say(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    params: &Params<'_>,
) -> Result<SaidSo, Refusal> {
    let asked: Say = arguments::read(params)?;
    let (kind, payload) = match (asked.text, asked.kind, asked.payload) {
        (Some(text), None, None) => {
            (CHAT.to_owned(), Chat { text: text.into(), format: Format::Plain }.payload())
        }
        (None, Some(kind), payload) => {
            (kind, payload.map_or_else(|| b"{}".to_vec(), |payload| payload.get().as_bytes().to_vec()))
        }
        _ => return Err(malformed("give a `text`, or a `kind` with its `payload`")),
    };
    if KindRef::parse(&kind).is_ok_and(|kind| kind.head() == REQUEST) {
        return Err(malformed("a request is not said here").hint(
            "call the tool itself, by the name under which it is listed; approve with approve_proposal",
        ));
    }
    let to: Vec<&str> = asked.to.iter().map(String::as_str).collect();
    let (id, ts) = pump.stamp();
    let frame = mcpx::envelope(&Draft {
        id: &id,
        ts: Some(&ts),
        from: caller.participant().id.as_str(),
        to: &to,
        kind: &kind,
        correlation_id: asked.correlation_id.as_deref(),
        payload: &payload,
    });
    let bytes_max = caller.bounds().envelope_bytes_max;
    if frame.len() > bytes_max {
        let why = format!("a message has at most {bytes_max} bytes");
        return Err(Refusal::new(RefusalCode::TooLarge, why));
    }
    let envelope = Envelope::read(one_line(&frame)).map_err(|breach| breach.refusal())?;
    pump.room().wait_for_space().await;
    pump.speak(caller, &envelope).map_err(|refusal| *refusal)?;
    let absent = pump.with(|topic| {
        let here = |name: &&String| ParticipantId::new(name).is_ok_and(|id| topic.has_participant(&id));
        asked.to.iter().filter(|name| !here(name)).cloned().collect()
    });
    Ok(SaidSo { id, kind, to: asked.to, absent })
}

/// An argument may be spread over lines; others read line by line.
fn one_line(frame: &Bytes) -> Bytes {
    wire::rpc::one_line(frame.clone())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    cursor: Option<String>,
    limit: Option<usize>,
    kind: Option<String>,
    #[serde(default)]
    wait_seconds: u64,
}

/// What was said.
#[derive(Serialize)]
pub(super) struct Messages {
    messages: Vec<Heard>,
    cursor: String,
    more: bool,
    gap: bool,
}

/// One message.
#[derive(Serialize)]
struct Heard {
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

/// Reads what was said since a cursor, or since the caller came.
pub(super) async fn read(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    params: &Params<'_>,
) -> Result<Messages, Refusal> {
    let asked: Read = arguments::read(params)?;
    let pattern = asked.kind.as_deref().map(Capability::parse).transpose();
    let pattern = pattern.map_err(|error| malformed(&format!("`kind` is no pattern of kinds: {error}")))?;
    let limit = asked.limit.unwrap_or(MESSAGES).clamp(1, MESSAGES_MAX);
    let mut from = match &asked.cursor {
        Some(cursor) => open(pump, caller, cursor)?,
        None => begin(pump, caller).ok_or_else(unkept)?,
    };
    let until = Instant::now() + Duration::from_secs(asked.wait_seconds).min(pump.hold_max());
    let hearer = Hearer { me: caller.participant().id.as_str(), pattern: pattern.as_ref(), limit };
    let mut gap = false;
    loop {
        let since = pump.room().since(from).ok_or_else(unkept)?;
        gap |= since.gap;
        let (messages, next, more) = hearer.hear(&since);
        let left = until.saturating_duration_since(Instant::now());
        if !messages.is_empty() || more || gap || left.is_zero() || pump.is_stopping() {
            return Ok(Messages { messages, cursor: seal(pump, caller, next), more, gap });
        }
        from = next;
        pump.wait_for_words(next, left).await;
    }
}

/// Where a caller without a cursor begins: where it came, or where keeping began after that.
fn begin(pump: &Pump, caller: &Caller) -> Option<Cursor> {
    let end = pump.room().end()?;
    let came = caller.came().filter(|came| came.epoch == end.epoch);
    Some(came.unwrap_or(Cursor { offset: 0, ..end }))
}

fn unkept() -> Refusal {
    Refusal::new(RefusalCode::Unsupported, "what is said in this topic is not kept for readers")
        .hint("the operator can have it kept: builtin = [\"room\"]")
}

fn malformed(why: &str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, why.to_owned())
}

/// A cursor is good for one participant in one topic: nobody reads further back than it could.
fn seal(pump: &Pump, caller: &Caller, place: Cursor) -> String {
    let state = format!("{}:{place}", pump.name());
    let until = unix_ms() + CURSOR_SECS * 1000;
    let principal = caller.participant().id.as_str();
    pump.ground().sealer().seal(CURSOR, principal, until, random(), state.as_bytes())
}

fn open(pump: &Pump, caller: &Caller, cursor: &str) -> Result<Cursor, Refusal> {
    let principal = caller.participant().id.as_str();
    let state = pump.ground().sealer().open(CURSOR, principal, unix_ms(), cursor).ok();
    let text = state.and_then(|state| String::from_utf8(state).ok());
    let place = text.as_deref().and_then(|text| text.rsplit_once(':'));
    let here = place.filter(|(topic, _)| *topic == pump.name().as_str());
    here.and_then(|(_, place)| place.parse().ok()).ok_or_else(|| {
        malformed("this cursor is not known here").hint("leave it out to begin where you came")
    })
}

/// Who reads, and what it wants.
struct Hearer<'h> {
    me: &'h str,
    pattern: Option<&'h Capability>,
    limit: usize,
}

impl Hearer<'_> {
    /// What it hears of these, up to the bounds of an answer; the place behind the last that was looked at, and whether
    /// there is more.
    fn hear(&self, since: &RecentPage) -> (Vec<Heard>, Cursor, bool) {
        let (mut messages, mut bytes, mut next) = (Vec::new(), 0_usize, since.first);
        for RecentMessage { envelope, except } in &since.messages {
            let skipped = except.as_ref().is_some_and(|except| except.as_str() == self.me);
            let read = Envelope::read(envelope.clone()).ok().filter(|one| !skipped && self.hears(one));
            if let Some(envelope) = read {
                let len = envelope.payload().len().min(PAYLOAD_BYTES_MAX);
                let full = messages.len() >= self.limit || bytes.saturating_add(len) > ANSWER_BYTES_MAX;
                if full {
                    return (messages, next, true);
                }
                bytes += len;
                messages.push(heard(&envelope));
            }
            next.offset += 1;
        }
        (messages, next, false)
    }

    /// What is for everybody, what names it, and what it said itself.
    fn hears(&self, envelope: &Envelope) -> bool {
        let to: Vec<&str> = envelope.to().collect();
        let kind = envelope.kind();
        let own = envelope.from() == self.me;
        let wanted =
            self.pattern.is_none_or(|pattern| KindRef::parse(kind).is_ok_and(|kind| pattern.admits(kind)));
        wanted && (own || Ear::Directed.hears(self.me, &to, kind))
    }
}

fn heard(envelope: &Envelope) -> Heard {
    let payload = std::str::from_utf8(envelope.payload()).unwrap_or_default();
    let short = Some(payload).filter(|payload| payload.len() <= PAYLOAD_BYTES_MAX).and_then(shown::raw);
    let cut = short
        .is_none()
        .then(|| Cut { begins: shown::beginning(payload, PAYLOAD_BYTES_MAX), bytes: payload.len() });
    Heard {
        id: shown::text(envelope.id()),
        ts: envelope.ts().map(shown::text),
        from: shown::text(envelope.from()),
        to: envelope.to().map(shown::text).collect(),
        kind: shown::text(envelope.kind()),
        correlation_id: envelope.correlation_id().map(shown::text),
        payload: short,
        cut,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    after: Option<String>,
    limit: Option<usize>,
}

/// A page of those who are here.
#[derive(Serialize)]
pub(super) struct Persons {
    participants: Vec<Person>,
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct Person {
    id: String,
    role: &'static str,
    links: usize,
    you: bool,
    capabilities: Vec<String>,
}

/// Who is in the topic, by name; everybody may know, as in the room.
pub(super) fn participants(pump: &Pump, caller: &Caller, params: &Params<'_>) -> Result<Persons, Refusal> {
    let asked: Look = arguments::read(params)?;
    let mut all = pump.present();
    all.retain(|(id, ..)| asked.after.as_deref().is_none_or(|after| id.as_str() > after));
    all.sort_unstable_by(|(one, ..), (other, ..)| one.as_str().cmp(other.as_str()));
    let limit = asked.limit.unwrap_or(PERSONS).clamp(1, PERSONS_MAX);
    let more = all.len() > limit;
    all.truncate(limit);
    let next = all.last().filter(|_| more).map(|(id, ..)| id.to_string());
    let me = &caller.participant().id;
    let person = |(id, links, server, capabilities): (ParticipantId, _, bool, Arc<Capabilities>)| Person {
        you: id == *me,
        id: id.to_string(),
        role: if server { "server" } else { "caller" },
        links,
        capabilities: capabilities.iter().map(|one| shown::text(one.as_str())).collect(),
    };
    Ok(Persons { participants: all.into_iter().map(person).collect(), more, next })
}

#[cfg(test)]
mod tests;
