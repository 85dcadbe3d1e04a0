//! String in a frame: its place, and its text if it was written with escapes.

use crate::members::Member;
use crate::span::Span;
use crate::text::text;

/// The place of a string in a frame that is kept elsewhere, with its text. Without escapes it costs
/// no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringSpan {
    span: Span,
    unescaped: Option<Box<str>>,
}

impl StringSpan {
    /// The string at `whole`, quotes included; `None` if the value there is no string, or holds
    /// half a surrogate pair. Its syntax is not checked: the frame must have been read before.
    #[inline]
    #[must_use]
    pub fn read(frame: &[u8], whole: Span) -> Option<Self> {
        let raw = whole.of(frame);
        Self::found(raw, whole, || raw.contains(&b'\\'))
    }

    /// The string that is the value of a member; `None` as in [`StringSpan::read`].
    #[inline]
    #[must_use]
    pub fn of(member: &Member<'_>) -> Option<Self> {
        Self::found(member.raw, member.span, || member.escaped)
    }

    #[inline]
    fn found(raw: &[u8], whole: Span, is_escaped: impl FnOnce() -> bool) -> Option<Self> {
        if raw.first() != Some(&b'"') {
            return None;
        }
        let span = Span {
            start: whole.start + 1,
            end: whole.end.saturating_sub(1),
        };
        let unescaped = if is_escaped() {
            Some(text(raw)?.into())
        } else {
            None
        };
        Some(Self { span, unescaped })
    }

    /// A string that was just written at `whole`, quotes included.
    pub(crate) fn written(whole: Span, text: &str) -> Self {
        let span = Span {
            start: whole.start + 1,
            end: whole.end.saturating_sub(1),
        };
        // Every escape is longer than what it stands for.
        let unescaped = (span.len() != text.len()).then(|| text.into());
        Self { span, unescaped }
    }

    /// The length of the text in bytes, unescaped.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.unescaped
            .as_ref()
            .map_or(self.span.len(), |text| text.len())
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of the string in its frame, without quotes.
    #[inline]
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// The text, unescaped. `frame` must be the frame that it was read from.
    #[inline]
    #[must_use]
    pub fn text<'a>(&'a self, frame: &'a [u8]) -> &'a str {
        match &self.unescaped {
            Some(text) => text,
            None => std::str::from_utf8(self.span.of(frame)).unwrap_or(""),
        }
    }
}
