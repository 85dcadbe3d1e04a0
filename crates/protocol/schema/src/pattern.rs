//! Patterns of rules: RE2's, whose `\d`, `\s`, `\w` and `\b` are of ASCII. The library that runs
//! them has Unicode's.

use std::borrow::Cow;

use prost_protovalidate::regex::RegexBuilder;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};

use crate::common::whole_pool;

/// Bytes of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 512 << 10;

/// The digits.
const DIGITS: Class = Class {
    of: r"0-9",
    others: r"\x{0}-\x{2f}\x{3a}-\x{10ffff}",
};
/// The letters of words.
const WORDS: Class = Class {
    of: r"0-9A-Z_a-z",
    others: r"\x{0}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{5e}\x{60}\x{7b}-\x{10ffff}",
};
/// The blanks of RE2.
const BLANKS: Class = Class {
    of: r"\t\n\f\r ",
    others: r"\x{0}-\x{8}\x{b}\x{e}-\x{1f}\x{21}-\x{10ffff}",
};
/// The blanks of JSON Schema's patterns (ECMA-262, "WhiteSpace", "LineTerminator").
const BLANKS_OF_JSON: Class = Class {
    of: r"\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}",
    others: r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}",
};
/// The edge of a word of ASCII, as the library spells it.
const EDGE: &str = r"(?-u:\b)";
/// The letters of classes after a backslash.
const CLASSES: &[u8] = b"dDsSwWb";
/// The rules that are patterns, and those that can have some in them.
const PATTERNS: [&str; 2] = [
    "buf.validate.StringRules.pattern",
    "buf.validate.BytesRules.pattern",
];
const EXPRESSIONS: [&str; 3] = [
    "buf.validate.Rule.expression",
    "buf.validate.FieldRules.cel_expression",
    "buf.validate.MessageRules.cel_expression",
];

/// A class of letters, as ranges between brackets.
struct Class {
    of: &'static str,
    others: &'static str,
}

impl Class {
    /// The ranges that a letter after a backslash means: a capital one means all others.
    fn ranges(&self, letter: char) -> &'static str {
        if letter.is_ascii_lowercase() {
            self.of
        } else {
            self.others
        }
    }
}

/// Whether a pattern can be a rule: RE2 knows it, and it is not too large.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    RegexBuilder::new(&for_library(pattern))
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .is_ok()
}

/// A pattern of a JSON Schema in RE2's spelling: blanks are those of JSON Schema.
pub(crate) fn of_json(pattern: &str) -> Cow<'_, str> {
    spelled(pattern, class_of_json, None)
}

/// The class after a backslash that JSON Schema and RE2 do not read alike.
fn class_of_json(letter: char) -> Option<&'static Class> {
    match letter {
        's' | 'S' => Some(&BLANKS_OF_JSON),
        _ => None,
    }
}

/// A pattern of a rule as the library takes it.
fn for_library(pattern: &str) -> Cow<'_, str> {
    spelled(pattern, class_of_re2, Some(EDGE))
}

/// The class after a backslash that RE2 and the library do not read alike.
fn class_of_re2(letter: char) -> Option<&'static Class> {
    match letter {
        'd' | 'D' => Some(&DIGITS),
        's' | 'S' => Some(&BLANKS),
        'w' | 'W' => Some(&WORDS),
        _ => None,
    }
}

/// A pattern that [`for_library`] wrote, as people and other implementations read it.
pub(crate) fn shown(pattern: &str) -> String {
    pattern.replace(EDGE, r"\b")
}

/// A pattern with some classes as their ranges, and perhaps another edge of words.
fn spelled<'p>(
    pattern: &'p str,
    class: fn(char) -> Option<&'static Class>,
    edge: Option<&str>,
) -> Cow<'p, str> {
    if !has_class(pattern.as_bytes()) {
        return pattern.into();
    }
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut letters = pattern.chars().peekable();
    let mut bracket = Bracket::None;
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        match escaped {
            None => out.push(letter),
            Some(of) => {
                let ranges = class(of).map(|found| found.ranges(of));
                match (ranges, edge) {
                    // Inside brackets it is no edge of a word.
                    (_, Some(edge)) if of == 'b' && bracket == Bracket::None => out.push_str(edge),
                    (Some(ranges), _) if bracket == Bracket::None => {
                        out.extend(["[", ranges, "]"]);
                    }
                    (Some(ranges), _) => out.push_str(ranges),
                    (None, _) => out.extend(['\\', of]),
                }
            }
        }
        bracket = match (bracket, letter, escaped) {
            (Bracket::None, '[', None) => Bracket::Begun,
            (Bracket::Begun, '^', None) => Bracket::Begun,
            // The first bracket in a class is itself.
            (Bracket::Begun, ..) => Bracket::Inside,
            // A class by name: `[:digit:]`.
            (Bracket::Inside, '[', None) if letters.peek() == Some(&':') => Bracket::Inside,
            (Bracket::Inside, ']', None) => Bracket::None,
            (bracket, ..) => bracket,
        };
    }
    out.into()
}

/// Kind of bracket in which a letter of a pattern is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    None,
    /// After the bracket that begins a class.
    Begun,
    Inside,
}

/// Whether a class could be named in this text.
fn has_class(text: &[u8]) -> bool {
    text.windows(2)
        .any(|pair| matches!(pair, [b'\\', letter] if CLASSES.contains(letter)))
}

/// A serialized `google.protobuf.FileDescriptorProto` with its patterns as the library takes them.
pub(crate) fn file_for_library(file: Vec<u8>) -> Vec<u8> {
    if !has_class(&file) {
        return file;
    }
    // Not the pool of the rules' library: it lacks the fields that lead in circles.
    let Some(mut read) = whole_pool().and_then(|pool| read_file(pool, &file)) else {
        return file;
    };
    rewrite(&mut read);
    prost::Message::encode_to_vec(&read)
}

/// Reads a serialized `google.protobuf.FileDescriptorProto`, with its options.
fn read_file(pool: &DescriptorPool, file: &[u8]) -> Option<DynamicMessage> {
    let message = pool.get_message_by_name("google.protobuf.FileDescriptorProto")?;
    DynamicMessage::decode(message, file).ok()
}

/// Rewrites all patterns in a message.
fn rewrite(message: &mut DynamicMessage) {
    for (field, value) in message.fields_mut() {
        rewrite_value(field.full_name(), value);
    }
    for (field, value) in message.extensions_mut() {
        rewrite_value(field.full_name(), value);
    }
}

fn rewrite_value(field: &str, value: &mut Value) {
    match value {
        Value::Message(inner) => rewrite(inner),
        Value::List(values) => {
            for value in values {
                rewrite_value(field, value);
            }
        }
        Value::String(text) if PATTERNS.contains(&field) => *text = for_library(text).into_owned(),
        Value::String(text) if EXPRESSIONS.contains(&field) => *text = expression_for_library(text),
        _ => {}
    }
}

/// An expression with the patterns that stand in its calls of `matches`.
fn expression_for_library(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some((before, after)) = rest.split_once(MATCHES) {
        out.extend([before, MATCHES]);
        rest = after;
        let trimmed = after.trim_start();
        if let Some(literal) = Literal::read(trimmed) {
            let (blanks, _) = after.split_at(after.len() - trimmed.len());
            out.extend([blanks, &literal.text]);
            rest = literal.behind;
        }
    }
    out.push_str(rest);
    out
}

/// The call of an expression that takes a pattern.
const MATCHES: &str = "matches(";

/// A string literal of an expression.
struct Literal<'t> {
    /// The literal, with its pattern as the library takes it.
    text: String,
    /// The expression after it.
    behind: &'t str,
}

impl<'t> Literal<'t> {
    /// Reads the literal that a text begins with. `None` if it begins with none, or if the literal
    /// has another escape than that of a backslash.
    fn read(text: &'t str) -> Option<Self> {
        let (is_raw, quoted) = match text.strip_prefix(['r', 'R']) {
            Some(quoted) => (true, quoted),
            None => (false, text),
        };
        // The long quotes first: the short ones are how they begin.
        let quote = ["'''", "\"\"\"", "'", "\""]
            .into_iter()
            .find(|quote| quoted.starts_with(quote))?;
        let (content, behind) = quoted.strip_prefix(quote)?.split_once(quote)?;
        if is_raw {
            let pattern = for_library(content);
            let text = format!("r{quote}{pattern}{quote}");
            return Some(Self { text, behind });
        }
        if content.replace(r"\\", "").contains('\\') {
            return None;
        }
        let pattern = content.replace(r"\\", "\\");
        let pattern = for_library(&pattern).replace('\\', r"\\");
        let text = format!("{quote}{pattern}{quote}");
        Some(Self { text, behind })
    }
}

#[cfg(test)]
mod tests {
    use prost_protovalidate::regex::Regex;

    use super::*;

    /// Whether a pattern of a rule finds something in a text.
    fn finds(pattern: &str, text: &str) -> bool {
        Regex::new(&for_library(pattern)).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_those_of_ascii() {
        for (pattern, fits, not) in [
            (r"^\d{2,4}$", "123", "\u{e56}\u{1955}"),
            (r"^\D$", "\u{e56}", "1"),
            (r"^\w+$", "a_1", "é"),
            (r"^\W$", "é", "_"),
            (r"^[\w-]+$", "a-b", "é"),
            (r"^[^\W_]+$", "a1", "_"),
            (r"^[\D]$", "é", "5"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^[\S]$", "\u{b}", "\t"),
            (r"^a\b", "aé", "ab"),
            (r"^[]\d]+$", "]1", "\u{e56}"),
            (r"^[[:digit:]\d]+$", "1", "\u{e56}"),
            (r"^\\d$", r"\d", "1"),
        ] {
            assert!(
                finds(pattern, fits) && !finds(pattern, not),
                "{pattern}: {}",
                for_library(pattern)
            );
            assert!(is_pattern(pattern));
        }
        assert_eq!(shown(&for_library(r"\bx")), r"\bx");
        assert_eq!(for_library("^[a-z]$"), "^[a-z]$");
    }

    #[test]
    fn blanks_of_a_json_schema_are_spelled_out() {
        let blank = of_json(r"^\s$");
        for text in ["\u{a0}", "\u{feff}", "\u{3000}", "\u{b}", " "] {
            assert!(finds(&blank, text), "{text:?}");
            assert!(
                !finds(&of_json(r"^\S$"), text) && !finds(&of_json(r"^[^\s]$"), text),
                "{text:?}"
            );
        }
        assert!(!finds(&blank, "\u{200b}") && finds(&of_json(r"^[\S]$"), "\u{200b}"));
        assert_eq!(of_json(r"^\d\w\b$"), r"^\d\w\b$");
    }

    #[test]
    fn patterns_in_expressions_are_too() {
        for (expression, expected) in [
            (
                r"this.matches(r'^\d$') && this != '\\d'",
                r"this.matches(r'^[0-9]$') && this != '\\d'",
            ),
            (
                r#"this.matches("^\\w+$")"#,
                r#"this.matches("^[0-9A-Z_a-z]+$")"#,
            ),
            (r"this.matches( '\\b')", r"this.matches( '(?-u:\\b)')"),
            (r"this.matches('\x41\\d')", r"this.matches('\x41\\d')"),
            ("this.matches(other)", "this.matches(other)"),
        ] {
            assert_eq!(expression_for_library(expression), expected);
        }
    }
}
