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
    edits: SmallVec<[(Span, Span); 4]>,
    text: SmallVec<[u8; 64]>,
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
        // Always in order. Insertions at one place keep theirs, and come before what replaces the
        // bytes after it.
        let order = |span: &Span| (span.start, !span.is_empty());
        let at = self
            .edits
            .partition_point(|(other, _)| order(other) <= order(&span));
        self.edits.insert(
            at,
            (
                span,
                Span {
                    start,
                    end: self.text.len(),
                },
            ),
        );
    }

    /// Inserts `what` before byte `at`.
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
        let gone: usize = self.edits.iter().map(|(span, _)| span.len()).sum();
        let mut out = Vec::with_capacity((frame.len() + self.text.len()).saturating_sub(gone));
        let mut from = 0;
        for (span, with) in &self.edits {
            if span.start < from {
                continue;
            }
            out.extend_from_slice(
                Span {
                    start: from,
                    end: span.start,
                }
                .of(frame),
            );
            out.extend_from_slice(with.of(&self.text));
            from = span.end.max(span.start);
        }
        out.extend_from_slice(frame.get(from..).unwrap_or_default());
        out
    }
}
