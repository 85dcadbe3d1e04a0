//! Sets of ASCII characters and shapes of short texts, such as ids.

use std::fmt;

use crate::fit::Fit;
use crate::spelling;

/// The longest text that a set of characters or a shape admits, in characters.
pub const IDENTIFIER_CHARS_MAX: u32 = 64;
/// Characters that a set may have beside letters and digits. None of them means something to a
/// shell, a path or a pattern; none may begin a text, so that none is an option or the name of a
/// file with arguments.
const PUNCTUATION: &[u8] = b"+,-:@_";
/// The classes of characters, each with its sign in a shape.
const CLASSES: [(u8, u8, char); 3] = [(b'A', b'Z', 'A'), (b'a', b'z', 'a'), (b'0', b'9', '9')];

/// Why a text is no [`CharSet`] or [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CharsError {
    /// Empty.
    #[error("name at least one character, as in `A-Z0-9`")]
    Empty,
    /// A character that no set may have.
    #[error("a set has letters, digits and `+` `,` `-` `:` `@` `_`; `-` stands at its end")]
    Character,
    /// A range of which the ends are not of one class, or in the wrong order.
    #[error("a range goes up within one class, as in `A-Z`, `a-f` or `0-4`")]
    Range,
    /// No runs `A`, `a`, `9` and single characters between them.
    #[error("a shape has runs `A`, `a` and `9`, and characters between them, as in `A-9`")]
    Shape,
}

/// A set of ASCII letters, digits and a few other characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharSet(u128);

impl CharSet {
    /// Reads a set, such as `A-Z0-9_-`.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(text: &str) -> Result<Self, CharsError> {
        let mut set = Self(0);
        let mut rest = text.as_bytes();
        loop {
            rest = match rest {
                [] => break,
                [low, b'-', high, rest @ ..] => {
                    set.0 |= range(*low, *high)?;
                    rest
                }
                [one, rest @ ..] => {
                    let is_misplaced = *one == b'-' && !rest.is_empty();
                    if !is_allowed(*one) || is_misplaced {
                        return Err(CharsError::Character);
                    }
                    set.0 |= bit(*one);
                    rest
                }
            };
        }
        if set.0 == 0 {
            return Err(CharsError::Empty);
        }
        Ok(set)
    }

    /// The whole classes of a text's letters and digits, and its other characters; `None` if it has
    /// one that no set may have.
    #[must_use]
    pub fn of_classes(text: &str) -> Option<Self> {
        if !text.bytes().all(is_allowed) {
            return None;
        }
        let sets = text.bytes().map(|byte| match class_of(byte) {
            Some((low, high, _)) => bits(low, high),
            None => bit(byte),
        });
        let set = sets.fold(0, |all, one| all | one);
        (set != 0).then_some(Self(set))
    }

    /// Its parts: letters and digits by their classes, each other character alone.
    pub(crate) fn classes(self) -> Vec<Self> {
        let classes = CLASSES.iter().map(|(low, high, _)| bits(*low, *high));
        let parts = classes.chain(PUNCTUATION.iter().map(|byte| bit(*byte)));
        let own = parts.map(|part| Self(part & self.0));
        own.filter(|part| part.0 != 0).collect()
    }

    /// All characters of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has all characters of `other`.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self.0 | other.0 == self.0
    }

    /// Whether it has this character.
    #[must_use]
    pub fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 & bit(byte) != 0
    }

    /// Fit of a text to the condition to consist of these characters, of which a letter or digit is
    /// the first.
    #[must_use]
    pub fn fit(self, text: &str) -> Fit {
        let begins = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && text.bytes().all(|byte| self.has(byte)) {
            return Fit::Held;
        }
        unclear_if_read_otherwise(text, |text| text.bytes().all(|byte| self.has(byte)))
    }

    /// Its characters in order.
    pub(crate) fn bytes(self) -> impl DoubleEndedIterator<Item = u8> {
        (0..128_u8).filter(move |byte| self.has(*byte))
    }
}

/// Failed, or unclear if a text would fit after a reader has normalised it.
fn unclear_if_read_otherwise(text: &str, fits: impl Fn(&str) -> bool) -> Fit {
    let read = spelling::likeness(text);
    let is_fitting = fits(&read) || fits(&read.to_uppercase());
    if is_fitting {
        Fit::Unclear
    } else {
        Fit::Failed
    }
}

fn bit(byte: u8) -> u128 {
    1_u128 << (byte & 0x7F)
}

fn bits(low: u8, high: u8) -> u128 {
    (low..=high).map(bit).fold(0, |all, one| all | one)
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || PUNCTUATION.contains(&byte)
}

fn range(low: u8, high: u8) -> Result<u128, CharsError> {
    let is_of_one_class = CLASSES
        .iter()
        .any(|(first, last, _)| first <= &low && low <= high && &high <= last);
    if !is_of_one_class {
        return Err(CharsError::Range);
    }
    Ok(bits(low, high))
}

/// The class of a letter or digit: its first, its last character, and its sign.
fn class_of(byte: u8) -> Option<(u8, u8, char)> {
    let mut classes = CLASSES.into_iter();
    classes.find(|(low, high, _)| (*low..=*high).contains(&byte))
}

impl fmt::Display for CharSet {
    /// Ranges of the classes in the order `A-Z`, `a-z`, `0-9`, then the other characters, `-` last.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (low, high, _) in CLASSES {
            let present: Vec<u8> = (low..=high).filter(|byte| self.has(*byte)).collect();
            for run in present.chunk_by(|one, next| one + 1 == *next) {
                match run {
                    [first, _, .., last] => {
                        write!(out, "{}-{}", char::from(*first), char::from(*last))?;
                    }
                    few => few
                        .iter()
                        .try_for_each(|byte| write!(out, "{}", char::from(*byte)))?,
                }
            }
        }
        let others = PUNCTUATION
            .iter()
            .filter(|byte| **byte != b'-' && self.has(**byte));
        for byte in others {
            write!(out, "{}", char::from(*byte))?;
        }
        if self.has(b'-') {
            out.write_str("-")?;
        }
        Ok(())
    }
}

/// The shape of a text: runs of letters and digits, `A` for upper case, `a` for lower case, `9` for
/// digits, with the characters between them. `A-9` is the shape of `ABC-123`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(Box<str>);

impl Shape {
    /// Reads a shape.
    ///
    /// # Errors
    /// [`CharsError::Shape`] if it is none.
    pub fn parse(text: &str) -> Result<Self, CharsError> {
        let is_sign = |byte: u8| CLASSES.iter().any(|(_, _, sign)| char::from(byte) == *sign);
        let bytes = text.as_bytes();
        let is_known = bytes
            .iter()
            .all(|byte| is_sign(*byte) || PUNCTUATION.contains(byte));
        let repeats = bytes.windows(2).any(|pair| {
            pair.first() == pair.last() && pair.first().is_some_and(|one| is_sign(*one))
        });
        let begins = bytes.first().is_some_and(|first| is_sign(*first));
        let is_short = text.len() <= usize::try_from(IDENTIFIER_CHARS_MAX).unwrap_or_default();
        if !is_known || repeats || !begins || !is_short {
            return Err(CharsError::Shape);
        }
        Ok(Self(text.into()))
    }

    /// The shape of a text; `None` if it has a character that no set may have, or does not begin
    /// with a letter or digit.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut shape = String::new();
        for byte in text.bytes() {
            if !is_allowed(byte) {
                return None;
            }
            let class = class_of(byte);
            let sign = class.map_or(char::from(byte), |(_, _, sign)| sign);
            if class.is_none() || !shape.ends_with(sign) {
                shape.push(sign);
            }
        }
        Self::parse(&shape).ok()
    }

    /// The whole classes of its runs, and its other characters.
    #[must_use]
    pub fn classes(&self) -> Option<CharSet> {
        CharSet::of_classes(&self.0)
    }

    /// Fit of a text to the condition to have one of these shapes.
    #[must_use]
    pub fn fit_one(shapes: &[Self], text: &str) -> Fit {
        let has_one = |text: &str| Self::of(text).is_some_and(|shape| shapes.contains(&shape));
        if has_one(text) {
            return Fit::Held;
        }
        unclear_if_read_otherwise(text, has_one)
    }

    /// The shape as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sets_are_read_and_printed() {
        for (text, expect) in [
            ("A-Z0-9", "A-Z0-9"),
            ("0-9A-Z", "A-Z0-9"),
            ("abc", "a-c"),
            ("ba", "ab"),
            ("a-f0-9_-", "a-f0-9_-"),
            ("x", "x"),
            ("zZ9", "Zz9"),
        ] {
            assert_eq!(CharSet::parse(text).unwrap().to_string(), expect, "{text}");
        }
        for (text, expect) in [
            ("", CharsError::Empty),
            ("a-Z", CharsError::Range),
            ("z-a", CharsError::Range),
            ("-a", CharsError::Character),
            ("a.", CharsError::Character),
            ("a/", CharsError::Character),
            ("a ", CharsError::Character),
            ("a$", CharsError::Character),
            ("a\\", CharsError::Character),
            ("é", CharsError::Character),
        ] {
            assert_eq!(CharSet::parse(text), Err(expect), "{text}");
        }
    }

    #[test]
    fn texts_of_a_set_begin_with_a_letter_or_digit() {
        let set = CharSet::parse("a-z@_-").unwrap();
        assert_eq!(set.fit("ab-c_d"), Fit::Held);
        for text in ["-a", "@a", "_a", "--output", "", "a.b", "a b", "a1", "a;b"] {
            assert_ne!(set.fit(text), Fit::Held, "{text}");
        }
        for text in ["a\u{200b}b", "ａｂ", "AB", "а"] {
            assert_eq!(set.fit(text), Fit::Unclear, "{text}");
        }
        assert_eq!(set.fit("a9"), Fit::Failed);
    }

    #[test]
    fn shapes_are_runs() {
        for (text, shape) in [
            ("ABC-123", "A-9"),
            ("2026-12-06", "9-9-9"),
            ("a1B2", "a9A9"),
            ("x", "a"),
        ] {
            assert_eq!(Shape::of(text).unwrap().as_str(), shape);
        }
        for text in ["", "-a", "a b", "a.b", "é", "a/b"] {
            assert_eq!(Shape::of(text), None, "{text}");
        }
        for text in ["AA", "B", "", "-9", "a b"] {
            assert_eq!(Shape::parse(text), Err(CharsError::Shape), "{text}");
        }
        let shapes = [Shape::parse("A-9").unwrap()];
        assert_eq!(Shape::fit_one(&shapes, "X-77"), Fit::Held);
        assert_eq!(Shape::fit_one(&shapes, "x-77"), Fit::Unclear);
        assert_eq!(Shape::fit_one(&shapes, "77-X"), Fit::Failed);
        assert_eq!(Shape::fit_one(&shapes, "X-77\u{200b}"), Fit::Unclear);
    }

    proptest! {
        #[test]
        fn a_printed_set_is_the_set(text in "[A-Za-z0-9+,:@_]{1,12}-?") {
            let set = CharSet::parse(&text).unwrap();
            prop_assert_eq!(CharSet::parse(&set.to_string()), Ok(set));
        }
    }
}
