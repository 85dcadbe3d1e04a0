//! Ranges of counts: lengths of texts, numbers of elements.

use std::fmt;

/// A range of counts; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountRange {
    low: u32,
    high: u32,
}

impl CountRange {
    /// The range; `None` if `low` is above `high`.
    #[must_use]
    pub fn new(low: u32, high: u32) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    /// The range of one count.
    #[must_use]
    pub fn one(count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            low: count,
            high: count,
        }
    }

    /// The lowest count.
    #[must_use]
    pub fn low(self) -> u32 {
        self.low
    }

    /// The highest count.
    #[must_use]
    pub fn high(self) -> u32 {
        self.high
    }

    /// Whether a count lies in it.
    #[must_use]
    pub fn has(self, count: usize) -> bool {
        u32::try_from(count).is_ok_and(|count| (self.low..=self.high).contains(&count))
    }

    /// Whether every count of `other` lies in it.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// The narrowest range that includes both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(out, "{}", self.low)
        } else {
            write!(out, "{} to {}", self.low, self.high)
        }
    }
}
