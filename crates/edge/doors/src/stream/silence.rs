//! Silence of a stream, as its keep-alive sees it: looks at equal distances.

use std::mem;

/// Reads of a stream since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Silence {
    /// No look follows.
    #[default]
    Unwatched,
    /// A message, or the stream was opened.
    Broken,
    /// Nothing.
    Unbroken,
    /// Nothing, nor before it: a comment is due.
    Long,
}

impl Silence {
    /// Notes that looks follow. Returns whether they did not before.
    pub(super) fn watch(&mut self) -> bool {
        mem::replace(self, Self::Broken) == Self::Unwatched
    }

    /// Notes that no look follows.
    pub(super) fn leave(&mut self) {
        *self = Self::Unwatched;
    }

    /// Notes a look. Returns whether a comment is due.
    pub(super) fn look(&mut self) -> bool {
        *self = if *self == Self::Broken {
            Self::Unbroken
        } else {
            Self::Long
        };
        *self == Self::Long
    }

    /// Notes that a message was read.
    pub(super) fn end(&mut self) {
        if *self != Self::Unwatched {
            *self = Self::Broken;
        }
    }

    /// Returns whether a comment is due, which is then sent.
    pub(super) fn take_comment(&mut self) -> bool {
        let is_due = *self == Self::Long;
        if is_due {
            *self = Self::Broken;
        }
        is_due
    }
}
