//! Compact text: the same value without white space between its tokens.

use crate::error::JsonError;
use crate::tokens::{Token, Tokens};

/// A value without white space between its tokens. Numbers, strings and the order of members stay
/// as they were spelled.
///
/// # Errors
/// [`JsonError::Syntax`] when `raw` is not one JSON value.
pub fn compact(raw: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::with_capacity(raw.len());
    for token in Tokens::checked(raw)? {
        match token {
            Token::Open(byte) | Token::Close(byte) => out.push(byte),
            Token::Comma => out.push(b','),
            Token::Colon => out.push(b':'),
            Token::Text(text) | Token::Plain(text) => out.extend_from_slice(text),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_between_tokens_goes() {
        let check = |raw: &str, expected: &str| {
            assert_eq!(
                String::from_utf8(compact(raw.as_bytes()).unwrap()).unwrap(),
                expected,
                "{raw}"
            );
        };
        check(
            " {\n \"b\" : [ 1.0 , -0, 1e400 ],\r\n\"a\":\t{} } ",
            r#"{"b":[1.0,-0,1e400],"a":{}}"#,
        );
        check(r#"[ " a \u0041\/ " , null ]"#, r#"[" a \u0041\/ ",null]"#);
        check(" 7 ", "7");
        for bad in ["", "{", "1 2", "{\"a\" 1}"] {
            assert!(compact(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
