//! Requests, answers and notifications between a door and a far end, with their untouched bytes.
//!
//! A door decodes the envelope of its wire once and the far end encodes once. No code between them
//! opens a payload (ARCHITECTURE.md, "A neutral middle").

use bytes::Bytes;
use bytestring::ByteString;

use crate::MethodFacts;
use crate::method::CALL_TOOL;

/// The form in which the bytes of a [`Payload`] are written: that of one of MCP's two eras.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    strum::VariantArray,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum Form {
    /// JSON of MCP's legacy era, revisions 2024-11-05 to 2025-11-25: a handshake opens a session.
    /// MCPx envelopes carry this form too.
    Legacy,
    /// JSON of MCP's modern era, revision 2026-07-28: every request is complete in itself.
    Modern,
}

impl Form {
    /// All forms, legacy first.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
    /// The form of payloads in MCPx envelopes.
    pub const ENVELOPE: Self = Self::Legacy;

    /// Whether every request is complete in itself, without a handshake before it.
    pub fn is_stateless(self) -> bool {
        match self {
            Self::Legacy => false,
            Self::Modern => true,
        }
    }
}

/// Coding of a [`Payload`]'s bytes, which spell its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coding {
    /// JSON text, as MCP and MCPx write it.
    #[default]
    Json,
    /// Protobuf of proto-mcp 1.0, whose peers behave like those of the legacy era that declare no
    /// capabilities. The bytes are the payload field of an `MCPMessage`: tag, length, message.
    Proto,
}

/// A range of bytes in a [`Payload`]; empty if the part is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Range {
    /// A range of positions; `None` beyond 4 GiB, which no limit allows a payload to be.
    pub fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(end).ok()?,
        })
    }

    /// Whether the part is absent.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The positions, to slice with.
    pub fn positions(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Places of the parts of a payload that a relay replaces. The door that decodes the payload sets
/// them, the encoder of the same form reads them; no code between them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The id in the envelope around the body. Empty if the payload is a body without envelope.
    pub id: Range,
    /// The name, URI or task id of a request's target, as it is spelled, quotes included.
    pub target: Range,
    /// The progress token of a request.
    pub progress: Range,
    /// The `_meta` of a request's params.
    pub meta: Range,
    /// The body: a request's params, an answer's result or error.
    pub body: Range,
}

/// Bytes as a participant wrote them. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The form of the bytes.
    pub form: Form,
    /// Coding of the bytes.
    pub coding: Coding,
    /// Whether the gateway itself wrote the bytes for their reader. An encoder adds nothing but an
    /// envelope to such an answer; any other one it converts to the reader's form, with URIs as the
    /// reader knows them.
    pub is_fitted: bool,
    /// The bytes: a whole message, or a body alone (see [`Marks::id`]).
    pub bytes: Bytes,
    /// The places of the replaceable parts.
    pub marks: Marks,
}

impl Payload {
    /// A body without an envelope, written by the gateway itself.
    pub fn body(form: Form, bytes: impl Into<Bytes>) -> Self {
        Self {
            is_fitted: true,
            ..Self::relayed(form, bytes)
        }
    }

    /// A body as a participant wrote it, without its envelope.
    pub fn relayed(form: Form, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let body = Range::new(0, bytes.len()).unwrap_or_default();
        Self {
            form,
            coding: Coding::Json,
            is_fitted: false,
            bytes,
            marks: Marks {
                body,
                ..Marks::default()
            },
        }
    }

    /// A payload of proto-mcp: the payload field of an `MCPMessage`. It has no JSON body, so its
    /// marks name the target alone: the length and text of the field that does.
    pub fn proto(field: Bytes, target: Range) -> Self {
        let marks = Marks {
            target,
            ..Marks::default()
        };
        Self {
            form: Form::Legacy,
            coding: Coding::Proto,
            is_fitted: false,
            bytes: field,
            marks,
        }
    }

    /// Whether the bytes are a whole message, not a body alone.
    pub fn is_message(&self) -> bool {
        self.marks.body.positions().len() < self.bytes.len()
    }

    /// The body: params, result or error, in JSON. Empty if there is none.
    pub fn body_bytes(&self) -> &[u8] {
        self.bytes
            .get(self.marks.body.positions())
            .unwrap_or_default()
    }

    /// The `_meta` that a message marks; `None` if it has none, or if the payload is no message.
    pub fn marked_meta(&self) -> Option<&[u8]> {
        let meta = self.marks.meta;
        (!meta.is_empty()).then(|| self.bytes.get(meta.positions()))?
    }

    /// The body, sharing the payload's memory.
    pub fn to_body(&self) -> Bytes {
        let body = self.marks.body.positions();
        if body.end <= self.bytes.len() {
            self.bytes.slice(body)
        } else {
            Bytes::new()
        }
    }
}

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A tool, by name.
    Tool(ByteString),
    /// A prompt, by name.
    Prompt(ByteString),
    /// A resource, by URI, or a resource template.
    Uri(ByteString),
    /// A task, by id. A task is no part of a kind.
    Task(ByteString),
}

impl Target {
    /// The name, URI or id.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tool(text) | Self::Prompt(text) | Self::Uri(text) | Self::Task(text) => text,
        }
    }

    /// The target as the context of a kind: a task has none.
    pub fn context(&self) -> Option<&str> {
        match self {
            Self::Tool(text) | Self::Prompt(text) | Self::Uri(text) => Some(text),
            Self::Task(_) => None,
        }
    }
}

/// A method: a static text if the gateway knows it.
#[derive(Debug, Clone)]
pub enum Method {
    /// A method that the protocol defines.
    Known(&'static str),
    /// Any other method, as it was spelled.
    Other(ByteString),
}

impl Method {
    /// The method as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::Other(text) => text,
        }
    }

    /// What the method is to the topic and to the gateway.
    pub fn facts(&self) -> &'static MethodFacts {
        MethodFacts::of(self.as_str())
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Method {}

/// A notification on its way from a server to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The method.
    pub method: Method,
    /// The key by which this notification replaces an older one that was not sent yet: a progress
    /// token.
    pub latest: Option<Bytes>,
    /// The params, as the server wrote them.
    pub payload: Payload,
}

/// A request on its way from a caller to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Its target, under its public name.
    pub target: Option<Target>,
    /// The progress token that the caller chose, as it was spelled.
    pub progress: Option<Bytes>,
    /// The params, as the caller wrote them.
    pub payload: Payload,
}

impl Request {
    /// Whether it calls a tool.
    pub fn calls_tool(&self) -> bool {
        // The one row of the table that does, without a search in the table.
        self.method.as_str() == CALL_TOOL.name
    }
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The other side returned a result.
    Ok,
    /// The other side returned an error of its own.
    Error,
    /// No answer came; a refusal has the reason.
    Refused,
    /// The caller cancelled.
    Cancelled,
}

/// An answer on its way back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// [`Outcome::Ok`] or [`Outcome::Error`].
    pub outcome: Outcome,
    /// The result or error, as the server wrote it.
    pub payload: Payload,
}
