//! Made-up calls inside a rule: its smallest, largest and longest, to be looked at before it acts.

use std::collections::BTreeMap;

use crate::characters::{CharSet, Shape};
use crate::conditions::Conditions;
use crate::constant::{Constant, ValueType};
use crate::decimal::Decimal;
use crate::pointer::Pointer;
use crate::range::CountRange;
use crate::value_test::ValueTest;

/// A name of the longest that a reviewer is shown below a root.
const LONGEST_NAME: &str = "a-name-that-was-never-seen-before/and-one-below-it.txt";

/// Which end of a condition a made-up value shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The smallest numbers, the shortest texts.
    Smallest,
    /// The largest numbers.
    Largest,
    /// The longest texts, the most elements.
    Longest,
}

impl Extreme {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Smallest, Self::Largest, Self::Longest];
}

/// Arguments inside these conditions, as JSON; `None` if the conditions say of a value only what it
/// is like.
#[must_use]
pub fn made_up(when: &Conditions, extreme: Extreme) -> Option<String> {
    let mut root = Tree::default();
    for (pointer, test) in when.iter() {
        if *test != ValueTest::Absent {
            root.put(pointer, value(test, extreme)?);
        }
    }
    Some(root.json())
}

/// An object that is being made.
#[derive(Default)]
struct Tree {
    members: BTreeMap<String, Node>,
}

enum Node {
    Leaf(String),
    Inner(Tree),
}

impl Tree {
    fn put(&mut self, pointer: &Pointer, json: String) {
        let names: Vec<String> = pointer.names().collect();
        let Some((last, before)) = names.split_last() else {
            return;
        };
        let mut tree = self;
        for name in before {
            let node = tree
                .members
                .entry(name.clone())
                .or_insert_with(|| Node::Inner(Self::default()));
            match node {
                Node::Inner(inner) => tree = inner,
                // Members of conditions do not lie inside each other.
                Node::Leaf(_) => return,
            }
        }
        tree.members.insert(last.clone(), Node::Leaf(json));
    }

    fn json(&self) -> String {
        let members: Vec<String> = self
            .members
            .iter()
            .map(|(name, node)| {
                let value = match node {
                    Node::Leaf(json) => json.clone(),
                    Node::Inner(inner) => inner.json(),
                };
                format!("{}:{value}", json::quote(name))
            })
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

/// A value that satisfies a test, as JSON.
fn value(test: &ValueTest, extreme: Extreme) -> Option<String> {
    match test {
        ValueTest::OneOf(constants) => of_constants(constants, extreme),
        ValueTest::Integer(low, high) => Some(number(*low, *high, extreme).to_string()),
        ValueTest::Fraction(low, high) => Some(number(*low, *high, extreme).with_fraction()),
        ValueTest::Under(root) => Some(json::quote(&format!("{root}/{}", name(extreme)))),
        ValueTest::Url(root) => {
            let path = root.path();
            let slash = if path == "/" { "" } else { "/" };
            let query: Vec<String> = root.query().map(|name| format!("{name}=x")).collect();
            let query = if query.is_empty() {
                String::new()
            } else {
                format!("?{}", query.join("&"))
            };
            Some(json::quote(&format!(
                "{root}{slash}{}{query}",
                name(extreme)
            )))
        }
        ValueTest::Chars(set, length) => {
            text(|count| text_of_set(*set, count, extreme), *length, extreme)
        }
        ValueTest::Shape(shapes, length) => {
            let made = |count| {
                shapes
                    .iter()
                    .find_map(|shape| text_of_shape(shape, count, extreme))
            };
            text(made, *length, extreme)
        }
        ValueTest::Each(count, test) => {
            let count = match extreme {
                Extreme::Smallest => count.low(),
                Extreme::Largest | Extreme::Longest => count.high(),
            };
            let element = match test {
                Some(test) => value(test, extreme)?,
                None if count == 0 => String::new(),
                None => return None,
            };
            let elements = vec![element; usize::try_from(count).ok()?];
            Some(format!("[{}]", elements.join(",")))
        }
        ValueTest::Absent | ValueTest::Type(_) | ValueTest::Length(_) | ValueTest::Some(_) => None,
    }
}

fn of_constants(constants: &[Constant], extreme: Extreme) -> Option<String> {
    let by_number = |one: &&Constant| Decimal::parse(one.as_str());
    let are_numbers = constants
        .iter()
        .all(|one| one.value_type() == ValueType::Number);
    let by_length = |one: &&Constant| one.as_str().len();
    let found = match (extreme, are_numbers) {
        (Extreme::Smallest, true) => constants.iter().min_by_key(by_number),
        (Extreme::Largest, true) => constants.iter().max_by_key(by_number),
        (Extreme::Smallest, false) => constants.iter().min_by_key(by_length),
        (Extreme::Largest, false) | (Extreme::Longest, _) => constants.iter().max_by_key(by_length),
    };
    found.map(|one| one.as_str().to_owned())
}

fn number(low: Decimal, high: Decimal, extreme: Extreme) -> Decimal {
    match extreme {
        Extreme::Smallest => low,
        Extreme::Largest | Extreme::Longest => high,
    }
}

fn name(extreme: Extreme) -> &'static str {
    match extreme {
        Extreme::Smallest => "a",
        Extreme::Largest => "z",
        Extreme::Longest => LONGEST_NAME,
    }
}

/// The text of the length that an extreme asks for, or of the nearest one that can be made.
fn text(
    made: impl Fn(usize) -> Option<String>,
    length: CountRange,
    extreme: Extreme,
) -> Option<String> {
    let lengths = length.low()..=length.high();
    let mut lengths: Vec<u32> = lengths.collect();
    if extreme == Extreme::Longest {
        lengths.reverse();
    }
    let mut found = lengths
        .into_iter()
        .filter_map(|count| made(usize::try_from(count).ok()?));
    found.next().map(|text| json::quote(&text))
}

fn text_of_set(set: CharSet, count: usize, extreme: Extreme) -> Option<String> {
    let mut bytes = set.bytes().filter(u8::is_ascii_alphanumeric);
    let byte = match extreme {
        Extreme::Smallest => bytes.next()?,
        Extreme::Largest | Extreme::Longest => bytes.next_back()?,
    };
    Some(char::from(byte).to_string().repeat(count))
}

fn text_of_shape(shape: &Shape, count: usize, extreme: Extreme) -> Option<String> {
    let rest = count.checked_sub(shape.as_str().len())?;
    let is_small = extreme == Extreme::Smallest;
    let mut text = String::new();
    for (at, sign) in shape.as_str().chars().enumerate() {
        let one = match sign {
            'A' if !is_small => 'Z',
            'a' if !is_small => 'z',
            '9' if is_small => '0',
            other => other,
        };
        // The first run takes what is left of the length.
        let times = if at == 0 { 1 + rest } else { 1 };
        text.extend(std::iter::repeat_n(one, times));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use crate::fit::Fit;
    use crate::fixture::approving;

    #[test]
    fn made_up_calls_lie_inside_their_rule() {
        let rule = approving(
            "r1",
            "scout",
            r#"
            "/n" = { integer = [-5, 200] }
            "/d" = { decimal = [0.5, 99.0] }
            "/one" = { one_of = ["a", "bcd"] }
            "/p/q" = { under = "/srv/docs" }
            "/p/r" = { under = "notes" }
            "/u" = { url = { origin = "https://a.com", query = ["id", "p"] } }
            "/v" = { url = { origin = "https://a.com", under = "/v1" } }
            "/c" = { chars = "A-F0-3_-", length = [2, 4] }
            "/s" = { shape = ["A-9", "9"], length = [3, 7] }
            "/l" = { count = [1, 3], each = { integer = [1, 2] } }
            "/e" = { count = [0, 0] }
            "/gone" = { absent = true }
            "#,
        );
        for extreme in Extreme::ALL {
            let json = made_up(&rule.when, extreme).unwrap();
            let arguments = Arguments::read(json.as_bytes()).unwrap();
            assert_eq!(rule.when.fit_closed(&arguments), Fit::Held, "{json}");
        }
        let smallest = made_up(&rule.when, Extreme::Smallest).unwrap();
        assert!(
            smallest.contains("\"n\":-5") && smallest.contains("\"d\":0.5"),
            "{smallest}"
        );
        let longest = made_up(&rule.when, Extreme::Longest).unwrap();
        assert!(
            longest.contains("\"l\":[2,2,2]") && longest.contains("\"9999999\""),
            "{longest}"
        );
    }
}
