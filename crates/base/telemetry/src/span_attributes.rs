//! Attributes of a span, in the form in which they are sent.

use fields::{append, begin};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// The number of the field in the message `Span` of OTLP (`trace.proto`).
const ATTRIBUTES: u32 = 9;
/// Those of the message `KeyValue` (`common.proto`).
const KEY: u32 = 1;
const VALUE: u32 = 2;
/// Those of the message `AnyValue` (`common.proto`).
const STRING_VALUE: u32 = 1;
const BOOL_VALUE: u32 = 2;
/// The bytes of the key of a field with a number below 16.
const FIELD_KEY_BYTES: usize = 1;

/// Attributes, each a field of the message `Span` of OTLP. A call has some twenty of them, so they are
/// written one behind the other when they are known, and none has memory of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanAttributes(Vec<u8>);

impl SpanAttributes {
    /// None yet, with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds a text. The name is by the conventions, or of the gateway's own.
    pub fn text(&mut self, name: &str, value: &str) {
        let value_bytes = field_bytes(value.len());
        self.begin(name, value_bytes);
        append(&mut self.0, STRING_VALUE, value.as_bytes());
    }

    /// Adds whether something is so.
    pub fn flag(&mut self, name: &str, value: bool) {
        self.begin(name, FIELD_KEY_BYTES + 1);
        encode_key(BOOL_VALUE, WireType::Varint, &mut self.0);
        encode_varint(u64::from(value), &mut self.0);
    }

    /// The fields.
    #[must_use]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Begins an attribute, up to the content of its value, which has so many bytes.
    fn begin(&mut self, name: &str, value_bytes: usize) {
        let attribute_bytes = field_bytes(name.len()) + field_bytes(value_bytes);
        begin(&mut self.0, ATTRIBUTES, attribute_bytes);
        append(&mut self.0, KEY, name.as_bytes());
        begin(&mut self.0, VALUE, value_bytes);
    }
}

/// The bytes of a field with a content of so many, and a number below 16.
fn field_bytes(content_bytes: usize) -> usize {
    FIELD_KEY_BYTES + encoded_len_varint(content_bytes as u64) + content_bytes
}
