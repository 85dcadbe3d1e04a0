//! JSON-RPC messages of MCP as the neutral nouns of `model`, and back: decoded once at a door, encoded once at the far end.
//!
//! Between equal forms an encoder copies the bytes and replaces only the marked parts: id, target, progress token. Between forms
//! it converts the payload first.

use bytes::Bytes;
use json::{Span, Splice, quote};
use model::{Answer, Form, Marks, Method, Notice, Outcome, Payload, Range, Request, Target};

use super::method::TargetKind;
use super::params::{self, Params};
use super::version::Era;
use super::{meta, translate, uris};
use crate::rpc::{self, Id, Malformed, Message, Shape};

/// A request as its caller wrote it.
#[must_use]
pub fn decode_request(params: &Params<'_>, form: Form) -> Request {
    let message = params.message();
    let frame = message.frame();
    let marks = Marks {
        id: range(message.id_span()),
        target: range(params.target_span()),
        progress: range(params.progress_span()),
        body: range(message.body_span()),
    };
    let progress = (!marks.progress.is_empty()).then(|| frame.slice(marks.progress.positions()));
    Request {
        method: method(params),
        target: target(params),
        progress,
        payload: Payload { form, bytes: frame.clone(), marks },
    }
}

/// The method of a message: a static text if MCP defines it.
#[must_use]
pub fn method(params: &Params<'_>) -> Method {
    match params.known() {
        Some(known) => Method::Known(known.name),
        None => Method::Other(params.method().into()),
    }
}

fn target(params: &Params<'_>) -> Option<Target> {
    let frame = params.message().frame();
    // Shares the message's memory unless the text was written with escapes.
    let text = |text: &str| {
        let inner =
            params.target_span().map(|span| Span { start: span.start + 1, end: span.end.saturating_sub(1) });
        let same = inner.filter(|inner| inner.of(frame) == text.as_bytes());
        let shared = same.map(|inner| frame.slice(inner.start..inner.end));
        shared.and_then(|bytes| bytestring::ByteString::try_from(bytes).ok()).unwrap_or_else(|| text.into())
    };
    let kind = params.known().map_or(TargetKind::None, |known| known.target);
    let prompts = params.method().starts_with("prompts/");
    Some(match (kind, params.target()?) {
        (_, params::Target::Uri(uri)) => Target::Uri(text(uri)),
        (_, params::Target::Task(id)) => Target::Task(text(id)),
        (TargetKind::Ref, params::Target::Name(name)) => Target::Prompt(text(name)),
        (_, params::Target::Name(name)) if prompts => Target::Prompt(text(name)),
        (_, params::Target::Name(name)) => Target::Tool(text(name)),
    })
}

/// What a session changes about a request that it sends.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'o> {
    /// The form that the server reads.
    pub form: Form,
    /// The session's id of the request; the progress token too, if the caller gave one.
    pub number: u64,
    /// The server's own name, URI or task id, if it differs from what the caller wrote.
    pub own: Option<&'o str>,
    /// What the client said that it is, for a form that says so in each request.
    pub client_info: Option<&'o [u8]>,
    /// The server's id of the task that the request belongs to, instead of the caller's.
    pub related_task: Option<&'o str>,
}

/// Encodes a request for a server.
///
/// # Errors
/// [`Malformed`] if the payload cannot be converted to the server's form.
pub fn encode_request(request: &Request, out: &Outgoing<'_>) -> Result<Bytes, Malformed> {
    let number = Id::number(out.number);
    if request.payload.marks.id.is_empty() {
        let body = Some(request.payload.body_bytes()).filter(|body| !body.is_empty());
        let frame = rpc::request(&number, request.method.as_str(), body);
        return encode_slowly(frame, request.payload.form, request.progress.is_some(), out);
    }
    if request.payload.form != out.form || out.related_task.is_some() {
        let frame = request.payload.bytes.clone();
        return encode_slowly(frame, request.payload.form, request.progress.is_some(), out);
    }
    let (marks, mut splice) = (request.payload.marks, Splice::new());
    splice.replace(span(marks.id), number.raw());
    if let Some(own) = out.own.filter(|_| !marks.target.is_empty()) {
        splice.replace(span(marks.target), quote(own).as_bytes());
    }
    if !marks.progress.is_empty() {
        splice.replace(span(marks.progress), number.raw());
    }
    Ok(splice.apply(&request.payload.bytes))
}

/// The same for a payload that must be read again, because more of it changes.
fn encode_slowly(frame: Bytes, from: Form, progress: bool, out: &Outgoing<'_>) -> Result<Bytes, Malformed> {
    let read = Message::read(frame)?;
    let converted = match (Era::of(from), Era::of(out.form)) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => None,
        // A server that knew of the client's capabilities might ask, and questions are not converted yet.
        (Era::Legacy, Era::Modern) => translate::request_to_modern(&read, out.client_info, b"{}"),
        (Era::Modern, Era::Legacy) => translate::request_to_legacy(&read),
    };
    let message = match converted {
        Some(frame) => Message::read(frame)?,
        None => read,
    };
    let params = Params::read(&message)?;
    let (number, mut edit, mut splice) = (Id::number(out.number), params.edit(), Splice::new());
    if let Some(own) = out.own {
        edit.set_target(own);
    }
    if let Some(task) = out.related_task {
        let related = json::object(|related| {
            related.text("taskId", task);
        });
        edit.set_meta(meta::RELATED_TASK, &related);
    }
    if progress {
        edit.set_progress_token(&number);
    }
    edit.finish(&mut splice);
    message.set_id(&mut splice, &number);
    Ok(message.edited(&splice))
}

/// The params of a request in the legacy form under the server's own name, as MCPx envelopes and reviewers see them.
#[must_use]
pub fn legacy_params(request: &Request, own: Option<&str>) -> Option<String> {
    let form = Form::Legacy;
    let out = Outgoing { form, number: 1, own, client_info: None, related_task: None };
    let plain = Request { progress: None, ..request.clone() };
    let frame = match request.payload.form == form && own.is_none() {
        true => return body_text(&request.payload),
        false => encode_slowly(whole(&plain), plain.payload.form, false, &out).ok()?,
    };
    let message = Message::read(frame).ok()?;
    message.params().map(|params| String::from_utf8_lossy(params).into_owned())
}

fn body_text(payload: &Payload) -> Option<String> {
    let body = payload.body_bytes();
    (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
}

/// A request as a message, under its caller's id or any.
#[must_use]
pub fn whole(request: &Request) -> Bytes {
    if !request.payload.marks.id.is_empty() {
        return request.payload.bytes.clone();
    }
    let body = Some(request.payload.body_bytes()).filter(|body| !body.is_empty());
    rpc::request(&Id::number(1), request.method.as_str(), body)
}

/// An answer as its server wrote it.
#[must_use]
pub fn decode_answer(message: &Message, form: Form) -> Answer {
    let outcome = if message.shape() == Shape::Result { Outcome::Ok } else { Outcome::Error };
    let marks = Marks { id: range(message.id_span()), body: range(message.body_span()), ..Marks::default() };
    Answer { outcome, payload: Payload { form, bytes: message.frame().clone(), marks } }
}

/// An answer for a caller, and its code if it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON-RPC message.
    pub frame: Bytes,
    /// The JSON-RPC code of an error.
    pub error: Option<i64>,
}

/// Encodes an answer for a caller that reads `form` and gave its request this id. `respell` gives a URI's public spelling if it
/// differs; `edit` adds changes of its own.
pub fn encode_answer(
    answer: &Answer,
    method: &str,
    form: Form,
    id: &Id,
    respell: &dyn Fn(&str) -> Option<String>,
    edit: Option<&dyn Fn(&Message, &mut Splice)>,
) -> Encoded {
    let Payload { bytes, marks, .. } = &answer.payload;
    if marks.id.is_empty() && is_whole(answer) {
        // An error whose server could not read the id.
        return encode_read(answer, method, form, id, respell, edit);
    }
    if marks.id.is_empty() {
        let frame = match answer.outcome {
            Outcome::Ok => rpc::result(id, bytes),
            Outcome::Error | Outcome::Refused | Outcome::Cancelled => rpc::error_object(id, bytes),
        };
        return Encoded { error: code_of(answer, &frame), frame };
    }
    let plain = answer.payload.form == form && edit.is_none() && answer.outcome == Outcome::Ok;
    if plain && !uris::may_hold_uris(answer.payload.body_bytes()) {
        let mut splice = Splice::new();
        splice.replace(span(marks.id), id.raw());
        return Encoded { frame: splice.apply(bytes), error: None };
    }
    encode_read(answer, method, form, id, respell, edit)
}

/// Whether the payload is a whole message although it has no id.
fn is_whole(answer: &Answer) -> bool {
    answer.payload.marks.body.positions().len() < answer.payload.bytes.len()
}

fn encode_read(
    answer: &Answer,
    method: &str,
    form: Form,
    id: &Id,
    respell: &dyn Fn(&str) -> Option<String>,
    edit: Option<&dyn Fn(&Message, &mut Splice)>,
) -> Encoded {
    let frame = answer.payload.bytes.clone();
    let Ok(message) = Message::read(frame) else {
        // It was read before, so this cannot happen; a caller must not be left without an answer.
        let frame = rpc::error(Some(id), rpc::code::INTERNAL_ERROR, "the answer cannot be read", None);
        return Encoded { frame, error: Some(rpc::code::INTERNAL_ERROR) };
    };
    let mut splice = Splice::new();
    if let Some(edit) = edit {
        edit(&message, &mut splice);
    }
    let (from, to) = (Era::of(answer.payload.form), Era::of(form));
    match message.shape() {
        Shape::Result => {
            if from != to {
                translate::result(&message, method, to, &mut splice);
            }
            // A URI that an object names twice cannot be mapped: it goes as it came.
            if let Err(error) = uris::respell(&message, method, respell, &mut splice) {
                let _ = error;
            }
        }
        Shape::Error | Shape::Request | Shape::Notification if from != to => {
            translate::error(&message, method, to, &mut splice);
        }
        Shape::Error | Shape::Request | Shape::Notification => {}
    }
    let frame = with_id(&message, id, splice);
    Encoded { error: code_of(answer, &frame), frame }
}

/// The message under this id; one without an id gets it.
fn with_id(message: &Message, id: &Id, mut splice: Splice) -> Bytes {
    if message.id_span().is_some() {
        message.set_id(&mut splice, id);
    } else if let Ok(members) = json::members(message.frame(), Span::all(message.frame())) {
        let mut edit = json::ObjectEdit::new(&members);
        edit.set("id", id.raw());
        edit.finish(&mut splice);
    }
    message.edited(&splice)
}

fn code_of(answer: &Answer, frame: &Bytes) -> Option<i64> {
    if answer.outcome == Outcome::Ok {
        return None;
    }
    let message = Message::read(frame.clone()).ok()?;
    Some(message.error_object().map_or(rpc::code::INTERNAL_ERROR, |error| error.code))
}

/// A notification as its server wrote it.
#[must_use]
pub fn decode_notice(params: &Params<'_>, form: Form) -> Notice {
    let message = params.message();
    let marks =
        Marks { target: range(params.target_span()), body: range(message.body_span()), ..Marks::default() };
    let latest = params.progress_token().map(|token| Bytes::copy_from_slice(token.raw()));
    Notice {
        method: method(params),
        latest,
        payload: Payload { form, bytes: message.frame().clone(), marks },
    }
}

/// The length of what a payload holds, for accounts of waiting bytes.
#[must_use]
pub fn len(payload: &Payload) -> usize {
    payload.bytes.len()
}

fn range(span: Option<Span>) -> Range {
    span.and_then(|span| Range::new(span.start, span.end)).unwrap_or_default()
}

fn span(range: Range) -> Span {
    Span { start: range.start as usize, end: range.end as usize }
}
