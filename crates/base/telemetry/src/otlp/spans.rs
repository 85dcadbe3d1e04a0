//! Spans as the message of OTLP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span::Link, span::SpanKind as KindMessage,
    status::StatusCode,
};
use prost::Message;

use super::{resource_message, scope};
use crate::context::TraceContext;
use crate::resource::TelemetryResource;
use crate::span::{AttributeValue, SpanAttribute, SpanKind, SpanRecord};

/// The flag that a trace is recorded, among the flags of a span.
const SAMPLED: u32 = 1;

/// The message that has these spans: an encoded `ExportTraceServiceRequest`.
#[must_use]
pub fn spans_message(spans: Vec<SpanRecord>, resource: &TelemetryResource) -> Vec<u8> {
    let of_scope = ScopeSpans {
        scope: Some(scope()),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let of_resource = ResourceSpans {
        resource: Some(resource_message(resource)),
        scope_spans: vec![of_scope],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![of_resource],
    };
    request.encode_to_vec()
}

fn span(record: SpanRecord) -> Span {
    let start_ns = record.start_us.saturating_mul(1_000);
    let duration_ns = record.duration_us.saturating_mul(1_000);
    let kind = match record.kind {
        SpanKind::Server => KindMessage::Server,
        SpanKind::Client => KindMessage::Client,
        SpanKind::Internal => KindMessage::Internal,
    };
    let status = record.is_error.then(|| Status {
        code: StatusCode::Error as i32,
        ..Status::default()
    });
    let parent = record.parent.map(|parent| parent.bytes().to_vec());
    Span {
        trace_id: record.context.trace.bytes().to_vec(),
        span_id: record.context.span.bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        flags: SAMPLED,
        name: record.name,
        kind: kind as i32,
        start_time_unix_nano: start_ns,
        end_time_unix_nano: start_ns.saturating_add(duration_ns),
        attributes: record.attributes.into_iter().map(attribute).collect(),
        links: record.link.map(link).into_iter().collect(),
        status,
        ..Span::default()
    }
}

fn link(to: TraceContext) -> Link {
    Link {
        trace_id: to.trace.bytes().to_vec(),
        span_id: to.span.bytes().to_vec(),
        ..Link::default()
    }
}

fn attribute(attribute: SpanAttribute) -> KeyValue {
    let value = match attribute.value {
        AttributeValue::Text(text) => Value::StringValue(text),
        AttributeValue::Flag(flag) => Value::BoolValue(flag),
    };
    KeyValue {
        key: attribute.name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_with_its_parent_link_and_status() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = TraceContext::parse(parent.as_bytes()).unwrap();
        let mut record = SpanRecord {
            context: TraceContext {
                span: crate::context::SpanId::new(7),
                ..parent
            },
            parent: Some(parent.span),
            link: Some(parent),
            name: "tools/call echo".to_owned(),
            kind: SpanKind::Client,
            start_us: 5_000,
            duration_us: 3,
            attributes: Vec::new(),
            is_error: true,
        };
        record.text("mcp.method.name", "tools/call");
        let message = spans_message(vec![record], &TelemetryResource::default());
        let request = ExportTraceServiceRequest::decode(&*message).unwrap();
        let span = &request.resource_spans[0].scope_spans[0].spans[0];
        assert_eq!(span.trace_id, parent.trace.bytes());
        assert_eq!(span.span_id, [0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(span.parent_span_id, parent.span.bytes());
        assert_eq!(
            (span.start_time_unix_nano, span.end_time_unix_nano),
            (5_000_000, 5_003_000)
        );
        assert_eq!(span.kind, KindMessage::Client as i32);
        assert_eq!(span.links[0].span_id, parent.span.bytes());
        assert_eq!(span.attributes[0].key, "mcp.method.name");
        assert_eq!(span.status.as_ref().unwrap().code, StatusCode::Error as i32);
    }
}
