//! Settings of traces.

use crate::sampling::SampledPart;

/// The participants whose trace contexts are taken as parents. Spans of all others begin a trace of
/// their own, which is linked to theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustedParents {
    /// Of participants that may make requests without approval, guests excepted.
    #[default]
    Trusted,
    /// Of all.
    Always,
    /// Of none.
    Link,
}

/// What is traced, and whose parents count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSettings {
    /// The part of the operations without a trusted parent that is recorded.
    pub sampled: SampledPart,
    /// Whose parents are trusted.
    pub parents: TrustedParents,
}
