//! The span of a call towards its client.

use std::sync::Arc;

use model::{Answer, Refusal, Target};
use telemetry::trace::{CallerTrace, SpanAttributes, SpanKind, SpanRecord};
use topic::{Verdict, request_refusal};
use upstream::answer_error_type;
use wire::mcp::refusal::encode;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::span::CallSpan;

/// The usual bytes of a span's attributes.
pub(super) const ATTRIBUTES_BYTES: usize = 384;
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
    let Some(span) = call.span.get() else { return };
    if span.ends_now() {
        let record = record(dispatch, call, span, &end);
        dispatch.context.traces.spans.push(record);
    }
}

fn record(dispatch: &Dispatch, call: &Call, span: &CallSpan, end: &SpanEnd<'_>) -> SpanRecord {
    let mut record = SpanRecord {
        context: span.context,
        parent: span.parent,
        link: span.link,
        name: name_of(call, None),
        kind: SpanKind::Server,
        start_us: span.began.unix_us,
        duration_us: span.began.elapsed_us(),
        attributes: SpanAttributes::with_capacity(ATTRIBUTES_BYTES),
        is_error: false,
    };
    add_target(&mut record, call, None);
    if let Some(tag) = &call.tag {
        let id = String::from_utf8_lossy(tag.id.raw());
        record.text("jsonrpc.request.id", cut(id.trim_matches('"')));
    }
    record.text("portmoot.topic", dispatch.name().as_str());
    record.text("portmoot.operation", call.id.to_string());
    let is_refused = matches!(end, SpanEnd::Refused(_));
    let verdict = span.verdict.get().copied();
    if let Some(verdict) = verdict.or(is_refused.then_some("refused")) {
        record.text("portmoot.verdict", verdict);
    }
    if let Some(error) = error_of(call, end) {
        record.is_error = !CLIENT_FAULTS.contains(&error.as_str());
        if error.starts_with('-') {
            record.text("rpc.response.status_code", error.as_str());
        }
        record.text("error.type", error);
    }
    if let SpanEnd::Refused(refusal) = end {
        record.text("portmoot.refusal", refusal.code.as_str());
    }
    record
}

/// The type of the error of an end, by the conventions.
fn error_of(call: &Call, end: &SpanEnd<'_>) -> Option<String> {
    match end {
        SpanEnd::Answered(answer) => answer_error_type(answer).map(str::to_owned),
        SpanEnd::Refused(refusal) => {
            let (form, method) = (call.link.form, call.request.method.as_str());
            let target = call.request.target.as_ref().map(Target::as_str);
            Some(encode(refusal, form, method, target).code.to_string())
        }
        SpanEnd::Cancelled => Some("cancelled".to_owned()),
        SpanEnd::Parked => None,
    }
}

/// The name of a span: the method, and the tool or prompt.
pub(super) fn name_of(call: &Call, own: Option<&str>) -> String {
    let method = call.request.method.as_str();
    match &call.request.target {
        Some(Target::Tool(name) | Target::Prompt(name)) => {
            let name = cut(own.unwrap_or(name));
            let mut text = String::with_capacity(method.len() + 1 + name.len());
            text.push_str(method);
            text.push(' ');
            text.push_str(name);
            text
        }
        Some(Target::Uri(_) | Target::Task(_)) | None => method.to_owned(),
    }
}

/// Adds the method, and what it is about.
pub(super) fn add_target(record: &mut SpanRecord, call: &Call, own: Option<&str>) {
    record.text("mcp.method.name", call.request.method.as_str());
    match &call.request.target {
        Some(Target::Tool(name)) => {
            record.text("gen_ai.tool.name", cut(own.unwrap_or(name)));
            record.text("gen_ai.operation.name", "execute_tool");
        }
        Some(Target::Prompt(name)) => record.text("gen_ai.prompt.name", cut(own.unwrap_or(name))),
        Some(Target::Uri(uri)) => record.text("mcp.resource.uri", cut(own.unwrap_or(uri))),
        Some(Target::Task(_)) | None => {}
    }
}

/// A text as an attribute has it.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(ATTRIBUTE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
