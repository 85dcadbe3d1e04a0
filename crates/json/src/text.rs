//! Single values: strings, integers, and whether a value is an object.

use std::borrow::Cow;

use crate::scan;
pub(crate) use crate::scan::is_space;
use crate::span::Span;

/// The string that `raw` spells, unescaped; `None` if `raw` is no string, or holds half a surrogate pair.
#[must_use]
pub fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    match scan::plain(raw) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_slice(raw).ok().map(Cow::Owned),
    }
}

/// The integer that `raw` spells; `None` for fractions, exponents and numbers that do not fit 64 bits.
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

/// The span without the white space around its text.
#[inline]
pub(crate) fn trim(frame: &[u8], span: Span) -> Span {
    let text = span.of(frame);
    let before = text.iter().take_while(|byte| is_space(**byte)).count();
    let after = text.iter().rev().take_while(|byte| is_space(**byte)).count();
    let start = span.start + before;
    Span { start, end: (span.end.saturating_sub(after)).max(start) }
}
