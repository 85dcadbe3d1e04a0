//! JSON-RPC message: its frame, and the places of its parts.

use bytes::Bytes;
use json::{JsonError, Member, MemberChange, Members, Outline, Span, Splice, StringSpan};

use super::author;
use super::code;
use super::id::Id;
use crate::twin::twin_of;

/// Path of the objects that are outlined when a message is read, so that they are not scanned
/// again.
const PATH: [&[u8]; 2] = [b"params", b"_meta"];

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A method with an id.
    Request,
    /// A method without an id.
    Notification,
    /// An id with a result.
    Result,
    /// An error, with an id unless its sender could not read the request's.
    Error,
}

/// A message: the frame as it came, and the places of its parts.
#[derive(Debug, Clone)]
pub struct Message {
    frame: Bytes,
    at: Places,
    /// The outline of the objects along [`PATH`]; `None` if these have to be scanned.
    outline: Option<Outline>,
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// The JSON-RPC code: -32700, -32600 or -32602.
    pub code: i64,
    /// Fault of the message; clients may read it.
    pub message: String,
    /// The id of the request, if it could be read.
    pub id: Option<Id>,
}

impl Malformed {
    /// JSON, but not a message: -32600.
    #[must_use]
    pub(crate) fn request(message: impl Into<String>, id: Option<Id>) -> Self {
        Self {
            code: code::INVALID_REQUEST,
            message: message.into(),
            id,
        }
    }

    /// A message whose params are wrong: -32602.
    #[must_use]
    pub(crate) fn params(message: impl Into<String>, id: Option<Id>) -> Self {
        Self {
            code: code::INVALID_PARAMS,
            message: message.into(),
            id,
        }
    }

    /// Bytes that the JSON reader rejects: -32700 for bad syntax, else -32600.
    #[must_use]
    pub(crate) fn json(error: &JsonError, id: Option<Id>) -> Self {
        let code = match error {
            JsonError::Syntax(_) => code::PARSE_ERROR,
            JsonError::NotAnObject | JsonError::NotAnArray | JsonError::Duplicate(_) => {
                code::INVALID_REQUEST
            }
        };
        Self {
            code,
            message: error.to_string(),
            id,
        }
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
    /// The place of the code in the frame.
    pub code_span: Span,
    /// The message for people.
    pub message: String,
    /// `data` as it was written.
    pub data: Option<&'a [u8]>,
}

impl<'a> ErrorObject<'a> {
    /// The error object of an answer, without the message around it; `None` if it cannot be read.
    #[must_use]
    pub fn read(object: &'a [u8]) -> Option<Self> {
        Self::at(object, Span::all(object))
    }

    /// The error object at this place.
    pub(crate) fn at(frame: &'a [u8], object: Span) -> Option<Self> {
        let members = json::members(frame, object).ok()?;
        let code = members.get("code")?;
        Some(Self {
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
}

impl Message {
    /// Reads one message. The whole frame is checked for syntax, and the outermost object for
    /// duplicates.
    ///
    /// White space around the message does not belong to its frame.
    ///
    /// `"params":null` becomes `"params":{}`, as if there were none: many programs write every
    /// member that they have no value for. In an answer an integer id may be written as a fraction.
    /// A request or notification loses the members that JSON-RPC does not define.
    ///
    /// # Errors
    /// [`Malformed`]: -32700 for bad JSON or UTF-8, -32600 for anything that is no JSON-RPC 2.0 message with a
    /// string or integer id (null, fractions and batches included), or has a member that differs from
    /// one of JSON-RPC in letter case alone.
    pub fn read(frame: Bytes) -> Result<Self, Malformed> {
        Self::read_else(frame, |malformed, _| malformed)
    }

    /// Reads one message. A frame that is none comes back.
    ///
    /// # Errors
    /// As [`Message::read`].
    pub fn read_or_return(frame: Bytes) -> Result<Self, (Malformed, Bytes)> {
        Self::read_else(frame, |malformed, frame| (malformed, frame))
    }

    fn read_else<E>(
        frame: Bytes,
        otherwise: impl FnOnce(Malformed, Bytes) -> E,
    ) -> Result<Self, E> {
        let mut parts = Parts::default();
        let outline = json::outline(&frame, &PATH, |key, member| parts.take(key, member));
        let outline = outline.filter(|_| !parts.has_others);
        if outline.is_none() {
            return Self::read_thoroughly(frame.clone())
                .map_err(|malformed| otherwise(malformed, frame));
        }
        if let Some(null) = parts.null_params() {
            return Self::read_without_null(&frame, null)
                .map_err(|malformed| otherwise(malformed, frame));
        }
        match parts.check() {
            Ok(at) => Ok(Self { frame, at, outline }),
            Err(malformed) => Err(otherwise(malformed, frame)),
        }
    }

    /// Reads a message whose params are the null at this place.
    fn read_without_null(frame: &Bytes, null: Span) -> Result<Self, Malformed> {
        let mut splice = Splice::new();
        splice.replace(null, b"{}");
        Self::read(splice.apply(frame))
    }

    /// The id in these bytes, where it can be read, whether or not they are a message.
    #[must_use]
    pub fn id_in(frame: Bytes) -> Option<Id> {
        Self::read(frame).map_or_else(|malformed| malformed.id, |message| message.id().cloned())
    }

    /// Reads any message, also with members and spellings that are rare.
    fn read_thoroughly(frame: Bytes) -> Result<Self, Malformed> {
        let members = json::members_with_duplicates(&frame, Span::all(&frame)).map_err(
            |error| match error {
                JsonError::NotAnObject => {
                    Malformed::request("expected one JSON-RPC message (an object)", None)
                }
                other => Malformed::json(&other, None),
            },
        )?;
        let around = members.object();
        if around != Span::all(&frame) {
            return Self::read(frame.slice(around.start..around.end));
        }
        let mut parts = Parts::default();
        for (key, member) in members.iter() {
            parts.take(key.as_bytes(), member);
        }
        if let Some(key) = members.first_duplicate() {
            let id = parts.id().filter(|_| key != "id");
            return Err(Malformed::json(&JsonError::Duplicate(key), id));
        }
        let twin = members
            .iter()
            .find_map(|(key, _)| Some((key, twin_of(key, &DEFINED)?)));
        if let Some((key, meant)) = twin {
            let why = format!("the member {key:?} could be taken for `{meant}`");
            return Err(Malformed::request(why, parts.id()));
        }
        if let Some(null) = parts.null_params() {
            return Self::read_without_null(&frame, null);
        }
        if parts.method.is_some() && parts.has_others {
            return Self::read(without_others(&frame, &members));
        }
        let at = parts.check()?;
        Ok(Self {
            frame,
            at,
            outline: None,
        })
    }

    /// The message as it came, without white space around it.
    #[must_use]
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// The kind of the message.
    #[must_use]
    pub fn shape(&self) -> MessageKind {
        self.at.shape
    }

    /// The id. Requests and results have one, notifications none.
    #[must_use]
    pub fn id(&self) -> Option<&Id> {
        self.at.id.as_ref()
    }

    /// The place of the id.
    #[must_use]
    pub(crate) fn id_span(&self) -> Option<Span> {
        self.at.id_span
    }

    /// The method of a request or notification, unescaped; empty for answers.
    #[must_use]
    pub fn method(&self) -> &str {
        self.at
            .method
            .as_ref()
            .map_or("", |method| method.text(&self.frame))
    }

    /// The place of the method, without quotes (as it was spelled).
    #[must_use]
    pub(crate) fn method_span(&self) -> Option<Span> {
        self.at.method.as_ref().map(StringSpan::span)
    }

    /// The place of `params`, `result` or `error`, whichever this message has.
    #[must_use]
    pub fn body_span(&self) -> Option<Span> {
        self.at.body
    }

    /// `params` as written.
    #[must_use]
    pub fn params(&self) -> Option<&[u8]> {
        self.body_of(&[MessageKind::Request, MessageKind::Notification])
    }

    /// `result` as written.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.body_of(&[MessageKind::Result])
    }

    /// `error` as written.
    #[must_use]
    pub fn error(&self) -> Option<&[u8]> {
        self.body_of(&[MessageKind::Error])
    }

    /// The error's code and message, if this is an error and they can be read.
    #[must_use]
    pub fn error_object(&self) -> Option<ErrorObject<'_>> {
        self.error()?;
        ErrorObject::at(&self.frame, self.at.body?)
    }

    /// The members of `params`, which lie at `object`: as [`json::members`] reads them.
    pub(crate) fn params_members(&self, object: Span) -> Result<Members<'_>, JsonError> {
        self.outlined(object, 1)
    }

    /// The members of `_meta` in `params`, which lies at `object`: as [`json::members`] reads them.
    pub(crate) fn meta_members(&self, object: Span) -> Result<Members<'_>, JsonError> {
        self.outlined(object, 2)
    }

    fn outlined(&self, object: Span, depth: u8) -> Result<Members<'_>, JsonError> {
        match &self.outline {
            Some(outline) if self.frame.get(object.start) == Some(&b'{') => {
                outline.members(&self.frame, object, depth)
            }
            Some(_) | None => json::members(&self.frame, object),
        }
    }

    /// Gives the message another id; a message without one stays as it is.
    pub fn set_id(&self, splice: &mut Splice, id: &Id) {
        if let Some(span) = self.at.id_span {
            splice.replace(span, id.raw());
        }
    }

    /// The frame with these edits.
    #[must_use]
    pub fn edited(&self, splice: &Splice) -> Bytes {
        splice.apply(&self.frame)
    }

    /// Whether the members of params were outlined.
    #[cfg(test)]
    pub(super) fn is_outlined(&self) -> bool {
        self.outline.is_some()
    }

    fn body_of(&self, shapes: &[MessageKind]) -> Option<&[u8]> {
        let span = self.at.body?;
        shapes
            .contains(&self.at.shape)
            .then(|| span.of(&self.frame))
    }
}

/// The members that JSON-RPC defines.
#[derive(Default)]
struct Parts<'a> {
    version: Option<Member<'a>>,
    id: Option<Member<'a>>,
    method: Option<Member<'a>>,
    params: Option<Member<'a>>,
    result: Option<Member<'a>>,
    error: Option<Member<'a>>,
    /// Whether the message has other members, or one of these twice.
    has_others: bool,
}

/// The places of the parts of a message.
#[derive(Debug, Clone)]
struct Places {
    shape: MessageKind,
    id: Option<Id>,
    id_span: Option<Span>,
    method: Option<StringSpan>,
    body: Option<Span>,
}

impl<'a> Parts<'a> {
    fn take(&mut self, key: &[u8], member: Member<'a>) {
        let part = match key {
            b"jsonrpc" => &mut self.version,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => return self.has_others = true,
        };
        self.has_others |= part.replace(member).is_some();
    }

    fn id(&self) -> Option<Id> {
        let raw = self.id?.raw;
        if self.method.is_some() {
            Id::read(raw)
        } else {
            Id::read_answered(raw)
        }
    }

    /// The place of params that are null.
    fn null_params(&self) -> Option<Span> {
        self.method?;
        self.params
            .filter(|params| params.raw == b"null")
            .map(|params| params.span)
    }

    fn check(&self) -> Result<Places, Malformed> {
        let id = self.id();
        match self.shape(id.is_some()) {
            Ok((shape, method, body)) => {
                let id_span = id.as_ref().and(self.id).map(|member| member.span);
                Ok(Places {
                    shape,
                    id,
                    id_span,
                    method,
                    body,
                })
            }
            Err(why) => Err(Malformed::request(why, id)),
        }
    }

    fn shape(
        &self,
        has_id: bool,
    ) -> Result<(MessageKind, Option<StringSpan>, Option<Span>), &'static str> {
        if self.version.is_none_or(|version| {
            version.raw != VERSION && version.text().as_deref() != Some("2.0")
        }) {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        if let Some(method) = &self.method {
            return self.call(method, has_id);
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err("an answer has either `result` or `error`, not both"),
            (Some(result), None) if has_id => Ok((MessageKind::Result, None, Some(result.span))),
            (Some(_), None) => Err("a result needs the id of its request, a string or an integer"),
            (None, Some(_)) if !has_id && self.id.is_some_and(|id| id.raw != b"null") => {
                Err(BAD_ID)
            }
            (None, Some(error)) if json::is_object(error.raw) => {
                Ok((MessageKind::Error, None, Some(error.span)))
            }
            (None, Some(_)) => Err("`error` must be an object"),
            (None, None) => Err("a message needs `method`, `result` or `error`"),
        }
    }

    fn call(
        &self,
        method: &Member<'a>,
        has_id: bool,
    ) -> Result<(MessageKind, Option<StringSpan>, Option<Span>), &'static str> {
        if self.result.is_some() || self.error.is_some() {
            return Err("a message with `method` has neither `result` nor `error`");
        }
        if self.id.is_some() && !has_id {
            return Err(BAD_ID);
        }
        let name = StringSpan::of(method).ok_or("`method` must be a string")?;
        let params = match self.params {
            Some(params) if matches!(params.raw.first(), Some(b'{' | b'[')) => Some(params.span),
            Some(_) => return Err("`params` must be an object"),
            None => None,
        };
        let shape = if has_id {
            MessageKind::Request
        } else {
            MessageKind::Notification
        };
        Ok((shape, Some(name), params))
    }
}

/// A request or notification without the members that JSON-RPC does not define. Decisions about a call
/// are made by its method and params: nothing else of it reaches a server.
fn without_others(frame: &Bytes, members: &Members<'_>) -> Bytes {
    let others = members.iter().filter(|(key, _)| !DEFINED.contains(key));
    let gone: Vec<MemberChange<'_>> = others.map(|(key, _)| (key, None)).collect();
    let mut splice = Splice::new();
    json::edit_object(members, &gone, &mut splice);
    splice.apply(frame)
}

/// The names of the members that JSON-RPC defines.
const DEFINED: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
/// `jsonrpc` as it is nearly always spelled.
const VERSION: &[u8] = b"\"2.0\"";
const BAD_ID: &str = "`id` must be a string or an integer";
