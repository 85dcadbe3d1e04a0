//! Texts and JSON of other participants, as the built-in tools show them: every hidden character is
//! visible.

use json::visible;
use serde_json::value::RawValue;

/// A JSON value on one line: without white space between tokens, and with every hidden character of
/// a string as `\u{...}`, however it was written. Line feeds and tabs stay. `None` if it is no
/// JSON.
pub(super) fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(visible::value(json)).ok()
}

/// The beginning of such a JSON text: at most `bytes_max` bytes.
pub(super) fn beginning(json: &str, bytes_max: usize) -> String {
    let mut out = visible::value(json);
    let end = (0..=bytes_max.min(out.len()))
        .rev()
        .find(|end| out.is_char_boundary(*end));
    out.truncate(end.unwrap_or(0));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_all_else_stays() {
        let check = |json: &str, expected: &str| {
            assert_eq!(raw(json).unwrap().get(), expected, "{json}");
        };
        check(
            " {\n \"a\" : [ 1.0 , -0, 1e400 ],\r\n\"b\":{} }",
            r#"{"a":[1.0,-0,1e400],"b":{}}"#,
        );
        check(r#""a\nb\tc\"\\\/d""#, r#""a\nb\tc\"\\\/d""#);
        check("\"ab\u{202e}c\u{200b}\"", r#""ab\\u{202e}c\\u{200b}""#);
        check(r#""ab\u202ec\u200B""#, r#""ab\\u{202e}c\\u{200b}""#);
        check(
            r#""\u0000\b\f\r\u001b[31m\u000a\u0009""#,
            r#""\\u{0}\\u{8}\\u{c}\\u{d}\\u{1b}[31m\n\t""#,
        );
        // A tag character, as a pair; a face, which is none.
        check(
            r#""\udb40\udc41\ud83d\ude00""#,
            r#""\\u{e0041}\ud83d\ude00""#,
        );
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
