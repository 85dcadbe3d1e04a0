//! Where the members of objects lie, small enough to be kept beside their frame.
//!
//! It must not know what any member means.

use smallvec::SmallVec;

use super::splice::Span;

/// The longest frame whose places fit into a [`Note`], in bytes.
pub(super) const NOTED_BYTES_MAX: usize = u32::MAX as usize;

/// What was noted of one frame, in the order of the text. Of most messages it needs no allocation.
pub(crate) type Notes = SmallVec<[Note; 8]>;

/// Where one member lies in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    key: u32,
    key_end: u32,
    value: u32,
    end: u32,
    depth: u8,
    escaped: bool,
}

impl Note {
    /// `key` is the key without its quotes; `depth` how many objects lie around the one that has the member, of those that
    /// are noted; `escaped` whether the value is a string with escapes. No place is beyond [`NOTED_BYTES_MAX`].
    #[inline]
    pub(super) fn new(depth: u8, key: Span, value: Span, escaped: bool) -> Self {
        // Nothing is cut off: no frame is that long.
        let short = |at: usize| at as u32;
        let (key, key_end) = (short(key.start), short(key.end));
        Self { key, key_end, value: short(value.start), end: short(value.end), depth, escaped }
    }

    /// How many of the noted objects lie around the member's own.
    pub(super) fn depth(&self) -> u8 {
        self.depth
    }

    /// The key as it was spelled, without its quotes.
    pub(super) fn key(&self) -> Span {
        span(self.key, self.key_end)
    }

    /// Whether this is the key, without escapes.
    #[inline]
    pub(super) fn is_named(&self, key: &str, frame: &[u8]) -> bool {
        self.key_len() as usize == key.len() && self.key().of(frame) == key.as_bytes()
    }

    /// Whether it is a member of the same object by the same key, without escapes.
    #[inline]
    pub(super) fn is_like(&self, other: &Self, frame: &[u8]) -> bool {
        self.key_len() == other.key_len()
            && self.depth == other.depth
            && self.key().of(frame) == other.key().of(frame)
    }

    fn key_len(&self) -> u32 {
        self.key_end.wrapping_sub(self.key)
    }

    /// The value.
    pub(super) fn value(&self) -> Span {
        span(self.value, self.end)
    }

    /// Key and value together.
    pub(super) fn whole(&self) -> Span {
        // One quote lies before the key.
        span(self.key.saturating_sub(1), self.end)
    }

    /// Whether the value is a string with escapes in it.
    pub(super) fn is_escaped(&self) -> bool {
        self.escaped
    }
}

fn span(start: u32, end: u32) -> Span {
    Span { start: start as usize, end: end as usize }
}
