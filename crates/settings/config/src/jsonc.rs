//! JSON with comments and trailing commas, as editors accept it in their files.

use jsonc_parser::tokens::Token;
use jsonc_parser::{ParseOptions, Scanner, ScannerOptions};

/// Syntax that editors accept in their JSON files: comments and trailing commas, nothing else that
/// JSON has not.
pub const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Syntax of single tokens.
const SCANNED: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: OPTIONS.allow_single_quoted_strings,
    allow_hexadecimal_numbers: OPTIONS.allow_hexadecimal_numbers,
    allow_unary_plus_numbers: OPTIONS.allow_unary_plus_numbers,
    allow_bare_decimal_point_numbers: OPTIONS.allow_bare_decimal_point_numbers,
    allow_non_finite_numbers: OPTIONS.allow_non_finite_numbers,
    allow_extended_string_escapes: OPTIONS.allow_extended_string_escapes,
};

/// Token before a comma, which decides whether the comma is a trailing one.
#[derive(PartialEq)]
enum Before {
    Value,
    /// A value, and the comma at this place.
    Comma(usize),
    Nothing,
}

/// The text with blanks in the places of comments and trailing commas, so that it is JSON if it
/// was, and every place stays. What no editor accepts either is left as it is.
pub(crate) fn without_comments(text: &str) -> String {
    let mut scanner = Scanner::new(text, &SCANNED);
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |start: usize, end: usize| {
        let place = bytes.get_mut(start..end).into_iter().flatten();
        place
            .filter(|byte| !matches!(byte, b'\n' | b'\r'))
            .for_each(|byte| *byte = b' ');
    };
    let mut before = Before::Nothing;
    while let Ok(Some(token)) = scanner.scan() {
        let start = scanner.token_start();
        let end = scanner.token_end();
        before = match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => {
                blank(start, end);
                continue;
            }
            Token::Comma if before == Before::Value => Before::Comma(start),
            Token::CloseBrace | Token::CloseBracket => {
                if let Before::Comma(place) = before {
                    blank(place, place + 1);
                }
                Before::Value
            }
            Token::OpenBrace | Token::OpenBracket | Token::Comma | Token::Colon => Before::Nothing,
            Token::String(_)
            | Token::Word(_)
            | Token::Boolean(_)
            | Token::Number(_)
            | Token::Null => Before::Value,
        };
    }
    // Only whole tokens became blanks.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_and_trailing_commas_become_blanks_and_all_else_stays() {
        for (text, expect) in [
            ("{}", "{}"),
            (
                "{ // x\n \"a\": [1, 2, /* , */ ], }",
                "{     \n \"a\": [1, 2          ]  }",
            ),
            (
                r#"{"a": "// no, /* no */ ,]"}"#,
                r#"{"a": "// no, /* no */ ,]"}"#,
            ),
            ("/* \u{e9} */{}", "        {}"),
            // These are no JSON, and stay so.
            ("{\"a\": 1,, }", "{\"a\": 1,, }"),
            ("[,]", "[,]"),
            (
                "{ // mine\n \"a\": nothing, }",
                "{        \n \"a\": nothing, }",
            ),
            ("[1, 'a' // b", "[1, 'a' // b"),
            ("{a: 1}", "{a: 1}"),
        ] {
            let found = without_comments(text);
            assert_eq!(found, expect, "{text}");
            assert_eq!(found.len(), text.len(), "{text}");
        }
    }
}
