//! Patterns of rules.

use prost_protovalidate::regex::RegexBuilder;

/// Bytes of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 512 << 10;

/// Whether a pattern can be a rule: RE2 knows it, and it is not too large.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().is_ok()
}
