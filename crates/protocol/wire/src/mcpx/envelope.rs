//! Envelopes: their writer, in the order of the specification's examples, and their reader.
//!
//! The reader finds the places of the members in one pass over the frame. It checks the syntax and
//! the nesting of the whole frame, and looks no further into the payload.

use std::borrow::Cow;

use bytes::Bytes;
use json::{JsonError, Object, Span, StringSpan};
use model::{PARTICIPANT_BYTES_MAX, Refusal, RefusalCode};
use smallvec::SmallVec;

use super::PROTOCOL;
use crate::twin::twin_of;

/// The longest `id` or `correlation_id`, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;
/// The longest `kind`, in bytes.
pub const KIND_BYTES_MAX: usize = 4096;
/// Objects and arrays of an envelope that may lie inside each other. Many readers need stack for
/// each, and some end with it.
pub const NESTING_MAX: usize = 100;
/// The most addressees of one envelope.
pub(crate) const TO_MAX: usize = 64;

/// The members of an envelope to write. The payload is copied as it is, and must be a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft<'a> {
    /// The message's id.
    pub id: &'a str,
    /// The time of sending, as RFC 3339 (see [`crate::time::rfc3339`]).
    pub ts: Option<&'a str>,
    /// The sender.
    pub from: &'a str,
    /// The addressees; none means the whole topic, and `to` is left out.
    pub to: &'a [&'a str],
    /// The kind.
    pub kind: &'a str,
    /// The id of the envelope that it answers, fulfils or continues.
    pub correlation_id: Option<&'a str>,
    /// The payload, byte for byte.
    pub payload: &'a [u8],
}

/// Whether an envelope with this payload would be nested deeper than [`NESTING_MAX`].
#[must_use]
pub fn is_too_deep(payload: &[u8]) -> bool {
    json::nesting(payload) >= NESTING_MAX
}

/// Writes an envelope (section 3).
#[must_use]
pub fn envelope(draft: &Draft<'_>) -> Bytes {
    Envelope::write(draft).frame
}

/// An envelope: the frame as it came, and the places of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    frame: Bytes,
    at: Places,
}

/// The places of the members in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    id: StringSpan,
    ts: Option<StringSpan>,
    from: StringSpan,
    to: SmallVec<[StringSpan; 2]>,
    kind: StringSpan,
    correlation_id: Option<StringSpan>,
    payload: Span,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Breach {
    /// The code: malformed, or an unsupported protocol (section 6.1: versions must be equal).
    pub code: RefusalCode,
    /// Fault of the envelope; the sender may read it.
    pub message: String,
    /// The envelope's id, if there is one to refer to.
    pub id: Option<String>,
}

impl Breach {
    /// The breach as a refusal, for the audit log.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        Refusal::new(self.code, self.message.clone())
    }
}

impl Envelope {
    /// Writes an envelope (section 3). The places of its members are known then, so it need not be
    /// read.
    #[must_use]
    pub fn write(draft: &Draft<'_>) -> Self {
        let mut out = Vec::with_capacity(160 + draft.kind.len() + draft.payload.len());
        let at = Object::write(&mut out, |envelope| {
            envelope.text("protocol", PROTOCOL);
            // Members are written in the order of these fields.
            Places {
                id: envelope.placed_text("id", draft.id),
                ts: draft.ts.map(|ts| envelope.placed_text("ts", ts)),
                from: envelope.placed_text("from", draft.from),
                to: write_addressees(envelope, draft.to),
                kind: envelope.placed_text("kind", draft.kind),
                correlation_id: draft
                    .correlation_id
                    .map(|id| envelope.placed_text("correlation_id", id)),
                payload: envelope.placed_raw("payload", draft.payload),
            }
        });
        Self {
            frame: Bytes::from(out),
            at,
        }
    }

    /// Reads an envelope by a gateway's rules (section 3; reference 2.3).
    ///
    /// `ts` may be missing. Members that the protocol does not define are ignored.
    ///
    /// # Errors
    /// [`Breach`]: the frame is no JSON object, a top-level member occurs twice (after unescaping) or differs from a defined one only
    /// in letter case, it is nested deeper than [`NESTING_MAX`], the protocol is another, a member
    /// is missing, mistyped or longer than its limit, a proposal has a `correlation_id` or a
    /// response none.
    pub fn read(frame: Bytes) -> Result<Self, Breach> {
        Self::read_as(frame, false)
    }

    /// Reads an envelope by a participant's rules: as [`Envelope::read`], but `correlation_id` may
    /// be an array of one string, as later versions of the protocol write it.
    ///
    /// # Errors
    /// As [`Envelope::read`].
    pub fn receive(frame: Bytes) -> Result<Self, Breach> {
        Self::read_as(frame, true)
    }

    /// The bytes as they came.
    #[must_use]
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// The message's id: 1 to `ID_BYTES_MAX` bytes.
    #[must_use]
    pub fn id(&self) -> &str {
        self.at.id.text(&self.frame)
    }

    /// The time of sending, as the sender wrote it; not checked.
    #[must_use]
    pub fn ts(&self) -> Option<&str> {
        Some(self.at.ts.as_ref()?.text(&self.frame))
    }

    /// The sender that the envelope claims: 1 to [`PARTICIPANT_BYTES_MAX`] bytes. Only the door
    /// knows whether the claim is true.
    #[must_use]
    pub fn from(&self) -> &str {
        self.at.from.text(&self.frame)
    }

    /// The addressees, at most `TO_MAX`; none means the whole topic.
    pub fn to(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.at.to.iter().map(|spot| spot.text(&self.frame))
    }

    /// Whether it is for the whole topic.
    #[must_use]
    pub fn is_broadcast(&self) -> bool {
        self.at.to.is_empty()
    }

    /// The kind as it was written: 1 to [`KIND_BYTES_MAX`] bytes, not checked against the grammar.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.at.kind.text(&self.frame)
    }

    /// The id of the envelope that this one answers, fulfils or continues.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        Some(self.at.correlation_id.as_ref()?.text(&self.frame))
    }

    /// The payload: an object, as it was written.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.at.payload.of(&self.frame)
    }

    /// The payload, sharing the frame.
    #[must_use]
    pub fn payload_bytes(&self) -> Bytes {
        self.frame.slice(self.at.payload.start..self.at.payload.end)
    }

    fn read_as(frame: Bytes, tolerant: bool) -> Result<Self, Breach> {
        let at = places(&frame, tolerant)?;
        Ok(Self { frame, at })
    }
}

/// Writes `to`, unless it is empty.
fn write_addressees(envelope: &mut Object<'_>, to: &[&str]) -> SmallVec<[StringSpan; 2]> {
    let mut places = SmallVec::new();
    if !to.is_empty() {
        envelope.array("to", |array| {
            places.extend(to.iter().map(|one| array.placed_text(one)));
        });
    }
    places
}

fn places(frame: &[u8], tolerant: bool) -> Result<Places, Breach> {
    let mut parts = Parts {
        frame,
        tolerant,
        ..Parts::default()
    };
    let is_deep = json::each_member(frame, |key, span| parts.take(key, span))
        .map_err(|error| breach(&error, None))?;
    if let Some(key) = parts.duplicate() {
        let id = if key == "id" {
            None
        } else {
            parts.id_to_tell()
        };
        return Err(breach(&JsonError::Duplicate(key), id));
    }
    if let Some((key, meant)) = parts.double() {
        let message = format!("the member {key:?} could be taken for `{meant}`");
        return Err(Breach {
            code: RefusalCode::Malformed,
            message,
            id: parts.id_to_tell(),
        });
    }
    if is_deep && json::nesting(frame) > NESTING_MAX {
        let message = format!("it is nested deeper than {NESTING_MAX}");
        return Err(Breach {
            code: RefusalCode::Malformed,
            message,
            id: parts.id_to_tell(),
        });
    }
    let read = parts.protocol().and_then(|()| parts.places());
    read.map_err(|(code, message)| Breach {
        code,
        message,
        id: parts.id_to_tell(),
    })
}

fn breach(error: &JsonError, id: Option<String>) -> Breach {
    Breach {
        code: RefusalCode::Malformed,
        message: error.to_string(),
        id,
    }
}

type Why = (RefusalCode, String);

fn malformed(message: impl Into<String>) -> Why {
    (RefusalCode::Malformed, message.into())
}

/// The names of the members that the protocol defines.
const DEFINED: [&str; 8] = [
    "protocol",
    "id",
    "ts",
    "from",
    "to",
    "kind",
    "correlation_id",
    "payload",
];

/// The members that the protocol defines.
#[derive(Default)]
struct Parts<'a> {
    frame: &'a [u8],
    tolerant: bool,
    /// The first member that the protocol defines and that occurs twice.
    twice: Option<Cow<'a, [u8]>>,
    /// The names of all other members.
    unknown: Vec<Cow<'a, [u8]>>,
    protocol: Option<Span>,
    id: Option<Span>,
    ts: Option<Span>,
    from: Option<Span>,
    to: Option<Span>,
    kind: Option<Span>,
    correlation_id: Option<Span>,
    payload: Option<Span>,
}

impl<'a> Parts<'a> {
    fn take(&mut self, key: Cow<'a, [u8]>, span: Span) {
        let place = match &*key {
            b"protocol" => &mut self.protocol,
            b"id" => &mut self.id,
            b"ts" => &mut self.ts,
            b"from" => &mut self.from,
            b"to" => &mut self.to,
            b"kind" => &mut self.kind,
            b"correlation_id" => &mut self.correlation_id,
            b"payload" => &mut self.payload,
            _ => return self.unknown.push(key),
        };
        if place.replace(span).is_some() && self.twice.is_none() {
            self.twice = Some(key);
        }
    }

    fn duplicate(&self) -> Option<String> {
        let unknown = || json::first_duplicate(self.unknown.iter());
        let twice = self.twice.as_ref().or_else(unknown)?;
        Some(String::from_utf8_lossy(twice).into_owned())
    }

    /// An unknown member that some JSON readers take for one that the protocol defines, and that
    /// one.
    fn double(&self) -> Option<(String, &'static str)> {
        self.unknown.iter().find_map(|key| {
            let key = String::from_utf8_lossy(key);
            twin_of(&key, &DEFINED).map(|meant| (key.into_owned(), meant))
        })
    }

    /// The id, if a refusal can refer to it.
    fn id_to_tell(&self) -> Option<String> {
        let id = self.short("id", self.id, ID_BYTES_MAX).ok()?;
        Some(id.text(self.frame).to_owned())
    }

    fn protocol(&self) -> Result<(), Why> {
        let protocol = self.string("protocol", self.protocol)?;
        match protocol.text(self.frame) {
            PROTOCOL => Ok(()),
            _ => Err((
                RefusalCode::UnsupportedProtocol,
                format!("this gateway speaks \"{PROTOCOL}\" and no other"),
            )),
        }
    }

    fn places(&self) -> Result<Places, Why> {
        let places = Places {
            id: self.short("id", self.id, ID_BYTES_MAX)?,
            ts: self.ts.map(|ts| self.string("ts", Some(ts))).transpose()?,
            from: self.short("from", self.from, PARTICIPANT_BYTES_MAX)?,
            to: self.addressees()?,
            kind: self.short("kind", self.kind, KIND_BYTES_MAX)?,
            correlation_id: self.correlation()?,
            payload: self.payload()?,
        };
        let head = places
            .kind
            .text(self.frame)
            .split(':')
            .next()
            .unwrap_or_default();
        match (head, &places.correlation_id) {
            ("mcp/response", None) => Err(malformed(
                "a response needs `correlation_id`: the id of the request that it answers",
            )),
            ("mcp/proposal", Some(_)) => {
                Err(malformed("a proposal must not have `correlation_id`"))
            }
            (_, None | Some(_)) => Ok(places),
        }
    }

    fn addressees(&self) -> Result<SmallVec<[StringSpan; 2]>, Why> {
        let mut list = SmallVec::new();
        let Some(to) = self.to else { return Ok(list) };
        let (mut wrong, mut count) = (false, 0);
        let all = json::each_element(self.frame, to, |span| {
            count += 1;
            match self.short("to", Some(span), PARTICIPANT_BYTES_MAX) {
                Ok(spot) if count <= TO_MAX => list.push(spot),
                Ok(_) => {}
                Err(_) => wrong = true,
            }
        });
        if all.is_none() || wrong {
            return Err(malformed("`to` must be an array of participant ids"));
        }
        if count > TO_MAX {
            return Err(malformed(format!(
                "`to` names more than {TO_MAX} participants"
            )));
        }
        Ok(list)
    }

    fn correlation(&self) -> Result<Option<StringSpan>, Why> {
        let Some(mut span) = self.correlation_id else {
            return Ok(None);
        };
        if self.tolerant
            && let Ok(list) = json::elements(self.frame, span)
            && let [only] = list.as_slice()
        {
            span = *only;
        }
        self.short("correlation_id", Some(span), ID_BYTES_MAX)
            .map(Some)
    }

    /// The payload: an object, as it was written.
    fn payload(&self) -> Result<Span, Why> {
        match self.payload {
            Some(span) if json::is_object(span.of(self.frame)) => Ok(span),
            Some(_) => Err(malformed("`payload` must be an object")),
            None => Err(malformed("`payload` is missing")),
        }
    }

    fn string(&self, key: &str, place: Option<Span>) -> Result<StringSpan, Why> {
        let span = place.ok_or_else(|| malformed(format!("`{key}` is missing")))?;
        StringSpan::read(self.frame, span)
            .ok_or_else(|| malformed(format!("`{key}` must be a string")))
    }

    /// A string that is neither empty nor longer than its limit.
    fn short(&self, key: &str, place: Option<Span>, bytes_max: usize) -> Result<StringSpan, Why> {
        let spot = self.string(key, place)?;
        match spot.len() {
            0 => Err(malformed(format!("`{key}` must not be empty"))),
            len if len > bytes_max => Err(malformed(format!(
                "`{key}` is longer than {bytes_max} bytes"
            ))),
            _ => Ok(spot),
        }
    }
}
