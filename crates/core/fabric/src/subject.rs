//! Subjects of messages and records, and patterns of subjects.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a subject or pattern.
pub const SUBJECT_BYTES_MAX: usize = 512;
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A text that is no subject, or no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no subject: tokens of letters, digits, `-`, `_` and `@`, with dots between them")]
pub struct SubjectError(String);

impl SubjectError {
    /// The error for a text, of which the beginning is shown.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.chars().take(SUBJECT_BYTES_MAX).collect())
    }
}

/// A subject: tokens with dots between them, no wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubjectName(String);

/// A pattern of subjects: `*` stands for one token, `>` at the end for one or more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubjectPattern(String);

impl SubjectName {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This subject with one more token, which may be any text: it is spelled in base 32.
    ///
    /// # Errors
    /// [`SubjectError`] when the subject would be too long.
    pub fn with_name(&self, name: &str) -> Result<SubjectName, SubjectError> {
        format!("{}.{}", self.0, token(name)).parse()
    }

    /// All subjects that begin with this one and a dot.
    #[must_use]
    pub fn all_below(&self) -> SubjectPattern {
        SubjectPattern(format!("{}.>", self.0))
    }
}

impl SubjectPattern {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a subject is one of these.
    #[must_use]
    pub fn matches(&self, subject: &SubjectName) -> bool {
        self.matches_text(&subject.0)
    }

    /// Whether a text, which may be no subject of this crate's, is one of these.
    pub(crate) fn matches_text(&self, subject: &str) -> bool {
        let mut tokens = subject.split('.');
        for wanted in self.0.split('.') {
            let Some(token) = tokens.next() else {
                return false;
            };
            match wanted {
                ">" => return true,
                "*" => {}
                text if text == token => {}
                _ => return false,
            }
        }
        tokens.next().is_none()
    }
}

/// A token that stands for any text: base 32 in small letters, after an `x`, so that it is never
/// empty.
#[must_use]
pub fn token(text: &str) -> String {
    let mut token = String::with_capacity(2 + text.len().div_ceil(5) * 8);
    token.push('x');
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in text.bytes() {
        bits = (bits << 8) | u32::from(byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            token.push(digit(bits >> held));
        }
    }
    if held > 0 {
        token.push(digit(bits << (5 - held)));
    }
    token
}

fn digit(bits: u32) -> char {
    let at = usize::try_from(bits & 31).unwrap_or_default();
    DIGITS.get(at).copied().map_or('a', char::from)
}

fn is_token(token: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@' | b'$');
    !token.is_empty() && token.bytes().all(may)
}

impl FromStr for SubjectName {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        if text.len() <= SUBJECT_BYTES_MAX && text.split('.').all(is_token) {
            return Ok(Self(text.to_owned()));
        }
        Err(SubjectError::of(text))
    }
}

impl FromStr for SubjectPattern {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let mut tokens = text.split('.').peekable();
        let mut is_one = text.len() <= SUBJECT_BYTES_MAX;
        while let Some(token) = tokens.next() {
            is_one &= match token {
                ">" => tokens.peek().is_none(),
                "*" => true,
                token => is_token(token),
            };
        }
        if is_one {
            return Ok(Self(text.to_owned()));
        }
        Err(SubjectError::of(text))
    }
}

impl From<&SubjectName> for SubjectPattern {
    fn from(subject: &SubjectName) -> Self {
        Self(subject.0.clone())
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SubjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_tokens() {
        for (pattern, subject, expect) in [
            ("pm.a.j", "pm.a.j", true),
            ("pm.a.j", "pm.a.j.1", false),
            ("pm.a.j.>", "pm.a.j", false),
            ("pm.a.j.>", "pm.a.j.1", true),
            ("pm.a.j.>", "pm.a.j.1.2", true),
            ("pm.*.j", "pm.a.j", true),
            ("pm.*.j", "pm.j", false),
            ("pm.*", "pm.ab", true),
            ("pm.a", "pm.ab", false),
            (">", "pm", true),
        ] {
            let pattern: SubjectPattern = pattern.parse().unwrap();
            let subject: SubjectName = subject.parse().unwrap();
            assert_eq!(pattern.matches(&subject), expect, "{pattern} {subject}");
        }
    }

    #[test]
    fn a_subject_is_tokens_without_wildcards() {
        let long = "a".repeat(SUBJECT_BYTES_MAX);
        for (text, subject, pattern) in [
            ("a.b-c_d.@e", true, true),
            (long.as_str(), true, true),
            (&format!("{long}a"), false, false),
            ("", false, false),
            ("a..b", false, false),
            (".a", false, false),
            ("a b", false, false),
            ("a\r\nPUB x", false, false),
            ("a.*", false, true),
            ("a.>", false, true),
            ("a.>.b", false, false),
            ("a.b*", false, false),
        ] {
            assert_eq!(text.parse::<SubjectName>().is_ok(), subject, "{text}");
            assert_eq!(text.parse::<SubjectPattern>().is_ok(), pattern, "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_text_has_a_token_of_its_own(
            texts in proptest::collection::hash_set(".{0,12}", 0..10),
        ) {
            let tokens: HashSet<String> = texts.iter().map(|text| token(text)).collect();
            prop_assert_eq!(tokens.len(), texts.len());
            prop_assert!(tokens.iter().all(|token| is_token(token)));
        }
    }
}
