//! Canonical text: one spelling for all texts of the same value, to be compared and hashed.

use std::borrow::Cow;

use crate::error::JsonError;
use crate::escape::put_text;
use crate::text::text;
use crate::tokens::{Token, Tokens};

/// The deepest nesting that has a canonical form, in objects and arrays: a bound on the work of
/// sorting.
pub(crate) const CANONICAL_DEPTH_MAX: usize = 128;

/// The canonical spelling of a value: no white space, members sorted by the bytes of their names,
/// strings with only the escapes that JSON requires, numbers as they were spelled (`1.0` is not
/// `1`).
///
/// # Errors
/// [`JsonError::Duplicate`] when a member occurs twice in any object. [`JsonError::Syntax`] when
/// the value is no JSON, holds half a surrogate pair, or is nested deeper than
/// `CANONICAL_DEPTH_MAX`.
pub fn canonical(raw: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::with_capacity(raw.len());
    // Of each open object its names so far, and where each member begins in the output; an array
    // has none.
    let mut open: Vec<Vec<(Cow<'_, str>, usize)>> = Vec::new();
    let mut tokens = Tokens::checked(raw)?.peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Open(_) if open.len() == CANONICAL_DEPTH_MAX => {
                return Err(JsonError::Syntax(format!(
                    "nested deeper than {CANONICAL_DEPTH_MAX}"
                )));
            }
            Token::Open(byte) => {
                out.push(byte);
                open.push(Vec::new());
            }
            Token::Close(byte) => {
                sort(&mut out, open.pop().unwrap_or_default())?;
                out.push(byte);
            }
            Token::Comma => out.push(b','),
            Token::Colon => out.push(b':'),
            Token::Text(raw) => {
                let start = out.len();
                let is_name = tokens.peek() == Some(&Token::Colon);
                let name = put_canonical(&mut out, raw, is_name)?;
                if let Some(name) = name
                    && let Some(members) = open.last_mut()
                {
                    members.push((name, start));
                }
            }
            Token::Plain(raw) => out.extend_from_slice(raw),
        }
    }
    Ok(out)
}

/// Appends a string in its canonical spelling. Returns its text if it is the name of a member.
fn put_canonical<'r>(
    out: &mut Vec<u8>,
    raw: &'r [u8],
    is_name: bool,
) -> Result<Option<Cow<'r, str>>, JsonError> {
    let is_plain = !raw.contains(&b'\\');
    if is_plain {
        // Its syntax was checked: without an escape nothing in it needs one.
        out.extend_from_slice(raw);
        if !is_name {
            return Ok(None);
        }
    }
    let text = text(raw).ok_or_else(|| JsonError::Syntax("half a surrogate pair".to_owned()))?;
    if !is_plain {
        put_text(out, &text);
    }
    Ok(is_name.then_some(text))
}

/// Sorts the members, which are the end of the output.
fn sort(out: &mut Vec<u8>, members: Vec<(Cow<'_, str>, usize)>) -> Result<(), JsonError> {
    if members
        .windows(2)
        .all(|pair| matches!(pair, [(one, _), (next, _)] if one < next))
    {
        return Ok(());
    }
    let Some(first) = members.first().map(|(_, start)| *start) else {
        return Ok(());
    };
    // Each member ends where the comma before the next one is.
    let ends = members
        .iter()
        .skip(1)
        .map(|(_, start)| start - 1)
        .chain([out.len()]);
    let ends: Vec<usize> = ends.collect();
    let mut places: Vec<_> = members.into_iter().zip(ends).collect();
    places.sort_by(|((one, _), _), ((other, _), _)| one.cmp(other));
    for pair in places.windows(2) {
        if let [((one, _), _), ((next, _), _)] = pair
            && one == next
        {
            return Err(JsonError::Duplicate(one.to_string()));
        }
    }
    let parts: Vec<&[u8]> = places
        .iter()
        .map(|((_, start), end)| out.get(*start..*end).unwrap_or_default())
        .collect();
    let sorted = parts.join(&b',');
    out.truncate(first);
    out.extend_from_slice(&sorted);
    Ok(())
}
