//! An independent, naive reading of approving rules, and what a rule approves compared with it.
//!
//! Nothing here uses the crate's own matching: arguments are read by `serde_json`, and each
//! condition is a few lines on its tree. The naive reading knows nothing of odd spellings, so that
//! it may hold where the rule leaves a call to a person; never the other way.

use std::collections::BTreeMap;

use json::visible::is_hidden;
use proptest::prelude::*;
use rules::{
    Arguments, CallStage, Conditions, Constant, Fit, Pointer, RuleSet, Spent, ValueTest,
    next_tighter, next_wider, parse_rules, steps,
};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::support::{OwnedCall, approving};

/// A condition as a person would say it.
#[derive(Debug, Clone)]
enum Said {
    OneOf(Vec<Value>),
    Whole(i64, i64),
    Fraction(i64, i64),
    Under(&'static str),
    Url(&'static str),
    Letters(&'static str, usize, usize),
    Each(usize, usize, Box<Said>),
    Absent,
}

impl Said {
    /// The condition as a file of rules writes it.
    fn toml(&self) -> String {
        match self {
            Self::OneOf(values) => {
                let values: Vec<String> = values
                    .iter()
                    .map(|value| format!("{{ json = '{value}' }}"))
                    .collect();
                format!("{{ one_of = [{}] }}", values.join(", "))
            }
            Self::Whole(low, high) => format!("{{ integer = [{low}, {high}] }}"),
            Self::Fraction(low, high) => format!("{{ decimal = [{low}.0, {high}.0] }}"),
            Self::Under(root) => format!("{{ under = \"{root}\" }}"),
            Self::Url(root) => {
                format!("{{ url = {{ origin = \"https://a.com\", under = \"{root}\" }} }}")
            }
            Self::Letters(set, low, high) => {
                format!("{{ chars = \"{set}\", length = [{low}, {high}] }}")
            }
            Self::Each(low, high, each) => {
                format!("{{ count = [{low}, {high}], each = {} }}", each.toml())
            }
            Self::Absent => "{ absent = true }".to_owned(),
        }
    }

    /// Whether a value, or a missing member, satisfies it.
    fn holds(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::Absent);
        };
        match self {
            Self::Absent => false,
            Self::OneOf(values) => values.contains(value),
            Self::Whole(low, high) => value
                .as_i64()
                .is_some_and(|number| (*low..=*high).contains(&number)),
            Self::Fraction(low, high) => value.as_f64().is_some_and(|number| {
                value.is_f64() && *low as f64 <= number && number <= *high as f64
            }),
            Self::Under(root) => value
                .as_str()
                .is_some_and(|text| readings(text).iter().all(|text| lies_below(text, root))),
            Self::Url(root) => value.as_str().is_some_and(|text| {
                let Some(path) = text.strip_prefix("https://a.com") else {
                    return false;
                };
                path.starts_with(&format!("{root}/"))
                    && !path.contains(['?', '#', '@', '%'])
                    && !path.contains("..")
            }),
            Self::Letters(set, low, high) => value.as_str().is_some_and(|text| {
                let is_in = |symbol: char| match *set {
                    "A-Z0-9" => symbol.is_ascii_uppercase() || symbol.is_ascii_digit(),
                    _ => symbol.is_ascii_lowercase() || symbol == '_' || symbol == '-',
                };
                (*low..=*high).contains(&text.chars().count())
                    && text.chars().all(is_in)
                    && !text.starts_with(['-', '_'])
            }),
            Self::Each(low, high, each) => value.as_array().is_some_and(|elements| {
                (*low..=*high).contains(&elements.len())
                    && elements.iter().all(|element| each.holds(Some(element)))
            }),
        }
    }
}

/// A path as servers may read it: as it is, decoded, in its compatibility form, without hidden
/// characters, and up to a blank or a sign of a shell.
fn readings(text: &str) -> Vec<String> {
    let decoded = text
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "\\");
    let plain: String = text.nfkc().filter(|symbol| !is_hidden(*symbol)).collect();
    let cut = text.split([
        ';', '|', '`', '$', '\0', '\n', '*', '~', '&', '<', '>', '"', '\'',
    ]);
    let cut = cut
        .map(|part| part.trim().to_owned())
        .next()
        .unwrap_or_default();
    vec![text.to_owned(), decoded, plain, cut]
}

/// Whether a walk along a path ends below a root, and on the way names no hidden file.
fn lies_below(text: &str, root: &str) -> bool {
    let mut walked: Vec<&str> = Vec::new();
    for step in text.split(['/', '\\']) {
        match step.trim_end_matches([' ', '.']) {
            _ if step == ".." => drop(walked.pop()),
            "" => {}
            name => walked.push(name),
        }
    }
    let root: Vec<&str> = root.split('/').filter(|name| !name.is_empty()).collect();
    let below = walked.get(root.len()..).unwrap_or_default();
    text.starts_with('/')
        && walked.starts_with(&root)
        && !below.is_empty()
        && !below.iter().any(|name| name.starts_with('.'))
}

/// The value at a pointer, in the naive tree.
fn at<'v>(tree: &'v Value, pointer: &str) -> Option<&'v Value> {
    tree.pointer(pointer)
}

/// The pointers of all members that are no objects, or empty ones.
fn leaves(tree: &Value, at: &str, found: &mut Vec<String>) {
    match tree.as_object() {
        Some(members) if !members.is_empty() || at.is_empty() => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                leaves(member, &format!("{at}/{name}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Whether a person who reads the conditions would say that they cover the arguments.
fn covers(when: &BTreeMap<&str, Said>, arguments: &str) -> bool {
    let Ok(tree) = serde_json::from_str::<Value>(arguments) else {
        return false;
    };
    if !tree.is_object() {
        return false;
    }
    let mut found = Vec::new();
    leaves(&tree, "", &mut found);
    found.iter().all(|leaf| when.contains_key(leaf.as_str()))
        && when
            .iter()
            .all(|(pointer, said)| said.holds(at(&tree, pointer)))
}

fn said() -> impl Strategy<Value = Said> {
    let inner = prop_oneof![
        prop::sample::subsequence(constants(), 1..5).prop_map(Said::OneOf),
        (-3..3_i64, 0..9_i64).prop_map(|(low, span)| Said::Whole(low, low + span)),
        (-3..3_i64, 0..9_i64).prop_map(|(low, span)| Said::Fraction(low, low + span)),
        Just(Said::Under("/srv/docs")),
        Just(Said::Url("/v1")),
        (1..3_usize, 0..6_usize).prop_map(|(low, span)| Said::Letters("A-Z0-9", low, low + span)),
        (1..3_usize, 0..6_usize).prop_map(|(low, span)| Said::Letters("a-z_-", low, low + span)),
    ];
    let each = (0..2_usize, 0..3_usize, inner.clone())
        .prop_map(|(low, span, each)| Said::Each(low, low + span, Box::new(each)));
    prop_oneof![6 => inner, 2 => each, 1 => Just(Said::Absent)]
}

fn constants() -> Vec<Value> {
    ["acme", "a/b", "7"]
        .map(Value::from)
        .into_iter()
        .chain([Value::Null])
        .collect()
}

/// Values near the conditions: most of them inside of some, the others just outside.
const VALUES: [&str; 52] = [
    "\"acme\"",
    "\"Acme\"",
    "\"acme \"",
    "\"\\u0061cme\"",
    "\"аcme\"",
    "\"a/b\"",
    "\"7\"",
    "7",
    "7.0",
    "7e0",
    "0",
    "-0",
    "-1",
    "3",
    "9",
    "2.5",
    "-2.25",
    "1e400",
    "99999999999999999999",
    "0.1000000000000000055",
    "null",
    "true",
    "[]",
    "[7]",
    "[\"acme\"]",
    "[\"acme\",\"evil\"]",
    "[3,4]",
    "[3,\"4\"]",
    "[[3]]",
    "[null]",
    "{}",
    "{\"x\":1}",
    "\"/srv/docs/a\"",
    "\"/srv/docs/../x\"",
    "\"/srv/docs/.env\"",
    "\"/srv/docs/%2e%2e/x\"",
    "\"/srv/docs\"",
    "\"/srv/docsx/a\"",
    "\"srv/docs/a\"",
    "[\"/srv/docs/a\"]",
    "\"https://a.com/v1/x\"",
    "\"https://a.com/v1/x?q=1\"",
    "\"https://a.com.evil.com/v1/x\"",
    "\"https://a.com/v1/../x\"",
    "\"https://u@a.com/v1/x\"",
    "\"https://a.com/v2/x\"",
    "\"AB1\"",
    "\"ab_c\"",
    "\"-rf\"",
    "\"a;b\"",
    "\"AB1\\u200b\"",
    "\"\"",
];

/// Parts that mean something to some reader of a path, a URL or a command.
const PARTS: [&str; 30] = [
    "..", "/..", "../", "/", "//", "\\\\", "%2e%2e", "%2f", "%5c", " ", " -o", "-", "\\u200b",
    "．", "．．", "~", "$HOME", "`id`", ";", "|", "\\n", "\\u0000", ".", "@", "?q=1", "#x", ":8",
    "а", "é", "*",
];

/// A value of [`VALUES`], or a text of them with a part set in.
fn near() -> impl Strategy<Value = String> {
    let value = || prop::sample::select(&VALUES[..]);
    let set_in = (
        value(),
        prop::sample::select(&PARTS[..]),
        any::<prop::sample::Index>(),
    );
    let set_in = set_in.prop_map(|(value, part, at)| {
        let Some(text) = value
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
        else {
            return value.to_owned();
        };
        let places: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        let (before, after) = text.split_at(places[at.index(places.len())]);
        format!("\"{before}{part}{after}\"")
    });
    prop_oneof![1 => value().prop_map(str::to_owned), 3 => set_in]
}

/// Arguments with the members of the conditions, at times without one or with another one.
fn arguments() -> impl Strategy<Value = String> {
    let value = || prop::sample::select(&VALUES[..]);
    let more = prop_oneof![
        8 => Just(String::new()),
        1 => value().prop_map(|value| format!(",\"x\":{value}")),
        1 => value().prop_map(|value| format!(",\"A\":{value}")),
        1 => value().prop_map(|value| format!(",\"\\u0061\":{value}")),
    ];
    let members = (value(), value(), value(), more);
    members.prop_flat_map(|(a, b, c, more)| {
        let whole = format!("{{\"a\":{a},\"b\":{{\"c\":{b}}},\"d\":{c}{more}}}");
        let without = format!("{{\"a\":{a},\"b\":{{\"c\":{b}}}{more}}}");
        prop_oneof![3 => Just(whole), 1 => Just(without)]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn an_approved_call_satisfies_every_condition_by_a_naive_reading(
        a in said(), b in said(), d in said(), calls in prop::collection::vec(arguments(), 8)
    ) {
        let when = BTreeMap::from([("/a", a), ("/b/c", b), ("/d", d)]);
        let lines: Vec<String> = when.iter().map(|(at, said)| format!("\"{at}\" = {}", said.toml())).collect();
        let set = approving(&lines.join("\n"));
        let spent = Spent::default();
        for arguments in calls {
            let call = OwnedCall::new(&arguments);
            let approved = call.with(|call| set.decide(call, &spent, CallStage::Proposed).is_some());
            if approved {
                prop_assert!(covers(&when, &arguments), "{arguments}\n{}", set.rules()[0].sentence());
            }
        }
        // What is shown reads as the rule, and the sentence names every condition.
        let rule = &set.rules()[0];
        let read = parse_rules(&rule.text()).unwrap();
        prop_assert_eq!(&read[..], std::slice::from_ref(rule));
        prop_assert_eq!(read[0].text(), rule.text());
        for (pointer, test) in rule.when.iter() {
            let condition = format!("{} {}", pointer.words(), test.words());
            prop_assert!(rule.sentence().contains(&condition));
        }
        prop_assert_eq!(RuleSet::new([rule.clone()]).unwrap().text(), set.text());
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn one_condition_holds_by_a_naive_reading_too(said in said(), value in near()) {
        let set = approving(&format!("\"/a\" = {}", said.toml()));
        let arguments = format!("{{\"a\":{value}}}");
        let read = Arguments::read(arguments.as_bytes());
        let held = read.is_ok_and(|read| set.rules()[0].when.fit_closed(&read) == Fit::Held);
        if held {
            prop_assert!(covers(&BTreeMap::from([("/a", said)]), &arguments), "{arguments}");
        }
    }
}

/// Values of one sort, as a learner sees them, some of them outliers.
fn values() -> impl Strategy<Value = Vec<Constant>> {
    let sort = prop_oneof![
        Just("[1-9][0-9]{0,2}"),
        Just("[1-9]\\.[1-9]"),
        Just("\"[A-C]{1,2}-[0-9]{1,2}\""),
        Just("\"[a-c0-2_]{0,3}[a1]\""),
        Just("\"/srv/docs/(\\.?[a-b]/)?\\.?[a-d]{1,2}\""),
        Just("\"https://a\\.com/v1/(\\.?[a-b]/)?[a-d]{1,2}\""),
        Just("\\[[0-9](,[0-9]){0,3}\\]"),
    ];
    sort.prop_flat_map(|sort| {
        let one = sort.prop_map(|json: String| Constant::parse(&json).unwrap());
        prop::collection::vec(one, 1..30)
    })
}

fn holds(test: &ValueTest, value: &str) -> bool {
    let canonical = Constant::parse(value).map(|one| one.as_str().to_owned());
    canonical.is_ok_and(|raw| test.fit(raw.as_bytes()) == Fit::Held)
}

proptest! {
    #[test]
    fn a_tighter_step_never_covers_more(values in values(), probes in self::values()) {
        let all = steps(&values);
        for step in &all {
            for value in &values {
                prop_assert_eq!(step.fit(value.as_str().as_bytes()), Fit::Held);
            }
            let (tighter, wider) = (next_tighter(step, &values), next_wider(step, &values));
            let probes = probes.iter().map(Constant::as_str).chain(VALUES);
            for probe in probes {
                let held = holds(step, probe);
                let of_tighter = tighter.as_ref().is_some_and(|test| holds(test, probe));
                let of_wider = wider.as_ref().is_none_or(|test| holds(test, probe));
                prop_assert!(!of_tighter || held, "{probe} {}", step.words());
                prop_assert!(!held || of_wider, "{probe} {}", step.words());
            }
        }
    }

    #[test]
    fn what_includes_another_test_holds_wherever_that_holds(one in values(), other in values(), joint in any::<bool>()) {
        let all = if joint { [one.clone(), other.clone()].concat() } else { other.clone() };
        for wide in steps(&all) {
            for narrow in steps(&one) {
                if !wide.includes(&narrow) {
                    continue;
                }
                for probe in one.iter().chain(&other).map(Constant::as_str).chain(VALUES) {
                    prop_assert!(!holds(&narrow, probe) || holds(&wide, probe), "{probe} {} {}", wide.words(), narrow.words());
                }
            }
        }
        let pointer = Pointer::parse("/a").unwrap();
        for wide in steps(&all) {
            prop_assert!(Conditions::new([(pointer.clone(), wide)]).is_some());
        }
    }
}
