//! A string in a frame: where it lies, and its text if it was written with escapes.
//!
//! It must not know what the string means.

use super::members::Member;
use super::splice::Span;
use super::text::text;

/// A string of a frame that is kept elsewhere. Without escapes it costs no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    span: Span,
    unescaped: Option<Box<str>>,
}

impl Spot {
    /// The string whose value lies at `whole`, quotes included; `None` if it is no string. The value must have been read
    /// before: its syntax is not checked again.
    pub(crate) fn read(frame: &[u8], whole: Span) -> Option<Self> {
        let raw = whole.of(frame);
        if raw.first() != Some(&b'"') {
            return None;
        }
        let span = Span { start: whole.start + 1, end: whole.end.saturating_sub(1) };
        let unescaped = if raw.contains(&b'\\') { Some(text(raw)?.into()) } else { None };
        Some(Self { span, unescaped })
    }

    /// The string that is the value of a member; `None` if it is no string.
    pub(crate) fn of(member: &Member<'_>) -> Option<Self> {
        if member.raw.first() != Some(&b'"') {
            return None;
        }
        let span = Span { start: member.span.start + 1, end: member.span.end.saturating_sub(1) };
        let unescaped = if member.is_escaped() { Some(text(member.raw)?.into()) } else { None };
        Some(Self { span, unescaped })
    }

    /// How many bytes the text has, unescaped.
    pub(crate) fn len(&self) -> usize {
        self.unescaped.as_ref().map_or(self.span.len(), |text| text.len())
    }

    /// Where it lies, without quotes, as it was spelled.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The text, unescaped.
    pub(crate) fn text<'a>(&'a self, frame: &'a [u8]) -> &'a str {
        match &self.unescaped {
            Some(text) => text,
            None => std::str::from_utf8(self.span.of(frame)).unwrap_or(""),
        }
    }
}
