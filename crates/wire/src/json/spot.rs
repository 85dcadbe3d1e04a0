//! A string in a frame: where it lies, and its text if it was written with escapes.
//!
//! It must not know what the string means.

use super::splice::Span;
use super::text::text;

/// A string of a frame that is kept elsewhere. Without escapes it costs no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    span: Span,
    unescaped: Option<Box<str>>,
}

impl Spot {
    /// The string whose value lies at `whole`, quotes included; `None` if it is no string.
    pub(crate) fn read(frame: &[u8], whole: Span) -> Option<Self> {
        let text = text(whole.of(frame))?;
        let span = Span { start: whole.start + 1, end: whole.end.saturating_sub(1) };
        let unescaped = (text.len() != span.len()).then(|| text.into());
        Some(Self { span, unescaped })
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
