//! Others' JSON as a reader of ours sees it: on one line, with nothing hidden in its texts. Must not know what it says.

use std::str::Chars;

use client::visible::{is_hidden, lines};
use serde_json::value::RawValue;

/// A text in which nothing is hidden.
pub(super) fn text(text: &str) -> String {
    lines(text)
}

/// The same JSON on one line: white space between tokens is gone, and every hidden character in a text has become `\u{...}`,
/// however it was written. Line feeds and tabs stay. None if it is no JSON.
pub(super) fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(plain(json)).ok()
}

/// How such a JSON begins: so many bytes at most.
pub(super) fn beginning(json: &str, bytes_max: usize) -> String {
    let mut out = plain(json);
    let end = (0..=bytes_max.min(out.len())).rev().find(|end| out.is_char_boundary(*end));
    out.truncate(end.unwrap_or(0));
    out
}

fn plain(json: &str) -> String {
    let (mut out, mut rest, mut inside) = (String::with_capacity(json.len()), json.chars(), false);
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                inside = !inside;
                out.push(c);
            }
            '\\' if inside => escape(&mut rest, &mut out),
            c if inside => put(&mut out, c),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

/// Writes a character of a text; what is hidden in its visible form, whose backslash is escaped.
fn put(out: &mut String, c: char) {
    if is_hidden(c) {
        out.push('\\');
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}

/// What follows a backslash.
fn escape(rest: &mut Chars<'_>, out: &mut String) {
    match rest.next() {
        Some('u') => unicode(rest, out),
        Some('b') => put(out, '\u{8}'),
        Some('f') => put(out, '\u{c}'),
        Some('r') => put(out, '\r'),
        Some(other) => out.extend(['\\', other]),
        None => {}
    }
}

/// Four hexadecimal digits behind `\u`, or two times four.
fn unicode(rest: &mut Chars<'_>, out: &mut String) {
    let before = rest.as_str();
    let Some(unit) = four(rest) else { return };
    let (mut c, mut written) = (char::from_u32(unit), 4);
    if (0xD800..0xDC00).contains(&unit) {
        let mut ahead = rest.clone();
        let low =
            (ahead.next() == Some('\\') && ahead.next() == Some('u')).then(|| four(&mut ahead)).flatten();
        if let Some(low @ 0xDC00..0xE000) = low {
            c = char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            written = 10;
            *rest = ahead;
        }
    }
    match c {
        Some('\n') => out.push_str("\\n"),
        Some('\t') => out.push_str("\\t"),
        Some(c) if is_hidden(c) => put(out, c),
        // As it was spelled.
        Some(_) => {
            out.push_str("\\u");
            out.push_str(before.get(..written).unwrap_or_default());
        }
        // Half of a pair is no character.
        None => out.push_str(&format!("\\\\u{{{unit:x}}}")),
    }
}

fn four(rest: &mut Chars<'_>) -> Option<u32> {
    let digits = rest.as_str().get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    rest.by_ref().take(4).for_each(drop);
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_and_all_else_is_as_it_was() {
        let check = |json: &str, expected: &str| {
            assert_eq!(raw(json).unwrap().get(), expected, "{json}");
        };
        check(" {\n \"a\" : [ 1.0 , -0, 1e400 ],\r\n\"b\":{} }", r#"{"a":[1.0,-0,1e400],"b":{}}"#);
        check(r#""a\nb\tc\"\\\/d""#, r#""a\nb\tc\"\\\/d""#);
        check("\"ab\u{202e}c\u{200b}\"", r#""ab\\u{202e}c\\u{200b}""#);
        check(r#""ab\u202ec\u200B""#, r#""ab\\u{202e}c\\u{200b}""#);
        check(r#""\u0000\b\f\r\u001b[31m\u000a\u0009""#, r#""\\u{0}\\u{8}\\u{c}\\u{d}\\u{1b}[31m\n\t""#);
        // A tag character, as a pair; a face, which is none.
        check(r#""\udb40\udc41\ud83d\ude00""#, r#""\\u{e0041}\ud83d\ude00""#);
        check(r#""\ud83dx\ude00""#, r#""\\u{d83d}x\\u{de00}""#);
        check(r#""\u0022 \u00fc \\u202e""#, r#""\u0022 \u00fc \\u202e""#);
        check(r#"{"\u202ekey":null}"#, r#"{"\\u{202e}key":null}"#);
    }

    #[test]
    fn a_beginning_ends_between_characters() {
        assert_eq!(beginning("{ \"a\": \"üü\" }", 7), "{\"a\":\"");
        assert_eq!(beginning("{ \"a\": \"üü\" }", 8), "{\"a\":\"ü");
        assert_eq!(beginning("{}", 8), "{}");
    }
}
