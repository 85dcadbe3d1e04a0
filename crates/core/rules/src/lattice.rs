//! Lattice of conditions: which is wider, the least one that covers two, and the steps between.
//!
//! Each type of value has a chain from narrow to wide: constants, then a range, a shape, a set of
//! characters, or a root. A join takes the tightest step that covers both sides, and nothing beyond
//! what it has seen: no range grows past its extremes, no root rises above the shared directory.

use std::borrow::Cow;

use crate::arguments::Arguments;
use crate::characters::{CharSet, IDENTIFIER_CHARS_MAX, Shape};
use crate::conditions::Conditions;
use crate::constant::{Constant, ValueType};
use crate::decimal::{Decimal, SpelledNumber};
use crate::fit::Fit;
use crate::path::{PathRoot, is_plain_path};
use crate::range::CountRange;
use crate::url::UrlRoot;
use crate::value_test::{CONSTANTS_MAX, SHAPES_MAX, ValueTest};

impl ValueTest {
    /// Whether this test is as wide as the other, or wider: every value that holds there holds
    /// here.
    #[must_use]
    pub fn includes(&self, other: &ValueTest) -> bool {
        match (self, other) {
            (_, Self::OneOf(constants)) => constants
                .iter()
                .all(|one| self.fit(one.as_str().as_bytes()) == Fit::Held),
            (Self::Integer(low, high), Self::Integer(other_low, other_high))
            | (Self::Fraction(low, high), Self::Fraction(other_low, other_high)) => {
                low <= other_low && other_high <= high
            }
            (Self::Under(root), Self::Under(other)) => root.includes(other),
            (Self::Url(root), Self::Url(other)) => root.includes(other),
            (Self::Chars(set, length), Self::Chars(other, other_length)) => {
                set.includes(*other) && length.includes(*other_length)
            }
            (Self::Chars(set, length), Self::Shape(shapes, other_length)) => {
                let mut classes = shapes.iter().map(Shape::classes);
                length.includes(*other_length)
                    && classes.all(|classes| classes.is_some_and(|other| set.includes(other)))
            }
            (Self::Shape(shapes, length), Self::Shape(other, other_length)) => {
                length.includes(*other_length) && other.iter().all(|one| shapes.contains(one))
            }
            (Self::Each(count, test), Self::Each(other_count, other_test)) => {
                let includes_elements = match (test, other_test) {
                    (None, _) => true,
                    (Some(_), None) => other_count.high() == 0,
                    (Some(test), Some(other)) => other_count.high() == 0 || test.includes(other),
                };
                count.includes(*other_count) && includes_elements
            }
            (Self::Some(test), Self::Some(other)) => test.includes(other),
            (Self::Length(length), Self::Length(other)) => length.includes(*other),
            (Self::Length(length), Self::Chars(_, other) | Self::Shape(_, other)) => {
                length.includes(*other)
            }
            (Self::Type(one), other) => other.value_type() == Some(*one),
            (Self::Absent, Self::Absent) => true,
            (
                Self::OneOf(_)
                | Self::Integer(..)
                | Self::Fraction(..)
                | Self::Under(_)
                | Self::Url(_)
                | Self::Chars(..)
                | Self::Shape(..)
                | Self::Each(..)
                | Self::Absent
                | Self::Length(_)
                | Self::Some(_),
                _,
            ) => false,
        }
    }

    /// Whether this test is wider than the other.
    #[must_use]
    pub fn is_wider_than(&self, other: &ValueTest) -> bool {
        self.includes(other) && !other.includes(self)
    }

    /// The type of every value that the test admits, if it is one.
    fn value_type(&self) -> Option<ValueType> {
        match self {
            Self::OneOf(constants) => one_type(constants),
            Self::Integer(..) | Self::Fraction(..) => Some(ValueType::Number),
            Self::Under(_) | Self::Url(_) | Self::Chars(..) | Self::Shape(..) | Self::Length(_) => {
                Some(ValueType::Text)
            }
            Self::Each(..) | Self::Some(_) => Some(ValueType::Array),
            Self::Type(one) => Some(*one),
            Self::Absent => None,
        }
    }

    /// The least test of the chain that includes both; `None` if the chain has none: other types,
    /// free texts, several origins.
    #[must_use]
    pub fn join(&self, other: &ValueTest) -> Option<ValueTest> {
        if self.includes(other) {
            return Some(self.clone());
        }
        if other.includes(self) {
            return Some(other.clone());
        }
        match (self, other) {
            (Self::OneOf(own), Self::OneOf(others)) => {
                let both = own.iter().chain(others).cloned();
                let Self::OneOf(both) = Self::one_of(both) else {
                    return None;
                };
                is_of_one_type(&both).then_some(())?;
                if both.len() <= CONSTANTS_MAX {
                    Some(Self::OneOf(both))
                } else {
                    widened(&both)
                }
            }
            (Self::OneOf(constants), wide) | (wide, Self::OneOf(constants)) => {
                join_wide(&widened(constants)?, wide)
            }
            (own, other) => join_wide(own, other),
        }
    }
}

/// The least of two tests that are no constants.
fn join_wide(own: &ValueTest, other: &ValueTest) -> Option<ValueTest> {
    use ValueTest::{Chars, Each, Fraction, Integer, Shape as Shapes, Under, Url};
    match (own, other) {
        (Integer(low, high), Integer(other_low, other_high)) => {
            Some(Integer(*low.min(other_low), *high.max(other_high)))
        }
        (Fraction(low, high), Fraction(other_low, other_high)) => {
            Some(Fraction(*low.min(other_low), *high.max(other_high)))
        }
        (Under(root), Under(other)) => root.common(other).map(Under),
        (Url(root), Url(other)) => root.common(other).map(Url),
        (Chars(set, length), Chars(other, other_length)) => {
            Some(Chars(set.or(*other), length.or(*other_length)))
        }
        (Chars(set, length), Shapes(shapes, other_length))
        | (Shapes(shapes, other_length), Chars(set, length)) => {
            Some(Chars(set.or(classes(shapes)?), length.or(*other_length)))
        }
        (Shapes(shapes, length), Shapes(others, other_length)) => {
            let both = shapes.iter().chain(others).cloned().collect();
            shapes_or_chars(both, length.or(*other_length))
        }
        (Each(count, test), Each(other_count, other_test)) => {
            let test = match (test, other_test) {
                (Some(test), Some(other)) => Some(Box::new(test.join(other)?)),
                (Some(test), None) if other_count.high() == 0 => Some(test.clone()),
                (None, Some(test)) if count.high() == 0 => Some(test.clone()),
                (_, None) | (None, _) => None,
            };
            Some(Each(count.or(*other_count), test))
        }
        (
            Integer(..)
            | Fraction(..)
            | Under(_)
            | Url(_)
            | Chars(..)
            | Shapes(..)
            | Each(..)
            | ValueTest::OneOf(_)
            | ValueTest::Absent
            | ValueTest::Type(_)
            | ValueTest::Length(_)
            | ValueTest::Some(_),
            _,
        ) => None,
    }
}

fn classes(shapes: &[Shape]) -> Option<CharSet> {
    let mut all = shapes.iter().map(Shape::classes);
    let first = all.next()??;
    all.try_fold(first, |all, one| Some(all.or(one?)))
}

fn shapes_or_chars(mut shapes: Vec<Shape>, length: CountRange) -> Option<ValueTest> {
    shapes.sort();
    shapes.dedup();
    if shapes.len() <= SHAPES_MAX {
        Some(ValueTest::Shape(shapes, length))
    } else {
        Some(ValueTest::Chars(classes(&shapes)?, length))
    }
}

/// The type of all constants that are not null, if it is one.
fn one_type(constants: &[Constant]) -> Option<ValueType> {
    let mut types = constants.iter().map(Constant::value_type);
    let first = types.next()?;
    types.all(|one| one == first).then_some(first)
}

/// Whether constants may stand in one test: of one type beside null.
pub(crate) fn is_of_one_type(constants: &[Constant]) -> bool {
    let mut types = constants
        .iter()
        .map(Constant::value_type)
        .filter(|one| *one != ValueType::Null);
    let first = types.next();
    types.all(|one| Some(one) == first)
}

/// The next step of the chain over constants that covers all of these; `None` if there is none.
pub(crate) fn widened(constants: &[Constant]) -> Option<ValueTest> {
    match one_type(constants)? {
        ValueType::Number => numbers(constants),
        ValueType::Text => {
            let texts: Vec<String> = constants.iter().filter_map(text_of).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            identifiers(&texts)
                .or_else(|| paths(&texts))
                .or_else(|| urls(&texts))
        }
        ValueType::Array => arrays(constants),
        ValueType::Null | ValueType::Boolean | ValueType::Object => None,
    }
}

/// The text of a constant that is one.
pub(crate) fn text_of(constant: &Constant) -> Option<String> {
    constant.value().into_text().map(Cow::into_owned)
}

fn numbers(constants: &[Constant]) -> Option<ValueTest> {
    let read = |one: &Constant| SpelledNumber::read(one.as_str());
    let spelled: Vec<SpelledNumber> = constants.iter().map(read).collect();
    let exact: Option<Vec<Decimal>> = spelled.iter().map(|one| one.exact()).collect();
    let exact = exact?;
    let (low, high) = (*exact.iter().min()?, *exact.iter().max()?);
    let is_whole = |one: &SpelledNumber| matches!(one, SpelledNumber::Integer(_));
    if spelled.iter().all(is_whole) {
        Some(ValueTest::Integer(low, high))
    } else if spelled.iter().any(is_whole) {
        None
    } else {
        Some(ValueTest::Fraction(low, high))
    }
}

/// The shape or the characters of short texts of a plain alphabet.
fn identifiers(texts: &[&str]) -> Option<ValueTest> {
    let shapes: Option<Vec<Shape>> = texts.iter().map(|text| Shape::of(text)).collect();
    let lengths = texts
        .iter()
        .map(|text| CountRange::one(text.chars().count()));
    let length = lengths.reduce(CountRange::or)?;
    if length.high() > IDENTIFIER_CHARS_MAX {
        return None;
    }
    shapes_or_chars(shapes?, length)
}

fn paths(texts: &[&str]) -> Option<ValueTest> {
    if !texts.iter().all(|text| is_plain_path(text)) {
        return None;
    }
    let mut roots = texts.iter().map(|text| PathRoot::of_parent(text));
    let first = roots.next()??;
    let root = roots.try_fold(first, |all, one| all.common(&one?))?;
    Some(ValueTest::Under(root))
}

fn urls(texts: &[&str]) -> Option<ValueTest> {
    let mut roots = texts.iter().map(|text| UrlRoot::of_url(text));
    let first = roots.next()??;
    let root = roots.try_fold(first, |all, one| all.common(&one?))?;
    Some(ValueTest::Url(root))
}

fn arrays(constants: &[Constant]) -> Option<ValueTest> {
    let elements: Vec<Vec<Constant>> = constants.iter().map(elements_of).collect::<Option<_>>()?;
    let lengths = elements.iter().map(|one| CountRange::one(one.len()));
    let count = lengths.reduce(CountRange::or)?;
    let mut tests = elements.into_iter().flatten().map(ValueTest::equals);
    let Some(first) = tests.next() else {
        return Some(ValueTest::Each(count, None));
    };
    let test = tests.try_fold(first, |all, one| all.join(&one))?;
    if matches!(test, ValueTest::Each(..)) {
        return None;
    }
    Some(ValueTest::Each(count, Some(Box::new(test))))
}

/// The elements of an array.
pub(crate) fn elements_of(constant: &Constant) -> Option<Vec<Constant>> {
    let elements = constant.value().into_elements()?;
    elements.into_iter().map(Constant::of_canonical).collect()
}

/// All steps that cover these values, from the tightest to the widest. What is not there is never
/// offered.
#[must_use]
pub fn steps(values: &[Constant]) -> Vec<ValueTest> {
    let ValueTest::OneOf(distinct) = ValueTest::one_of(values.iter().cloned()) else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    if !distinct.is_empty() && distinct.len() <= CONSTANTS_MAX && is_of_one_type(&distinct) {
        steps.push(ValueTest::OneOf(distinct.clone()));
    }
    let mut next = widened(&distinct);
    while let Some(step) = next {
        next = above(&step);
        steps.push(step);
    }
    steps
}

/// The next step above one that is no constant.
fn above(step: &ValueTest) -> Option<ValueTest> {
    match step {
        ValueTest::Shape(shapes, length) => Some(ValueTest::Chars(classes(shapes)?, *length)),
        ValueTest::Under(root) => root.parent().map(ValueTest::Under),
        ValueTest::Url(root) => root.parent().map(ValueTest::Url),
        ValueTest::OneOf(_)
        | ValueTest::Integer(..)
        | ValueTest::Fraction(..)
        | ValueTest::Chars(..)
        | ValueTest::Each(..)
        | ValueTest::Absent
        | ValueTest::Type(_)
        | ValueTest::Length(_)
        | ValueTest::Some(_) => None,
    }
}

/// The next tighter step than this one that still covers all values.
#[must_use]
pub fn next_tighter(test: &ValueTest, values: &[Constant]) -> Option<ValueTest> {
    let mut tighter = steps(values).into_iter().rev();
    tighter.find(|step| test.is_wider_than(step))
}

/// The next wider step than this one.
#[must_use]
pub fn next_wider(test: &ValueTest, values: &[Constant]) -> Option<ValueTest> {
    let mut wider = steps(values).into_iter();
    wider.find(|step| step.is_wider_than(test))
}

impl Conditions {
    /// The conditions that only these arguments satisfy; `None` if a value is too long or too odd
    /// for a constant.
    #[must_use]
    pub fn exactly(arguments: &Arguments) -> Option<Self> {
        let tests = arguments.leaves().map(|(pointer, raw)| {
            let constant = Constant::of_canonical(raw)?;
            Some((pointer.clone(), ValueTest::equals(constant)))
        });
        Self::new(tests.collect::<Option<Vec<_>>>()?)
    }

    /// Whether these conditions are as wide as the others, or wider: arguments that hold there, in a
    /// closed world, hold here.
    #[must_use]
    pub fn includes(&self, other: &Conditions) -> bool {
        self.present().eq(other.present())
            && self.iter().all(|(pointer, test)| {
                let included = other.get(pointer).is_some_and(|other| test.includes(other));
                included || *test == ValueTest::Absent
            })
    }

    /// Whether these conditions are wider than the others.
    #[must_use]
    pub fn is_wider_than(&self, other: &Conditions) -> bool {
        self.includes(other) && !other.includes(self)
    }

    /// The least general generalisation: the least conditions that include both; `None` if they
    /// have other members, or a member has no test that covers both.
    #[must_use]
    pub fn join(&self, other: &Conditions) -> Option<Self> {
        if !self.present().eq(other.present()) {
            return None;
        }
        let tests = self.iter().filter(|(_, test)| **test != ValueTest::Absent);
        let joined = tests.map(|(pointer, test)| {
            let both = test.join(other.get(pointer)?)?;
            Some((pointer.clone(), both))
        });
        Self::new(joined.collect::<Option<Vec<_>>>()?)
    }
}

#[cfg(test)]
mod tests;
