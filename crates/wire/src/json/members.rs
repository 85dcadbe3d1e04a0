//! Reading the members of one object, or the elements of one array, without decoding their values.
//!
//! The whole syntax is checked, by `serde_json` wherever the quick way is not sure; values stay raw, with their place in
//! the frame. It must not know what any member means.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::JsonError;
use super::note::{NOTED_BYTES_MAX, Note, Notes};
use super::quick;
use super::splice::Span;
use super::text::{Text, is_space, text};

/// Up to this many members, duplicates are looked for by comparing each with each.
const FEW: usize = 16;

/// One member of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// The value as it was written.
    pub raw: &'a [u8],
    /// Where the value lies in the frame.
    pub span: Span,
    /// Where key and value together lie in the frame.
    pub whole: Span,
    escaped: bool,
}

impl<'a> Member<'a> {
    /// The string that the value spells, unescaped; `None` if it is no string, or holds half a surrogate pair.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        if self.escaped {
            return text(self.raw);
        }
        let plain = self.raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        std::str::from_utf8(plain).ok().map(Cow::Borrowed)
    }

    fn of(note: &Note, frame: &'a [u8]) -> Self {
        let span = note.value();
        Self { raw: span.of(frame), span, whole: note.whole(), escaped: note.is_escaped() }
    }

    /// Whether the value is a string with escapes in it.
    pub(crate) fn is_escaped(&self) -> bool {
        self.escaped
    }
}

/// All members of one object in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members<'a> {
    frame: &'a [u8],
    object: Span,
    /// Those of the object have this depth.
    depth: u8,
    notes: Cow<'a, [Note]>,
    /// The keys that were written with escapes, each at the place of its note; empty if there are none.
    unescaped: Vec<Option<Box<str>>>,
}

impl<'a> Members<'a> {
    /// The members of the object at `object`, of which `notes` has notes at `depth`.
    pub(crate) fn noted(frame: &'a [u8], object: Span, notes: &'a [Note], depth: u8) -> Self {
        Self { frame, object, depth, notes: Cow::Borrowed(notes), unescaped: Vec::new() }
    }

    /// The member of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Member<'a>> {
        let is_it = |(at, note): &(usize, &Note)| self.key(*at, note) == key.as_bytes();
        let note = match self.unescaped.is_empty() {
            true => {
                self.notes.iter().find(|note| note.depth() == self.depth && note.is_named(key, self.frame))
            }
            false => self.all().find(is_it).map(|(_, note)| note),
        };
        note.map(|note| Member::of(note, self.frame))
    }

    /// The members with their keys, unescaped, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Member<'a>)> {
        let text = |key| std::str::from_utf8(key).unwrap_or_default();
        self.all().map(move |(at, note)| (text(self.key(at, note)), Member::of(note, self.frame)))
    }

    /// Where the object itself lies, braces included.
    #[must_use]
    pub fn object(&self) -> Span {
        self.object
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether the object is `{}`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The first key that occurs a second time.
    pub(crate) fn duplicate(&self) -> Option<String> {
        let keys = || self.all().map(|(at, note)| self.key(at, note));
        let mut rest = &*self.notes;
        if !self.unescaped.is_empty() || rest.len() > FEW {
            let key = duplicate(keys())?;
            return Some(String::from_utf8_lossy(key).into_owned());
        }
        while let [note, later @ ..] = rest {
            if note.depth() == self.depth && later.iter().any(|other| other.is_like(note, self.frame)) {
                return Some(String::from_utf8_lossy(note.key().of(self.frame)).into_owned());
            }
            rest = later;
        }
        None
    }

    /// The same members, if no key occurs twice.
    pub(crate) fn without_duplicates(self) -> Result<Self, JsonError> {
        match self.duplicate() {
            Some(key) => Err(JsonError::Duplicate(key)),
            None => Ok(self),
        }
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Note)> + Clone {
        self.notes.iter().enumerate().filter(|(_, note)| note.depth() == self.depth)
    }

    /// A key, unescaped.
    fn key(&self, at: usize, note: &Note) -> &[u8] {
        match self.unescaped.get(at) {
            Some(Some(key)) => key.as_bytes(),
            Some(None) | None => note.key().of(self.frame),
        }
    }
}

/// The first of these keys that occurs a second time.
pub(crate) fn duplicate<'k, K: Eq + Hash + ?Sized>(
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

/// Reads the members of the object at `within` in `frame`. All spans that come back are places in `frame`.
///
/// # Errors
/// [`JsonError`] when the bytes are not one valid JSON object, or when a key occurs twice in it after unescaping.
/// Values are checked for syntax, but objects inside them are not looked into.
pub fn members(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    scan(frame, within)?.without_duplicates()
}

/// As [`members`], but leaves it to the caller to look for duplicates.
pub(crate) fn scan(frame: &[u8], within: Span) -> Result<Members<'_>, JsonError> {
    let object = trim(within.of(frame), within);
    let mut notes = Vec::with_capacity(4);
    match quick::scan(frame, object, &[], |note| notes.push(note)) {
        Some(()) => Ok(Members { frame, object, depth: 0, notes: Cow::Owned(notes), unescaped: Vec::new() }),
        None => scan_thoroughly(frame, within, object),
    }
}

/// So many members of inner objects are noted by [`outline`].
pub(crate) const NOTES_MAX: usize = 64;

/// Gives each member of the object that fills `frame`, with its key, without keeping any, and notes those of the objects in
/// it along `path`: of the member `path[0]` at depth 1, and so on. All syntax is checked.
///
/// `None` leaves the frame to [`scan`], also where there is more to note than [`NOTES_MAX`], or white space around; what
/// was given by then does not count.
pub(crate) fn outline<'a>(
    frame: &'a [u8],
    path: &[&[u8]],
    mut give: impl FnMut(&'a [u8], Member<'a>),
) -> Option<Notes> {
    let (mut notes, mut count) = (Notes::new(), 0);
    quick::scan(frame, Span::all(frame), path, |note| {
        if note.depth() == 0 {
            return give(note.key().of(frame), Member::of(&note, frame));
        }
        count += 1;
        if count <= NOTES_MAX {
            notes.push(note);
        }
    })?;
    (frame.first() == Some(&b'{') && count <= NOTES_MAX).then_some(notes)
}

/// Gives key and value of each member of the object that fills `frame`, without keeping any. All syntax is checked.
/// `None` leaves the object to [`scan`]; what was given by then does not count.
pub(crate) fn each<'a>(frame: &'a [u8], mut give: impl FnMut(&'a [u8], Span)) -> Option<()> {
    let object = trim(frame, Span::all(frame));
    quick::scan(frame, object, &[], |note| give(note.key().of(frame), note.value()))
}

/// Gives each element of an array that was read before; `None` if it is none, or if there is more in it than simple values.
pub(crate) fn each_element(frame: &[u8], within: Span, give: impl FnMut(Span)) -> Option<()> {
    quick::list(frame, within, give)
}

fn scan_thoroughly(frame: &[u8], within: Span, object: Span) -> Result<Members<'_>, JsonError> {
    let text = within.of(frame);
    if frame.len() > NOTED_BYTES_MAX {
        return Err(JsonError::Syntax("longer than 4 GiB".to_owned()));
    }
    if text.iter().find(|byte| !is_space(**byte)).is_some_and(|byte| *byte != b'{') {
        return Err(match serde_json::from_slice::<&RawValue>(text) {
            Ok(_) => JsonError::NotAnObject,
            Err(error) => syntax(&error),
        });
    }
    let mut source = serde_json::Deserializer::from_slice(text);
    let members = source.deserialize_map(Object { frame, object }).map_err(|error| syntax(&error))?;
    source.end().map_err(|error| syntax(&error))?;
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
    let mut notes = Vec::new();
    let quick = quick::scan(frame, object, &[], |note| notes.push(note));
    let notes = Cow::Owned(notes);
    quick.is_none()
        || scan_thoroughly(frame, all, object)
            == Ok(Members { frame, object, depth: 0, notes, unescaped: Vec::new() })
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
        let (mut notes, mut unescaped) = (Vec::new(), Vec::new());
        let mut from = self.object.start + 1;
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
                unescaped.resize(notes.len(), None);
                unescaped.push(Some(key.into()));
            }
            let escaped = raw.first() == Some(&b'"') && raw.contains(&b'\\');
            notes.push(Note::new(0, Span { start, end }, value, escaped));
            from = value.end;
        }
        Ok(Members { frame: self.frame, object: self.object, depth: 0, notes: Cow::Owned(notes), unescaped })
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
