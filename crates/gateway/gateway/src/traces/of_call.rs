//! The span of a call towards its client.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Answer, Refusal, Target};
use telemetry::trace::{
    CallerTrace, OperationDigits, SpanAttributes, SpanKind, SpanName, SpanRecord,
};
use topic::{Verdict, request_refusal};
use upstream::answer_error_type;
use wire::mcp::refusal::encode;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::span::CallSpan;

/// The longest text of an attribute, in bytes.
const ATTRIBUTE_TEXT_BYTES_MAX: usize = 256;
/// The codes of JSON-RPC that are the client's fault: no errors of the server's span.
const CLIENT_FAULTS: [&str; 5] = ["-32700", "-32600", "-32601", "-32602", "-32002"];

/// The end of a call, as its span has it.
pub(crate) enum SpanEnd<'e> {
    /// Its caller got an answer.
    Answered(&'e Answer),
    /// Its caller was refused.
    Refused(&'e Refusal),
    /// Its caller waits no more.
    Cancelled,
    /// Its caller was answered for now: it waits for a proposal.
    Parked,
}

/// Begins the span of a call, if it is traced.
pub(crate) fn begin(dispatch: &Dispatch, call: &Call, in_headers: Option<Box<CallerTrace>>) {
    let traces = &dispatch.context.traces;
    if traces.is_on() {
        let by = &call.link.participant;
        if let Some(span) = traces.begin(call.id, by, &call.request, in_headers) {
            let _ = call.span.set(span);
        }
    }
}

/// Notes what the topic has decided about the traced calls of one envelope. Of those that it has
/// refused nothing follows: their spans end.
pub(crate) fn note_asked(dispatch: &Dispatch, calls: &[Arc<Call>], verdict: &Verdict) {
    for call in calls {
        note_verdict(call, verdict);
        if let Verdict::Refused(cause) = verdict {
            let refusal = request_refusal(*cause, None);
            end(dispatch, call, SpanEnd::Refused(&refusal));
        }
    }
}

/// Notes what the topic has decided about a call.
pub(crate) fn note_verdict(call: &Call, verdict: &Verdict) {
    if let Some(span) = call.span.get() {
        let verdict = match verdict {
            Verdict::Admitted { .. } => "admitted",
            Verdict::Held { .. } => "held",
            Verdict::Refused(_) => "refused",
        };
        let _ = span.verdict.set(verdict);
    }
}

/// Ends the span of a call, once.
pub(crate) fn end(dispatch: &Dispatch, call: &Call, end: SpanEnd<'_>) {
    if let Some(span) = call.span.get()
        && span.ends_now()
    {
        record(dispatch, call, span, &end);
    }
}

/// Records the span of a call that has ended.
fn record(dispatch: &Dispatch, call: &Call, span: &CallSpan, end: &SpanEnd<'_>) {
    let id = call.tag.as_ref().map(|tag| tag.id.raw());
    let operation = OperationDigits::of(call.id.0);
    let error = error_of(call, end);
    let mut attributes = SpanAttributes::default();
    add_target(&mut attributes, call, None);
    if let Some(id) = id.and_then(|raw| std::str::from_utf8(raw).ok()) {
        attributes.text("jsonrpc.request.id", cut(unquoted(id)));
    }
    attributes.text("portmoot.topic", dispatch.name().as_str());
    attributes.text("portmoot.operation", operation.as_str());
    let is_refused = matches!(end, SpanEnd::Refused(_));
    let verdict = span.verdict.get().copied();
    if let Some(verdict) = verdict.or(is_refused.then_some("refused")) {
        attributes.text("portmoot.verdict", verdict);
    }
    if let Some(error) = &error {
        add_error(&mut attributes, error);
    }
    if let SpanEnd::Refused(refusal) = end {
        attributes.text("portmoot.refusal", refusal.code.as_str());
    }
    let is_fault = |error: &str| !CLIENT_FAULTS.contains(&error);
    dispatch.context.traces.spans.push(&SpanRecord {
        context: span.context,
        parent: span.parent,
        link: span.link,
        name: name_of(call, None),
        kind: SpanKind::Server,
        start_us: span.began.unix_us,
        duration_us: span.began.elapsed_us(),
        attributes: attributes.as_slice(),
        is_error: error.as_deref().is_some_and(is_fault),
    });
}

/// The type of the error of an end, by the conventions.
fn error_of(call: &Call, end: &SpanEnd<'_>) -> Option<Cow<'static, str>> {
    match end {
        SpanEnd::Answered(answer) => answer_error_type(answer).map(Cow::Borrowed),
        SpanEnd::Refused(refusal) => {
            let (form, method) = (call.link.form, call.request.method.as_str());
            let target = call.request.target.as_ref().map(Target::as_str);
            let code = encode(refusal, form, method, target).code;
            Some(Cow::Owned(code.to_string()))
        }
        SpanEnd::Cancelled => Some(Cow::Borrowed("cancelled")),
        SpanEnd::Parked => None,
    }
}

/// The name of a span: the method, and the tool or prompt.
pub(super) fn name_of<'c>(call: &'c Call, own: Option<&'c str>) -> SpanName<'c> {
    let target = match &call.request.target {
        Some(Target::Tool(name) | Target::Prompt(name)) => Some(cut(own.unwrap_or(name))),
        Some(Target::Uri(_) | Target::Task(_)) | None => None,
    };
    SpanName {
        action: call.request.method.as_str(),
        target,
    }
}

/// Adds the method, and what it is about.
pub(super) fn add_target<'c>(
    attributes: &mut SpanAttributes<'c>,
    call: &'c Call,
    own: Option<&'c str>,
) {
    attributes.text("mcp.method.name", call.request.method.as_str());
    match &call.request.target {
        Some(Target::Tool(name)) => {
            attributes.text("gen_ai.tool.name", cut(own.unwrap_or(name)));
            attributes.text("gen_ai.operation.name", "execute_tool");
        }
        Some(Target::Prompt(name)) => {
            attributes.text("gen_ai.prompt.name", cut(own.unwrap_or(name)));
        }
        Some(Target::Uri(uri)) => attributes.text("mcp.resource.uri", cut(own.unwrap_or(uri))),
        Some(Target::Task(_)) | None => {}
    }
}

/// Adds the type of an error, which may be a code of JSON-RPC.
pub(super) fn add_error<'e>(attributes: &mut SpanAttributes<'e>, error: &'e str) {
    if error.starts_with('-') {
        attributes.text("rpc.response.status_code", error);
    }
    attributes.text("error.type", error);
}

/// A JSON value without its quotes, if it has any.
fn unquoted(value: &str) -> &str {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(value)
}

/// A text as an attribute has it.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(ATTRIBUTE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
