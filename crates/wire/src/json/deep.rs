//! Looking for duplicate members in a whole value, however deep.
//!
//! `serde_json` checks the syntax first; the walk after it only follows brackets, commas and strings, without
//! recursion. It must not know what any member means.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::error::JsonError;
use super::text::text;

/// Refuses a value in which any object, at any depth, has a member twice (after unescaping).
///
/// # Errors
/// [`JsonError::Duplicate`] with the key; [`JsonError::Syntax`] if the value is not JSON.
pub fn refuse_duplicates(raw: &[u8]) -> Result<(), JsonError> {
    serde_json::from_slice::<&RawValue>(raw).map_err(|error| JsonError::Syntax(error.to_string()))?;
    let mut walk = Walk { open: Vec::new(), at_key: false };
    let mut from = 0;
    while let Some(byte) = raw.get(from) {
        from += 1;
        match byte {
            b'"' => {
                let end = string_end(raw, from);
                walk.string(raw.get(from - 1..end).unwrap_or_default())?;
                from = end;
            }
            b'{' => walk.enter(Some(HashSet::new())),
            b'[' => walk.enter(None),
            b'}' | b']' => walk.leave(),
            b',' => walk.next(),
            _ => {}
        }
    }
    Ok(())
}

/// One past the closing quote of the string whose first byte inside is at `from`.
fn string_end(raw: &[u8], mut from: usize) -> usize {
    while let Some(rest) = raw.get(from..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(at) if rest.get(at) == Some(&b'\\') => from += at + 2,
            Some(at) => return from + at + 1,
            None => break,
        }
    }
    raw.len()
}

struct Walk<'a> {
    /// The keys seen in each object that is open; `None` for an array.
    open: Vec<Option<HashSet<Cow<'a, str>>>>,
    at_key: bool,
}

impl<'a> Walk<'a> {
    fn enter(&mut self, keys: Option<HashSet<Cow<'a, str>>>) {
        self.at_key = keys.is_some();
        self.open.push(keys);
    }

    fn leave(&mut self) {
        self.open.pop();
        self.at_key = false;
    }

    fn next(&mut self) {
        self.at_key = matches!(self.open.last(), Some(Some(_)));
    }

    fn string(&mut self, raw: &'a [u8]) -> Result<(), JsonError> {
        if !std::mem::take(&mut self.at_key) {
            return Ok(());
        }
        let key = text(raw).ok_or_else(|| JsonError::Syntax("half a surrogate pair in a key".to_owned()))?;
        match self.open.last_mut() {
            Some(Some(seen)) if seen.contains(&key) => Err(JsonError::Duplicate(key.into_owned())),
            Some(Some(seen)) => {
                seen.insert(key);
                Ok(())
            }
            Some(None) | None => Ok(()),
        }
    }
}
