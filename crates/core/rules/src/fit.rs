//! Result of one check: held, failed, or unclear.

/// Fit of a value, or of a whole call, to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fit {
    /// It satisfies the condition as it is spelled.
    Held,
    /// It could satisfy the condition for a reader that normalises, converts or guesses. An
    /// approving rule takes this as failed, one that rejects or asks takes it as held.
    Unclear,
    /// It does not satisfy the condition in any reading.
    Failed,
}

impl Fit {
    /// [`Fit::Held`] or [`Fit::Failed`].
    #[must_use]
    pub fn of(held: bool) -> Self {
        if held { Self::Held } else { Self::Failed }
    }

    /// The fit of a whole of which all parts must fit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }

    /// The fit of a whole of which one part must fit.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.min(other)
    }

    /// The word for it in an explanation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unclear => "unclear",
            Self::Failed => "failed",
        }
    }
}
