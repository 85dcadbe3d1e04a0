//! Requests and servers' questions: decoded as they arrive, edited, encoded for their receiver.

use bytes::Bytes;
use bytestring::ByteString;
use json::{Span, Splice};
use model::{Coding, Form, Method, Payload, Request, Target};

use super::{OutgoingChanges, read_again, span};
use crate::mcp::method::{MethodRow, lookup};
use crate::mcp::params::{BareParams, Params};
use crate::mcp::{BodyEdit, TargetKind, meta, translate, uris};
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
            .and_then(|bytes| ByteString::try_from(bytes).ok())
            .unwrap_or_else(|| text.into())
    };
    let target = text(params.target()?);
    let names = Names {
        method: params.method(),
        known: params.known(),
    };
    Some(names.target(params.target_kind(), target))
}

/// A method, as far as it decides what a name in its params stands for.
struct Names<'n> {
    method: &'n str,
    known: Option<&'static MethodRow>,
}

impl Names<'_> {
    /// The target that a request names in a member of this kind.
    fn target(&self, kind: TargetKind, text: ByteString) -> Target {
        let is_ref = self
            .known
            .is_some_and(|known| known.target == TargetKind::Ref);
        let is_prompt = is_ref || self.method.starts_with("prompts/");
        match kind {
            TargetKind::Uri => Target::Uri(text),
            TargetKind::Task => Target::Task(text),
            TargetKind::Name | TargetKind::Ref | TargetKind::None if is_prompt => {
                Target::Prompt(text)
            }
            TargetKind::Name | TargetKind::Ref | TargetKind::None => Target::Tool(text),
        }
    }
}

/// A request of the gateway's own with these params, which no message is around.
///
/// # Errors
/// [`Malformed`] as of [`Params::read`].
pub fn request_of(method: &str, params: Option<&[u8]>, form: Form) -> Result<Request, Malformed> {
    let params = params.unwrap_or(b"{}");
    let read = BareParams::read(method, params)?;
    let known = lookup(method);
    let names = Names { method, known };
    let target = read
        .target
        .as_ref()
        .map(|target| names.target(target.kind, target.text().into()));
    let progress = read
        .meta
        .as_ref()
        .and_then(|meta| meta.get(meta::PROGRESS_TOKEN));
    let method = known.map_or_else(
        || Method::Other(method.into()),
        |known| Method::Known(known.name),
    );
    Ok(Request {
        method,
        target,
        progress: progress.map(|token| Bytes::copy_from_slice(token.raw)),
        payload: Payload::body(form, Bytes::copy_from_slice(params)),
    })
}

/// A member of a request's params that is a string, such as the cursor of a list.
#[must_use]
pub fn param_text(request: &Request, key: &str) -> Option<String> {
    json::at(request.payload.body_bytes(), &[key])
        .and_then(json::text)
        .map(std::borrow::Cow::into_owned)
}

/// A request for a server: a message, in the coding that its link must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRequest {
    /// Coding of the message.
    pub coding: Coding,
    /// The message: JSON-RPC, or an `MCPMessage`.
    pub frame: Bytes,
}

/// Encodes a request for a server that reads `coding`. A server of proto-mcp gets what is JSON as
/// JSON-RPC, which its link translates.
///
/// # Errors
/// [`Malformed`] if the payload cannot be converted to the server's form.
pub fn encode_request(
    request: &Request,
    coding: Coding,
    out: &OutgoingChanges<'_>,
) -> Result<EncodedRequest, Malformed> {
    let frame = match (coding, request.payload.coding) {
        (_, Coding::Json) => encode_json(request, out)?,
        #[cfg(feature = "proto")]
        (Coding::Proto, Coding::Proto) => {
            crate::proto::call::write(request, out.number, out.own)
                .ok_or_else(|| Malformed::params("the payload has no target", None))?
        }
        (_, Coding::Proto) => return Err(Malformed::params("the payload is not JSON", None)),
    };
    Ok(EncodedRequest {
        coding: request.payload.coding,
        frame,
    })
}

fn encode_json(request: &Request, out: &OutgoingChanges<'_>) -> Result<Bytes, Malformed> {
    let Payload {
        form, bytes, marks, ..
    } = &request.payload;
    let is_same = *form == out.form;
    if !request.payload.is_message() {
        return encode_body(request, out);
    }
    let adds = out.related_task.is_some() || out.trace.is_some();
    if adds || !is_same && marks.body.is_empty() {
        return encode_slowly(request, out);
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
    out: &OutgoingChanges<'_>,
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

/// Encodes params without a message around them.
fn encode_body(request: &Request, out: &OutgoingChanges<'_>) -> Result<Bytes, Malformed> {
    let params = edited_params(request, |edit| fit(request, out, edit))?;
    let params = Some(&*params).filter(|params| !params.is_empty());
    Ok(rpc::request(
        &Id::number(out.number),
        request.method.as_str(),
        params,
    ))
}

/// Encodes a message that must be read again, because more than its marked parts changes.
fn encode_slowly(request: &Request, out: &OutgoingChanges<'_>) -> Result<Bytes, Malformed> {
    let message = Message::read(request.payload.bytes.clone())?;
    let params = Params::read(&message)?;
    let (mut edit, mut splice) = (params.edit(), Splice::new());
    fit(request, out, &mut edit);
    edit.finish(&mut splice);
    message.set_id(&mut splice, &Id::number(out.number));
    Ok(message.edited(&splice))
}

/// Writes all changes of a request for its server but the id.
fn fit(request: &Request, out: &OutgoingChanges<'_>, edit: &mut BodyEdit<'_, '_>) {
    if request.payload.form != out.form {
        translate::request(edit, out);
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
    if let Some(trace) = &out.trace {
        edit.remove_meta(&[meta::BAGGAGE]);
        if let Some(traceparent) = trace.traceparent {
            edit.set_meta(meta::TRACEPARENT, json::quote(traceparent).as_bytes());
            match trace.tracestate {
                Some(state) => edit.set_meta(meta::TRACESTATE, json::quote(state).as_bytes()),
                None => edit.remove_meta(&[meta::TRACESTATE]),
            };
        }
    }
    if request.progress.is_some() {
        edit.set_progress_token(&Id::number(out.number));
    }
}

/// The params of a request after an edit; empty if there are none.
fn edited_params(
    request: &Request,
    edit: impl FnOnce(&mut BodyEdit<'_, '_>),
) -> Result<Vec<u8>, Malformed> {
    let body = request.payload.body_bytes();
    let none = body.is_empty();
    let body = if none { b"{}" } else { body };
    let params = BareParams::read(request.method.as_str(), body)?;
    let (mut edits, mut splice) = (params.edit(), Splice::new());
    edit(&mut edits);
    edits.finish(&mut splice);
    let edited = splice.apply_to(body);
    Ok(if none && edited == b"{}" {
        Vec::new()
    } else {
        edited
    })
}

/// A request whose params are edited: all else stays as its caller wrote it. `None` if they cannot
/// be read.
pub(crate) fn edit_params(
    request: &Request,
    edit: impl FnOnce(&mut BodyEdit<'_, '_>),
) -> Option<Request> {
    let form = request.payload.form;
    let payload = if request.payload.is_message() {
        let message = Message::read(request.payload.bytes.clone()).ok()?;
        let params = Params::read(&message).ok()?;
        let (mut edits, mut splice) = (params.edit(), Splice::new());
        edit(&mut edits);
        edits.finish(&mut splice);
        read_again(message.edited(&splice), form)
    } else {
        Payload::body(form, edited_params(request, edit).ok()?)
    };
    Some(Request {
        payload,
        ..request.clone()
    })
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
    let Payload { bytes, marks, .. } = &question.payload;
    let (method, number) = (question.method.as_str(), Id::number(number));
    let mut splice = Splice::new();
    // A URI that an object names twice cannot be mapped: the question stays as the server wrote it.
    let _ = uris::map_uris((bytes, span(marks.body)), method, public_uri, &mut splice);
    if !question.payload.is_message() {
        let params = splice.apply(bytes);
        let params = Some(&*params).filter(|params| !params.is_empty());
        return Some(rpc::request(&number, method, params));
    }
    if marks.id.is_empty() {
        return None;
    }
    splice.replace(span(marks.id), number.raw());
    Some(splice.apply(bytes))
}

/// A call of another tool with the same params; `None` if they cannot be read.
#[must_use]
pub fn with_tool(request: &Request, name: &str) -> Option<Request> {
    if request.payload.coding != Coding::Json {
        return None;
    }
    let renamed = edit_params(request, |edit| {
        edit.set_target(name);
    })?;
    Some(Request {
        target: Some(Target::Tool(name.into())),
        ..renamed
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

/// Legacy params without a key of `_meta`, and without `_meta` if it has nothing else.
#[must_use]
pub fn without_meta(params: &str, key: &str) -> Option<String> {
    let meta = json::at(params.as_bytes(), &["_meta"])?;
    let rest = json::edited(meta, &[(key, None)]).ok()?;
    let is_empty = rest.iter().all(|byte| b"{} \t\r\n".contains(byte));
    let rest = (!is_empty).then_some(&*rest);
    let edited = json::edited(params.as_bytes(), &[("_meta", rest)]).ok()?;
    String::from_utf8(edited).ok()
}

/// The params of a request in the legacy form under the server's own name, as MCPx envelopes and
/// reviewers see them.
#[must_use]
pub fn legacy_params(request: &Request, own: Option<&str>) -> Option<String> {
    let payload = &request.payload;
    if payload.coding != Coding::Json {
        return None;
    }
    if payload.form == Form::Legacy && own.is_none() {
        return text_of(payload.body_bytes());
    }
    let params = edited_params(request, |edit| {
        if payload.form != Form::Legacy {
            translate::request_to_legacy(edit);
        }
        if let Some(own) = own {
            edit.set_target(own);
        }
    });
    text_of(&params.ok()?)
}

fn text_of(params: &[u8]) -> Option<String> {
    (!params.is_empty()).then(|| String::from_utf8_lossy(params).into_owned())
}
