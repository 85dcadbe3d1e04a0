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

/// Settings of traces: the part that is recorded, and the callers whose parents count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSettings {
    /// The part of the operations without a trusted parent that is recorded.
    pub sampled: SampledPart,
    /// The callers whose parents are trusted.
    pub parents: TrustedParents,
}
