use std::sync::Arc;

use proptest::{prelude::*, sample::select};

use super::*;
use crate::Capabilities;

/// The verdict of the table and of the doors: an unreadable kind is not admitted.
fn allowed(capability: &str, kind: &str) -> bool {
    match (Capability::parse(capability), KindRef::parse(kind)) {
        (Ok(capability), Ok(kind)) => capability.admits(kind),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[test]
fn the_truth_table_holds() {
    let table = include_str!("../../tests-data/capabilities.tsv");
    let mut rows = 0;
    for line in table.lines() {
        let mut columns = line.split('\t');
        let capability = columns.next().unwrap();
        let kind = columns.next().unwrap();
        let expected = columns.next().unwrap();
        assert_eq!(allowed(capability, kind), expected == "allow", "{line}");
        rows += 1;
    }
    assert_eq!(rows, 90);
}

#[test]
fn malformed_capabilities_are_refused() {
    let check = |text: &str, expected: CapabilityError| {
        assert_eq!(Capability::parse(text), Err(expected), "{text}");
    };
    check("", CapabilityError::NoHead);
    check(":x", CapabilityError::NoHead);
    check("mcp/", CapabilityError::NoHead);
    check("mcp/:x", CapabilityError::NoHead);
    check("*", CapabilityError::WideWildcard);
    check("ch*", CapabilityError::WideWildcard);
    check("*/x", CapabilityError::WideWildcard);
    check("/*", CapabilityError::WideWildcard);
    check("mcp*", CapabilityError::WideWildcard);
    check("a*/*", CapabilityError::WideWildcard);
    check("system/*", CapabilityError::Reserved);
    check("presence", CapabilityError::Reserved);
    check("mcp/request:", CapabilityError::EmptyPart);
    check("mcp/request:tools/call:", CapabilityError::EmptyPart);
    check("mcp/request::x", CapabilityError::EmptyPart);
    check("mcp/request:**", CapabilityError::DoubledStar);
    check(
        "mcp/request:resources/read:file:///a/../b",
        CapabilityError::ParentSegment,
    );
    check(
        "mcp/request:resources/read:file:///a/./*",
        CapabilityError::Ambiguous,
    );
    check(
        "mcp/request:resources/read:file:///a%2f*",
        CapabilityError::Ambiguous,
    );
    check(
        "mcp/request:tools/call:*\u{200b}",
        CapabilityError::Ambiguous,
    );
    let longest = format!("acme/{}", "x".repeat(CAPABILITY_BYTES_MAX - 5));
    assert!(Capability::parse(&longest).is_ok());
    check(&format!("{longest}x"), CapabilityError::TooLong);
}

#[test]
fn a_partial_wildcard_does_not_climb() {
    let check = |context: &str, expected: bool| {
        let kind = format!("mcp/request:resources/read:file:///public/{context}");
        assert_eq!(
            allowed("mcp/request:resources/read:file:///public/*", &kind),
            expected,
            "{context}"
        );
        assert!(allowed("mcp/request:resources/read:*", &kind), "{context}");
        assert!(allowed("mcp/request:resources/read", &kind), "{context}");
    };
    check("a/b.txt", true);
    check("a..b/c", true);
    check("...", true);
    check("../secret", false);
    check("a/..", false);
    check("a/../b", false);
    check("%2e%2E/secret", false);
    check(".%2e/secret", false);
    check("a%2f..%2Fsecret", false);
    check("a\\..\\secret", false);
    check("..?x", false);
    check("..#x", false);
}

#[test]
fn addressees_narrow() {
    let narrowed = Capability::parse("mcp/request:tools/call:search_*")
        .unwrap()
        .to(["search", "find-*"]);
    let narrowed = narrowed.unwrap();
    let kind = KindRef::request("tools/call", Some("search_web")).unwrap();
    let check =
        |to: &[&str], expected: bool| assert_eq!(narrowed.admits_to(kind, to), expected, "{to:?}");
    check(&["search"], true);
    check(&["find-1"], true);
    check(&["search", "find-1"], true);
    check(&["search", "other"], false);
    check(&["searching"], false);
    check(&[], false);
    assert!(!narrowed.admits(kind));
    assert_eq!(narrowed.to_string(), "mcp/request:tools/call:search_*");
    assert_eq!(
        narrowed.addressees().unwrap().collect::<Vec<_>>(),
        ["search", "find-*"]
    );
    let bare = || Capability::parse("chat").unwrap();
    assert_eq!(bare().to([]), Err(CapabilityError::NoAddressee));
    assert_eq!(bare().to([""]), Err(CapabilityError::EmptyPart));
    assert_eq!(bare().to(["**"]), Err(CapabilityError::DoubledStar));
}

#[test]
fn a_shape_is_admitted_if_some_context_is() {
    let shape: Vec<Option<char>> = "file:///*"
        .chars()
        .map(|symbol| (symbol != '*').then_some(symbol))
        .collect();
    let check = |capability: &str, expected: bool| {
        let capability = Capability::parse(capability).unwrap();
        assert_eq!(
            capability.admits_some("mcp/request", "resources/read", &shape, &[]),
            expected,
            "{capability}"
        );
    };
    check("mcp/*", true);
    check("mcp/request:resources/read:file:///public/a", true);
    check("mcp/request:resources/read:*.md", true);
    check("mcp/request:resources/read:http://*", false);
    check("mcp/request:resources/list", false);
    check("mcp/proposal:*", false);
    check("chat", false);
}

/// Texts of the characters that matter in the grammar.
fn text() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "mcp/",
        "mcp",
        "request",
        "proposal",
        "*",
        ":",
        "/",
        "tools/call",
        "read_",
        "..",
        ".",
        "é",
        "chat",
        "system",
        "a",
        "b",
        "file:///",
        "%2e",
    ]);
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

/// Well-formed capabilities under `mcp/`, in parts.
fn parts() -> impl Strategy<Value = Vec<String>> {
    let head = select(vec!["mcp/request", "mcp/*", "mcp/re*"]);
    let method = select(vec!["tools/call", "tools/*", "*", "*/call", "t*ls/c*l"]);
    let context = select(vec![
        "*",
        "read_*",
        "*_file",
        "r*d_*",
        "read_file",
        "file:///a/*",
    ]);
    (head, method, context, 1_usize..=3).prop_map(|(head, method, context, count)| {
        [head, method, context]
            .into_iter()
            .take(count)
            .map(str::to_owned)
            .collect()
    })
}

/// Well-formed kinds that the capabilities above often match.
fn kind() -> impl Strategy<Value = String> {
    let head = select(vec!["mcp/request", "mcp/response", "mcp/proposal"]);
    let method = select(vec!["tools/call", "tools/list", "resources/read", "call"]);
    let context = select(vec![
        "",
        ":read_file",
        ":read_",
        ":write_file",
        ":_file",
        ":file:///a/b",
        ":file:///a/../b",
        ":..",
    ]);
    (head, method, context).prop_map(|(head, method, context)| format!("{head}:{method}{context}"))
}

/// One narrower capability: a star filled in, or a part added.
fn narrower(parts: &[String], at: usize, fill: &str, added: &str) -> Vec<String> {
    let mut narrow = parts.to_vec();
    let count = narrow.len();
    match narrow.get_mut(at % (count + 1)) {
        Some(part) => *part = part.replacen('*', fill, 1),
        None if count < 3 => narrow.push(added.to_owned()),
        None => {}
    }
    narrow
}

/// What stands for a star: ordinary names, other stars, and what parsers read in different ways.
const FILLS: &[&str] = &[
    "a",
    "a/b",
    "*",
    "a*",
    "*b",
    "a*b*c",
    "..;",
    "a/..;/b",
    "%2e%2e/etc",
    "%2E./x",
    "..%2f",
    "a%00",
    "\t",
    "..?",
    "..#x",
    "\u{ff0e}\u{ff0e}/x",
    "\u{200b}",
    "a\u{202e}b",
    "%",
    "%zz",
    " ",
    "a ",
    ".",
    "./a",
    "%252e%252e/x",
    ". ./x",
    "\u{2215}..\u{2215}x",
    "",
];

/// The texts that a pattern becomes when each of its stars is filled.
fn filled(pattern: &str) -> impl Iterator<Item = String> {
    FILLS.iter().map(|fill| pattern.replace('*', fill))
}

#[test]
fn what_a_set_covers_it_admits() {
    let owns = [
        "mcp/request:resources/read:file:///notes/*",
        "mcp/request:resources/*:file:///notes/*",
        "mcp/*:resources/read:*.md",
        "mcp/request:resources/read:*notes*",
        "mcp/request:resources/read:*",
        "mcp/request:resources/*",
        "mcp/request:*",
        "mcp/request:resources/read:file:///notes/%2e%2e/etc",
        "chat/*",
    ];
    let scope = Arc::new(Capabilities::parse(["mcp/*:*:file:///*"]).unwrap());
    let mut covered = 0;
    let mut withheld = 0;
    for own in owns.map(|own| Capabilities::parse([own]).unwrap()) {
        let narrowed = own.within(&scope);
        for set in [own, narrowed] {
            for pattern in owns {
                for text in filled(pattern) {
                    let Ok(given) = Capability::parse(&text) else {
                        continue;
                    };
                    let covers = set.covers(&given);
                    for kind in filled(&text) {
                        let Ok(kind) = KindRef::parse(&kind) else {
                            continue;
                        };
                        if !given.admits(kind) {
                            continue;
                        }
                        let admits = set.admits(kind, &[]);
                        assert!(
                            !covers || admits,
                            "{set:?} covers {text}, and withholds {kind}"
                        );
                        covered += usize::from(covers);
                        withheld += usize::from(!admits);
                    }
                }
            }
        }
    }
    assert!(
        covered > 10_000 && withheld > 10_000,
        "{covered} {withheld}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_capabilities_print_as_written(left in text(), right in text(), any in ".*") {
        let _ = allowed(&left, &right);
        let _ = allowed(&any, &right);
        let _ = allowed(&left, &any);
        for text in [&left, &right, &any] {
            if let Ok(kind) = KindRef::parse(text) {
                prop_assert_eq!(&kind.to_string(), text);
            }
            if let Ok(capability) = Capability::parse(text) {
                prop_assert_eq!(&capability.to_string(), text);
            }
        }
    }

    #[test]
    fn narrower_never_admits_more(
        wide in parts(), at in 0_usize..4, fill in select(vec!["a", "ll", "read_", "x*y", "_", ""]),
        added in select(vec!["tools/call", "read_*", "*", "x"]), kind in kind(), to in select(vec!["one", "two"]),
    ) {
        let narrow = narrower(&wide, at, fill, added);
        let wide = wide.join(":");
        let narrow = narrow.join(":");
        prop_assert!(!allowed(&narrow, &kind) || allowed(&wide, &kind), "{} {} {}", wide, narrow, kind);
        let kind = KindRef::parse(&kind).unwrap();
        let wide = Capability::parse(&wide).unwrap();
        let addressed = wide.clone().to(["one"]).unwrap();
        prop_assert!(!addressed.admits_to(kind, &[to]) || wide.admits_to(kind, &[to]));
        prop_assert!(!addressed.admits(kind));
    }

    #[test]
    fn reserved_kinds_are_never_admitted(capability in text(), rest in text()) {
        let system = format!("system/{rest}");
        prop_assert!(!allowed(&capability, "system"));
        prop_assert!(!allowed(&capability, &system));
    }
}

#[test]
fn inclusion_of_capabilities() {
    for (wide, narrow, expect) in [
        ("mcp/*", "mcp/request:tools/call:x", true),
        ("mcp/*", "mcp/*", true),
        ("mcp/request:*", "mcp/*", false),
        ("mcp/request:*", "mcp/request:tools/*", true),
        ("mcp/request", "mcp/request:*", true),
        ("mcp/request:*", "mcp/request", true),
        ("mcp/request:tools/*", "mcp/request:*", false),
        ("mcp/request:tools/*", "mcp/request:tools/call", true),
        (
            "mcp/request:tools/call",
            "mcp/request:tools/call:read_*",
            true,
        ),
        ("mcp/request:tools/call:*", "mcp/request:tools/call", true),
        (
            "mcp/request:tools/call:read_*",
            "mcp/request:tools/call",
            false,
        ),
        (
            "mcp/request:tools/call:read_*",
            "mcp/request:tools/call:read_a*",
            true,
        ),
        (
            "mcp/request:tools/call:read_*",
            "mcp/request:tools/call:*",
            false,
        ),
        (
            "mcp/request:tools/call:*_x",
            "mcp/request:tools/call:a*b_x",
            true,
        ),
        ("mcp/request:*/list", "mcp/request:*", false),
        ("mcp/request:tools/call", "mcp/proposal:tools/call", false),
        ("chat", "chat", true),
        ("chat", "mcp/*", false),
        ("portmoot/*", "portmoot/grants", true),
        ("portmoot/grants", "portmoot/*", false),
        ("portmoot/*", "portmoot/*", true),
        ("name/*", "name/a:b", false),
    ] {
        let wide_one = Capability::parse(wide).unwrap();
        let narrow_one = Capability::parse(narrow).unwrap();
        assert_eq!(
            wide_one.includes(&narrow_one),
            expect,
            "{wide} includes {narrow}"
        );
    }
    let to = |names: &[&str]| {
        Capability::parse("chat")
            .unwrap()
            .to(names.iter().copied())
            .unwrap()
    };
    for (wide, narrow, expect) in [
        (None, Some(["a"].as_slice()), true),
        (Some(["a"].as_slice()), None, false),
        (Some(&["a", "b-*"]), Some(&["b-1", "a"]), true),
        (Some(&["a"]), Some(&["a", "b"]), false),
    ] {
        let one = |names: Option<&[&str]>| names.map_or(Capability::parse("chat").unwrap(), to);
        assert_eq!(
            one(wide).includes(&one(narrow)),
            expect,
            "{wide:?} {narrow:?}"
        );
    }
}
