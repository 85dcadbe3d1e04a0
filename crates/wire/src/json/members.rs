//! Reading the members of one object, or the elements of one array, without decoding their values.
//!
//! The whole syntax is checked, by `serde_json` wherever the quick way is not sure; values stay raw, with their place in
//! the frame. It must not know what any member means.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::JsonError;
use super::quick;
use super::splice::Span;
use super::text::{Text, is_space};

/// Up to this many members, duplicates are looked for by comparing each with each.
const FEW: usize = 16;

/// One member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key, unescaped.
    pub key: Cow<'a, str>,
    /// The value as it was written.
    pub raw: &'a [u8],
    /// Where the value lies in the frame.
    pub span: Span,
    /// Where key and value together lie in the frame.
    pub whole: Span,
}

/// All members of one object in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members<'a> {
    list: Vec<Member<'a>>,
    object: Span,
}

impl<'a> Members<'a> {
    /// The member of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Member<'a>> {
        self.list.iter().find(|member| member.key == key)
    }

    /// The members in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Member<'a>> {
        self.list.iter()
    }

    /// Where the object itself lies, braces included.
    #[must_use]
    pub fn object(&self) -> Span {
        self.object
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the object is `{}`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first key that occurs a second time.
    pub(crate) fn duplicate(&self) -> Option<&str> {
        duplicate(self.list.iter().map(|member| &*member.key))
    }
}

/// The first of these keys that occurs a second time.
pub(crate) fn duplicate<'k>(keys: impl ExactSizeIterator<Item = &'k str> + Clone) -> Option<&'k str> {
    if keys.len() <= FEW {
        let mut rest = keys;
        while let Some(key) = rest.next() {
            if rest.clone().any(|later| later == key) {
                return Some(key);
            }
        }
        return None;
    }
    let mut seen = HashSet::with_capacity(keys.len());
    keys.into_iter().find(|key| !seen.insert(*key))
}

impl<'s, 'a> IntoIterator for &'s Members<'a> {
    type Item = &'s Member<'a>;
    type IntoIter = std::slice::Iter<'s, Member<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// Reads the members of the object at `within` in `frame`. All spans that come back are places in `frame`.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON object, or when a key occurs twice in it after unescaping.
/// Values are checked for syntax, but objects inside them are not looked into.
pub fn members(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    let members = scan(frame, within)?;
    match members.duplicate() {
        Some(key) => Err(JsonError::Duplicate(key.to_owned())),
        None => Ok(members),
    }
}

/// As [`members`], but leaves it to the caller to look for duplicates.
pub(crate) fn scan(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    let object = trim(within.of(frame), within);
    let mut list = Vec::with_capacity(8);
    let quick = quick::scan(frame, object, |key, span, whole| {
        list.push(Member { key: Cow::Borrowed(key), raw: span.of(frame), span, whole });
    });
    match quick {
        Some(()) => Ok(Members { list, object }),
        None => scan_thoroughly(frame, within, object),
    }
}

/// Gives key and value of each member of the object that fills `frame`, without keeping any. All syntax is checked.
/// `None` leaves the object to [`scan`]; what was given by then does not count.
pub(crate) fn each<'a>(frame: &'a [u8], mut give: impl FnMut(&'a str, Span)) -> Option<()> {
    quick::scan(frame, trim(frame, Span::all(frame)), |key, span, _| give(key, span))
}

/// Gives each element of an array that was read before; `None` if it is none, or if there is more in it than simple values.
pub(crate) fn each_element(frame: &[u8], within: Span, give: impl FnMut(Span)) -> Option<()> {
    quick::list(frame, within, give)
}

fn scan_thoroughly(frame: &[u8], within: Span, object: Span) -> Result<Members<'_>, JsonError> {
    let text = within.of(frame);
    if text.iter().find(|byte| !is_space(**byte)).is_some_and(|byte| *byte != b'{') {
        return Err(match serde_json::from_slice::<&RawValue>(text) {
            Ok(_) => JsonError::NotAnObject,
            Err(error) => syntax(&error),
        });
    }
    let mut source = serde_json::Deserializer::from_slice(text);
    let mut members = source.deserialize_map(Object { frame, object }).map_err(|error| syntax(&error))?;
    source.end().map_err(|error| syntax(&error))?;
    members.object = object;
    Ok(members)
}

/// Reads the elements of the array at `within` in `frame`: where each lies.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON array.
pub fn elements(frame: &[u8], within: Span) -> Result<Vec<Span>, JsonError> {
    let text = within.of(frame);
    let mut spans = Vec::new();
    match quick::list(frame, trim(text, within), |span| spans.push(span)) {
        Some(()) => Ok(spans),
        None => elements_thoroughly(frame, text),
    }
}

fn elements_thoroughly(frame: &[u8], text: &[u8]) -> Result<Vec<Span>, JsonError> {
    if text.iter().find(|byte| !is_space(**byte)).is_some_and(|byte| *byte != b'[') {
        return Err(match serde_json::from_slice::<&RawValue>(text) {
            Ok(_) => JsonError::NotAnArray,
            Err(error) => syntax(&error),
        });
    }
    let mut source = serde_json::Deserializer::from_slice(text);
    let spans = source.deserialize_seq(Array { frame }).map_err(|error| syntax(&error))?;
    source.end().map_err(|error| syntax(&error))?;
    Ok(spans)
}

/// Whether both ways through an object or an array say the same of it, where the quick one says anything.
#[cfg(test)]
pub(super) fn both_ways_agree(frame: &[u8]) -> bool {
    let all = Span::all(frame);
    let object = trim(frame, all);
    let mut spans = Vec::new();
    if quick::list(frame, object, |span| spans.push(span)).is_some()
        && elements_thoroughly(frame, frame) != Ok(spans)
    {
        return false;
    }
    let mut list = Vec::new();
    let quick = quick::scan(frame, object, |key, span, whole| {
        list.push(Member { key: Cow::Borrowed(key), raw: span.of(frame), span, whole });
    });
    quick.is_none() || scan_thoroughly(frame, all, object) == Ok(Members { list, object })
}

/// The span without the white space around it.
fn trim(text: &[u8], span: Span) -> Span {
    let before = text.iter().take_while(|byte| is_space(**byte)).count();
    let after = text.iter().rev().take_while(|byte| is_space(**byte)).count();
    let start = span.start + before;
    Span { start, end: (span.end.saturating_sub(after)).max(start) }
}

fn syntax(error: &serde_json::Error) -> JsonError {
    JsonError::Syntax(error.to_string())
}

/// Where `part`, a piece of `frame`, lies in it.
fn place(frame: &[u8], part: &[u8]) -> Span {
    let start = part.as_ptr().addr().saturating_sub(frame.as_ptr().addr());
    Span { start, end: start + part.len() }
}

struct Object<'a> {
    frame: &'a [u8],
    object: Span,
}

impl<'a> Visitor<'a> for Object<'a> {
    type Value = Members<'a>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
        let mut list = Vec::with_capacity(8);
        let mut from = self.object.start + 1;
        while let Some(key) = map.next_key::<Text<'a>>()? {
            let raw = map.next_value::<&'a RawValue>()?.get().as_bytes();
            let span = place(self.frame, raw);
            // The key begins at the first quote after the value before it; only white space and a comma lie between.
            let gap = Span { start: from, end: span.start }.of(self.frame);
            let start = from + gap.iter().take_while(|byte| **byte != b'"').count();
            from = span.end;
            list.push(Member { key: key.0, raw, span, whole: Span { start, end: span.end } });
        }
        Ok(Members { list, object: self.object })
    }
}

struct Array<'a> {
    frame: &'a [u8],
}

impl<'a> Visitor<'a> for Array<'a> {
    type Value = Vec<Span>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Vec<Span>, A::Error> {
        let mut spans = Vec::new();
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            spans.push(place(self.frame, raw.get().as_bytes()));
        }
        Ok(spans)
    }
}
