use proptest::prelude::*;

use super::*;

fn constant(json: &str) -> Constant {
    Constant::parse(json).unwrap()
}

fn text(text: &str) -> Constant {
    Constant::of_text(text).unwrap()
}

fn joined(values: &[Constant]) -> Option<ValueTest> {
    let mut tests = values.iter().cloned().map(ValueTest::equals);
    let first = tests.next().unwrap();
    tests.try_fold(first, |all, one| all.join(&one))
}

#[track_caller]
fn words(values: &[Constant], expect: Option<&str>) {
    assert_eq!(joined(values).map(|test| test.words()).as_deref(), expect);
}

#[test]
fn constants_stay_constants_up_to_their_limit() {
    let numbers = |count: usize| {
        (1..=count)
            .map(|at| constant(&at.to_string()))
            .collect::<Vec<_>>()
    };
    words(&numbers(2), Some("is 1 or 2"));
    assert!(matches!(
        joined(&numbers(CONSTANTS_MAX)),
        Some(ValueTest::OneOf(_))
    ));
    words(
        &numbers(CONSTANTS_MAX + 1),
        Some("is a whole number from 1 to 9"),
    );
    words(&[constant("1"), constant("null")], Some("is 1 or null"));
    words(&[constant("1"), text("a")], None);
    words(&[constant("1"), constant("1.5")], Some("is 1 or 1.5"));
}

#[test]
fn each_type_has_its_next_step() {
    let many = |make: &dyn Fn(usize) -> Constant| (0..12).map(make).collect::<Vec<_>>();
    words(
        &many(&|at| text(&format!("ABC-{at}"))),
        Some("is 5 to 6 characters of the shape \"A-9\""),
    );
    let mixed = |at: usize| {
        text(["a1", "A1", "1a", "1-1"].map(|one| format!("{one}{at}"))[at % 4].as_str())
    };
    words(
        &many(&mixed),
        Some("is 3 to 5 characters of \"A-Za-z0-9-\""),
    );
    words(
        &many(&|at| text(&format!("/srv/docs/{at}/x"))),
        Some("is a path under \"/srv/docs\""),
    );
    words(&many(&|at| text(&format!("/srv{at}/docs"))), None);
    words(
        &many(&|at| text(&format!("https://a.com/v1/{at}"))),
        Some("is a URL under \"https://a.com/v1\" without a query"),
    );
    words(&many(&|at| text(&format!("https://a{at}.com/v1"))), None);
    words(&many(&|at| text(&format!("some words {at}"))), None);
    words(&many(&|at| text(&format!("rm {at}"))), None);
    words(
        &many(&|at| constant(&format!("{at}.5"))),
        Some("is a number with a fraction from 0.5 to 11.5"),
    );
    words(&many(&|at| constant(&format!("1e{at}"))), None);
    words(
        &many(&|at| constant(&format!("[{at},{}]", at + 1))),
        Some("has 2 elements, each of which is a whole number from 0 to 12"),
    );
}

#[test]
fn steps_go_from_narrow_to_wide() {
    let values: Vec<Constant> = ["/srv/docs/a/x", "/srv/docs/a/y"].map(text).into();
    let shown: Vec<String> = steps(&values).iter().map(ValueTest::words).collect();
    assert_eq!(
        shown,
        [
            "is \"/srv/docs/a/x\" or \"/srv/docs/a/y\"",
            "is a path under \"/srv/docs/a\"",
            "is a path under \"/srv/docs\"",
        ]
    );
    let all = steps(&values);
    assert_eq!(next_wider(&all[0], &values).as_ref(), Some(&all[1]));
    assert_eq!(next_tighter(&all[1], &values).as_ref(), Some(&all[0]));
    assert_eq!(next_tighter(&all[0], &values), None);
    assert_eq!(next_wider(&all[2], &values), None);
}

/// Values of which many share a type.
fn value() -> impl Strategy<Value = Constant> {
    prop_oneof![
        (0..40_i32).prop_map(|number| constant(&number.to_string())),
        (0..40_i32).prop_map(|number| constant(&format!("{number}.25"))),
        "[A-C]{1,2}-[0-9]{1,2}".prop_map(|one| text(&one)),
        "[a-c0-2_:@A]{1,4}".prop_map(|one| text(&one)),
        "/srv/(docs|data)/[a-d]/[a-d]".prop_map(|one| text(&one)),
        "https://a\\.com/v1/[a-d]{1,2}".prop_map(|one| text(&one)),
        "[a-c ]{1,3}".prop_map(|one| text(&one)),
        prop::collection::vec(0..30_u32, 0..3).prop_map(|list| constant(&format!("{list:?}"))),
        prop_oneof![Just("null"), Just("true"), Just("false"), Just("{}")].prop_map(constant),
    ]
}

/// Values of one sort, so that joins mostly exist.
fn values() -> impl Strategy<Value = Vec<Constant>> {
    let numbers = (0..60_i32).prop_map(|number| number.to_string());
    prop_oneof![
        of_sort(numbers),
        of_sort("\"[A-C]{1,2}-[0-9]{1,2}\""),
        of_sort("\"[a-c0-2_:@A]{0,3}[a1A]\""),
        of_sort("\"/srv/docs/[a-d]/[a-d]{1,2}\""),
        of_sort("\"https://a\\.com/v1/[a-d]{1,2}\""),
        of_sort("\\[[0-9](,[0-9]){0,2}\\]"),
    ]
}

fn of_sort(json: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Constant>> {
    prop::collection::vec(json.prop_map(|json| constant(&json)), 1..24)
}

proptest! {
    #[test]
    fn a_join_covers_both_and_has_no_order(one in values(), other in values()) {
        let (one, other) = (joined(&one), joined(&other));
        if let (Some(one), Some(other)) = (one, other) {
            let both = one.join(&other);
            prop_assert_eq!(&both, &other.join(&one));
            if let Some(both) = both {
                prop_assert!(both.includes(&one) && both.includes(&other));
                let again = both.join(&one);
                prop_assert_eq!(again.as_ref(), Some(&both));
                prop_assert!(!one.is_wider_than(&both));
            }
        }
    }

    #[test]
    fn values_join_in_any_grouping(mut values in prop::collection::vec(value(), 2..24), cut in 1..23_usize) {
        values.sort_by_key(|one| ValueTest::equals(one.clone()).words().len());
        let whole = joined(&values);
        let (left, right) = values.split_at(cut.min(values.len() - 1));
        let grouped = match (joined(left), joined(right)) {
            (Some(left), Some(right)) => left.join(&right),
            _ => None,
        };
        // A group whose sides do not join alone has no join as a whole either.
        prop_assert_eq!(&whole, &grouped);
        values.reverse();
        prop_assert_eq!(whole, joined(&values));
    }

    #[test]
    fn a_join_is_the_least_of_its_step(values in values()) {
        if let Some(test) = joined(&values) {
            for value in &values {
                prop_assert_eq!(test.fit(value.as_str().as_bytes()), Fit::Held);
            }
            // Every wider step that covers the values includes it.
            for step in steps(&values) {
                prop_assert!(step.includes(&test), "{} {}", step.words(), test.words());
            }
        }
    }

    #[test]
    fn inclusion_is_an_order(one in values(), other in values(), probe in value()) {
        if let (Some(one), Some(other)) = (joined(&one), joined(&other)) {
            prop_assert!(one.includes(&one));
            if one.includes(&other) && other.includes(&one) {
                prop_assert_eq!(&one, &other);
            }
            let raw = probe.as_str().as_bytes();
            if one.includes(&other) && other.fit(raw) == Fit::Held {
                prop_assert_eq!(one.fit(raw), Fit::Held);
            }
        }
    }
}

#[test]
fn objects_generalise_member_by_member() {
    let read = |raw: &str| Conditions::exactly(&Arguments::read(raw.as_bytes()).unwrap()).unwrap();
    let (one, other) = (
        read(r#"{"a":1,"b":{"c":"x"}}"#),
        read(r#"{"a":2,"b":{"c":"x"}}"#),
    );
    let both = one.join(&other).unwrap();
    let shown: Vec<String> = both
        .iter()
        .map(|(at, test)| format!("{at} {}", test.words()))
        .collect();
    assert_eq!(shown, ["/a is 1 or 2", "/b/c is \"x\""]);
    assert!(both.is_wider_than(&one) && both.includes(&other) && !one.includes(&other));
    assert_eq!(one.join(&read(r#"{"a":1}"#)), None);
    assert_eq!(one.join(&read(r#"{"a":"x","b":{"c":"x"}}"#)), None);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2000));
    assert_eq!(
        Conditions::exactly(&Arguments::read(long.as_bytes()).unwrap()),
        None
    );
}
