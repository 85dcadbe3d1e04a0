//! Sampling, and ids of spans: both follow from the id of an operation.

use crate::context::{SpanId, TraceId};

/// A part of all operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledPart {
    /// From 0 to 1.
    part: f64,
    /// Mixed numbers below are sampled.
    below: u64,
}

impl SampledPart {
    /// All of them.
    pub const ALL: Self = Self {
        part: 1.0,
        below: u64::MAX,
    };

    /// None of them.
    pub const NONE: Self = Self {
        part: 0.0,
        below: 0,
    };

    /// A part from 0 to 1; `None` of any other number.
    #[must_use]
    pub fn new(part: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&part) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the part is from 0 to 1, and a part needs no more precision"
        )]
        let below = (part * u64::MAX as f64) as u64;
        Some(Self { part, below })
    }

    /// Whether an operation belongs to it.
    #[must_use]
    pub fn has(self, operation: u128) -> bool {
        let mixed = mixed_of(operation, 0);
        self.below == u64::MAX || mixed < self.below
    }
}

/// The spans that one operation has, each with its own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanPlace {
    /// The request of a client.
    Server,
    /// The call at a server.
    Client,
    /// The wait of a proposal.
    Proposal,
}

/// The id of the trace that an operation begins.
#[must_use]
pub fn trace_of(operation: u128) -> TraceId {
    let high = u128::from(mixed_of(operation, 1));
    TraceId::new(high << 64 | u128::from(mixed_of(operation, 2)))
}

/// The id of a span of an operation.
#[must_use]
pub fn span_of(operation: u128, place: SpanPlace) -> SpanId {
    SpanId::new(mixed_of(operation, 3 + place as u64))
}

/// A number that looks random; the same for the same operation and use.
fn mixed_of(operation: u128, usage: u64) -> u64 {
    let [high, low] = [operation >> 64, operation].map(|half| half as u64);
    mixed(mixed(high).wrapping_add(low) ^ mixed(usage))
}

/// The finalizer of SplitMix64.
fn mixed(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_the_wanted_part_of_operations_is_sampled() {
        let run = 0x1234_5678_9abc_def0_u128 << 64;
        for (part, range) in [(0.0, 0..=0), (0.1, 900..=1_100), (1.0, 10_000..=10_000)] {
            let sampled = SampledPart::new(part).unwrap();
            let count = (0..10_000).filter(|one| sampled.has(run | one)).count();
            assert!(range.contains(&count), "{part}: {count}");
        }
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(SampledPart::new(wrong), None);
        }
    }

    #[test]
    fn ids_of_operations_differ() {
        let mut traces = std::collections::HashSet::new();
        let mut spans = std::collections::HashSet::new();
        for operation in 0..1_000 {
            traces.insert(trace_of(operation));
            for place in [SpanPlace::Server, SpanPlace::Client, SpanPlace::Proposal] {
                spans.insert(span_of(operation, place));
            }
        }
        assert_eq!((traces.len(), spans.len()), (1_000, 3_000));
    }
}
