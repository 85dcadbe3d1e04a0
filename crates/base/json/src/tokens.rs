//! Lexer: the tokens of a value in order, without recursion.

use crate::error::JsonError;
use crate::scan::string_end;
use crate::span::Span;
use crate::text::{check, is_space};

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

/// Depth of a value: the most objects and arrays that lie inside each other. Its syntax is not
/// checked.
#[must_use]
pub fn nesting(raw: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for token in Tokens::new(raw) {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            Token::Comma | Token::Colon | Token::Text(_) | Token::Plain(_) => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The tokens of one value.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    raw: &'a [u8],
    /// The beginning of the latest token.
    start: usize,
    /// The end of the latest token.
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of `raw`, whose syntax is not checked. A text that is no JSON, or is cut off, is
    /// cut into tokens all the same, the last of which may end too early.
    #[must_use]
    pub fn new(raw: &'a [u8]) -> Self {
        Self {
            raw,
            start: 0,
            at: 0,
        }
    }

    /// The tokens of `raw`, after a check of its syntax.
    ///
    /// # Errors
    /// [`JsonError::Syntax`] when `raw` is not one JSON value.
    pub(crate) fn checked(raw: &'a [u8]) -> Result<Self, JsonError> {
        check(raw)?;
        Ok(Self::new(raw))
    }

    /// The place of the latest token; empty before the first.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Span {
        Span {
            start: self.start,
            end: self.at,
        }
    }

    /// Moves past the next value with all that is in it; [`Tokens::span`] then ends where the value
    /// ends.
    pub fn skip_value(&mut self) {
        let mut depth = 0_usize;
        for token in self.by_ref() {
            match token {
                Token::Open(_) => depth += 1,
                Token::Close(_) => depth = depth.saturating_sub(1),
                Token::Comma | Token::Colon | Token::Text(_) | Token::Plain(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// The bytes of the latest token.
    #[inline]
    fn token(&self) -> &'a [u8] {
        self.span().of(self.raw)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        let mut start = self.at;
        let mut byte = *self.raw.get(start)?;
        while byte <= b' ' && is_space(byte) {
            start += 1;
            byte = *self.raw.get(start)?;
        }
        self.start = start;
        self.at = start + 1;
        Some(match byte {
            b'{' | b'[' => Token::Open(byte),
            b'}' | b']' => Token::Close(byte),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                self.at = string_end(self.raw, self.at);
                Token::Text(self.token())
            }
            _ => {
                let rest = self.raw.get(self.at..)?;
                self.at += rest.iter().take_while(|byte| !ends_plain(**byte)).count();
                Token::Plain(self.token())
            }
        })
    }
}

/// Whether a byte ends a number, `true`, `false` or `null`.
fn ends_plain(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b',' | b'}' | b']')
}
