//! Strict validation of an envelope before an addressee acts on it: kind and payload must agree
//! (MCPx v0.1, 4.3).
//!
//! The gateway's forwarding path does not use it.

use bytes::Bytes;
use json::{JsonError, Members, Span};
use model::{KindError, KindRef};

use super::envelope::Envelope;
use super::kind::{Head, kind_of};
use crate::mcp::Params;
use crate::rpc::{self, Id, Malformed, Message, MessageKind};
use crate::twin::twin_of;

/// The meaning of an envelope whose kind and payload agree.
#[derive(Debug, Clone)]
pub enum Act {
    /// A call for an addressee to carry out. The only act that may be executed.
    Request(EnvelopeCall),
    /// A call for review, not for execution.
    Proposal(EnvelopeCall),
    /// The answer to a request: a result or an error. [`answers`] decides whether its kind fits
    /// that request's.
    Answer(Message),
    /// No MCP message: chat, or an application's own kind. Its payload was not examined.
    Other,
}

/// A call that a participant makes or proposes.
#[derive(Debug, Clone)]
pub struct EnvelopeCall {
    message: Message,
    target: Option<String>,
}

impl EnvelopeCall {
    /// The JSON-RPC message. For a proposal, one with its params as they were written and a
    /// placeholder id.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.message.method()
    }

    /// The tool, prompt, resource or task that the params name, whether or not the kind names it
    /// too.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// The params as they were written.
    #[must_use]
    pub fn params(&self) -> Option<&[u8]> {
        self.message.params()
    }

    /// Whether it expects no answer.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.message.shape() == MessageKind::Notification
    }

    /// The extended kind of this call under that head: for its response, or for the request that
    /// fulfils it.
    ///
    /// # Errors
    /// [`KindError`] when the target is empty; then there is only the short kind.
    pub fn kind(&self, head: Head) -> Result<String, KindError> {
        kind_of(head, self.method(), self.target())
    }
}

/// Why a payload disagrees with its kind, or cannot be acted on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The kind is malformed.
    #[error("{0}")]
    Kind(#[from] KindError),
    /// The payload does not have the shape that the kind's head requires.
    #[error("{0}")]
    Payload(String),
    /// The payload's method differs from the kind's.
    #[error("the kind says `{expected}`, the payload's method is `{found}`")]
    Method {
        /// The kind's method.
        expected: String,
        /// The payload's.
        found: String,
    },
    /// The payload's target differs from the kind's context.
    #[error("the kind says `{expected}`, the payload names `{found}`")]
    Context {
        /// The kind's context.
        expected: String,
        /// The target in the params.
        found: String,
    },
    /// The kind has a context, but the payload has no target to compare with it.
    #[error("the kind says `{expected}`, but the payload names nothing")]
    NoTarget {
        /// The kind's context.
        expected: String,
    },
}

impl From<Malformed> for Mismatch {
    fn from(why: Malformed) -> Self {
        Self::Payload(why.message)
    }
}

impl From<JsonError> for Mismatch {
    fn from(why: JsonError) -> Self {
        Self::Payload(why.to_string())
    }
}

/// Checks a payload against its kind (4.3; reference 2.3, "kind vs payload").
///
/// A kind without context is accepted: it is less specific, not wrong. In a call no member may
/// occur twice, at any depth, nor may a member that matters have a double in other letter case,
/// which some JSON readers take for the same.
///
/// # Errors
/// [`Mismatch`]; such an envelope must not be executed.
pub fn strict(kind: &str, payload: Bytes) -> Result<Act, Mismatch> {
    let kind = KindRef::parse(kind)?;
    match Head::of(kind) {
        Some(Head::Request) => Ok(Act::Request(request(kind, payload)?)),
        Some(Head::Proposal) => Ok(Act::Proposal(proposal(kind, &payload)?)),
        Some(Head::Response) => Ok(Act::Answer(response(payload)?)),
        None => Ok(Act::Other),
    }
}

/// Whether a response of this kind can answer a request of that kind: the same method, and the same
/// context unless the response has none (Decision 002: both forms are valid). Give the request's
/// extended kind if its target is known.
#[must_use]
pub fn answers(response: KindRef<'_>, request: KindRef<'_>) -> bool {
    if Head::of(request) != Some(Head::Request) {
        return false;
    }
    let method = request.method();
    method.is_some_and(|method| response.answers(method, request.context()))
}

/// The answer in an envelope to a request of this kind.
///
/// # Errors
/// Why the envelope does not answer it.
pub fn answer_to(request: &str, envelope: &Envelope) -> Result<Message, Mismatch> {
    let kind = envelope.kind();
    if !answers(KindRef::parse(kind)?, KindRef::parse(request)?) {
        return Err(Mismatch::Payload(format!(
            "its kind `{kind}` does not answer `{request}`"
        )));
    }
    match strict(kind, envelope.payload_bytes())? {
        Act::Answer(message) => Ok(message),
        Act::Request(_) | Act::Proposal(_) | Act::Other => {
            Err(Mismatch::Payload("its payload is not an answer".to_owned()))
        }
    }
}

fn request(kind: KindRef<'_>, payload: Bytes) -> Result<EnvelopeCall, Mismatch> {
    json::refuse_duplicates(&payload)?;
    let outer = json::members(&payload, Span::all(&payload))?;
    refuse_doubles(&outer, &["jsonrpc", "id", "method", "params"])?;
    refuse_null(&outer)?;
    let message = Message::read(payload.clone())?;
    match message.shape() {
        MessageKind::Request | MessageKind::Notification => call(kind, message),
        MessageKind::Result | MessageKind::Error => {
            Err(Mismatch::Payload("a request needs `method`".to_owned()))
        }
    }
}

/// A proposal's payload is `{method, params}`; `jsonrpc` and `id` may be there (3.2).
fn proposal(kind: KindRef<'_>, payload: &Bytes) -> Result<EnvelopeCall, Mismatch> {
    let wrong = |why: &str| Mismatch::Payload(why.to_owned());
    json::refuse_duplicates(payload)?;
    let members = json::members(payload, Span::all(payload))?;
    refuse_doubles(&members, &["jsonrpc", "method", "params"])?;
    refuse_null(&members)?;
    if members
        .get("jsonrpc")
        .is_some_and(|version| json::text(version.raw).as_deref() != Some("2.0"))
    {
        return Err(wrong("`jsonrpc` must be \"2.0\""));
    }
    if members.get("result").is_some() || members.get("error").is_some() {
        return Err(wrong("a proposal has neither `result` nor `error`"));
    }
    let method = members
        .get("method")
        .and_then(|method| json::text(method.raw));
    let method = method.ok_or_else(|| wrong("`method` must be a string"))?;
    let params = members.get("params").map(|params| params.raw);
    let made = if method.starts_with("notifications/") {
        rpc::notification(&method, params)
    } else {
        rpc::request(&Id::number(0), &method, params)
    };
    call(kind, Message::read(made)?)
}

fn response(payload: Bytes) -> Result<Message, Mismatch> {
    let message = Message::read(payload)?;
    match message.shape() {
        MessageKind::Result | MessageKind::Error => Ok(message),
        MessageKind::Request | MessageKind::Notification => Err(Mismatch::Payload(
            "a response needs `result` or `error`".to_owned(),
        )),
    }
}

fn call(kind: KindRef<'_>, message: Message) -> Result<EnvelopeCall, Mismatch> {
    let expected = kind.method().unwrap_or_default();
    if message.method() != expected {
        return Err(Mismatch::Method {
            expected: expected.to_owned(),
            found: message.method().to_owned(),
        });
    }
    let params = Params::read(&message)?;
    let target = params.target().map(str::to_owned);
    match (kind.context(), target) {
        (Some(expected), Some(found)) if expected != found => Err(Mismatch::Context {
            expected: expected.to_owned(),
            found,
        }),
        (Some(expected), None) => Err(Mismatch::NoTarget {
            expected: expected.to_owned(),
        }),
        (Some(_) | None, target) => Ok(EnvelopeCall { message, target }),
    }
}

/// Refuses params that are null, which are none over MCP: participants read the envelope as it was
/// sent.
fn refuse_null(members: &Members<'_>) -> Result<(), Mismatch> {
    match members.get("params") {
        Some(params) if params.raw == b"null" => {
            Err(Mismatch::Payload("`params` must be an object".to_owned()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses members that differ from one of these only in letter case.
fn refuse_doubles(members: &Members<'_>, exact: &[&'static str]) -> Result<(), Mismatch> {
    for (key, _) in members.iter() {
        if let Some(meant) = twin_of(key, exact) {
            return Err(Mismatch::Payload(format!(
                "the member {key:?} could be taken for `{meant}`"
            )));
        }
    }
    Ok(())
}
