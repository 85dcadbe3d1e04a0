//! Span: a place in a frame.

/// A place in a frame: `start` inclusive, `end` exclusive, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The whole of `frame`.
    #[inline]
    #[must_use]
    pub fn all(frame: &[u8]) -> Self {
        Self { start: 0, end: frame.len() }
    }

    /// The bytes at this place; empty if the place does not lie in `frame`.
    #[inline]
    #[must_use]
    pub fn of<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(self.start..self.end).unwrap_or_default()
    }

    /// The length of the segment, in bytes.
    #[inline]
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether nothing lies here.
    #[inline]
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
