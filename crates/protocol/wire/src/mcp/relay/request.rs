//! Requests and servers' questions: decoded as they arrive, encoded for their receiver.

use bytes::Bytes;
use json::{Span, Splice};
use model::{Coding, Form, Method, Payload, Request, Target};

use super::{Outgoing, read_again, span};
use crate::mcp::{BodyEdit, Params, TargetKind, meta, translate, uris};
use crate::rpc::{self, Id, Malformed, Message};

/// A request as its caller wrote it.
#[must_use]
pub fn decode_request(params: &Params<'_>, form: Form) -> Request {
    let message = params.message();
    let payload = super::payload(message, Some(params), form);
    let progress = payload.marks.progress;
    let progress = (!progress.is_empty()).then(|| message.frame().slice(progress.positions()));
    Request {
        method: method(params),
        target: target(params),
        progress,
        payload,
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
        let inner = params.target_span().map(|span| Span {
            start: span.start + 1,
            end: span.end.saturating_sub(1),
        });
        let same = inner.filter(|inner| inner.of(frame) == text.as_bytes());
        let shared = same.map(|inner| frame.slice(inner.start..inner.end));
        shared
            .and_then(|bytes| bytestring::ByteString::try_from(bytes).ok())
            .unwrap_or_else(|| text.into())
    };
    let is_ref = params
        .known()
        .is_some_and(|known| known.target == TargetKind::Ref);
    let is_prompt = is_ref || params.method().starts_with("prompts/");
    let target = text(params.target()?);
    Some(match params.target_kind() {
        TargetKind::Uri => Target::Uri(target),
        TargetKind::Task => Target::Task(target),
        TargetKind::Name | TargetKind::Ref | TargetKind::None if is_prompt => {
            Target::Prompt(target)
        }
        TargetKind::Name | TargetKind::Ref | TargetKind::None => Target::Tool(target),
    })
}

/// A member of a request's params that is a string, such as the cursor of a list.
#[must_use]
pub fn param_text(request: &Request, key: &str) -> Option<String> {
    json::at(request.payload.body_bytes(), &[key])
        .and_then(json::text)
        .map(std::borrow::Cow::into_owned)
}

/// Encodes a request for a server.
///
/// # Errors
/// [`Malformed`] if the payload cannot be converted to the server's form.
pub fn encode_request(request: &Request, out: &Outgoing<'_>) -> Result<Bytes, Malformed> {
    let Payload {
        form, bytes, marks, ..
    } = &request.payload;
    if request.payload.coding != Coding::Json {
        return Err(Malformed::params("the payload is not JSON", None));
    }
    let is_same = *form == out.form;
    if !request.payload.is_message()
        || out.related_task.is_some()
        || !is_same && marks.body.is_empty()
    {
        return encode_slowly(request, request.progress.is_some(), out);
    }
    let (number, mut splice) = (Id::number(out.number), Splice::new());
    if !is_same {
        convert((bytes, span(marks.body)), out, &mut splice)?;
    }
    splice.replace(span(marks.id), number.raw());
    if let Some(own) = out.own.filter(|_| !marks.target.is_empty()) {
        splice.replace_by_text(span(marks.target), own);
    }
    if !marks.progress.is_empty() {
        splice.replace(span(marks.progress), number.raw());
    }
    Ok(splice.apply(bytes))
}

/// Writes the edits that give params the other form. The marked parts are none of them.
fn convert(
    (frame, body): (&[u8], Span),
    out: &Outgoing<'_>,
    splice: &mut Splice,
) -> Result<(), Malformed> {
    let read = |within| json::members(frame, within).map_err(|error| Malformed::json(&error, None));
    let members = read(body)?;
    let meta = members.get("_meta").filter(|meta| meta.raw != b"null");
    let meta = meta.map(|meta| read(meta.span)).transpose()?;
    let mut edit = BodyEdit::of(Some(&members), meta.as_ref());
    translate::request(&mut edit, out);
    edit.finish(splice);
    Ok(())
}

/// Encodes a payload that must be read again, because more than its marked parts changes.
fn encode_slowly(
    request: &Request,
    progress: bool,
    out: &Outgoing<'_>,
) -> Result<Bytes, Malformed> {
    let message = Message::read(whole(request))?;
    let params = Params::read(&message)?;
    let (number, mut edit, mut splice) = (Id::number(out.number), params.edit(), Splice::new());
    if request.payload.form != out.form {
        translate::request(&mut edit, out);
    }
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

/// A server's question for a client that reads `form`, under this number. `public_uri` returns a
/// URI's public spelling if it differs. `None` if the client's form has no such question.
#[must_use]
pub fn encode_question(
    question: &Request,
    number: u64,
    form: Form,
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Option<Bytes> {
    if question.payload.form != form {
        return None;
    }
    let message = Message::read(whole(question)).ok()?;
    let mut splice = Splice::new();
    message.set_id(&mut splice, &Id::number(number));
    // A URI that an object names twice cannot be mapped: the question stays as the server wrote it.
    if let Some(body) = message.body_span() {
        let _ = uris::map_uris(
            (message.frame(), body),
            question.method.as_str(),
            public_uri,
            &mut splice,
        );
    }
    Some(message.edited(&splice))
}

/// A call of another tool with the same params; `None` if they cannot be read.
#[must_use]
pub fn with_tool(request: &Request, name: &str) -> Option<Request> {
    if request.payload.coding != Coding::Json {
        return None;
    }
    let message = Message::read(whole(request)).ok()?;
    let params = Params::read(&message).ok()?;
    let (mut edit, mut splice) = (params.edit(), Splice::new());
    edit.set_target(name);
    edit.finish(&mut splice);
    let payload = read_again(message.edited(&splice), request.payload.form);
    Some(Request {
        payload,
        target: Some(Target::Tool(name.into())),
        ..request.clone()
    })
}

/// A call with the arguments of a reviewer's edited params, which have the legacy form.
#[must_use]
pub fn with_arguments(request: &Request, edited: &str) -> Option<Request> {
    replace_arguments(request, json::at(edited.as_bytes(), &["arguments"])?)
}

/// A call with other arguments, which are JSON; `None` if its params cannot be read.
#[must_use]
pub fn replace_arguments(request: &Request, arguments: &[u8]) -> Option<Request> {
    let body = match request.payload.body_bytes() {
        b"" => b"{}",
        body => body,
    };
    let body = json::edited(body, &[("arguments", Some(arguments))]).ok()?;
    Some(Request {
        payload: Payload::body(request.payload.form, body),
        ..request.clone()
    })
}

/// Legacy params with other arguments.
#[must_use]
pub fn set_arguments(params: &str, arguments: &str) -> Option<String> {
    let edited = json::edited(
        params.as_bytes(),
        &[("arguments", Some(arguments.as_bytes()))],
    )
    .ok()?;
    String::from_utf8(edited).ok()
}

/// The params of a request in the legacy form under the server's own name, as MCPx envelopes and
/// reviewers see them.
#[must_use]
pub fn legacy_params(request: &Request, own: Option<&str>) -> Option<String> {
    let form = Form::Legacy;
    if request.payload.form == form && own.is_none() {
        return body_text(&request.payload);
    }
    let out = Outgoing {
        form,
        number: 1,
        own,
        client_info: None,
        capabilities: b"{}",
        log_level: None,
        related_task: None,
        tasks: false,
    };
    let message = Message::read(encode_slowly(request, false, &out).ok()?).ok()?;
    message
        .params()
        .map(|params| String::from_utf8_lossy(params).into_owned())
}

fn body_text(payload: &Payload) -> Option<String> {
    let body = payload.body_bytes();
    (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
}

/// A request as a whole message, under its caller's id or a placeholder.
#[must_use]
pub(crate) fn whole(request: &Request) -> Bytes {
    if request.payload.is_message() {
        return request.payload.bytes.clone();
    }
    let body = Some(request.payload.body_bytes()).filter(|body| !body.is_empty());
    rpc::request(&Id::number(1), request.method.as_str(), body)
}
