//! Segments of a root, which paths and URLs share: what lies below, beside and above.

use crate::fit::Fit;

/// The segments of a root, by spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Segments(Box<[Box<str>]>);

impl Segments {
    pub(crate) fn new(segments: &[&str]) -> Self {
        Self(segments.iter().map(|segment| Box::from(*segment)).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|segment| &**segment)
    }

    /// The segments with slashes between them.
    pub(crate) fn joined(&self) -> String {
        self.0.join("/")
    }

    /// The longest segments that both begin with; `None` if a hidden name lies below, which a root
    /// above it does not cover.
    pub(crate) fn common(&self, other: &Self) -> Option<Self> {
        let pairs = self.0.iter().zip(&other.0);
        let shared = pairs.take_while(|(one, other)| one == other).count();
        if has_hidden(&self.0, shared) || has_hidden(&other.0, shared) {
            return None;
        }
        Some(Self(self.0.iter().take(shared).cloned().collect()))
    }

    /// All segments but the last; `None` if that is a hidden name, or if there is none.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (last, higher) = self.0.split_last()?;
        (!is_hidden(last)).then(|| Self(higher.into()))
    }

    /// Whether all that lies below `other` lies below these.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let mut below = other.0.iter().skip(self.len());
        other.0.starts_with(&self.0) && !below.any(|segment| is_hidden(segment))
    }

    /// Fit of a path to the condition to lie below; `None` if it is of another folder. The root
    /// itself, all above it and hidden names below it are unclear.
    pub(crate) fn fit(&self, path: &[&str]) -> Option<Fit> {
        if !self.iter().zip(path).all(|(own, other)| own == *other) {
            return None;
        }
        let mut below = path.iter().skip(self.len()).peekable();
        if below.peek().is_none() || below.any(|segment| is_hidden(segment)) {
            Some(Fit::Unclear)
        } else {
            Some(Fit::Held)
        }
    }
}

/// Whether a name from this place on is hidden.
fn has_hidden(segments: &[Box<str>], from: usize) -> bool {
    segments.iter().skip(from).any(|one| is_hidden(one))
}

/// Whether a name begins with a dot: tools keep settings, keys and hooks in such files, which
/// approvals of others say nothing about.
pub(crate) fn is_hidden(segment: &str) -> bool {
    segment.starts_with('.')
}
