//! The span of a call towards its server.

use model::{Answer, Refusal};
use telemetry::trace::{
    SpanAttributes, SpanKind, SpanPlace, SpanRecord, TraceContext, TraceState, span_of,
};
use upstream::{Session, answer_error_type};
use wire::mcp::relay::OutgoingTrace;

use super::of_call::{ATTRIBUTES_BYTES, add_target, name_of};
use crate::call::{Call, Delivered};
use crate::dispatch::Dispatch;
use crate::span::OpenClientSpan;

/// What is written about the trace of a call that is sent.
pub(crate) struct SentTrace<'c> {
    traceparent: Option<String>,
    tracestate: Option<&'c TraceState>,
}

impl SentTrace<'_> {
    pub(crate) fn outgoing(&self) -> OutgoingTrace<'_> {
        OutgoingTrace {
            traceparent: self.traceparent.as_deref(),
            tracestate: self.tracestate.map(TraceState::as_str),
        }
    }
}

/// What a session writes about the trace of a call that it sends: the span at the server begins.
/// `None` if the call is not traced.
pub(crate) fn sent<'c>(
    call: &'c Call,
    session: &Session,
    own: Option<&str>,
) -> Option<SentTrace<'c>> {
    let span = call.span.get()?;
    let tracestate = span.state.as_ref();
    if span.sampled().is_none() {
        // Its caller's context passes; only baggage does not.
        return Some(SentTrace {
            traceparent: span.passed_on.map(|context| context.to_string()),
            tracestate,
        });
    }
    let parent = span.parent_of_client();
    let context = TraceContext {
        span: span_of(call.id.0, SpanPlace::Client),
        ..parent
    };
    *span.client.lock() = Some(OpenClientSpan {
        context,
        parent: parent.span,
        began: span.began.of_child(),
        own: own.map(Into::into),
        transport: if session.over_http() { "tcp" } else { "pipe" },
    });
    Some(SentTrace {
        traceparent: Some(context.to_string()),
        tracestate,
    })
}

/// A session did not take a call.
pub(crate) fn not_sent(call: &Call) {
    if let Some(span) = call.span.get() {
        *span.client.lock() = None;
    }
}

/// Ends the span at the server of a call.
pub(crate) fn ended_at_server(
    dispatch: &Dispatch,
    call: &Call,
    delivered: &Delivered,
    end: &Result<Answer, Refusal>,
) {
    let Some(span) = call.span.get() else { return };
    let Some(open) = span.client.lock().take() else {
        return;
    };
    let own = open.own.as_deref();
    let mut record = SpanRecord {
        context: open.context,
        parent: Some(open.parent),
        link: None,
        name: name_of(call, own),
        kind: SpanKind::Client,
        start_us: open.began.unix_us,
        duration_us: open.began.elapsed_us(),
        attributes: SpanAttributes::with_capacity(ATTRIBUTES_BYTES),
        is_error: false,
    };
    add_target(&mut record, call, own);
    record.text("network.transport", open.transport);
    record.text("portmoot.server", delivered.server.as_str());
    record.text("portmoot.operation", call.id.to_string());
    let error = match end {
        Ok(answer) => answer_error_type(answer),
        Err(refusal) => Some(refusal.code.as_str()),
    };
    if let Some(error) = error {
        record.is_error = true;
        if error.starts_with('-') {
            record.text("rpc.response.status_code", error);
        }
        record.text("error.type", error);
    }
    dispatch.context.traces.spans.push(record);
}
