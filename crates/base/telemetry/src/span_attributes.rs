//! Attributes of a span.

use smallvec::SmallVec;

/// The usual number of a span's attributes, for which none needs memory of its own.
const ATTRIBUTES_USUAL: usize = 10;

/// Attributes of a span, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanAttributes<'r>(SmallVec<[SpanAttribute<'r>; ATTRIBUTES_USUAL]>);

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanAttribute<'r> {
    /// Its name, by the conventions or of the gateway's own.
    pub(crate) name: &'static str,
    /// Its value.
    pub(crate) value: SpanValue<'r>,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanValue<'r> {
    /// A text.
    Text(&'r str),
    /// Whether something is so.
    Flag(bool),
}

impl<'r> SpanAttributes<'r> {
    /// Adds a text.
    #[inline]
    pub fn text(&mut self, name: &'static str, value: &'r str) {
        let value = SpanValue::Text(value);
        self.0.push(SpanAttribute { name, value });
    }

    /// Adds whether something is so.
    pub fn flag(&mut self, name: &'static str, value: bool) {
        let value = SpanValue::Flag(value);
        self.0.push(SpanAttribute { name, value });
    }

    /// All of them.
    pub(crate) fn as_slice(&self) -> &[SpanAttribute<'r>] {
        &self.0
    }
}
