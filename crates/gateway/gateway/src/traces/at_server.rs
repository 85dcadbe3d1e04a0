//! The span of a call towards its server.

use std::sync::Arc;

use model::{Answer, Refusal};
use telemetry::trace::{
    OperationDigits, SpanAttributes, SpanKind, SpanPlace, SpanRecord, TraceContext, TraceState,
    Traceparent, span_of,
};
use upstream::{Session, answer_error_type};
use wire::mcp::relay::OutgoingTrace;

use super::of_call::{add_error, add_target, name_of};
use crate::call::{Call, Delivered};
use crate::dispatch::Dispatch;
use crate::span::OpenClientSpan;

/// What is written about the trace of a call that is sent.
pub(crate) struct SentTrace<'c> {
    traceparent: Option<Traceparent>,
    tracestate: Option<&'c TraceState>,
}

impl SentTrace<'_> {
    pub(crate) fn outgoing(&self) -> OutgoingTrace<'_> {
        OutgoingTrace {
            traceparent: self.traceparent.as_ref().map(Traceparent::as_str),
            tracestate: self.tracestate.map(TraceState::as_str),
        }
    }
}

/// What a session writes about the trace of a call that it sends: the span at the server begins.
/// `None` if the call is not traced.
pub(crate) fn sent<'c>(
    call: &'c Call,
    session: &Session,
    own: Option<&Arc<str>>,
) -> Option<SentTrace<'c>> {
    let span = call.span.get()?;
    let tracestate = span.state.as_ref();
    if span.sampled().is_none() {
        // Its caller's context passes; only baggage does not.
        return Some(SentTrace {
            traceparent: span.passed_on.map(TraceContext::traceparent),
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
        own: own.cloned(),
        transport: if session.over_http() { "tcp" } else { "pipe" },
        at_server: None,
    });
    Some(SentTrace {
        traceparent: Some(context.traceparent()),
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
    let operation = OperationDigits::of(call.id.0);
    let error = match (open.at_server, end) {
        (Some(at_server), Ok(_)) => at_server.error,
        (None, Ok(answer)) => answer_error_type(answer),
        (_, Err(refusal)) => Some(refusal.code.as_str()),
    };
    let mut attributes = SpanAttributes::default();
    add_target(&mut attributes, call, own);
    attributes.text("network.transport", open.transport);
    attributes.text("portmoot.server", delivered.server.as_str());
    attributes.text("portmoot.operation", operation.as_str());
    if let Some(error) = error {
        add_error(&mut attributes, error);
    }
    dispatch.context.traces.spans.push(&SpanRecord {
        context: open.context,
        parent: Some(open.parent),
        link: None,
        name: name_of(call, own),
        kind: SpanKind::Client,
        start_us: open.began.unix_us,
        duration_us: open.began.elapsed_us(),
        attributes: attributes.as_slice(),
        is_error: error.is_some(),
    });
}
