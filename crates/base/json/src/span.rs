//! Places in a frame: of any text, and of one member in few bytes.

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
        Self {
            start: 0,
            end: frame.len(),
        }
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

/// The longest frame whose places fit into a [`MemberSpan`], in bytes.
pub(crate) const FRAME_BYTES_MAX: usize = u32::MAX as usize;

/// The place of one member in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberSpan {
    key: u32,
    key_end: u32,
    value: u32,
    end: u32,
    /// The number of objects around the member's own.
    pub(crate) depth: u8,
    /// Whether the value is a string with escapes in it.
    pub(crate) escaped: bool,
    /// Whether the key is.
    pub(crate) key_escaped: bool,
}

impl MemberSpan {
    /// `key` is the key without its quotes; `depth` counts the objects around the member's own, up
    /// to the outermost one that is read; `escaped` is whether the value is a string with escapes.
    /// No place may lie beyond [`FRAME_BYTES_MAX`].
    #[inline]
    pub(crate) fn new(
        depth: u8,
        (key, key_escaped): (Span, bool),
        (value, escaped): (Span, bool),
    ) -> Self {
        // No frame is long enough for bits to be lost.
        let short = |at: usize| at as u32;
        let (key, key_end) = (short(key.start), short(key.end));
        Self {
            key,
            key_end,
            value: short(value.start),
            end: short(value.end),
            depth,
            escaped,
            key_escaped,
        }
    }

    /// The key as it was spelled, without its quotes.
    #[inline]
    pub(crate) fn key(&self) -> Span {
        span(self.key, self.key_end)
    }

    /// Whether the key is spelled like this, without escapes.
    #[inline]
    pub(crate) fn is_named(&self, key: &str, frame: &[u8]) -> bool {
        self.key_len() as usize == key.len() && self.key().of(frame) == key.as_bytes()
    }

    /// Whether both are members of the same object by the same key, spelled alike.
    #[inline]
    pub(crate) fn has_key_of(&self, other: &Self, frame: &[u8]) -> bool {
        self.key_len() == other.key_len()
            && self.depth == other.depth
            && self.key().of(frame) == other.key().of(frame)
    }

    fn key_len(&self) -> u32 {
        self.key_end.wrapping_sub(self.key)
    }

    /// The value.
    #[inline]
    pub(crate) fn value(&self) -> Span {
        span(self.value, self.end)
    }

    /// Key and value together.
    #[inline]
    pub(crate) fn whole(&self) -> Span {
        // One quote lies before the key.
        span(self.key.saturating_sub(1), self.end)
    }
}

fn span(start: u32, end: u32) -> Span {
    Span {
        start: start as usize,
        end: end as usize,
    }
}
