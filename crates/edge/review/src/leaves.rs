//! Values of a JSON text, one row for each: where it lies, its type, its text.
//!
//! They are read one after the other, and share what their places have in common: a reader that stops
//! has taken no more room than for the values that it read.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use json::{Span, Token, Tokens};

/// Levels below which a value is one row, however much it holds.
pub const LEAF_DEPTH_MAX: usize = 64;

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// A string.
    Text,
    /// A number, as it was spelled.
    Number,
    /// `true` or `false`.
    Flag,
    /// `null`.
    Null,
    /// An object or array without members, or one that lies too deep to be taken apart.
    Whole,
}

impl LeafKind {
    /// Its name in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Flag => "boolean",
            Self::Null => "null",
            Self::Whole => "JSON",
        }
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf<'j> {
    /// Its place.
    pub place: LeafPlace<'j>,
    /// Its type.
    pub kind: LeafKind,
    /// The text that a string spells; of any other value its spelling.
    pub text: Cow<'j, str>,
}

impl Leaf<'_> {
    /// Length of the text, in characters.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.text.chars().count()
    }
}

/// The place of a value. It is written as a JSON Pointer (RFC 6901), empty for the whole. Keys are of
/// strangers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeafPlace<'j>(Option<Arc<Below<'j>>>);

/// A place below another one.
#[derive(Debug, PartialEq, Eq)]
struct Below<'j> {
    above: LeafPlace<'j>,
    part: Part<'j>,
    bytes: usize,
}

/// The last part of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'j> {
    Key(Cow<'j, str>),
    Index(usize),
}

impl<'j> LeafPlace<'j> {
    fn with(&self, part: Part<'j>) -> Self {
        let own = match &part {
            Part::Key(key) => key.len() + key.matches(['~', '/']).count(),
            Part::Index(index) => index.checked_ilog10().unwrap_or(0) as usize + 1,
        };
        Self(Some(Arc::new(Below {
            bytes: self.len() + 1 + own,
            above: self.clone(),
            part,
        })))
    }

    /// Length of the pointer, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |below| below.bytes)
    }

    /// Whether it is the place of the whole.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for LeafPlace<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(below) = &self.0 else { return Ok(()) };
        below.above.fmt(out)?;
        match &below.part {
            Part::Key(key) => write!(out, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Part::Index(index) => write!(out, "/{index}"),
        }
    }
}

/// The values of a JSON text in their order. Numbers keep their spelling, and a key that occurs
/// twice has two rows. A text that is no JSON is one row.
#[must_use]
pub fn leaves(json: &str) -> Leaves<'_> {
    let raw = json.trim().as_bytes();
    let is_json = json::check(raw).is_ok();
    Leaves {
        tokens: Tokens::new(if is_json { raw } else { &[] }),
        raw,
        open: Vec::new(),
        odd: (!is_json).then_some(raw),
    }
}

/// The values of a JSON text that are still to come.
#[derive(Debug)]
pub struct Leaves<'j> {
    raw: &'j [u8],
    tokens: Tokens<'j>,
    open: Vec<Open<'j>>,
    /// A text that is no JSON, until it was given.
    odd: Option<&'j [u8]>,
}

/// An object or array whose values are being read.
#[derive(Debug)]
struct Open<'j> {
    place: LeafPlace<'j>,
    /// The key of the next value, in an object.
    key: Option<Cow<'j, str>>,
    /// The number of the next value, in an array.
    index: Option<usize>,
}

impl<'j> Open<'j> {
    /// The place of the next value, which is then behind it.
    fn next_place(&mut self) -> LeafPlace<'j> {
        let part = match (self.index, self.key.take()) {
            (Some(index), _) => {
                self.index = Some(index + 1);
                Part::Index(index)
            }
            (None, key) => Part::Key(key.unwrap_or_default()),
        };
        self.place.with(part)
    }
}

impl<'j> Leaves<'j> {
    fn next_place(&mut self) -> LeafPlace<'j> {
        let last = self.open.last_mut();
        last.map(Open::next_place).unwrap_or_default()
    }

    /// Whether a string that comes now is a key.
    fn is_key(&self) -> bool {
        let last = self.open.last();
        last.is_some_and(|open| open.index.is_none() && open.key.is_none())
    }

    /// An object or array begins. It is a value itself if it is empty, or lies too deep.
    fn begin(&mut self, byte: u8) -> Option<Leaf<'j>> {
        let start = self.tokens.span().start;
        let place = self.next_place();
        let mut ahead = self.tokens.clone();
        let is_empty = matches!(ahead.next(), Some(Token::Close(_)));
        if is_empty {
            self.tokens = ahead;
        } else if self.open.len() < LEAF_DEPTH_MAX {
            self.open.push(Open {
                place,
                key: None,
                index: (byte == b'[').then_some(0),
            });
            return None;
        } else {
            self.skip_to_end();
        }
        let end = self.tokens.span().end;
        Some(leaf(Span { start, end }.of(self.raw), place))
    }

    /// Moves to the end of the object or array that has just begun.
    fn skip_to_end(&mut self) {
        let mut depth = 1_usize;
        for token in self.tokens.by_ref() {
            match token {
                Token::Open(_) => depth += 1,
                Token::Close(_) => depth -= 1,
                Token::Comma | Token::Colon | Token::Text(_) | Token::Plain(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

impl<'j> Iterator for Leaves<'j> {
    type Item = Leaf<'j>;

    fn next(&mut self) -> Option<Leaf<'j>> {
        if let Some(odd) = self.odd.take() {
            return Some(leaf(odd, LeafPlace::default()));
        }
        loop {
            match self.tokens.next()? {
                Token::Open(byte) => {
                    if let Some(whole) = self.begin(byte) {
                        return Some(whole);
                    }
                }
                Token::Close(_) => _ = self.open.pop(),
                Token::Comma | Token::Colon => {}
                Token::Text(raw) if self.is_key() => {
                    let key = json::text(raw).unwrap_or_else(|| String::from_utf8_lossy(raw));
                    if let Some(open) = self.open.last_mut() {
                        open.key = Some(key);
                    }
                }
                Token::Text(raw) | Token::Plain(raw) => {
                    let place = self.next_place();
                    return Some(leaf(raw, place));
                }
            }
        }
    }
}

/// A value that is not taken apart.
fn leaf<'j>(raw: &'j [u8], place: LeafPlace<'j>) -> Leaf<'j> {
    let spelled = String::from_utf8_lossy(raw);
    let (kind, text) = match raw.first() {
        // A string with half a surrogate pair spells no text: it is shown as it was written.
        Some(b'"') => match json::text(raw) {
            Some(text) => (LeafKind::Text, text),
            None => (LeafKind::Text, spelled),
        },
        Some(b't' | b'f') if matches!(&*spelled, "true" | "false") => (LeafKind::Flag, spelled),
        Some(b'n') if spelled == "null" => (LeafKind::Null, spelled),
        Some(b'-' | b'0'..=b'9') => (LeafKind::Number, spelled),
        Some(_) | None => (LeafKind::Whole, spelled),
    };
    Leaf { place, kind, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(json: &str) -> Vec<String> {
        let row = |leaf: Leaf| {
            assert_eq!(leaf.place.to_string().len(), leaf.place.len());
            format!("{} {} {}", leaf.place, leaf.kind.word(), leaf.text)
        };
        leaves(json).map(row).collect()
    }

    #[test]
    fn every_value_is_a_row_with_its_place() {
        let json = r#" {"repo":"acme/site","labels":["bot",{"a/b":1.0}],"n":null,"deep":{"x~y":true},"e":[],"o":{}} "#;
        assert_eq!(
            rows(json),
            [
                "/repo text acme/site",
                "/labels/0 text bot",
                "/labels/1/a~1b number 1.0",
                "/n null null",
                "/deep/x~0y boolean true",
                "/e JSON []",
                "/o JSON {}",
            ]
        );
    }

    #[test]
    fn spellings_and_what_is_odd_stay_as_they_are() {
        for (json, expect) in [
            ("1e400", " number 1e400"),
            (r#""a\u202eb""#, " text a\u{202e}b"),
            (r#""half \ud800""#, " text \"half \\ud800\""),
            ("not json", " JSON not json"),
            ("", " JSON "),
        ] {
            assert_eq!(rows(json).remove(0), expect, "{json}");
        }
        assert_eq!(rows(r#"{"a":1,"a":2}"#), ["/a number 1", "/a number 2"]);
    }

    #[test]
    fn a_string_that_looks_like_json_is_one_row() {
        assert_eq!(
            rows(r#"{"x":"{\"approved\": true}"}"#),
            [r#"/x text {"approved": true}"#]
        );
    }

    #[test]
    fn values_below_the_deepest_level_are_one_row() {
        let deep = |levels: usize| "[".repeat(levels) + "1" + &"]".repeat(levels);
        let only = |json: &str| {
            let all: Vec<String> = leaves(json).map(|leaf| leaf.text.into_owned()).collect();
            assert_eq!(all.len(), 1);
            all.concat()
        };
        assert_eq!(only(&deep(LEAF_DEPTH_MAX)), "1");
        assert_eq!(only(&deep(LEAF_DEPTH_MAX + 1)), "[1]");
        let deeper = format!(r#"{{"a":{},"b":2}}"#, deep(LEAF_DEPTH_MAX + 200));
        let places: Vec<String> = leaves(&deeper).map(|leaf| leaf.place.to_string()).collect();
        assert_eq!(places.len(), 2);
        assert_eq!(places[1], "/b");
    }

    #[test]
    fn values_share_their_places_and_are_read_one_by_one() {
        // A row of its own for each would take 4 GiB.
        let json = format!(
            r#"{{"{}":[{}0]}}"#,
            "k".repeat(1 << 16),
            "0,".repeat(1 << 16)
        );
        let mut count = 0;
        let mut all = leaves(&json);
        let first = all.next().unwrap();
        assert_eq!(first.place.len(), (1 << 16) + 3);
        let kept: Vec<Leaf<'_>> = all.collect();
        count += kept.len();
        assert_eq!(count, 1 << 16);
        let above = |leaf: &Leaf<'_>| {
            let below = leaf.place.0.as_ref().unwrap();
            Arc::as_ptr(below.above.0.as_ref().unwrap()).cast::<()>()
        };
        assert_eq!(above(&first), above(&kept[count - 1]));
    }
}
