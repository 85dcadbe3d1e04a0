//! Licences: which step of a field's chain its approved values justify.

use std::collections::BTreeMap;

use crate::characters::Shape;
use crate::constant::{Constant, ValueType};
use crate::decimal::Decimal;
use crate::lattice::{elements_of, is_of_one_type, steps, text_of, widened};
use crate::path::PathRoot;
use crate::pointer::Pointer;
use crate::value_test::{CONSTANTS_MAX, ValueTest};

/// Distinct values that a range, a shape, a set of characters or a URL rests on.
pub const DISTINCT_MIN: usize = 10;
/// Distinct files that a directory rests on.
pub const FILES_MIN: usize = 5;
/// How often each of two truth values, or a null, must have been approved.
pub const TRUTHS_MIN: u32 = 3;
/// How often each shape must have been approved.
pub const SHAPE_SEEN_MIN: u32 = 3;
/// Elements that the test of an array's elements rests on.
pub const ELEMENTS_MIN: usize = 20;
/// The part of the approvals that may be of values that were seen once, for a list of constants to
/// be closed: of the next ten calls at most one is expected to bring another value.
const UNSEEN_ONE_IN: usize = 10;
/// The part of a range's span that its largest gap may be.
const GAP_ONE_IN: i128 = 4;
/// Parts of members' names whose values servers execute or interpret.
const EXECUTED: [&str; 18] = [
    "command",
    "cmd",
    "code",
    "script",
    "sql",
    "query",
    "expression",
    "expr",
    "template",
    "regex",
    "pattern",
    "shell",
    "eval",
    "xpath",
    "jq",
    "selector",
    "program",
    "formula",
];
/// Folders of which each child is someone's home.
const HOMES: [&str; 3] = ["home", "Users", "root"];

/// The tightest test that covers all approved values of a member, and that they justify. `values`
/// has one entry for each approval. `None` leaves the member, and so the call, to a person.
#[must_use]
pub fn licensed(member: &Pointer, values: &[Constant]) -> Option<ValueTest> {
    let mut counts: BTreeMap<&Constant, u32> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let distinct: Vec<Constant> = counts.keys().map(|one| (*one).clone()).collect();
    if let [only] = distinct.as_slice() {
        return Some(ValueTest::equals(only.clone()));
    }
    if is_executed(member) {
        return None;
    }
    if may_be_listed(&distinct, &counts, values.len()) {
        return Some(ValueTest::one_of(distinct));
    }
    let test = widened(&distinct)?;
    justified(&test, &distinct, &counts, values)
}

/// Whether a member's name says that its value is executed or interpreted.
#[must_use]
pub fn is_executed(member: &Pointer) -> bool {
    let name = member.names().last().unwrap_or_default();
    let mut words = Vec::new();
    for one in name.chars() {
        if !one.is_alphanumeric() {
            words.push(String::new());
        } else if one.is_uppercase() || words.is_empty() {
            words.push(one.to_lowercase().collect());
        } else if let Some(word) = words.last_mut() {
            word.push(one);
        }
    }
    let whole = name.to_lowercase();
    EXECUTED.contains(&whole.as_str()) || words.iter().any(|word| EXECUTED.contains(&word.as_str()))
}

/// Whether the constants may be closed as a list.
fn may_be_listed(
    distinct: &[Constant],
    counts: &BTreeMap<&Constant, u32>,
    approvals: usize,
) -> bool {
    let is_truth =
        |one: &Constant| matches!(one.value_type(), ValueType::Boolean | ValueType::Null);
    let is_seen = counts
        .iter()
        .all(|(one, count)| !is_truth(one) || *count >= TRUTHS_MIN);
    let singletons = counts.values().filter(|count| **count == 1).count();
    distinct.len() <= CONSTANTS_MAX
        && is_of_one_type(distinct)
        && is_seen
        && singletons * UNSEEN_ONE_IN <= approvals
}

fn justified(
    test: &ValueTest,
    distinct: &[Constant],
    counts: &BTreeMap<&Constant, u32>,
    values: &[Constant],
) -> Option<ValueTest> {
    match test {
        ValueTest::Integer(low, high) | ValueTest::Fraction(low, high) => {
            let is_filled = has_small_gaps(*low, *high, distinct);
            (distinct.len() >= DISTINCT_MIN && is_filled).then(|| test.clone())
        }
        ValueTest::Shape(shapes, _) if distinct.len() >= DISTINCT_MIN => {
            let is_seen = |shape: &Shape| {
                let of_shape = |one: &Constant| text_of(one).and_then(|text| Shape::of(&text));
                let seen = counts
                    .iter()
                    .filter(|(one, _)| of_shape(one).as_ref() == Some(shape));
                seen.map(|(_, count)| *count).sum::<u32>() >= SHAPE_SEEN_MIN
            };
            if shapes.iter().all(is_seen) {
                return Some(test.clone());
            }
            let mut wider = steps(distinct).into_iter();
            wider.find(|step| matches!(step, ValueTest::Chars(..)))
        }
        ValueTest::Chars(..) | ValueTest::Url(_) => {
            (distinct.len() >= DISTINCT_MIN).then(|| test.clone())
        }
        ValueTest::Under(root) => {
            (distinct.len() >= FILES_MIN && !is_home(root)).then(|| test.clone())
        }
        ValueTest::Each(count, Some(_)) => {
            let elements: Vec<Constant> = values.iter().filter_map(elements_of).flatten().collect();
            if elements.len() < ELEMENTS_MIN {
                return None;
            }
            // Names of elements are not executed beyond what the array's own name says.
            let element = licensed(&Pointer::parse("/element").ok()?, &elements)?;
            let is_plain = !matches!(element, ValueTest::Each(..));
            is_plain.then(|| ValueTest::Each(*count, Some(Box::new(element))))
        }
        ValueTest::OneOf(_)
        | ValueTest::Shape(..)
        | ValueTest::Each(_, None)
        | ValueTest::Absent
        | ValueTest::Type(_)
        | ValueTest::Length(_)
        | ValueTest::Some(_) => None,
    }
}

/// Whether the largest gap between neighbours is at most a quarter of the span: two extremes alone
/// do not make a range.
fn has_small_gaps(low: Decimal, high: Decimal, distinct: &[Constant]) -> bool {
    let mut numbers: Vec<i128> = distinct
        .iter()
        .filter_map(|one| Decimal::parse(one.as_str()))
        .map(Decimal::scaled)
        .collect();
    numbers.sort_unstable();
    let pairs = numbers.iter().zip(numbers.iter().skip(1));
    let gap = pairs
        .map(|(one, next)| next - one)
        .max()
        .unwrap_or_default();
    gap * GAP_ONE_IN <= high.scaled() - low.scaled()
}

/// Whether a root is someone's home.
fn is_home(root: &PathRoot) -> bool {
    let text = root.to_string();
    let mut names = text.trim_start_matches('/').split('/');
    let first = names.next().unwrap_or_default();
    HOMES.contains(&first) && names.count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(member: &str, values: &[String], expect: Option<&str>) {
        let values: Vec<Constant> = values
            .iter()
            .map(|json| Constant::parse(json).unwrap())
            .collect();
        let found = licensed(&Pointer::parse(member).unwrap(), &values);
        assert_eq!(
            found.map(|test| test.words()).as_deref(),
            expect,
            "{member} {values:?}"
        );
    }

    fn times(count: usize, json: &str) -> Vec<String> {
        vec![json.to_owned(); count]
    }

    fn each(count: usize, make: impl Fn(usize) -> String) -> Vec<String> {
        (0..count).map(make).collect()
    }

    #[test]
    fn lists_are_closed_when_hardly_a_value_is_new() {
        check("/a", &times(1, "\"x\""), Some("is \"x\""));
        check(
            "/a",
            &[times(9, "\"x\""), times(1, "\"y\"")].concat(),
            Some("is \"x\" or \"y\""),
        );
        check("/a", &[times(8, "\"x\""), times(1, "\"y\"")].concat(), None);
        check("/a", &[times(9, "true"), times(2, "false")].concat(), None);
        check(
            "/a",
            &[times(9, "true"), times(3, "false")].concat(),
            Some("is false or true"),
        );
        check(
            "/a",
            &[times(9, "\"free text\""), times(2, "5")].concat(),
            None,
        );
        let nine = each(27, |at| format!("\"free text {}\"", at % 9));
        check("/a", &nine, None);
    }

    #[test]
    fn ranges_rest_on_many_values_without_gaps() {
        check(
            "/n",
            &each(10, |at| at.to_string()),
            Some("is a whole number from 0 to 9"),
        );
        check("/n", &each(9, |at| at.to_string()), None);
        check(
            "/n",
            &[times(10, "1"), times(10, "500")].concat(),
            Some("is 1 or 500"),
        );
        // Two extremes and little between them.
        let gap = [each(9, |at| at.to_string()), times(1, "500")].concat();
        check("/n", &gap, None);
    }

    #[test]
    fn identifiers_rest_on_shapes_or_characters() {
        let ids = each(10, |at| format!("\"AB-{at}\""));
        check("/id", &ids, Some("is 4 characters of the shape \"A-9\""));
        check("/id", &ids[1..], None);
        let rare = [ids, times(2, "\"ab1\"")].concat();
        check("/id", &rare, Some("is 3 to 4 characters of \"A-Za-z0-9-\""));
    }

    #[test]
    fn directories_rest_on_files_and_are_no_home() {
        let files = |root: &str, count| each(count, |at| format!("\"{root}/f{at}\""));
        check(
            "/p",
            &files("/srv/docs", FILES_MIN),
            Some("is a path under \"/srv/docs\""),
        );
        check("/p", &files("/srv/docs", FILES_MIN - 1), None);
        check("/p", &files("/home/ann", 9), None);
        check(
            "/p",
            &files("/home/ann/docs", 9),
            Some("is a path under \"/home/ann/docs\""),
        );
        check("/p", &files("/srv", 9), None);
        check("/p", &files("root", 9), None);
    }

    #[test]
    fn executed_members_are_never_generalised() {
        for member in ["/command", "/sqlQuery", "/a/shell_cmd", "/Code", "/regex"] {
            assert!(is_executed(&Pointer::parse(member).unwrap()), "{member}");
            check(member, &each(20, |at| format!("\"a{at}\"")), None);
            check(member, &times(9, "\"ls\""), Some("is \"ls\""));
        }
        for member in ["/country", "/encoder", "/id"] {
            assert!(!is_executed(&Pointer::parse(member).unwrap()), "{member}");
        }
    }

    #[test]
    fn free_text_and_stringified_values_are_never_generalised() {
        for make in [
            |at: usize| format!("\"some words {at}\""),
            |at: usize| format!("\"{{\\\"a\\\":{at}}}\""),
            |at: usize| format!("\"[{at}]\""),
            |at: usize| format!("\"-o{at}\""),
            |at: usize| format!("\"é{at}\""),
            |at: usize| format!("1e{at}"),
        ] {
            check("/a", &each(30, make), None);
        }
    }

    #[test]
    fn elements_are_licensed_together() {
        let lists = each(ELEMENTS_MIN / 2, |at| {
            format!("[\"bot\",\"{}\"]", ["a", "b"][at % 2])
        });
        check("/l", &lists, Some("is [\"bot\",\"a\"] or [\"bot\",\"b\"]"));
        let many = each(20, |at| format!("[{},{}]", at, at + 1));
        check(
            "/l",
            &many,
            Some("has 2 elements, each of which is a whole number from 0 to 20"),
        );
        check("/l", &many[..9], None);
    }
}
