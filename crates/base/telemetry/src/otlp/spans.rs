//! Spans as the message of OTLP.
//!
//! They are written field by field: the types that the OpenTelemetry project generates take six times
//! as long, as they have memory of their own for each text, and measure it once at each level. The
//! tests read what is written with these types.

use fields::append;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as KindMessage;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::encoding::{fixed32, fixed64, int32, message};

use super::{resource_message, scope};
use crate::context::TraceContext;
use crate::resource::TelemetryResource;
use crate::span::{SpanKind, SpanRecord};

/// The number of the one field of `ExportTraceServiceRequest` (`trace_service.proto`).
const RESOURCE_SPANS: u32 = 1;
/// Those of the message `ResourceSpans` (`trace.proto`, as all that follow).
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
/// Those of the message `ScopeSpans`.
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
/// Those of the message `Span`, but for its attributes.
const TRACE_ID: u32 = 1;
const SPAN_ID: u32 = 2;
const PARENT_SPAN_ID: u32 = 4;
const NAME: u32 = 5;
const KIND: u32 = 6;
const START: u32 = 7;
const END: u32 = 8;
const LINKS: u32 = 13;
const STATUS: u32 = 15;
const FLAGS: u32 = 16;
/// That of the message `Status`.
const STATUS_CODE: u32 = 3;

/// The flag that a trace is recorded, among the flags of a span.
const SAMPLED: u32 = 1;
/// The usual bytes of a span.
const SPAN_BYTES: usize = 512;

/// The message that has these spans: an encoded `ExportTraceServiceRequest`.
#[must_use]
pub fn spans_message(spans: &[SpanRecord], resource: &TelemetryResource) -> Vec<u8> {
    let mut of_scope = Vec::with_capacity((spans.len() + 1) * SPAN_BYTES);
    message::encode(SCOPE, &scope(), &mut of_scope);
    let mut span = Vec::with_capacity(SPAN_BYTES);
    for record in spans {
        span.clear();
        put_span(record, &mut span);
        append(&mut of_scope, SPANS, &span);
    }
    let mut of_resource = Vec::with_capacity(of_scope.len() + SPAN_BYTES);
    message::encode(RESOURCE, &resource_message(resource), &mut of_resource);
    append(&mut of_resource, SCOPE_SPANS, &of_scope);
    let mut request = Vec::with_capacity(of_resource.len() + SPAN_BYTES);
    append(&mut request, RESOURCE_SPANS, &of_resource);
    request
}

fn put_span(record: &SpanRecord, into: &mut Vec<u8>) {
    let start_ns = record.start_us.saturating_mul(1_000);
    let duration_ns = record.duration_us.saturating_mul(1_000);
    let kind = match record.kind {
        SpanKind::Server => KindMessage::Server,
        SpanKind::Client => KindMessage::Client,
        SpanKind::Internal => KindMessage::Internal,
    };
    put_ids(record.context, into);
    if let Some(parent) = record.parent {
        append(into, PARENT_SPAN_ID, &parent.bytes());
    }
    append(into, NAME, record.name.as_bytes());
    int32::encode(KIND, &(kind as i32), into);
    fixed64::encode(START, &start_ns, into);
    fixed64::encode(END, &start_ns.saturating_add(duration_ns), into);
    into.extend_from_slice(record.attributes.bytes());
    if let Some(link) = record.link {
        let mut linked = Vec::new();
        put_ids(link, &mut linked);
        append(into, LINKS, &linked);
    }
    if record.is_error {
        let mut status = Vec::new();
        int32::encode(STATUS_CODE, &(StatusCode::Error as i32), &mut status);
        append(into, STATUS, &status);
    }
    fixed32::encode(FLAGS, &SAMPLED, into);
}

/// Writes the ids of a span, or of one that it is linked to: their fields have the same numbers.
fn put_ids(of: TraceContext, into: &mut Vec<u8>) {
    append(into, TRACE_ID, &of.trace.bytes());
    append(into, SPAN_ID, &of.span.bytes());
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
    use opentelemetry_proto::tonic::trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status, span::Link,
    };
    use prost::Message as _;

    use super::*;
    use crate::context::SpanId;
    use crate::otlp::attribute;
    use crate::span_attributes::SpanAttributes;

    fn parent() -> TraceContext {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        TraceContext::parse(parent.as_bytes()).unwrap()
    }

    /// A span with all that one can have, and its texts of so many bytes.
    fn whole(text_bytes: usize) -> (SpanRecord, Span) {
        let text = "t".repeat(text_bytes);
        let mut attributes = SpanAttributes::default();
        attributes.text("mcp.method.name", &text);
        attributes.flag("portmoot.edited", true);
        attributes.flag("portmoot.other", false);
        let record = SpanRecord {
            context: TraceContext {
                span: SpanId::new(7),
                ..parent()
            },
            parent: Some(parent().span),
            link: Some(parent()),
            name: text.clone(),
            kind: SpanKind::Client,
            start_us: 5_000,
            duration_us: 3,
            attributes,
            is_error: true,
        };
        let flag = |name: &str, flag| KeyValue {
            key: name.to_owned(),
            value: Some(AnyValue {
                value: Some(Value::BoolValue(flag)),
            }),
            ..KeyValue::default()
        };
        let expected = Span {
            trace_id: parent().trace.bytes().to_vec(),
            span_id: vec![0, 0, 0, 0, 0, 0, 0, 7],
            parent_span_id: parent().span.bytes().to_vec(),
            flags: SAMPLED,
            name: text.clone(),
            kind: KindMessage::Client as i32,
            start_time_unix_nano: 5_000_000,
            end_time_unix_nano: 5_003_000,
            attributes: vec![
                attribute("mcp.method.name", &text),
                flag("portmoot.edited", true),
                flag("portmoot.other", false),
            ],
            links: vec![Link {
                trace_id: parent().trace.bytes().to_vec(),
                span_id: parent().span.bytes().to_vec(),
                ..Link::default()
            }],
            status: Some(Status {
                code: StatusCode::Error as i32,
                ..Status::default()
            }),
            ..Span::default()
        };
        (record, expected)
    }

    fn read(spans: &[SpanRecord]) -> ExportTraceServiceRequest {
        let message = spans_message(spans, &TelemetryResource::default());
        ExportTraceServiceRequest::decode(&*message).unwrap()
    }

    #[test]
    fn spans_are_written_as_the_generated_types_read_them() {
        // Lengths of one, two and three bytes at each level.
        for text_bytes in [0, 1, 90, 120, 127, 128, 256, 16_000, 17_000] {
            let (record, expected) = whole(text_bytes);
            let request = read(&[record.clone(), record]);
            let of_scope = ScopeSpans {
                scope: Some(scope()),
                spans: vec![expected.clone(), expected],
                ..ScopeSpans::default()
            };
            let of_resource = ResourceSpans {
                resource: Some(resource_message(&TelemetryResource::default())),
                scope_spans: vec![of_scope],
                ..ResourceSpans::default()
            };
            assert_eq!(request.resource_spans, [of_resource], "{text_bytes}");
        }
    }

    #[test]
    fn a_span_without_more_has_no_more() {
        let (whole, _) = whole(4);
        let plain = SpanRecord {
            parent: None,
            link: None,
            attributes: SpanAttributes::default(),
            is_error: false,
            ..whole
        };
        let request = read(&[plain]);
        let span = &request.resource_spans[0].scope_spans[0].spans[0];
        assert!(span.parent_span_id.is_empty() && span.links.is_empty());
        assert!(span.attributes.is_empty() && span.status.is_none());
    }
}
