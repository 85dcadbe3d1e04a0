//! Test of one value: the kinds of conditions that a rule has for a member.

use std::borrow::Cow;

use crate::arguments::ArgumentValue;
use crate::characters::{CharSet, Shape};
use crate::constant::{Constant, ValueType};
use crate::decimal::{Decimal, SpelledNumber};
use crate::fit::Fit;
use crate::path::PathRoot;
use crate::range::CountRange;
use crate::spelling;
use crate::url::UrlRoot;

/// The most constants of one test.
pub const CONSTANTS_MAX: usize = 8;
/// The most shapes of one test.
pub const SHAPES_MAX: usize = 3;

/// The test of one value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueTest {
    /// Canonical bytes equal to one of these constants, sorted. One constant is `equals`.
    OneOf(Vec<Constant>),
    /// A number without fraction in this range, both ends included.
    Integer(Decimal, Decimal),
    /// A number with fraction in this range, both ends included.
    Fraction(Decimal, Decimal),
    /// A path under this root.
    Under(PathRoot),
    /// A URL of this root.
    Url(UrlRoot),
    /// A text of these characters, so many.
    Chars(CharSet, CountRange),
    /// A text of one of these shapes, sorted, with so many characters.
    Shape(Vec<Shape>, CountRange),
    /// An array of so many elements, each of which satisfies the test. Without a test, which an
    /// approving rule has for empty arrays alone, the number counts.
    Each(CountRange, Option<Box<ValueTest>>),
    /// The member is not there.
    Absent,
    /// A value of this type. Only where the rule rejects or asks.
    Type(ValueType),
    /// A text of so many characters. Only where the rule rejects or asks.
    Length(CountRange),
    /// An array of which one element satisfies the test. Only where the rule rejects or asks.
    Some(Box<ValueTest>),
}

impl ValueTest {
    /// The test that only this constant satisfies.
    #[must_use]
    pub fn equals(constant: Constant) -> Self {
        Self::OneOf(vec![constant])
    }

    /// The test that these constants satisfy.
    #[must_use]
    pub fn one_of(constants: impl IntoIterator<Item = Constant>) -> Self {
        let mut constants: Vec<Constant> = constants.into_iter().collect();
        constants.sort();
        constants.dedup();
        Self::OneOf(constants)
    }

    /// Whether an approving rule may have the test: it says what a value is, not only what it is
    /// like.
    #[must_use]
    pub fn is_for_approval(&self) -> bool {
        match self {
            Self::OneOf(_)
            | Self::Integer(..)
            | Self::Fraction(..)
            | Self::Under(_)
            | Self::Url(_)
            | Self::Chars(..)
            | Self::Shape(..)
            | Self::Absent => true,
            Self::Each(count, None) => count.high() == 0,
            Self::Each(_, Some(test)) => test.is_for_approval(),
            Self::Type(_) | Self::Length(_) | Self::Some(_) => false,
        }
    }

    /// Fit of a value in canonical form to the test.
    #[must_use]
    pub fn fit(&self, raw: &[u8]) -> Fit {
        match self {
            Self::OneOf(constants) => fit_constants(constants, raw),
            Self::Integer(min, max) => fit_number(*min..=*max, raw, true),
            Self::Fraction(min, max) => fit_number(*min..=*max, raw, false),
            Self::Under(root) => on_text(raw, |text| root.fit(text)),
            Self::Url(root) => on_text(raw, |text| root.fit(text)),
            Self::Chars(set, length) => {
                on_text(raw, |text| set.fit(text).and(fit_length(*length, text)))
            }
            Self::Shape(shapes, length) => on_text(raw, |text| {
                Shape::fit_one(shapes, text).and(fit_length(*length, text))
            }),
            Self::Each(count, test) => match ArgumentValue::of(raw).into_elements() {
                Some(elements) => fit_each(*count, test.as_deref(), &elements),
                None => Fit::Unclear,
            },
            Self::Absent => Fit::Failed,
            Self::Type(expected) => fit_type(*expected, raw),
            Self::Length(length) => on_text(raw, |text| fit_length(*length, text)),
            Self::Some(test) => match ArgumentValue::of(raw).into_elements() {
                Some(elements) => {
                    let fits = elements.iter().map(|element| test.fit(element));
                    fits.fold(Fit::Failed, Fit::or)
                }
                // Readers may take one element for an array of it.
                None if is_list_in_text(raw) => Fit::Unclear,
                None => test.fit(raw).and(Fit::Unclear),
            },
        }
    }

    /// Whether a value satisfies the test as it is spelled: whether [`Self::fit`] is [`Fit::Held`]. It is
    /// quicker, as no other reading of the value is tried.
    #[must_use]
    pub(crate) fn holds(&self, raw: &[u8]) -> bool {
        match self {
            Self::OneOf(constants) => is_one_of(constants, raw),
            _ => self.fit(raw) == Fit::Held,
        }
    }

    /// The test in words, to follow the name of a member: `is "acme/site"`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::OneOf(constants) => format!("is {}", alternatives(constants)),
            Self::Integer(min, max) if min == max => format!("is {min}"),
            Self::Integer(min, max) => format!("is a whole number from {min} to {max}"),
            Self::Fraction(min, max) => format!(
                "is a number with a fraction from {} to {}",
                min.with_fraction(),
                max.with_fraction()
            ),
            Self::Under(root) => format!("is a path under {}", spelling::quoted(&root.to_string())),
            Self::Url(root) => format!("is a URL under {}{}", quoted_url(root), query_words(root)),
            Self::Chars(set, length) => {
                format!(
                    "is {length} characters of {}",
                    spelling::quoted(&set.to_string())
                )
            }
            Self::Shape(shapes, length) => {
                let shapes: Vec<String> = shapes.iter().map(quoted_shape).collect();
                format!(
                    "is {length} characters of the shape {}",
                    shapes.join(" or ")
                )
            }
            Self::Each(count, None) => format!("has {count} elements"),
            Self::Each(count, Some(test)) => {
                format!("has {count} elements, each of which {}", test.words())
            }
            Self::Absent => "is absent".to_owned(),
            Self::Type(one) => format!("is of type {}", one.as_str()),
            Self::Length(length) => format!("is a text of {length} characters"),
            Self::Some(test) => format!("has an element that {}", test.words()),
        }
    }
}

fn alternatives(constants: &[Constant]) -> String {
    let shown: Vec<String> = constants.iter().map(ToString::to_string).collect();
    if shown.is_empty() {
        "no value".to_owned()
    } else {
        spelling::either(&shown)
    }
}

fn quoted_url(root: &UrlRoot) -> String {
    spelling::quoted(&root.to_string())
}

fn query_words(root: &UrlRoot) -> String {
    let names: Vec<&str> = root.query().collect();
    if names.is_empty() {
        " without a query".to_owned()
    } else {
        format!(" with the query members {}", names.join(", "))
    }
}

fn quoted_shape(shape: &Shape) -> String {
    spelling::quoted(shape.as_str())
}

fn is_one_of(constants: &[Constant], raw: &[u8]) -> bool {
    constants.iter().any(|one| one.as_str().as_bytes() == raw)
}

fn fit_constants(constants: &[Constant], raw: &[u8]) -> Fit {
    if is_one_of(constants, raw) {
        return Fit::Held;
    }
    let is_like = |one: &Constant| {
        let constant = one.as_str().as_bytes();
        are_like_words(constant, raw)
            .unwrap_or_else(|| ReadValue::of(constant).reads_like(&ReadValue::of(raw)))
    };
    if constants.iter().any(is_like) {
        Fit::Unclear
    } else {
        Fit::Failed
    }
}

/// Whether some reader takes one text for the other, where both are plain words: the quick way to what
/// [`ReadValue::reads_like`] says of most texts. `None` if that must be asked.
fn are_like_words(one: &[u8], other: &[u8]) -> Option<bool> {
    let (one, other) = (plain_words(one)?, plain_words(other)?);
    Some(one.eq_ignore_ascii_case(other))
}

/// The bytes of a text in canonical form, without blanks at its ends, if it is one of characters of ASCII
/// that are seen, without escapes, and no reader takes it for a number.
fn plain_words(raw: &[u8]) -> Option<&[u8]> {
    let text = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // Without branches, so that the compiler looks at many bytes at once.
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) & (byte != b'\\');
    let are_plain = text.iter().fold(true, |all, byte| all & is_plain(*byte));
    let first = text.trim_ascii_start().first()?;
    let may_be_number = first.is_ascii_digit() || b"+-.".contains(first);
    if !are_plain || may_be_number {
        return None;
    }
    let is_seen = |byte: &u8| !matches!(byte, b' ' | b'.');
    let end = text.iter().rposition(is_seen)? + 1;
    text.get(text.iter().position(is_seen)?..end)
}

/// A value, read once for all that it is compared with.
struct ReadValue<'a> {
    raw: &'a [u8],
    value: ArgumentValue<'a>,
    /// The number that it spells, or that a text of it may be converted to.
    number: Option<SpelledNumber>,
}

impl<'a> ReadValue<'a> {
    fn of(raw: &'a [u8]) -> Self {
        let value = ArgumentValue::of(raw);
        let number = match &value {
            ArgumentValue::Number(spelled) => Some(SpelledNumber::read(spelled)),
            ArgumentValue::Text(text) => number_in(text),
            ArgumentValue::Null
            | ArgumentValue::Bool(_)
            | ArgumentValue::Array(_)
            | ArgumentValue::Object => None,
        };
        Self { raw, value, number }
    }

    /// Whether some reader could take it for another value: after a conversion of its type, with
    /// another spelling of a number, or because a text looks like the other.
    fn reads_like(&self, other: &Self) -> bool {
        if let ArgumentValue::Bool(wanted) = self.value {
            return other.may_be(wanted);
        }
        if let ArgumentValue::Bool(given) = other.value {
            // A truth value becomes the number 0 or 1, and no other.
            let number = self.number.and_then(SpelledNumber::exact);
            let is_other =
                number.is_some_and(|number| !is_number(number, "0") && !is_number(number, "1"));
            return !is_other && self.may_be(given);
        }
        if let (Some(own), Some(others)) = (self.number, other.number) {
            return match (own.exact(), others.exact()) {
                (Some(own), Some(others)) => own == others,
                (None, _) | (_, None) => {
                    !(self.is_text() && other.is_text()) || self.looks_like(other)
                }
            };
        }
        let (own, others) = (
            ValueType::of_value(&self.value),
            ValueType::of_value(&other.value),
        );
        let is_whole = |one: ValueType| matches!(one, ValueType::Array | ValueType::Object);
        if is_whole(own) || is_whole(others) {
            // A list of one, an object in a text: readers differ.
            return own != others || own == ValueType::Object;
        }
        self.looks_like(other)
    }

    /// Whether some reader converts it to this truth value.
    fn may_be(&self, wanted: bool) -> bool {
        match &self.value {
            ArgumentValue::Bool(value) => *value == wanted,
            ArgumentValue::Null => !wanted,
            // A list of one, an object in a text: readers differ.
            ArgumentValue::Array(_) | ArgumentValue::Object => true,
            ArgumentValue::Number(_) | ArgumentValue::Text(_) => match self.number {
                Some(number) => {
                    let number = number.exact();
                    number.is_none_or(|number| is_number(number, "0") != wanted)
                }
                None if wanted => TRUE_WORDS.contains(&&*self.likeness()),
                None => FALSE_WORDS.contains(&&*self.likeness()),
            },
        }
    }

    fn is_text(&self) -> bool {
        matches!(self.value, ArgumentValue::Text(_))
    }

    /// Whether a careless reader sees it as another value.
    fn looks_like(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (ArgumentValue::Text(own), ArgumentValue::Text(others)) => {
                spelling::are_like(own, others)
            }
            _ => self.likeness() == other.likeness(),
        }
    }

    /// The value as a careless reader sees it.
    fn likeness(&self) -> Cow<'a, str> {
        match &self.value {
            ArgumentValue::Text(text) => spelling::likeness(text).into(),
            ArgumentValue::Number(spelled) => Cow::Borrowed(*spelled),
            ArgumentValue::Bool(_) | ArgumentValue::Array(_) | ArgumentValue::Object => {
                String::from_utf8_lossy(self.raw)
            }
            // A missing value is an empty text for some.
            ArgumentValue::Null => Cow::Borrowed(""),
        }
    }
}

fn is_number(number: Decimal, text: &str) -> bool {
    Decimal::parse(text) == Some(number)
}

/// Words that readers convert to true.
const TRUE_WORDS: [&str; 5] = ["true", "t", "yes", "y", "on"];
/// Words that readers convert to false.
const FALSE_WORDS: [&str; 8] = ["false", "f", "no", "n", "off", "", "null", "none"];

/// The number that a text may be converted to. Readers take a sign, blanks, underscores between digits
/// and digits of other scripts.
fn number_in(text: &str) -> Option<SpelledNumber> {
    let text = text.trim();
    if !text.is_ascii() {
        let has_digits = text.chars().any(char::is_numeric);
        return has_digits.then_some(SpelledNumber::Odd);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let begins = |first: char| matches!(first, '-' | '.') || first.is_ascii_digit();
    if !text.starts_with(begins) {
        return None;
    }
    if text.contains('_') {
        return Some(SpelledNumber::read(&text.replace('_', "")));
    }
    Some(SpelledNumber::read(text))
}

/// Whether a value is a text from which readers may make a list: JSON, or parts between commas.
fn is_list_in_text(raw: &[u8]) -> bool {
    let text = ArgumentValue::of(raw).into_text();
    text.is_some_and(|text| text.trim_start().starts_with('[') || text.contains(','))
}

/// A value as calls are counted by it: equal for all that some reader takes for each other.
pub(crate) fn counted_as(value: &Constant) -> String {
    let read = ReadValue::of(value.as_str().as_bytes());
    match read.number.and_then(SpelledNumber::exact) {
        Some(number) => number.to_string(),
        None => read.likeness().into_owned(),
    }
}

fn fit_number(range: std::ops::RangeInclusive<Decimal>, raw: &[u8], is_whole: bool) -> Fit {
    let is_in = |number: Decimal| range.contains(&number);
    let Some(spelled) = ArgumentValue::of(raw).into_number() else {
        // Readers may convert a text, take one element for its array, and nothing for zero.
        return Fit::Unclear;
    };
    match (SpelledNumber::read(spelled), is_whole) {
        (SpelledNumber::Integer(number), true) | (SpelledNumber::Fraction(number), false) => {
            Fit::of(is_in(number))
        }
        (SpelledNumber::Integer(number), false) | (SpelledNumber::Fraction(number), true) => {
            Fit::of(is_in(number)).max(Fit::Unclear)
        }
        (SpelledNumber::Odd, _) => Fit::Unclear,
    }
}

fn on_text(raw: &[u8], fit: impl FnOnce(&str) -> Fit) -> Fit {
    let text = ArgumentValue::of(raw).into_text();
    text.map_or(Fit::Unclear, |text| fit(&text))
}

fn fit_length(length: CountRange, text: &str) -> Fit {
    Fit::of(length.has(text.chars().count()))
}

fn fit_each(count: CountRange, test: Option<&ValueTest>, elements: &[&[u8]]) -> Fit {
    let each = |element: &&[u8]| test.map_or(Fit::Held, |test| test.fit(element));
    let all = elements.iter().map(each).fold(Fit::Held, Fit::and);
    Fit::of(count.has(elements.len())).and(all)
}

fn fit_type(expected: ValueType, raw: &[u8]) -> Fit {
    let found = ValueType::of(raw);
    if found == expected {
        return Fit::Held;
    }
    // A text may spell any type, and any type may be written as a text.
    let converts = [found, expected].contains(&ValueType::Text);
    if converts { Fit::Unclear } else { Fit::Failed }
}

#[cfg(test)]
mod tests;
