//! Attributes of a span.

/// The attributes for which a span has room.
const ATTRIBUTES_ROOM: usize = 16;

/// Attributes of a span, in the order in which they were added. They have no memory of their own, as a call
/// has some twenty of them: there is room for more than any span has.
#[derive(Debug, Clone)]
pub struct SpanAttributes<'r> {
    all: [SpanAttribute<'r>; ATTRIBUTES_ROOM],
    number: usize,
}

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanAttribute<'r> {
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

impl Default for SpanAttributes<'_> {
    fn default() -> Self {
        let none = SpanAttribute {
            name: "",
            value: SpanValue::Flag(false),
        };
        Self {
            all: [none; ATTRIBUTES_ROOM],
            number: 0,
        }
    }
}

impl<'r> SpanAttributes<'r> {
    /// Adds a text.
    #[inline]
    pub fn text(&mut self, name: &'static str, value: &'r str) {
        self.add(name, SpanValue::Text(value));
    }

    /// Adds whether something is so.
    pub fn flag(&mut self, name: &'static str, value: bool) {
        self.add(name, SpanValue::Flag(value));
    }

    /// All of them.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[SpanAttribute<'r>] {
        self.all.get(..self.number).unwrap_or_default()
    }

    #[inline]
    fn add(&mut self, name: &'static str, value: SpanValue<'r>) {
        debug_assert!(self.number < ATTRIBUTES_ROOM, "a span with more attributes");
        if let Some(room) = self.all.get_mut(self.number) {
            *room = SpanAttribute { name, value };
            self.number += 1;
        }
    }
}
