//! Single values: their syntax, strings, integers, the elements of an array, and whether a value is
//! an object.

use std::borrow::Cow;

use crate::error::JsonError;
use crate::scan;
pub(crate) use crate::scan::is_space;
use crate::span::Span;

/// Checks that `raw` is one JSON value in UTF-8. White space may lie around it.
///
/// # Errors
/// [`JsonError::Syntax`] with the reason.
pub fn check(raw: &[u8]) -> Result<(), JsonError> {
    let all = Span::all(raw);
    let other = || JsonError::of(raw, all, JsonError::Syntax("not one value".to_owned()));
    scan::value(raw, trim(raw, all)).ok_or_else(other)
}

/// The string that `raw` spells, unescaped; `None` if `raw` is no string, or holds half a surrogate
/// pair.
#[must_use]
pub fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    match scan::plain(raw) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_slice(raw).ok().map(Cow::Owned),
    }
}

/// The integer that `raw` spells; `None` for fractions, exponents and numbers that do not fit 64
/// bits.
#[must_use]
pub fn integer(raw: &[u8]) -> Option<i64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// Whether the first byte that is not white space opens an object. Nothing else is checked.
#[inline]
#[must_use]
pub fn is_object(raw: &[u8]) -> bool {
    raw.iter().find(|byte| !is_space(**byte)) == Some(&b'{')
}

/// Reads the elements of the array at `within` in `frame`: where each lies. White space may lie
/// around the array.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON array.
pub fn elements(frame: &[u8], within: Span) -> Result<Vec<Span>, JsonError> {
    let mut spans = Vec::new();
    let read = scan::array(frame, trim(frame, within), |span| spans.push(span));
    read.map(|()| spans)
        .ok_or_else(|| JsonError::of(frame, within, JsonError::NotAnArray))
}

/// Gives each element of the array at `within` in `frame`, without keeping any.
///
/// `None` leaves the array to [`elements`]; elements that were given by then do not count. It is
/// the answer to bad syntax, nesting beyond 32 and white space around the array.
pub fn each_element(frame: &[u8], within: Span, give: impl FnMut(Span)) -> Option<()> {
    scan::array(frame, within, give)
}

/// The span without the white space around its text.
#[inline]
pub(crate) fn trim(frame: &[u8], span: Span) -> Span {
    let text = span.of(frame);
    let before = text.iter().take_while(|byte| is_space(**byte)).count();
    let after = text
        .iter()
        .rev()
        .take_while(|byte| is_space(**byte))
        .count();
    let start = span.start + before;
    Span {
        start,
        end: (span.end.saturating_sub(after)).max(start),
    }
}
