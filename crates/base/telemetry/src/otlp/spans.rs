//! Spans as the message of OTLP.
//!
//! They are written field by field: the types that the OpenTelemetry project generates take many times
//! as long, as they have memory of their own for each text, and measure it once at each level. The
//! tests read what is written with these types.

use bytes::Bytes;
use fields::{append, begin, nest};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as KindMessage;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::encoding::{WireType, encoded_len_varint, fixed32, fixed64, int32, message, uint64};

use super::{resource_message, scope};
use crate::context::TraceContext;
use crate::resource::TelemetryResource;
use crate::span::{SpanKind, SpanName, SpanRecord};
use crate::span_attributes::{SpanAttribute, SpanValue};

/// The number of the one field of `ExportTraceServiceRequest` (`trace_service.proto`).
const RESOURCE_SPANS: u32 = 1;
/// Those of the message `ResourceSpans` (`trace.proto`, as all that follow).
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
/// Those of the message `ScopeSpans`.
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
/// Those of the message `Span`.
const TRACE_ID: u32 = 1;
const SPAN_ID: u32 = 2;
const PARENT_SPAN_ID: u32 = 4;
const NAME: u32 = 5;
const KIND: u32 = 6;
const START: u32 = 7;
const END: u32 = 8;
const ATTRIBUTES: u32 = 9;
const LINKS: u32 = 13;
const STATUS: u32 = 15;
const FLAGS: u32 = 16;
/// Those of the message `KeyValue` (`common.proto`).
const KEY: u32 = 1;
const VALUE: u32 = 2;
/// Those of the message `AnyValue` (`common.proto`).
const STRING_VALUE: u32 = 1;
const BOOL_VALUE: u32 = 2;
/// The keys of four of these fields, as they are written (protobuf encoding, "Message Structure").
const ATTRIBUTES_KEY: u8 = key_byte(ATTRIBUTES);
const KEY_KEY: u8 = key_byte(KEY);
const VALUE_KEY: u8 = key_byte(VALUE);
const STRING_VALUE_KEY: u8 = key_byte(STRING_VALUE);
/// That of the message `Status`.
const STATUS_CODE: u32 = 3;

/// The flag that a trace is recorded, among the flags of a span.
const SAMPLED: u32 = 1;
/// The bytes of the key of a field with a number below 16.
const FIELD_KEY_BYTES: usize = 1;
/// The bytes of the key and the length of a field with a number below 16, and a content of less than 128
/// bytes.
const SHORT_HEAD_BYTES: usize = FIELD_KEY_BYTES + 1;
/// The most bytes of the keys and lengths of two fields around each other.
const HEADS_BYTES_MAX: usize = 2 * (FIELD_KEY_BYTES + 10);
/// The bytes of the fields of two ids.
const IDS_BYTES: usize = 2 * SHORT_HEAD_BYTES + 16 + 8;

/// Spans that are sent with one message. They are written when they come, and wait as they are sent: what
/// has to stand before them finds room there, and all else follows them.
#[derive(Debug)]
pub struct SpanBatch {
    /// Room for the heads of two fields, and fields of the message `ScopeSpans`.
    bytes: Vec<u8>,
    number: usize,
}

impl SpanBatch {
    /// No span yet, with memory for so many bytes of them.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut room = Vec::with_capacity(HEADS_BYTES_MAX + bytes);
        room.resize(HEADS_BYTES_MAX, 0);
        Self {
            bytes: room,
            number: 0,
        }
    }

    /// Adds a span.
    pub fn add(&mut self, span: &SpanRecord<'_>) {
        nest(&mut self.bytes, SPANS, |into| put_span(span, into));
        self.number += 1;
    }

    /// The number of spans.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The bytes that its spans take.
    #[must_use]
    pub fn span_bytes(&self) -> usize {
        self.bytes.len() - HEADS_BYTES_MAX
    }

    /// The message that has them: an encoded `ExportTraceServiceRequest`.
    #[must_use]
    pub fn into_message(self, resource: &TelemetryResource) -> Bytes {
        let mut bytes = self.bytes;
        // The order of fields says nothing: the shorter ones follow, so that no span is moved.
        message::encode(SCOPE, &scope(), &mut bytes);
        let scope_bytes = bytes.len() - HEADS_BYTES_MAX;
        message::encode(RESOURCE, &resource_message(resource), &mut bytes);
        let of_resource = bytes.len() - HEADS_BYTES_MAX - scope_bytes;
        let mut heads = Vec::with_capacity(HEADS_BYTES_MAX);
        begin(
            &mut heads,
            RESOURCE_SPANS,
            field_bytes(scope_bytes) + of_resource,
        );
        begin(&mut heads, SCOPE_SPANS, scope_bytes);
        let start = HEADS_BYTES_MAX - heads.len();
        if let Some(room) = bytes.get_mut(start..HEADS_BYTES_MAX) {
            room.copy_from_slice(&heads);
        }
        Bytes::from(bytes).slice(start..)
    }
}

/// Writes the fields of a span.
fn put_span(span: &SpanRecord<'_>, into: &mut Vec<u8>) {
    let start_ns = span.start_us.saturating_mul(1_000);
    let duration_ns = span.duration_us.saturating_mul(1_000);
    let kind = match span.kind {
        SpanKind::Server => KindMessage::Server,
        SpanKind::Client => KindMessage::Client,
        SpanKind::Internal => KindMessage::Internal,
    };
    put_ids(span.context, into);
    if let Some(parent) = span.parent {
        append(into, PARENT_SPAN_ID, &parent.bytes());
    }
    put_name(span.name, into);
    int32::encode(KIND, &(kind as i32), into);
    fixed64::encode(START, &start_ns, into);
    fixed64::encode(END, &start_ns.saturating_add(duration_ns), into);
    for attribute in span.attributes {
        put_attribute(attribute, into);
    }
    if let Some(link) = span.link {
        begin(into, LINKS, IDS_BYTES);
        put_ids(link, into);
    }
    if span.is_error {
        begin(into, STATUS, FIELD_KEY_BYTES + 1);
        int32::encode(STATUS_CODE, &(StatusCode::Error as i32), into);
    }
    fixed32::encode(FLAGS, &SAMPLED, into);
}

/// Writes the ids of a span, or of one that it is linked to: their fields have the same numbers.
fn put_ids(of: TraceContext, into: &mut Vec<u8>) {
    append(into, TRACE_ID, &of.trace.bytes());
    append(into, SPAN_ID, &of.span.bytes());
}

fn put_name(name: SpanName<'_>, into: &mut Vec<u8>) {
    let Some(target) = name.target else {
        append(into, NAME, name.action.as_bytes());
        return;
    };
    begin(into, NAME, name.action.len() + 1 + target.len());
    into.extend_from_slice(name.action.as_bytes());
    into.push(b' ');
    into.extend_from_slice(target.as_bytes());
}

fn put_attribute(attribute: &SpanAttribute<'_>, into: &mut Vec<u8>) {
    match attribute.value {
        SpanValue::Text(text) => put_text(attribute.name, text, into),
        SpanValue::Flag(flag) => {
            begin_attribute(attribute.name, FIELD_KEY_BYTES + 1, into);
            uint64::encode(BOOL_VALUE, &u64::from(flag), into);
        }
    }
}

fn put_text(name: &str, value: &str, into: &mut Vec<u8>) {
    let texts = name.len() + value.len();
    // Nearly all are so short that one byte says each length.
    if texts < 128 - 3 * SHORT_HEAD_BYTES {
        let [attribute, name_bytes, value_bytes, text] = [
            texts + 3 * SHORT_HEAD_BYTES,
            name.len(),
            value.len() + SHORT_HEAD_BYTES,
            value.len(),
        ]
        .map(low_byte);
        into.extend_from_slice(&[ATTRIBUTES_KEY, attribute, KEY_KEY, name_bytes]);
        into.extend_from_slice(name.as_bytes());
        into.extend_from_slice(&[VALUE_KEY, value_bytes, STRING_VALUE_KEY, text]);
        into.extend_from_slice(value.as_bytes());
        return;
    }
    begin_attribute(name, field_bytes(value.len()), into);
    append(into, STRING_VALUE, value.as_bytes());
}

/// Begins an attribute, up to the content of its value, which has so many bytes.
fn begin_attribute(name: &str, value_bytes: usize, into: &mut Vec<u8>) {
    let attribute_bytes = field_bytes(name.len()) + field_bytes(value_bytes);
    begin(into, ATTRIBUTES, attribute_bytes);
    append(into, KEY, name.as_bytes());
    begin(into, VALUE, value_bytes);
}

/// The key of a field with a length, and a number below 16.
const fn key_byte(number: u32) -> u8 {
    low_byte((number << 3) as usize | WireType::LengthDelimited as usize)
}

const fn low_byte(number: usize) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}

/// The bytes of a field with a content of so many, and a number below 16.
fn field_bytes(content_bytes: usize) -> usize {
    FIELD_KEY_BYTES + encoded_len_varint(content_bytes as u64) + content_bytes
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

    impl SpanBatch {
        /// Its spans, as the generated types read them.
        pub(crate) fn into_spans(self) -> Vec<Span> {
            let message = self.into_message(&TelemetryResource::default());
            let request = ExportTraceServiceRequest::decode(message).unwrap();
            request.resource_spans[0].scope_spans[0].spans.clone()
        }
    }

    fn parent() -> TraceContext {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        TraceContext::parse(parent.as_bytes()).unwrap()
    }

    fn attributes(text: &str) -> SpanAttributes<'_> {
        let mut attributes = SpanAttributes::default();
        attributes.text("mcp.method.name", text);
        attributes.flag("portmoot.edited", true);
        attributes.flag("portmoot.other", false);
        attributes
    }

    /// A span with all that one can have, and its texts of so many bytes.
    fn whole<'w>(text: &'w str, attributes: &'w [SpanAttribute<'w>]) -> (SpanRecord<'w>, Span) {
        let record = SpanRecord {
            context: TraceContext {
                span: SpanId::new(7),
                ..parent()
            },
            parent: Some(parent().span),
            link: Some(parent()),
            name: SpanName {
                action: "proposal",
                target: Some(text),
            },
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
            name: format!("proposal {text}"),
            kind: KindMessage::Client as i32,
            start_time_unix_nano: 5_000_000,
            end_time_unix_nano: 5_003_000,
            attributes: vec![
                attribute("mcp.method.name", text),
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

    fn read(spans: &[&SpanRecord<'_>]) -> ExportTraceServiceRequest {
        let mut batch = SpanBatch::with_capacity(0);
        for span in spans {
            batch.add(span);
        }
        assert_eq!(batch.number(), spans.len());
        let message = batch.into_message(&TelemetryResource::default());
        ExportTraceServiceRequest::decode(message).unwrap()
    }

    #[test]
    fn spans_are_written_as_the_generated_types_read_them() {
        // Lengths of one, two and three bytes at each level.
        for text_bytes in [0, 1, 90, 120, 127, 128, 256, 16_000, 17_000] {
            let text = "t".repeat(text_bytes);
            let attributes = attributes(&text);
            let (record, expected) = whole(&text, attributes.as_slice());
            let request = read(&[&record, &record]);
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
        let (whole, _) = whole("text", &[]);
        let plain = SpanRecord {
            parent: None,
            link: None,
            name: SpanName {
                action: "tools/list",
                target: None,
            },
            is_error: false,
            ..whole
        };
        let request = read(&[&plain]);
        let span = &request.resource_spans[0].scope_spans[0].spans[0];
        assert!(span.parent_span_id.is_empty() && span.links.is_empty());
        assert!(span.attributes.is_empty() && span.status.is_none());
        assert_eq!(span.name, "tools/list");
    }
}
