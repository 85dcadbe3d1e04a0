//! Objects and arrays through `serde_json`: all of JSON's syntax, with a reason for what is wrong.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::JsonError;
use crate::member_span::{FRAME_BYTES_MAX, MemberSpan};
use crate::span::Span;
use crate::text::{Text, is_space};

/// The members of an object, in the order of the text.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) spans: Vec<MemberSpan>,
    /// The keys that were written with escapes, each at the index of its member; empty if there are none.
    pub(crate) unescaped: Vec<Option<Box<str>>>,
}

/// Reads the object at `within` in `frame`; white space may lie around it.
pub(crate) fn object(frame: &[u8], within: Span) -> Result<Found, JsonError> {
    let text = within.of(frame);
    if frame.len() > FRAME_BYTES_MAX {
        return Err(JsonError::Syntax("longer than 4 GiB".to_owned()));
    }
    expect(text, b'{', JsonError::NotAnObject)?;
    let start = within.start + text.iter().take_while(|byte| is_space(**byte)).count();
    let mut source = serde_json::Deserializer::from_slice(text);
    let found = source.deserialize_map(ObjectVisitor { frame, start });
    let found = found.map_err(|error| JsonError::syntax(&error))?;
    source.end().map_err(|error| JsonError::syntax(&error))?;
    Ok(found)
}

/// Reads the array at `within` in `frame`; white space may lie around it.
pub(crate) fn array(frame: &[u8], within: Span) -> Result<Vec<Span>, JsonError> {
    let text = within.of(frame);
    expect(text, b'[', JsonError::NotAnArray)?;
    let mut source = serde_json::Deserializer::from_slice(text);
    let spans = source.deserialize_seq(ArrayVisitor { frame });
    let spans = spans.map_err(|error| JsonError::syntax(&error))?;
    source.end().map_err(|error| JsonError::syntax(&error))?;
    Ok(spans)
}

/// Returns `other` for a value that begins with another byte, if its syntax is right.
fn expect(text: &[u8], open: u8, other: JsonError) -> Result<(), JsonError> {
    if text.iter().find(|byte| !is_space(**byte)).is_none_or(|byte| *byte == open) {
        return Ok(());
    }
    match serde_json::from_slice::<&RawValue>(text) {
        Ok(_) => Err(other),
        Err(error) => Err(JsonError::syntax(&error)),
    }
}

/// The place of `part`, a piece of `frame`, in it.
fn place(frame: &[u8], part: &[u8]) -> Span {
    let start = part.as_ptr().addr().saturating_sub(frame.as_ptr().addr());
    Span { start, end: start + part.len() }
}

struct ObjectVisitor<'a> {
    frame: &'a [u8],
    /// The place of the object's brace.
    start: usize,
}

impl<'a> Visitor<'a> for ObjectVisitor<'a> {
    type Value = Found;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        let mut from = self.start + 1;
        while let Some(key) = map.next_key::<Text<'a>>()? {
            let raw = map.next_value::<&'a RawValue>()?.get().as_bytes();
            let value = place(self.frame, raw);
            // The key begins at the first quote after the value before it; only white space and a comma lie between. It ends
            // at the last quote before its own value.
            let gap = Span { start: from, end: value.start }.of(self.frame);
            let quotes = || gap.iter().copied().enumerate().filter(|(_, byte)| *byte == b'"');
            let start = quotes().next().map_or(value.start, |(at, _)| from + at + 1);
            let end = quotes().next_back().map_or(value.start, |(at, _)| from + at);
            if let Cow::Owned(key) = key.0 {
                found.unescaped.resize(found.spans.len(), None);
                found.unescaped.push(Some(key.into()));
            }
            let escaped = raw.first() == Some(&b'"') && raw.contains(&b'\\');
            found.spans.push(MemberSpan::new(0, Span { start, end }, value, escaped));
            from = value.end;
        }
        Ok(found)
    }
}

struct ArrayVisitor<'a> {
    frame: &'a [u8],
}

impl<'a> Visitor<'a> for ArrayVisitor<'a> {
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
