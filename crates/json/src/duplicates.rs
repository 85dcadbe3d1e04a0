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
    let mut walk = Walk { open: Vec::new(), at_key: false };
    for token in Tokens::checked(raw)? {
        match token {
            Token::Open(b'{') => walk.enter(Some(HashSet::new())),
            Token::Open(_) => walk.enter(None),
            Token::Close(_) => walk.leave(),
            Token::Comma => walk.next(),
            Token::Text(raw) => walk.string(raw)?,
            Token::Colon | Token::Plain(_) => {}
        }
    }
    Ok(())
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
        let key = text(raw).ok_or_else(JsonError::half_a_pair)?;
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
