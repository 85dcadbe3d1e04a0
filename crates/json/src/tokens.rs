//! Lexer: the tokens of a value in order, without recursion.

use serde_json::value::RawValue;

use crate::error::JsonError;
use crate::text::is_space;

/// One token, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{` or `[`.
    Open(u8),
    /// `}` or `]`.
    Close(u8),
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// A string, quotes included: a key or a value.
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null`.
    Plain(&'a [u8]),
}

/// The tokens of one value.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    raw: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Checks the syntax of the whole value first.
    ///
    /// # Errors
    /// [`JsonError::Syntax`] when `raw` is not one JSON value.
    pub fn checked(raw: &'a [u8]) -> Result<Self, JsonError> {
        serde_json::from_slice::<&RawValue>(raw).map_err(|error| JsonError::syntax(&error))?;
        Ok(Self { raw, at: 0 })
    }

    /// The bytes from `start` to where the cursor now is.
    fn since(&self, start: usize) -> &'a [u8] {
        self.raw.get(start..self.at).unwrap_or_default()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.raw.get(self.at..)?;
        self.at += rest.iter().take_while(|byte| is_space(**byte)).count();
        let start = self.at;
        let byte = *self.raw.get(start)?;
        self.at += 1;
        Some(match byte {
            b'{' | b'[' => Token::Open(byte),
            b'}' | b']' => Token::Close(byte),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                self.at = string_end(self.raw, self.at);
                Token::Text(self.since(start))
            }
            _ => {
                let ends = |byte: &&u8| !is_space(**byte) && !matches!(**byte, b',' | b'}' | b']');
                self.at += self.raw.get(self.at..)?.iter().take_while(ends).count();
                Token::Plain(self.since(start))
            }
        })
    }
}

/// One past the closing quote of the string whose first byte inside is at `from`.
fn string_end(raw: &[u8], mut from: usize) -> usize {
    while let Some(rest) = raw.get(from..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(at) if rest.get(at) == Some(&b'\\') => from += at + 2,
            Some(at) => return from + at + 1,
            None => break,
        }
    }
    raw.len()
}
