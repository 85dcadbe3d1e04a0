//! Elements of one array, as spans.

use crate::error::JsonError;
use crate::scan;
use crate::span::Span;
use crate::text::trim;

/// Reads the elements of the array at `within` in `frame`: where each lies. White space may lie around the array.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON array.
pub fn elements(frame: &[u8], within: Span) -> Result<Vec<Span>, JsonError> {
    let mut spans = Vec::new();
    let read = scan::array(frame, trim(frame, within), |span| spans.push(span));
    read.map(|()| spans).ok_or_else(|| JsonError::of(frame, within, JsonError::NotAnArray))
}

/// Gives each element of the array at `within` in `frame`, without keeping any.
///
/// `None` leaves the array to [`elements`]; elements that were given by then do not count. It is the answer to bad syntax,
/// nesting beyond 32 and white space around the array.
pub fn each_element(frame: &[u8], within: Span, give: impl FnMut(Span)) -> Option<()> {
    scan::array(frame, within, give)
}
