//! Canonical text: one spelling for all texts of the same value, to be compared and hashed.

use std::borrow::Cow;

use crate::error::JsonError;
use crate::escape::put_text;
use crate::text::text;
use crate::tokens::{Token, Tokens};

/// The deepest nesting that has a canonical form, in objects and arrays: a bound on the work of sorting.
pub(crate) const CANONICAL_DEPTH_MAX: usize = 128;

/// The canonical spelling of a value: no white space, members sorted by the bytes of their names, strings with only the
/// escapes that JSON requires, numbers as they were spelled (`1.0` is not `1`).
///
/// # Errors
/// [`JsonError::Duplicate`] when a member occurs twice in any object. [`JsonError::Syntax`] when the value is no JSON,
/// holds half a surrogate pair, or is nested deeper than `CANONICAL_DEPTH_MAX`.
pub fn canonical(raw: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut writer = Writer { out: Vec::with_capacity(raw.len()), open: Vec::new() };
    for token in Tokens::checked(raw)? {
        match token {
            Token::Open(byte) => writer.enter(byte)?,
            Token::Close(byte) => writer.leave(byte)?,
            Token::Comma => writer.next(),
            Token::Colon => writer.out.push(b':'),
            Token::Text(raw) => writer.string(raw)?,
            Token::Plain(raw) => writer.out.extend_from_slice(raw),
        }
    }
    Ok(writer.out)
}

struct Writer<'a> {
    out: Vec<u8>,
    open: Vec<Open<'a>>,
}

/// An open object, with its names so far and where each member begins in the output, or an open array.
enum Open<'a> {
    Object { members: Vec<(Cow<'a, str>, usize)>, at_key: bool },
    Array,
}

impl<'a> Writer<'a> {
    fn enter(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.open.len() == CANONICAL_DEPTH_MAX {
            return Err(JsonError::Syntax(format!("nested deeper than {CANONICAL_DEPTH_MAX}")));
        }
        self.out.push(byte);
        self.open.push(match byte {
            b'{' => Open::Object { members: Vec::new(), at_key: true },
            _ => Open::Array,
        });
        Ok(())
    }

    fn next(&mut self) {
        self.out.push(b',');
        if let Some(Open::Object { at_key, .. }) = self.open.last_mut() {
            *at_key = true;
        }
    }

    fn string(&mut self, raw: &'a [u8]) -> Result<(), JsonError> {
        let text = text(raw).ok_or_else(|| JsonError::Syntax("half a surrogate pair".to_owned()))?;
        let start = self.out.len();
        put_text(&mut self.out, &text);
        if let Some(Open::Object { members, at_key }) = self.open.last_mut()
            && std::mem::take(at_key)
        {
            members.push((text, start));
        }
        Ok(())
    }

    fn leave(&mut self, byte: u8) -> Result<(), JsonError> {
        if let Some(Open::Object { members, .. }) = self.open.pop() {
            self.sort(members)?;
        }
        self.out.push(byte);
        Ok(())
    }

    /// Sorts the members, which are the end of the output.
    fn sort(&mut self, members: Vec<(Cow<'a, str>, usize)>) -> Result<(), JsonError> {
        if members.windows(2).all(|pair| matches!(pair, [(one, _), (next, _)] if one < next)) {
            return Ok(());
        }
        let Some(first) = members.first().map(|(_, start)| *start) else { return Ok(()) };
        // Each member ends where the comma before the next one is.
        let ends = members.iter().skip(1).map(|(_, start)| start - 1).chain([self.out.len()]);
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
        let parts: Vec<&[u8]> =
            places.iter().map(|((_, start), end)| self.out.get(*start..*end).unwrap_or_default()).collect();
        let sorted = parts.join(&b',');
        self.out.truncate(first);
        self.out.extend_from_slice(&sorted);
        Ok(())
    }
}
