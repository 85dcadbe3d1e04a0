//! Values of a JSON text, one row for each: where it lies, its type, its text.

use json::{Span, elements, is_object, members_with_duplicates};

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
pub struct Leaf {
    /// Its place as a JSON Pointer (RFC 6901), empty for the whole. Keys are of strangers.
    pub pointer: String,
    /// Its type.
    pub kind: LeafKind,
    /// The text that a string spells; of any other value its spelling.
    pub text: String,
}

impl Leaf {
    /// Length of the text, in characters.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.text.chars().count()
    }
}

/// The values of a JSON text in their order. Numbers keep their spelling, and a key that occurs
/// twice has two rows. A text that is no JSON is one row.
#[must_use]
pub fn leaves(json: &str) -> Vec<Leaf> {
    let mut all = Vec::new();
    collect(json.trim().as_bytes(), String::new(), 0, &mut all);
    all
}

fn collect(raw: &[u8], pointer: String, depth: usize, all: &mut Vec<Leaf>) {
    let whole = Span::all(raw);
    if depth < LEAF_DEPTH_MAX {
        if is_object(raw)
            && let Ok(members) = members_with_duplicates(raw, whole)
            && !members.is_empty()
        {
            for (key, member) in members.iter() {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(member.raw, format!("{pointer}/{key}"), depth + 1, all);
            }
            return;
        }
        if raw.first() == Some(&b'[')
            && let Ok(spans) = elements(raw, whole)
            && !spans.is_empty()
        {
            for (at, span) in spans.iter().enumerate() {
                collect(span.of(raw), format!("{pointer}/{at}"), depth + 1, all);
            }
            return;
        }
    }
    all.push(leaf(raw, pointer));
}

/// A value that is not taken apart.
fn leaf(raw: &[u8], pointer: String) -> Leaf {
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
    Leaf {
        pointer,
        kind,
        text: text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(json: &str) -> Vec<String> {
        let row = |leaf: &Leaf| format!("{} {} {}", leaf.pointer, leaf.kind.word(), leaf.text);
        leaves(json).iter().map(row).collect()
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
        assert_eq!(leaves(&deep(LEAF_DEPTH_MAX)).len(), 1);
        assert_eq!(leaves(&deep(LEAF_DEPTH_MAX)).remove(0).text, "1");
        assert_eq!(leaves(&deep(LEAF_DEPTH_MAX + 1)).remove(0).text, "[1]");
    }
}
