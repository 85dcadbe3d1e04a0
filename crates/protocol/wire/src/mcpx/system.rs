//! System messages of MCPx: welcome, presence, error (MCPx v0.1, 3.4 and 3.5), written and read.

use bytes::Bytes;
use json::{JsonError, Object};
use model::{Capabilities, Capability, Refusal, RefusalCode, SYSTEM};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::envelope::{Breach, Draft, Envelope, envelope};

/// The kind of a welcome (3.5.1).
pub(crate) const WELCOME: &str = "system/welcome";
/// The kind of a join or leave (3.4).
pub(crate) const PRESENCE: &str = "system/presence";
/// The kind of a refusal (3.5.2).
pub(crate) const ERROR: &str = "system/error";

/// Id and time of an envelope that the gateway sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The envelope's id.
    pub id: &'a str,
    /// The time of sending, as RFC 3339. The gateway always has one; the specification's examples
    /// do not.
    pub ts: Option<&'a str>,
}

/// A participant as other participants see it.
#[derive(Debug, Clone, Copy)]
pub struct PersonView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its capabilities.
    pub capabilities: &'a Capabilities,
    /// Whether it is paused; Portmoot's own member.
    pub paused: bool,
}

/// A join or a leave.
#[derive(Debug, Clone, Copy)]
pub enum Presence<'a> {
    /// A participant joins, with these capabilities.
    Join(PersonView<'a>),
    /// The participant of this id leaves.
    Leave(&'a str),
}

/// The members of a refusal. Only `error` and `message` are required.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorDraft<'a> {
    /// The stable code.
    pub error: &'a str,
    /// The cause and what to do next.
    pub message: &'a str,
    /// The id of the envelope that caused it, if it could be read.
    pub correlation_id: Option<&'a str>,
    /// The kind that the gateway did not admit.
    pub attempted_kind: Option<&'a str>,
    /// The sender's capabilities.
    pub your_capabilities: Option<&'a Capabilities>,
    /// The time after which a retry may succeed, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
    /// The scopes that an access token needs for it; Portmoot's own member.
    pub scope: Option<&'a str>,
}

/// The envelopes before a join, in a welcome; Portmoot's own member `history`.
#[derive(Debug, Clone)]
pub struct History<'a> {
    /// The number of the gateway process that assigns the offsets.
    pub epoch: u64,
    /// The offset of the next envelope.
    pub offset: u64,
    /// Whether no envelope since the requested offset is missing.
    pub complete: bool,
    /// The envelopes, oldest first.
    pub envelopes: Vec<&'a [u8]>,
}

/// Writes the first message of a connection, for its participant alone (3.5.1).
#[must_use]
pub fn welcome<'p>(
    stamp: Stamp<'_>,
    you: PersonView<'_>,
    others: impl IntoIterator<Item = PersonView<'p>>,
    history: Option<&History<'_>>,
) -> Bytes {
    let payload = json::object(|payload| {
        payload.object("you", |object| write_person(object, you));
        payload.array("participants", |array| {
            for other in others {
                array.object(|object| write_person(object, other));
            }
        });
        if let Some(History {
            epoch,
            offset,
            complete,
            envelopes,
        }) = history
        {
            payload.object("history", |object| {
                object
                    .number("epoch", *epoch)
                    .number("offset", *offset)
                    .bool("complete", *complete);
                object.array("envelopes", |array| {
                    for envelope in envelopes {
                        array.raw(envelope);
                    }
                });
            });
        }
    });
    say(stamp, &[you.id], WELCOME, None, &payload)
}

/// Writes that a participant joined or left, for the whole topic (3.4).
#[must_use]
pub fn presence(stamp: Stamp<'_>, presence: Presence<'_>) -> Bytes {
    let payload = json::object(|payload| {
        match presence {
            Presence::Join(who) => payload
                .text("event", "join")
                .object("participant", |object| write_person(object, who)),
            Presence::Leave(id) => payload
                .text("event", "leave")
                .object("participant", |object| {
                    object.text("id", id);
                }),
        };
    });
    say(stamp, &[], PRESENCE, None, &payload)
}

/// Writes a refusal, for `to` alone (3.5.2).
#[must_use]
pub fn error(stamp: Stamp<'_>, to: &str, notice: &ErrorDraft<'_>) -> Bytes {
    let payload = json::object(|payload| {
        payload
            .text("error", notice.error)
            .text("message", notice.message);
        payload.optional_text("attempted_kind", notice.attempted_kind);
        if let Some(all) = notice.your_capabilities {
            write_capabilities(payload, "your_capabilities", all);
        }
        if let Some(wait) = notice.retry_after_ms {
            payload.number("retry_after_ms", wait);
        }
        payload.optional_text("scope", notice.scope);
    });
    say(stamp, &[to], ERROR, notice.correlation_id, &payload)
}

/// Writes the answer to bytes that are no envelope, for `to` alone.
#[must_use]
pub fn breach(stamp: Stamp<'_>, to: &str, breach: &Breach) -> Bytes {
    let notice = ErrorDraft {
        error: code_of(breach.code),
        message: &breach.message,
        correlation_id: breach.id.as_deref(),
        ..ErrorDraft::default()
    };
    error(stamp, to, &notice)
}

/// Writes the answer to a refused envelope, for its sender alone, with its capabilities. A `capability_violation` names
/// the kind and the sender's capabilities (3.5.2).
#[must_use]
pub fn refused(
    stamp: Stamp<'_>,
    refusal: &Refusal,
    cause: &Envelope,
    (sender, capabilities): (&str, &Capabilities),
) -> Bytes {
    let tells = refusal.code == RefusalCode::CapabilityViolation;
    let notice = ErrorDraft {
        error: code_of(refusal.code),
        message: &refusal.to_string(),
        correlation_id: Some(cause.id()),
        attempted_kind: tells.then(|| cause.kind()),
        your_capabilities: tells.then_some(capabilities),
        retry_after_ms: refusal.retry_after_ms,
        scope: refusal.scope.as_deref(),
    };
    error(stamp, sender, &notice)
}

/// The code as receivers see it (3.5.2; reference 2.3). A refusal that the protocol does not define
/// keeps Portmoot's code.
pub(super) fn code_of(code: RefusalCode) -> &'static str {
    if code == RefusalCode::Malformed {
        "malformed_envelope"
    } else if code == RefusalCode::TooLarge {
        "message_too_large"
    } else {
        code.as_str()
    }
}

fn say(
    stamp: Stamp<'_>,
    to: &[&str],
    kind: &str,
    correlation_id: Option<&str>,
    payload: &[u8],
) -> Bytes {
    let Stamp { id, ts } = stamp;
    envelope(&Draft {
        id,
        ts,
        from: SYSTEM,
        to,
        kind,
        correlation_id,
        payload,
    })
}

/// Writes a participant as a welcome or presence names it: `id` and `capabilities`, `narrowed` if
/// some of them are limited to certain addressees, and `paused` if it is.
pub(super) fn write_person(object: &mut Object<'_>, who: PersonView<'_>) {
    object.text("id", who.id);
    write_capabilities(object, "capabilities", who.capabilities);
    if who.paused {
        object.bool("paused", true);
    }
}

/// Adds capabilities as texts, and under `narrowed` the addressees of those that are limited to
/// some: the protocol itself has only texts.
fn write_capabilities(object: &mut Object<'_>, key: &str, all: &Capabilities) {
    object.texts(key, all.iter().map(Capability::as_str));
    let is_free = |kind: &str| {
        all.iter()
            .any(|one| one.addressees().is_none() && one.as_str() == kind)
    };
    let narrowed = all
        .iter()
        .filter_map(|one| Some((one.as_str(), one.addressees()?)));
    let mut narrowed = narrowed.filter(|(kind, _)| !is_free(kind)).peekable();
    if narrowed.peek().is_some() {
        object.array("narrowed", |array| {
            for (kind, to) in narrowed {
                array.object(|one| {
                    one.text("kind", kind).texts("to", to);
                });
            }
        });
    }
}

/// A participant, as a welcome or presence names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ParticipantInfo {
    /// Its id.
    pub id: String,
    /// Its capabilities, as texts; empty when it leaves.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// The capabilities that are limited to certain addressees.
    #[serde(default)]
    pub narrowed: Vec<Narrowed>,
    /// Whether it is paused: what it could do directly waits for decisions of others.
    #[serde(default)]
    pub paused: bool,
}

/// A capability that is limited to certain addressees.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Narrowed {
    /// The capability as text.
    pub kind: String,
    /// Its addressees; `*` in a name stands for any text.
    pub to: Vec<String>,
}

impl ParticipantInfo {
    /// Its capabilities. A text that this version cannot read allows nothing.
    #[must_use]
    pub fn allowed(&self) -> Capabilities {
        let free = |text: &&String| !self.narrowed.iter().any(|one| one.kind == **text);
        let free = self
            .capabilities
            .iter()
            .filter(free)
            .filter_map(|text| Capability::parse(text).ok());
        let narrowed = self.narrowed.iter().filter_map(|one| {
            Capability::parse(&one.kind)
                .ok()?
                .to(one.to.iter().map(String::as_str))
                .ok()
        });
        free.chain(narrowed).collect()
    }
}

/// A welcome that was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Welcome {
    /// The receiver itself, with the authoritative list of its capabilities.
    pub you: ParticipantInfo,
    /// The other participants of the topic.
    pub participants: Vec<ParticipantInfo>,
    /// The envelopes before the join, if the topic keeps some.
    #[serde(default)]
    pub history: Option<WelcomeHistory>,
}

/// The envelopes before a join, read from a welcome. They are for reading: no receiver acts on
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WelcomeHistory {
    /// The number of the gateway process that assigns the offsets.
    pub epoch: u64,
    /// The offset of the next envelope.
    pub offset: u64,
    /// Whether no envelope since the requested offset is missing.
    pub complete: bool,
    /// The envelopes, oldest first, as they were sent.
    #[serde(deserialize_with = "raw_texts")]
    pub envelopes: Vec<Box<str>>,
}

fn raw_texts<'de, D: Deserializer<'de>>(all: D) -> Result<Vec<Box<str>>, D::Error> {
    let all: Vec<Box<RawValue>> = Deserialize::deserialize(all)?;
    Ok(all.into_iter().map(Into::into).collect())
}

/// A presence message that was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "participant", rename_all = "lowercase")]
pub enum PresenceChange {
    /// The participant joined.
    Join(ParticipantInfo),
    /// The participant left.
    Leave(ParticipantInfo),
}

/// A refusal that was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SystemError {
    /// The stable code.
    pub error: String,
    /// The cause and what to do next.
    pub message: String,
    /// The kind that the gateway did not admit.
    pub attempted_kind: Option<String>,
    /// The sender's capabilities.
    pub your_capabilities: Option<Vec<String>>,
    /// The time after which a retry may succeed, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// A message of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// `WELCOME`
    Welcome(Welcome),
    /// `PRESENCE`
    Presence(PresenceChange),
    /// `system/error`.
    Error(SystemError),
    /// A kind below `system/` that this version does not know; to be ignored.
    Other,
}

impl System {
    /// Reads a message of the gateway; `None` if the envelope is not from [`SYSTEM`].
    ///
    /// # Errors
    /// [`JsonError::Syntax`] when the payload does not fit its kind.
    pub fn read(envelope: &Envelope) -> Option<Result<Self, JsonError>> {
        if envelope.from() != SYSTEM {
            return None;
        }
        let payload = envelope.payload();
        let read = match envelope.kind() {
            WELCOME => serde_json::from_slice(payload).map(Self::Welcome),
            PRESENCE => serde_json::from_slice(payload).map(Self::Presence),
            ERROR => serde_json::from_slice(payload).map(Self::Error),
            _ => Ok(Self::Other),
        };
        Some(read.map_err(|error| JsonError::Syntax(error.to_string())))
    }
}
