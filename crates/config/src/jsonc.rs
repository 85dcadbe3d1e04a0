//! JSON with comments and trailing commas, as editors accept it in their files.

use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

/// What editors accept in their JSON files: comments and trailing commas, nothing else that JSON has not.
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

/// The text with blanks in the places of comments and trailing commas, so that it is JSON and every place stays; `None` if it is none
/// even so.
pub(crate) fn without_comments(text: &str) -> Option<String> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    let tokens = parse_to_ast(text, &collect, &OPTIONS).ok()?.tokens?;
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |start: usize, end: usize| {
        let place = bytes.get_mut(start..end).into_iter().flatten();
        place.filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    };
    let mut comma = None;
    for token in tokens {
        match token.token {
            Token::CommentLine(_) | Token::CommentBlock(_) => blank(token.range.start, token.range.end),
            Token::Comma => comma = Some(token.range),
            Token::CloseBrace | Token::CloseBracket => {
                if let Some(comma) = comma.take() {
                    blank(comma.start, comma.end);
                }
            }
            _ => comma = None,
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_and_trailing_commas_become_blanks_and_all_else_stays() {
        for (text, expect) in [
            ("{}", Some("{}")),
            ("{ // x\n \"a\": [1, 2, /* , */ ], }", Some("{     \n \"a\": [1, 2           ]  }")),
            (r#"{"a": "// no, /* no */ ,]"}"#, Some(r#"{"a": "// no, /* no */ ,]"}"#)),
            ("/* \u{e9} */{}", Some("         {}")),
            ("{\"a\": 1,, }", None),
            ("{'a': 1}", None),
            ("{a: 1}", None),
        ] {
            let found = without_comments(text);
            assert_eq!(found.as_deref(), expect, "{text}");
            assert!(found.is_none_or(|found| found.len() == text.len()), "{text}");
        }
    }
}
