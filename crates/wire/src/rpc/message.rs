//! One JSON-RPC message: its frame, and where its parts lie in it.
//!
//! It must not know MCP's methods or eras.

use bytes::Bytes;

use super::author;
use super::code;
use super::id::Id;
use crate::json::{self, JsonError, Member, Members, Span, Splice, Spot};

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A method with an id.
    Request,
    /// A method without an id.
    Notification,
    /// An id with a result.
    Result,
    /// An error, with an id unless the other side could not read ours.
    Error,
}

/// A message that was read: the frame as it came, and the places of its parts.
#[derive(Debug, Clone)]
pub struct Message {
    frame: Bytes,
    shape: Shape,
    id: Option<Id>,
    id_span: Option<Span>,
    method: Option<Spot>,
    body: Option<Span>,
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// The JSON-RPC code: -32700, -32600 or -32602.
    pub code: i64,
    /// What is wrong; may be told outside.
    pub message: String,
    /// The id of the request, if it could be read.
    pub id: Option<Id>,
}

impl Malformed {
    /// JSON, but not a message: -32600.
    #[must_use]
    pub fn request(message: impl Into<String>, id: Option<Id>) -> Self {
        Self { code: code::INVALID_REQUEST, message: message.into(), id }
    }

    /// A message whose params are wrong: -32602.
    #[must_use]
    pub fn params(message: impl Into<String>, id: Option<Id>) -> Self {
        Self { code: code::INVALID_PARAMS, message: message.into(), id }
    }

    /// What JSON itself gave as the reason: -32700 for bad syntax, else -32600.
    #[must_use]
    pub fn json(error: &JsonError, id: Option<Id>) -> Self {
        let code = match error {
            JsonError::Syntax(_) => code::PARSE_ERROR,
            JsonError::NotAnObject | JsonError::NotAnArray | JsonError::Duplicate(_) => code::INVALID_REQUEST,
        };
        Self { code, message: error.to_string(), id }
    }

    /// The JSON-RPC error that answers it.
    #[must_use]
    pub fn answer(&self) -> Bytes {
        author::error(self.id.as_ref(), self.code, &self.message, None)
    }
}

/// The members of an error that matter; all others stay in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject<'a> {
    /// The code.
    pub code: i64,
    /// Where the code lies in the frame.
    pub code_span: Span,
    /// The message for people.
    pub message: String,
    /// `data` as it was written.
    pub data: Option<&'a [u8]>,
}

impl Message {
    /// Reads one message. The whole frame is checked for syntax, and the outermost object for duplicates.
    ///
    /// White space around the message does not belong to its frame.
    ///
    /// # Errors
    /// [`Malformed`]: -32700 for bad JSON or UTF-8, -32600 for anything that is no JSON-RPC 2.0 message with a
    /// string or integer id (null, fractions and batches included).
    pub fn read(frame: Bytes) -> Result<Self, Malformed> {
        let members = json::scan(&frame, Span::all(&frame)).map_err(|error| match error {
            JsonError::NotAnObject => Malformed::request("expected one JSON-RPC message (an object)", None),
            other => Malformed::json(&other, None),
        })?;
        let around = members.object();
        if around != Span::all(&frame) {
            return Self::read(frame.slice(around.start..around.end));
        }
        let parts = Parts::of(&frame, &members);
        let id = parts.id.and_then(|member| Id::read(member.raw));
        if let Some(key) = members.duplicate() {
            let id = if key == "id" { None } else { id };
            return Err(Malformed::json(&JsonError::Duplicate(key.to_owned()), id));
        }
        let (shape, method, body) =
            parts.check(id.as_ref()).map_err(|why| Malformed::request(why, id.clone()))?;
        let id_span = id.as_ref().and(parts.id).map(|member| member.span);
        Ok(Self { shape, id, id_span, method, body, frame })
    }

    /// The message as it came, without white space around it.
    #[must_use]
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// What kind of message it is.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The id. Requests and results have one, notifications none.
    #[must_use]
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// Where the id lies.
    #[must_use]
    pub fn id_span(&self) -> Option<Span> {
        self.id_span
    }

    /// The method of a request or notification, unescaped; empty for answers.
    #[must_use]
    pub fn method(&self) -> &str {
        self.method.as_ref().map_or("", |method| method.text(&self.frame))
    }

    /// Where the method lies, without quotes (as it was spelled).
    #[must_use]
    pub fn method_span(&self) -> Option<Span> {
        self.method.as_ref().map(Spot::span)
    }

    /// Where `params`, `result` or `error` lies, whichever this message has.
    #[must_use]
    pub fn body_span(&self) -> Option<Span> {
        self.body
    }

    /// `params` as written.
    #[must_use]
    pub fn params(&self) -> Option<&[u8]> {
        self.body_of(&[Shape::Request, Shape::Notification])
    }

    /// `result` as written.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.body_of(&[Shape::Result])
    }

    /// `error` as written.
    #[must_use]
    pub fn error(&self) -> Option<&[u8]> {
        self.body_of(&[Shape::Error])
    }

    /// The error's code and message, if this is an error and they can be read.
    #[must_use]
    pub fn error_object(&self) -> Option<ErrorObject<'_>> {
        self.error()?;
        let members = json::members(&self.frame, self.body?).ok()?;
        let code = members.get("code")?;
        Some(ErrorObject {
            code: json::integer(code.raw)?,
            code_span: code.span,
            message: members
                .get("message")
                .and_then(|text| json::text(text.raw))
                .unwrap_or_default()
                .into_owned(),
            data: members.get("data").map(|data| data.raw),
        })
    }

    /// Gives the message another id; nothing happens to a message without one.
    pub fn set_id(&self, splice: &mut Splice, id: &Id) {
        if let Some(span) = self.id_span {
            splice.replace(span, id.raw());
        }
    }

    /// The frame with these edits.
    #[must_use]
    pub fn edited(&self, splice: &Splice) -> Bytes {
        splice.apply(&self.frame)
    }

    fn body_of(&self, shapes: &[Shape]) -> Option<&[u8]> {
        let span = self.body?;
        shapes.contains(&self.shape).then(|| span.of(&self.frame))
    }
}

/// The members that JSON-RPC knows.
#[derive(Default)]
struct Parts<'s, 'a> {
    frame: &'a [u8],
    version: Option<&'s Member<'a>>,
    id: Option<&'s Member<'a>>,
    method: Option<&'s Member<'a>>,
    params: Option<&'s Member<'a>>,
    result: Option<&'s Member<'a>>,
    error: Option<&'s Member<'a>>,
}

impl<'s, 'a> Parts<'s, 'a> {
    fn of(frame: &'a [u8], members: &'s Members<'a>) -> Self {
        let mut parts = Self { frame, ..Self::default() };
        for member in members {
            match &*member.key {
                "jsonrpc" => parts.version = Some(member),
                "id" => parts.id = Some(member),
                "method" => parts.method = Some(member),
                "params" => parts.params = Some(member),
                "result" => parts.result = Some(member),
                "error" => parts.error = Some(member),
                _ => {}
            }
        }
        parts
    }

    fn check(&self, id: Option<&Id>) -> Result<(Shape, Option<Spot>, Option<Span>), &'static str> {
        if self.version.is_none_or(|version| json::text(version.raw).as_deref() != Some("2.0")) {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        if let Some(method) = self.method {
            return self.call(method, id);
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err("an answer has either `result` or `error`, not both"),
            (Some(result), None) if id.is_some() => Ok((Shape::Result, None, Some(result.span))),
            (Some(_), None) => Err("a result needs the id of its request, a string or an integer"),
            (None, Some(_)) if id.is_none() && self.id.is_some_and(|id| id.raw != b"null") => Err(BAD_ID),
            (None, Some(error)) if json::is_object(error.raw) => Ok((Shape::Error, None, Some(error.span))),
            (None, Some(_)) => Err("`error` must be an object"),
            (None, None) => Err("a message needs `method`, `result` or `error`"),
        }
    }

    fn call(
        &self,
        method: &Member<'a>,
        id: Option<&Id>,
    ) -> Result<(Shape, Option<Spot>, Option<Span>), &'static str> {
        if self.result.is_some() || self.error.is_some() {
            return Err("a message with `method` has neither `result` nor `error`");
        }
        if self.id.is_some() && id.is_none() {
            return Err(BAD_ID);
        }
        let name = Spot::read(self.frame, method.span).ok_or("`method` must be a string")?;
        let params = match self.params {
            Some(params) if matches!(params.raw.first(), Some(b'{' | b'[')) => Some(params.span),
            Some(_) => return Err("`params` must be an object"),
            None => None,
        };
        let shape = if id.is_some() { Shape::Request } else { Shape::Notification };
        Ok((shape, Some(name), params))
    }
}

const BAD_ID: &str = "`id` must be a string or an integer";
