//! Edits of a frame as bytes: spans replaced, inserted and removed, all other bytes kept.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::escape::put_text;
use crate::span::Span;

/// Edits of one frame, collected first and applied together with one allocation for the output.
///
/// Places are those of the unchanged frame. Edits at the same empty place appear in the order in
/// which they were given. An edit inside a place that another edit replaces is dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Splice {
    // Few and short edits, as most frames get, need no allocation.
    edits: SmallVec<[Edit; 4]>,
    /// The new bytes of all edits.
    text: SmallVec<[u8; 64]>,
}

/// One edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edit {
    /// Place in the frame.
    place: Span,
    /// The new bytes, in the text of the splice.
    with: Span,
}

impl Splice {
    /// A splice without edits yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the bytes at `span` by `with`.
    pub fn replace(&mut self, span: Span, with: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(with);
        self.edit(span, start);
    }

    /// Replaces the bytes at `span` by `text` as a JSON string.
    pub fn replace_by_text(&mut self, span: Span, text: &str) {
        let start = self.text.len();
        put_text(&mut self.text, text);
        self.edit(span, start);
    }

    /// Enters an edit whose new bytes begin at `start` of the text.
    fn edit(&mut self, span: Span, start: usize) {
        // Always in order; insertions at one place keep theirs.
        let at = self
            .edits
            .partition_point(|other| order(&other.place) <= order(&span));
        let with = Span {
            start,
            end: self.text.len(),
        };
        self.edits.insert(at, Edit { place: span, with });
    }

    /// Inserts `what` before the byte with the index `at`.
    pub fn insert(&mut self, at: usize, what: &[u8]) {
        self.replace(Span { start: at, end: at }, what);
    }

    /// Removes the bytes at `span`.
    pub(crate) fn remove(&mut self, span: Span) {
        self.replace(span, b"");
    }

    /// Whether there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The frame with all edits made. Without edits it is the same frame, not a copy.
    #[must_use]
    pub fn apply(&self, frame: &Bytes) -> Bytes {
        if self.edits.is_empty() {
            return frame.clone();
        }
        Bytes::from(self.apply_to(frame))
    }

    /// As [`Splice::apply`], as bytes of their own.
    #[must_use]
    pub fn apply_to(&self, frame: &[u8]) -> Vec<u8> {
        // Exact unless an edit is dropped, so that the output is not moved.
        let gone: usize = self.edits.iter().map(|edit| edit.place.len()).sum();
        let mut out = Vec::with_capacity((frame.len() + self.text.len()).saturating_sub(gone));
        let mut from = 0;
        for Edit { place, with } in &self.edits {
            // Inside a place that an earlier edit has replaced.
            if place.start < from {
                continue;
            }
            let unchanged = Span {
                start: from,
                end: place.start,
            };
            out.extend_from_slice(unchanged.of(frame));
            out.extend_from_slice(with.of(&self.text));
            from = place.end.max(place.start);
        }
        out.extend_from_slice(frame.get(from..).unwrap_or_default());
        out
    }
}

/// Order of edits by their places: an insertion comes before what replaces the bytes after it.
fn order(place: &Span) -> (usize, bool) {
    (place.start, !place.is_empty())
}
