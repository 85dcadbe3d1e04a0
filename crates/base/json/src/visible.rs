//! Safe text for people: every character of a stranger's text visible, so that none hides, moves or
//! recolours others.

use crate::tokens::{Token, Tokens};

/// Whether a character has no shape of its own, or changes how others are shown: controls,
/// direction marks, zero-width and tag characters, variation selectors.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// One line: every hidden character, line feeds and tabs too, becomes `\u{...}`.
#[must_use]
pub fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Several lines: line feeds and tabs stay.
#[must_use]
pub fn lines(text: &str) -> String {
    escape(text, |c| c == '\n' || c == '\t')
}

/// A JSON value on one line, without white space between tokens: every hidden character in a
/// string, however it was spelled, becomes `\u{...}` with its backslash escaped, and so does half a
/// surrogate pair. Line feeds and tabs stay, as `\n` and `\t`. All else keeps its spelling.
///
/// `json` must have been read before: a text that is no JSON does not become JSON.
#[must_use]
pub fn value(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut tokens = Tokens::new(json.as_bytes());
    while let Some(token) = tokens.next() {
        let span = tokens.span();
        let raw = json.get(span.start..span.end).unwrap_or_default();
        let text = raw
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        match (token, text) {
            (Token::Text(_), Some(text)) => {
                out.push('"');
                Pieces(text).for_each(|piece| append(&mut out, piece));
                out.push('"');
            }
            (
                Token::Text(_)
                | Token::Plain(_)
                | Token::Open(_)
                | Token::Close(_)
                | Token::Comma
                | Token::Colon,
                _,
            ) => out.push_str(raw),
        }
    }
    out
}

/// A JSON value with every hidden character of its strings as an escape of JSON, so that it can be
/// seen and edited. Line feeds, tabs and carriage returns between tokens stay.
///
/// `json` must have been read before.
#[must_use]
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) && !matches!(c, '\n' | '\r' | '\t') {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out += &format!("\\u{unit:04x}"));
        } else {
            out.push(c);
        }
    }
    out
}

/// A JSON value over several lines, indented by two spaces from two on: every token keeps its
/// spelling, and every hidden character becomes `\u{...}`.
///
/// `json` must have been read before.
#[must_use]
pub fn pretty(json: &str) -> String {
    let mut out = String::from("  ");
    let mut depth = 1_usize;
    let mut opened = false;
    let mut tokens = Tokens::new(json.as_bytes());
    while let Some(token) = tokens.next() {
        let closes = matches!(token, Token::Close(_));
        depth = depth.saturating_sub(usize::from(closes));
        // `{}` and `[]` stay on one line.
        if opened != closes {
            begin_line(&mut out, depth);
        }
        out += json
            .get(tokens.span().start..tokens.span().end)
            .unwrap_or_default();
        opened = matches!(token, Token::Open(_));
        match token {
            Token::Open(_) => depth += 1,
            Token::Comma => begin_line(&mut out, depth),
            Token::Colon => out.push(' '),
            Token::Close(_) | Token::Text(_) | Token::Plain(_) => {}
        }
    }
    lines(&out)
}

fn begin_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn append(out: &mut String, piece: Piece<'_>) {
    match piece.read {
        Ok('\n') => out.push_str("\\n"),
        Ok('\t') => out.push_str("\\t"),
        Ok(c) if is_hidden(c) => {
            out.push('\\');
            out.extend(c.escape_unicode());
        }
        Ok(_) => out.push_str(piece.raw),
        Err(unit) => out.push_str(&format!("\\\\u{{{unit:x}}}")),
    }
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && !keep(c) {
            out.extend(c.escape_unicode())
        } else {
            out.push(c)
        }
    }
    out
}

/// One character of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece<'a> {
    /// As it was spelled.
    raw: &'a str,
    /// The character, or the code unit of half a surrogate pair.
    read: Result<char, u32>,
}

/// The characters of the text between a string's quotes. An escape that JSON does not have is read
/// as plain characters.
#[derive(Debug, Clone)]
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.0.chars().next()?;
        let escape = if first == '\\' {
            read_escape(self.0)
        } else {
            None
        };
        let (len, read) = escape.unwrap_or((first.len_utf8(), Ok(first)));
        let (raw, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(Piece { raw, read })
    }
}

/// Reads the escape that the text begins with: its length in bytes, and the character. A surrogate
/// pair is one escape.
fn read_escape(text: &str) -> Option<(usize, Result<char, u32>)> {
    let c = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((2, Ok(c)))
}

/// As for other escapes: the length of the escape, and its character; `Err` is half a surrogate
/// pair.
fn unicode(text: &str) -> Option<(usize, Result<char, u32>)> {
    let unit = code_unit(text)?;
    if let Some(c) = char::from_u32(unit) {
        return Some((6, Ok(c)));
    }
    let low = text
        .get(6..)
        .and_then(code_unit)
        .filter(|low| (0xDC00..0xE000).contains(low));
    match low {
        // Below it is the first half of a pair, which the second half must follow.
        Some(low) if unit < 0xDC00 => {
            let c = char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?;
            Some((12, Ok(c)))
        }
        _ => Some((6, Err(unit))),
    }
}

/// The code unit of `\u` and four hexadecimal digits.
fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::object_of;

    #[test]
    fn every_hidden_character_of_a_text_becomes_visible() {
        for (text, expect) in [
            ("plain, ümlaut, 漢字", "plain, ümlaut, 漢字"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\nb\tc\r", "a\\u{a}b\\u{9}c\\u{d}"),
            ("abc\u{202e}txt.exe", "abc\\u{202e}txt.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{2066}\u{e0041}\u{9b}", "\\u{2066}\\u{e0041}\\u{9b}"),
        ] {
            assert_eq!(line(text), expect);
        }
        assert_eq!(lines("a\nb\tc\r"), "a\nb\tc\\u{d}");
    }

    #[test]
    fn every_hidden_character_of_json_becomes_visible() {
        for (json, expect) in [
            (
                " {\n \"a\" : [ 1.0 , -0, 1e400 ],\r\n\"b\":{} }",
                r#"{"a":[1.0,-0,1e400],"b":{}}"#,
            ),
            (r#""a\nb\tc\"\\\/d""#, r#""a\nb\tc\"\\\/d""#),
            ("\"ab\u{202e}c\"", r#""ab\\u{202e}c""#),
            (r#""ab\u202ec\u200B""#, r#""ab\\u{202e}c\\u{200b}""#),
            (
                r#""\u0000\b\f\r\u000a\u0009""#,
                r#""\\u{0}\\u{8}\\u{c}\\u{d}\n\t""#,
            ),
            (
                r#""\udb40\udc41\ud83d\ude00""#,
                r#""\\u{e0041}\ud83d\ude00""#,
            ),
            (
                r#""\ud83dx\ude00\ud83d\ud83d\ude00""#,
                r#""\\u{d83d}x\\u{de00}\\u{d83d}\ud83d\ude00""#,
            ),
            (r#""\u0022 \u00fc \\u202e""#, r#""\u0022 \u00fc \\u202e""#),
            (r#"{"\u202ekey":null}"#, r#"{"\\u{202e}key":null}"#),
        ] {
            assert_eq!(value(json), expect, "{json}");
        }
    }

    /// Strings with plain and escaped characters, hidden or not, and halves of pairs.
    fn string() -> impl Strategy<Value = String> {
        let plain = any::<char>().prop_filter("escaped", |c| *c >= ' ' && !matches!(c, '"' | '\\'));
        let piece = prop_oneof![
            plain.prop_map(String::from),
            any::<u16>().prop_map(|unit| format!("\\u{unit:04x}")),
            prop::sample::select(b"\"\\/bfnrt".to_vec())
                .prop_map(|byte| format!("\\{}", char::from(byte))),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    }

    proptest! {
        #[test]
        fn visible_json_is_json_without_hidden_characters(text in object_of(string())) {
            let shown = value(&text);
            prop_assert!(!shown.chars().any(is_hidden));
            let tree: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let texts = tree.as_object().unwrap().values().filter_map(|value| value.as_str());
            for text in texts {
                prop_assert!(!text.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'));
            }
            prop_assert_eq!(value(&shown), shown);
        }
    }

    #[test]
    fn json_keeps_its_spelling_and_shows_hidden_characters() {
        let check =
            |json: &str, lines: &[&str]| assert_eq!(pretty(json), lines.join("\n"), "{json}");
        check("1e400", &["  1e400"]);
        check("{ }", &["  {}"]);
        check(
            r#"{"a":[1.0,-0, "x,\"{"],"b":{}}"#,
            &[
                "  {",
                r#"    "a": ["#,
                "      1.0,",
                "      -0,",
                r#"      "x,\"{""#,
                "    ],",
                r#"    "b": {}"#,
                "  }",
            ],
        );
        check("\"a\u{202e}b\"", &["  \"a\\u{202e}b\""]);
        check("\"a\\\\\"", &["  \"a\\\\\""]);
    }

    #[test]
    fn escapes_of_json_stand_for_hidden_characters_only() {
        for (json, expect) in [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (
                "{\n\t\"a\": \"\u{202e}x\u{7f}\"}",
                "{\n\t\"a\": \"\\u202ex\\u007f\"}",
            ),
            ("\"\u{e0041}\u{fc}\"", "\"\\udb40\\udc41\u{fc}\""),
        ] {
            assert_eq!(escaped(json), expect);
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(expect), read(json));
        }
    }
}
