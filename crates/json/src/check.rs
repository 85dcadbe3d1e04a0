//! Syntax check of one value.

use crate::error::JsonError;
use crate::scan;
use crate::span::Span;
use crate::text::trim;

/// Checks that `raw` is one JSON value in UTF-8. White space may lie around it.
///
/// # Errors
/// [`JsonError::Syntax`] with the reason.
pub fn check(raw: &[u8]) -> Result<(), JsonError> {
    let all = Span::all(raw);
    let other = || JsonError::of(raw, all, JsonError::Syntax("not one value".to_owned()));
    scan::value(raw, trim(raw, all)).ok_or_else(other)
}
