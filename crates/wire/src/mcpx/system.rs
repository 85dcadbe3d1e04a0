//! System messages of MCPx: welcome, presence, error (MCPx v0.1, 3.4 and 3.5), written and read.

use bytes::Bytes;
use json::{Buffer, JsonError, Object};
use model::{Capabilities, Capability, Refusal, SYSTEM};
use serde::Deserialize;

use super::refusal;
use super::write::{Draft, envelope};
use super::{Breach, Envelope};

/// The kind of a welcome (3.5.1).
pub const WELCOME: &str = "system/welcome";
/// The kind of joining and leaving (3.4).
pub const PRESENCE: &str = "system/presence";
/// The kind of a refusal (3.5.2).
pub const ERROR: &str = "system/error";

/// What the gateway's own envelope is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The envelope's id.
    pub id: &'a str,
    /// When it is sent, as RFC 3339. The gateway always has one; the specification's examples do not.
    pub ts: Option<&'a str>,
}

/// A participant as others see it.
#[derive(Debug, Clone, Copy)]
pub struct Person<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it may do.
    pub capabilities: &'a Capabilities,
}

/// Somebody comes or goes.
#[derive(Debug, Clone, Copy)]
pub enum Presence<'a> {
    /// Comes, with what it may do.
    Join(Person<'a>),
    /// Goes.
    Leave(&'a str),
}

/// What a refusal says. Only `error` and `message` are always there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notice<'a> {
    /// The stable code.
    pub error: &'a str,
    /// What happened and what to do.
    pub message: &'a str,
    /// The id of the envelope that caused it, if it could be read.
    pub correlation_id: Option<&'a str>,
    /// The kind that was not admitted.
    pub attempted_kind: Option<&'a str>,
    /// What its sender may do.
    pub your_capabilities: Option<&'a Capabilities>,
    /// When trying again may help, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
}

/// Writes the first message of a connection, for its participant alone (3.5.1).
#[must_use]
pub fn welcome<'p>(stamp: Stamp<'_>, you: Person<'_>, others: impl IntoIterator<Item = Person<'p>>) -> Bytes {
    let payload = json::object(|payload| {
        payload.object("you", |object| write_person(object, you));
        payload.array("participants", |array| {
            for other in others {
                array.object(|object| write_person(object, other));
            }
        });
    });
    say(stamp, &[you.id], WELCOME, None, &payload)
}

/// Writes that somebody joined or left, for everybody (3.4).
#[must_use]
pub fn presence(stamp: Stamp<'_>, presence: Presence<'_>) -> Bytes {
    let payload = json::object(|payload| {
        match presence {
            Presence::Join(who) => {
                payload.text("event", "join").object("participant", |object| write_person(object, who))
            }
            Presence::Leave(id) => payload.text("event", "leave").object("participant", |object| {
                object.text("id", id);
            }),
        };
    });
    say(stamp, &[], PRESENCE, None, &payload)
}

/// Writes a refusal, for `to` alone (3.5.2).
#[must_use]
pub fn error(stamp: Stamp<'_>, to: &str, notice: &Notice<'_>) -> Bytes {
    let payload = json::object(|payload| {
        payload.text("error", notice.error).text("message", notice.message);
        payload.optional_text("attempted_kind", notice.attempted_kind);
        if let Some(all) = notice.your_capabilities {
            write_capabilities(payload, "your_capabilities", all);
        }
        if let Some(wait) = notice.retry_after_ms {
            payload.number("retry_after_ms", wait);
        }
    });
    say(stamp, &[to], ERROR, notice.correlation_id, &payload)
}

/// Writes what answers bytes that are no envelope, for `to` alone.
#[must_use]
pub fn breach(stamp: Stamp<'_>, to: &str, breach: &Breach) -> Bytes {
    let notice = Notice {
        error: breach.code.as_str(),
        message: &breach.message,
        correlation_id: breach.id.as_deref(),
        ..Notice::default()
    };
    error(stamp, to, &notice)
}

/// Writes what answers an envelope that is refused, for its sender alone. A `capability_violation` tells the kind and what
/// the sender may do (3.5.2).
#[must_use]
pub fn refused(stamp: Stamp<'_>, refusal: &Refusal, cause: &Envelope, sender: Person<'_>) -> Bytes {
    let tells = refusal.code == model::RefusalCode::CapabilityViolation;
    let notice = Notice {
        error: refusal::code(refusal.code),
        message: &refusal.to_string(),
        correlation_id: Some(cause.id()),
        attempted_kind: tells.then(|| cause.kind()),
        your_capabilities: tells.then_some(sender.capabilities),
        retry_after_ms: refusal.retry_after_ms,
    };
    error(stamp, sender.id, &notice)
}

fn say(stamp: Stamp<'_>, to: &[&str], kind: &str, correlation_id: Option<&str>, payload: &[u8]) -> Bytes {
    let Stamp { id, ts } = stamp;
    envelope(&Draft { id, ts, from: SYSTEM, to, kind, correlation_id, payload })
}

/// Writes a participant as a welcome or presence names it: an object with `id` and `capabilities`, and with `narrowed`
/// where some of them hold towards certain addressees only.
#[must_use]
pub fn person(who: Person<'_>) -> String {
    json::object_string(|object| write_person(object, who))
}

fn write_person<B: Buffer>(object: &mut Object<'_, B>, who: Person<'_>) {
    object.text("id", who.id);
    write_capabilities(object, "capabilities", who.capabilities);
}

/// Adds capabilities as texts, and under `narrowed` the addressees of those that are narrowed by addressee: the protocol has
/// only texts for capabilities.
fn write_capabilities<B: Buffer>(object: &mut Object<'_, B>, key: &str, all: &Capabilities) {
    object.texts(key, all.iter().map(Capability::as_str));
    let is_free = |kind: &str| all.iter().any(|one| one.addressees().is_none() && one.as_str() == kind);
    let narrowed = all.iter().filter_map(|one| Some((one.as_str(), one.addressees()?)));
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
pub struct Seen {
    /// Its id.
    pub id: String,
    /// What it may do, as texts; none when it leaves.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Those of them that hold towards certain addressees only.
    #[serde(default)]
    pub narrowed: Vec<Narrowed>,
}

/// A capability that holds towards certain addressees only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Narrowed {
    /// The capability as text.
    pub kind: String,
    /// Whom it reaches; `*` in a name stands for any text.
    pub to: Vec<String>,
}

impl Seen {
    /// What it may do. A capability that this version cannot read allows nothing.
    #[must_use]
    pub fn allowed(&self) -> Capabilities {
        let free = |text: &&String| !self.narrowed.iter().any(|one| one.kind == **text);
        let free = self.capabilities.iter().filter(free).filter_map(|text| Capability::parse(text).ok());
        let narrowed = self
            .narrowed
            .iter()
            .filter_map(|one| Capability::parse(&one.kind).ok()?.to(one.to.iter().map(String::as_str)).ok());
        free.chain(narrowed).collect()
    }
}

/// A welcome that was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Welcome {
    /// Who one is, and what one may do: the authoritative list.
    pub you: Seen,
    /// The others in the topic.
    pub participants: Vec<Seen>,
}

/// Somebody came or went.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "participant", rename_all = "lowercase")]
pub enum Change {
    /// Came.
    Join(Seen),
    /// Went.
    Leave(Seen),
}

/// A refusal that was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Told {
    /// The stable code.
    pub error: String,
    /// What happened and what to do.
    pub message: String,
    /// The kind that was not admitted.
    pub attempted_kind: Option<String>,
    /// What its sender may do.
    pub your_capabilities: Option<Vec<String>>,
    /// When trying again may help, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// What a message of the gateway says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// [`WELCOME`]
    Welcome(Welcome),
    /// [`PRESENCE`]
    Presence(Change),
    /// [`ERROR`]
    Error(Told),
    /// A kind below `system/` that this version does not know; to be ignored.
    Other,
}

impl System {
    /// Reads a message of the gateway; `None` if the envelope is not from [`SYSTEM`].
    ///
    /// # Errors
    /// [`JsonError::Syntax`] when the payload is not what its kind promises.
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
