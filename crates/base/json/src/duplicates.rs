//! Duplicate members: in one object, and in a whole value at any depth.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use crate::error::JsonError;
use crate::text::text;
use crate::tokens::{Token, Tokens};

/// Up to this many keys are compared each with each.
pub(crate) const FEW: usize = 16;

/// The first of these keys that occurs a second time.
pub fn first_duplicate<'k, K: Eq + Hash + ?Sized>(
    keys: impl Iterator<Item = &'k K> + Clone,
) -> Option<&'k K> {
    if keys.clone().nth(FEW).is_none() {
        let mut rest = keys;
        while let Some(key) = rest.next() {
            if rest.clone().any(|later| later == key) {
                return Some(key);
            }
        }
        return None;
    }
    let mut seen = HashSet::new();
    keys.into_iter().find(|key| !seen.insert(*key))
}

/// Rejects a value in which any object, at any depth, has a member twice (after unescaping).
///
/// # Errors
/// [`JsonError::Duplicate`] with the key; [`JsonError::Syntax`] if the value is not JSON.
pub fn refuse_duplicates(raw: &[u8]) -> Result<(), JsonError> {
    // The keys of each object that is open; an array has none.
    let mut open: Vec<HashSet<Cow<'_, str>>> = Vec::new();
    let mut tokens = Tokens::checked(raw)?.peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Open(_) => open.push(HashSet::new()),
            Token::Close(_) => drop(open.pop()),
            Token::Text(raw) if tokens.peek() == Some(&Token::Colon) => {
                let key = text(raw).ok_or_else(JsonError::half_a_pair)?;
                if let Some(again) = open.last_mut().and_then(|keys| keys.replace(key)) {
                    return Err(JsonError::Duplicate(again.into_owned()));
                }
            }
            Token::Comma | Token::Text(_) | Token::Colon | Token::Plain(_) => {}
        }
    }
    Ok(())
}
