//! Licences: which step of a field's chain its approved values justify.

use std::collections::{BTreeMap, BTreeSet};

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
/// The approvals that each of two truth values, or a null, must have.
pub const TRUTHS_MIN: u32 = 3;
/// The approvals that each shape, each class of characters and each branch below a root must have.
pub const SHAPE_SEEN_MIN: u32 = 3;
/// Elements that the test of an array's elements rests on.
pub const ELEMENTS_MIN: usize = 20;
/// The part of the approvals that may be of values that were seen once, for a list of constants to
/// be closed: of the next ten calls at most one is expected to bring another value.
const UNSEEN_ONE_IN: usize = 10;
/// The part of a range's span that its largest gap may be.
const GAP_ONE_IN: i128 = 4;
/// The part of a span of lengths that its largest gap may be.
const LENGTH_GAP_ONE_IN: usize = 4;
/// The gap between lengths that is always allowed.
const LENGTH_GAP_MIN: usize = 2;
/// The part of the distinct texts of a set of characters that may be words without a digit: a set
/// that rests on words admits any other word, such as `delete`.
const WORDS_ONE_IN: usize = 4;
/// The longest code of upper-case letters that is no word.
const CODE_CHARS_MAX: usize = 3;
/// Beginnings or ends of the words of members' names whose values servers execute or interpret.
const EXECUTED: [&str; 33] = [
    "args",
    "argument",
    "argv",
    "bash",
    "cmd",
    "code",
    "command",
    "eval",
    "exec",
    "expr",
    "flags",
    "formula",
    "function",
    "javascript",
    "jq",
    "jsonpath",
    "lambda",
    "macro",
    "option",
    "pattern",
    "program",
    "prompt",
    "python",
    "queries",
    "query",
    "regex",
    "script",
    "selector",
    "shell",
    "sql",
    "statement",
    "template",
    "xpath",
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
    if is_executed(member) || is_inside_executed(member, &distinct) {
        return None;
    }
    if may_be_listed(&distinct, &counts, values.len()) {
        return Some(ValueTest::one_of(distinct));
    }
    let test = widened(&distinct)?;
    justified(&test, &distinct, values)
}

/// Whether a person may be offered this test of a member as a wider step, whatever approvals there
/// are: never what is executed, words, a home, or a whole host.
pub(crate) fn may_be_wider(member: &Pointer, test: &ValueTest) -> bool {
    if member.names().any(|name| names_executed(&name)) {
        return false;
    }
    match test {
        ValueTest::OneOf(_) | ValueTest::Integer(..) | ValueTest::Fraction(..) => true,
        ValueTest::Shape(shapes, length) => {
            let is_short = usize::try_from(length.high()).is_ok_and(|most| most <= CODE_CHARS_MAX);
            let is_code = |shape: &Shape| is_short && shape.as_str() == "A";
            let is_no_word = |shape: &Shape| has_digit(shape.as_str()) || is_code(shape);
            shapes.iter().all(is_no_word)
        }
        ValueTest::Chars(set, _) => (b'0'..=b'9').any(|digit| set.has(digit)),
        ValueTest::Url(root) => root.query().next().is_none() && !root.is_whole_host(),
        ValueTest::Under(root) => !is_home(root),
        ValueTest::Each(_, Some(test)) => may_be_wider(member, test),
        ValueTest::Each(_, None)
        | ValueTest::Absent
        | ValueTest::Type(_)
        | ValueTest::Length(_)
        | ValueTest::Some(_) => false,
    }
}

/// Whether a member's name says that its value is executed or interpreted.
pub(crate) fn is_executed(member: &Pointer) -> bool {
    member
        .names()
        .last()
        .is_some_and(|name| names_executed(&name))
}

/// Whether a member with other values than numbers, truth values and nulls lies in an object whose
/// name says that it is executed or interpreted.
fn is_inside_executed(member: &Pointer, distinct: &[Constant]) -> bool {
    let is_inert = |one: &Constant| match one.value_type() {
        ValueType::Null | ValueType::Boolean | ValueType::Number => true,
        ValueType::Text | ValueType::Array | ValueType::Object => false,
    };
    member.names().any(|name| names_executed(&name)) && !distinct.iter().all(is_inert)
}

/// Whether a name, or a word of it, begins or ends as [`EXECUTED`] names do.
fn names_executed(name: &str) -> bool {
    let mut words = words_of(name);
    words.push(name.to_lowercase());
    words.iter().any(|word| {
        let mut executed = EXECUTED.iter();
        executed.any(|one| word.starts_with(one) || word.ends_with(one))
    })
}

/// The words of a name in `camelCase`, `snake_case` or with `ACRONYMS`, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let symbols: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, symbol) in symbols.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| symbols.get(at));
        let after = symbols.get(at + 1);
        let follows_lower = before.is_some_and(|one| !one.is_uppercase());
        let begins_word =
            symbol.is_uppercase() && (follows_lower || after.is_some_and(|one| one.is_lowercase()));
        if begins_word || !symbol.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && symbol.is_alphanumeric()
        {
            word.extend(symbol.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
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

fn justified(test: &ValueTest, distinct: &[Constant], values: &[Constant]) -> Option<ValueTest> {
    match test {
        ValueTest::Integer(low, high) | ValueTest::Fraction(low, high) => {
            let is_filled = has_small_gaps(*low, *high, distinct);
            (distinct.len() >= DISTINCT_MIN && is_filled).then(|| test.clone())
        }
        ValueTest::Shape(..) | ValueTest::Chars(..) => identifier(test, values),
        ValueTest::Url(root) => {
            // The values of a query's members would be free, and a host has more than one owner.
            let is_narrow = root.query().next().is_none() && !root.is_whole_host();
            let is_spread = is_spread(distinct, |text| root.child(text));
            (distinct.len() >= DISTINCT_MIN && is_narrow && is_spread).then(|| test.clone())
        }
        ValueTest::Under(root) => {
            let is_spread = is_spread(distinct, |text| root.child(text));
            (distinct.len() >= FILES_MIN && is_spread && !is_home(root)).then(|| test.clone())
        }
        ValueTest::Each(count, Some(_)) => {
            let lists: Vec<Vec<Constant>> = values.iter().filter_map(elements_of).collect();
            let has_gaps = has_wide_gaps(lists.iter().map(Vec::len));
            let elements: Vec<Constant> = lists.into_iter().flatten().collect();
            if elements.len() < ELEMENTS_MIN || has_gaps {
                return None;
            }
            // Names of elements are not executed beyond what the array's own name says.
            let element = licensed(&Pointer::parse("/element").ok()?, &elements)?;
            let is_plain = !matches!(element, ValueTest::Each(..));
            is_plain.then(|| ValueTest::Each(*count, Some(Box::new(element))))
        }
        ValueTest::OneOf(_)
        | ValueTest::Each(_, None)
        | ValueTest::Absent
        | ValueTest::Type(_)
        | ValueTest::Length(_)
        | ValueTest::Some(_) => None,
    }
}

/// The shapes of identifiers, or their characters where a shape is rare. Both rest on many values
/// with digits and without gaps between their lengths, characters on each class that they have.
fn identifier(test: &ValueTest, values: &[Constant]) -> Option<ValueTest> {
    let texts: Vec<String> = values.iter().filter_map(text_of).collect();
    let distinct: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
    if distinct.len() < DISTINCT_MIN || has_wide_gaps(distinct.iter().map(|text| text.len())) {
        return None;
    }
    let is_seen = |has: &dyn Fn(&str) -> bool| {
        let seen = texts.iter().filter(|text| has(text)).count();
        u32::try_from(seen).is_ok_and(|seen| seen >= SHAPE_SEEN_MIN)
    };
    // Codes of airports and currencies are too short to be words that act.
    let is_code = |text: &&str| {
        text.len() <= CODE_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let are_codes = distinct.iter().all(is_code);
    if let ValueTest::Shape(shapes, _) = test {
        let is_licensed = |shape: &Shape| {
            (has_digit(shape.as_str()) || are_codes)
                && is_seen(&|text| Shape::of(text).as_ref() == Some(shape))
        };
        if shapes.iter().all(is_licensed) {
            return Some(test.clone());
        }
    }
    let chars = steps(values)
        .into_iter()
        .find(|step| matches!(step, ValueTest::Chars(..)))?;
    let ValueTest::Chars(set, _) = &chars else {
        return None;
    };
    let words = distinct.iter().filter(|text| !has_digit(text)).count();
    let is_of_seen_classes = set
        .classes()
        .iter()
        .all(|class| is_seen(&|text: &str| text.bytes().any(|byte| class.has(byte))));
    (words * WORDS_ONE_IN <= distinct.len() && is_of_seen_classes).then_some(chars)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether some length between the least and the greatest was not seen by far: more than a quarter
/// of the span, or two, lies between neighbours.
fn has_wide_gaps(lengths: impl Iterator<Item = usize>) -> bool {
    let lengths: BTreeSet<usize> = lengths.collect();
    let span = match (lengths.first(), lengths.last()) {
        (Some(least), Some(greatest)) => greatest - least,
        (None, _) | (_, None) => return false,
    };
    let pairs = lengths.iter().zip(lengths.iter().skip(1));
    let gap = pairs
        .map(|(one, next)| next - one)
        .max()
        .unwrap_or_default();
    gap > LENGTH_GAP_MIN.max(span / LENGTH_GAP_ONE_IN)
}

/// Whether the values lie right below a root, or in branches that were each approved several times:
/// one outlier must not raise the root to all that lies between.
fn is_spread(distinct: &[Constant], child: impl Fn(&str) -> Option<&str>) -> bool {
    let mut branches: BTreeMap<String, u32> = BTreeMap::new();
    for text in distinct.iter().filter_map(text_of) {
        let branch = child(&text).unwrap_or_default().to_owned();
        *branches.entry(branch).or_default() += 1;
    }
    branches.len() >= FILES_MIN || branches.values().all(|count| *count >= SHAPE_SEEN_MIN)
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
        let rare = [ids.clone(), times(2, "\"A1B\"")].concat();
        check("/id", &rare, Some("is 3 to 4 characters of \"A-Z0-9-\""));
        // Two outliers add no class of characters, and no length far away.
        check("/id", &[ids.clone(), times(2, "\"ab1\"")].concat(), None);
        let long = format!("\"AB-{}\"", "1".repeat(40));
        check("/id", &[ids, times(3, &long)].concat(), None);
    }

    #[test]
    fn words_are_no_identifiers() {
        let verbs = [
            "list", "get", "show", "view", "find", "read", "count", "fetch", "look", "check",
            "open",
        ];
        let verbs = each(verbs.len(), |at| format!("\"{}\"", verbs[at]));
        check("/action", &verbs, None);
        let mixed = [verbs, each(10, |at| format!("\"get{at}\""))].concat();
        check("/action", &mixed, None);
        let codes = each(12, |at| {
            format!("\"{}FK\"", char::from(b'A' + u8::try_from(at).unwrap()))
        });
        let expect = Some("is 3 characters of the shape \"A\"");
        check("/origin", &codes, expect);
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
        // One outlier does not raise the root.
        let outlier = [files("/srv/data/reports/a", 9), files("/srv/data", 1)].concat();
        check("/p", &outlier, None);
        let branches = [files("/srv/data/a", 5), files("/srv/data/b", 3)].concat();
        check("/p", &branches, Some("is a path under \"/srv/data\""));
        check("/p", &files("/srv", 9), None);
        check("/p", &files("root", 9), None);
    }

    #[test]
    fn urls_rest_on_a_path_without_a_query() {
        let urls = |root: &str, end: &str| each(10, |at| format!("\"{root}/{at}{end}\""));
        let expect = Some("is a URL under \"https://a.com/v1\" without a query");
        check("/u", &urls("https://a.com/v1", ""), expect);
        check("/u", &urls("https://a.com/v1", "?mode=read"), None);
        check("/u", &urls("https://a.com", ""), None);
        let hidden = urls("https://a.com/v1/.git", "");
        check("/u", &[urls("https://a.com/v1", ""), hidden].concat(), None);
    }

    #[test]
    fn executed_members_are_never_generalised() {
        for member in [
            "/command",
            "/sqlQuery",
            "/a/shell_cmd",
            "/Code",
            "/regex",
            "/commands",
            "/queries",
            "/rawSQL",
            "/SQLText",
            "/shellcommand",
            "/args",
            "/extraArgs",
        ] {
            assert!(is_executed(&Pointer::parse(member).unwrap()), "{member}");
            check(member, &each(20, |at| format!("\"a{at}\"")), None);
            check(member, &times(9, "\"ls\""), Some("is \"ls\""));
        }
        let ids = each(20, |at| format!("\"a{at}\""));
        check("/command/name", &ids, None);
        let lists = each(20, |at| format!("[\"git\",\"{}\"]", at));
        check("/command/argv", &lists, None);
        let numbers = each(20, |at| at.to_string());
        let range = Some("is a whole number from 0 to 19");
        check("/query/limit", &numbers, range);
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
        // One long list is no reason for all lengths below.
        let numbers: Vec<String> = (0..20).map(|at| at.to_string()).collect();
        let long = format!("[{}]", numbers.join(","));
        check("/l", &[many, vec![long]].concat(), None);
    }
}
