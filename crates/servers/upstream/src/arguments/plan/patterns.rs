//! Sizes of patterns, before they are compiled: about the states of the automaton that runs one.

use regex_syntax::hir::{Class, Hir, HirKind};

/// States of all patterns of a schema.
pub(super) const STATES_MAX: u64 = 50_000;
/// States that one value counts for where the memory of schemas is limited.
const STATES_OF_VALUE: u64 = 10;
/// States that one step goes through for a byte of a text.
const STATES_IN_STEP: u64 = 250;

/// The states of a pattern. One that is not read here is not compiled either.
pub(super) fn states(pattern: &str) -> u64 {
    regex_syntax::parse(pattern).map_or(1, |read| of(&read))
}

/// Weight of a pattern in memory, in values.
pub(super) fn values(states: u64) -> u64 {
    1 + states / STATES_OF_VALUE
}

/// The steps for a byte that the pattern reads.
pub(super) fn byte_steps(pattern: &str) -> u64 {
    1 + states(pattern) / STATES_IN_STEP
}

/// The parser limits how deep a pattern is.
fn of(part: &Hir) -> u64 {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Literal(text) => text.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => 2 * class.ranges().len() as u64,
        HirKind::Repetition(again) => {
            let times = again.max.unwrap_or(again.min.saturating_add(1));
            of(&again.sub)
                .saturating_add(1)
                .saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(of).fold(1, u64::saturating_add)
        }
    }
}
