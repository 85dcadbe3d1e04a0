//! Syntax check of one value.

use serde_json::value::RawValue;

use crate::error::JsonError;
use crate::scan;
use crate::span::Span;
use crate::text::trim;

/// Checks that `raw` is one JSON value in UTF-8. White space may lie around it.
///
/// # Errors
/// [`JsonError::Syntax`] with the reason.
pub fn check(raw: &[u8]) -> Result<(), JsonError> {
    if scan::value(raw, trim(raw, Span::all(raw))).is_some() {
        return Ok(());
    }
    serde_json::from_slice::<&RawValue>(raw).map_err(|error| JsonError::syntax(&error))?;
    Ok(())
}
