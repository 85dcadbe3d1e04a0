use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

/// Schemas that are drawn.
const RANDOM_SCHEMAS: u64 = 2_000;

/// What does not fit, or why arguments cannot be checked.
fn checked(schema: &str, arguments: &str) -> Result<(), String> {
    Arguments::new(schema.as_bytes())?.check(Some(arguments.as_bytes()))
}

#[test]
fn arguments_fit_or_do_not_with_the_place_and_what_was_expected() {
    let strict = r##"{"type":"object","properties":{"a":{"type":"string","minLength":2},"n":{"type":"integer","maximum":3},
        "list":{"type":"array","items":{"$ref":"#/$defs/item"}},"when":{"type":"string","format":"date"}},
        "required":["a"],"additionalProperties":false,"$defs":{"item":{"enum":["x","y"]}}}"##;
    let older = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
        "properties":{"pair":{"items":[{"type":"string"},{"type":"number"}],"additionalItems":false},"when":{"format":"date"}}}"#;
    for (schema, arguments, expected) in [
        (
            strict,
            r#"{"a":"bc","n":3,"list":["x"],"when":"never"}"#,
            None,
        ),
        (strict, r#"{"a":"bc","n":1.0}"#, None),
        (
            strict,
            r#"{"a":"b"}"#,
            Some("- /a: this is shorter than 2 characters"),
        ),
        (
            strict,
            r#"{"a":"bc","n":1e400}"#,
            Some("- /n: this is greater than the maximum of 3"),
        ),
        (
            strict,
            r#"{"a":"bc","list":["x","z"]}"#,
            Some(r#"- /list/1: this is not one of "x" or "y""#),
        ),
        (
            strict,
            "{}",
            Some(r#"- the arguments: "a" is a required property"#),
        ),
        (
            strict,
            "null",
            Some(r#"- the arguments: this is not of type "object""#),
        ),
        (
            strict,
            r#"{"a":"bc","\u001b[31m":1}"#,
            Some(
                r"- the arguments: Additional properties are not allowed ('\u{1b}[31m' was unexpected)",
            ),
        ),
        (strict, r#"{"a":"bc","a":"bd"}"#, Some("a member twice")),
        (strict, r#"{"a":"bc","n":3}"#, None),
        (older, r#"{"pair":["a",1],"when":"never"}"#, None),
        (
            older,
            r#"{"pair":["a",1,2]}"#,
            Some("- /pair: Additional items"),
        ),
        (
            older,
            r#"{"pair":[1]}"#,
            Some("- /pair/0: this is not of type \"string\""),
        ),
    ] {
        match (checked(schema, arguments), expected) {
            (Ok(()), None) => {}
            (Err(words), Some(expected)) => {
                assert!(words.contains(expected), "{arguments}: {words}")
            }
            (outcome, _) => panic!("{arguments}: {outcome:?}"),
        }
    }
    let open = Arguments::new(br#"{"type":"object","required":["a"]}"#).unwrap();
    assert_eq!(
        open.check(None),
        Err("- the arguments: \"a\" is a required property".to_owned())
    );
}

#[test]
fn few_violations_are_named_and_none_at_length() {
    let schema = r#"{"type":"object","additionalProperties":{"type":"string"}}"#;
    let arguments = |count: usize| {
        let members: Vec<String> = (0..count).map(|at| format!("\"m{at}\":{at}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(
        checked(schema, &arguments(8)).unwrap_err().lines().count(),
        8
    );
    let nine = checked(schema, &arguments(9)).unwrap_err();
    assert_eq!(
        (nine.lines().count(), nine.lines().last()),
        (9, Some("- and 1 more"))
    );
    let long = checked(schema, &format!("{{\"{}\":1}}", "\u{202e}é".repeat(1_000))).unwrap_err();
    assert!(
        long.ends_with("...") && long.len() < 1_200 && !long.contains('\u{202e}'),
        "{long}"
    );
}

#[test]
fn what_does_not_fit_is_named_only_while_that_is_cheap() {
    let schema =
        r#"{"type":"object","additionalProperties":{"anyOf":[{"type":"string"},{"type":"null"}]}}"#;
    let arguments = |count: usize| {
        let members: Vec<String> = (0..count).map(|at| format!("\"m{at}\":{at}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(
        checked(schema, &arguments(1_000))
            .unwrap_err()
            .starts_with("- /m0: ")
    );
    let many = checked(schema, &arguments(4_000)).unwrap_err();
    assert_eq!(many, "- what does not fit is too much to be named");
}

#[test]
fn patterns_are_those_that_take_linear_time() {
    let schema = |pattern: &str| {
        json!({"type": "object", "properties": {"a": {"pattern": pattern}}}).to_string()
    };
    for pattern in [
        r"^\p{L}+$",
        "^.{1,2048}$",
        r"^[^\s]{1,255}$",
        r"^\p{L}{1,20}$",
    ] {
        assert_eq!(checked(&schema(pattern), r#"{"a":"é"}"#), Ok(()));
    }
    assert!(
        checked(&schema(r"^\d+$"), r#"{"a":"x"}"#)
            .unwrap_err()
            .contains("/a: ")
    );
    for pattern in ["(?=a)b", r"(a)\1"] {
        let why = checked(&schema(pattern), "{}").unwrap_err();
        assert!(why.contains("cannot be compiled at"), "{pattern}: {why}");
    }
    // What takes exponential time elsewhere.
    let began = Instant::now();
    for (times, words) in [
        (500, "/a: "),
        (4_000, "too much to be named"),
        (5_000, "too large"),
    ] {
        let text = format!(r#"{{"a":"{}"}}"#, "ab".repeat(times));
        assert!(
            checked(&schema("^[ab]*a[ab]{10000}c$"), &text)
                .unwrap_err()
                .contains(words)
        );
    }
    let text = format!(r#"{{"a":"{}c"}}"#, "ab".repeat(30_000));
    for pattern in ["^(([ab]+)+)+$", "^[ab]*a[ab]{24}$"] {
        assert!(
            checked(&schema(pattern), &text)
                .unwrap_err()
                .contains("/a: ")
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

/// A schema at the limits of a plan is compiled and checked in little time, and on the stack of a
/// worker.
#[test]
fn schemas_at_the_limits_end_soon() {
    let wide = |count: usize| {
        let mut text = String::from(
            r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{"##,
        );
        for at in 0..count {
            let next = (at + 1) % count;
            let _ = write!(
                text,
                r##"{}"d{at}":{{"properties":{{"x":{{"$ref":"#/$defs/d{next}"}},"y":{{"$ref":"#/$defs/d{next}"}}}}}}"##,
                if at == 0 { "" } else { "," }
            );
        }
        text.push_str("}}");
        text
    };
    // A chain of allOf in each of which a member leads to the next round.
    let deep = r##"{"type":"object","allOf":[{"allOf":[{"allOf":[{"properties":{"x":{"$ref":"#"}}}]}]}]}"##;
    let nested = |depth: usize| format!("{}{{}}{}", "{\"x\":".repeat(depth), "}".repeat(depth));
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            let began = Instant::now();
            assert_eq!(checked(&wide(1_200), &nested(100)), Ok(()));
            assert_eq!(checked(deep, &nested(50)), Ok(()));
            assert!(checked(deep, &nested(100)).unwrap_err().contains("too deep"));
            let line = r##"{"type":"object","properties":{"x":{"$ref":"#"}},"additionalProperties":false}"##;
            let wrong = nested(120).replace("{}", r#"{"y":1}"#);
            assert!(checked(line, &wrong).unwrap_err().contains("/x/x/x"));
            let choices = r##"{"type":"object","anyOf":[{"properties":{"x":{"$ref":"#"}},"additionalProperties":false}]}"##;
            let wrong = nested(25).replace("{}", r#"{"y":1}"#);
            assert!(checked(choices, &wrong).unwrap_err().starts_with("- the arguments: this is not valid under any"));
            assert!(checked(deep, &nested(200)).unwrap_err().contains("nested too deeply"));
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn validators_are_kept_up_to_a_number_of_values() {
    let checks = Checks::default();
    let long = |more: usize| {
        let names = vec!["\"a\""; 9_000 + more].join(",");
        Bytes::from(format!(r#"{{"type":"object","x":[{names}]}}"#))
    };
    let mut kept = Vec::new();
    for at in 0..6 {
        kept.push(checks.of(&format!("t{at}"), || long(at)).unwrap());
    }
    let values: usize = kept.iter().map(|one| one.plan.values()).sum();
    assert!(values > KEPT_VALUES_MAX);
    assert_eq!(checks.0.lock().0.keys().collect::<Vec<_>>(), ["t5"]);
    assert!(Arc::ptr_eq(
        &kept[5],
        &checks.of("t5", || unreachable!()).unwrap()
    ));
}

#[test]
fn arguments_of_real_tools_can_be_checked() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../protocol/schema/tests/tools"
    );
    let mut tools = 0;
    let mut values = 0;
    let mut refused = Vec::new();
    for list in std::fs::read_dir(folder).unwrap() {
        let list = std::fs::read(list.unwrap().path()).unwrap();
        let list: Value = serde_json::from_slice(&list).unwrap();
        for tool in list["tools"].as_array().unwrap() {
            tools += 1;
            match Arguments::new(tool["inputSchema"].to_string().as_bytes()) {
                Ok(arguments) => values += arguments.values(),
                Err(why) => refused.push(format!("{}: {why}", tool["name"])),
            }
        }
    }
    assert!(tools > 100 && values < 100 * tools, "{tools} {values}");
    assert_eq!(refused, Vec::<String>::new());
}

/// Numbers that a seed makes, each below `max`.
struct Draw(u64);

impl Draw {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % max
    }

    fn name(&mut self) -> &'static str {
        ["a", "b", "c"][self.below(3)]
    }

    fn schema(&mut self, depth: usize) -> Value {
        if depth == 0 || self.below(4) == 0 {
            let at = self.below(8);
            return match self.below(3) {
                0 => json!({"$ref": format!("#/$defs/{}", self.name())}),
                1 => json!(at < 4),
                _ => json!({"type": (["object", "array", "string", "number"][at % 4])}),
            };
        }
        let mut members = serde_json::Map::new();
        for _ in 0..=self.below(3) {
            let one = |draw: &mut Self| draw.schema(depth - 1);
            let (key, value) = match self.below(18) {
                0 => ("allOf", json!([one(self), one(self)])),
                1 => ("anyOf", json!([one(self), one(self), one(self)])),
                2 => ("oneOf", json!([one(self), one(self)])),
                3 => ("not", one(self)),
                4 => ("if", one(self)),
                5 => ("then", one(self)),
                6 => (
                    "properties",
                    json!({self.name(): one(self), self.name(): one(self)}),
                ),
                7 => ("patternProperties", json!({"^[ab]": one(self)})),
                8 => ("additionalProperties", one(self)),
                9 => ("unevaluatedProperties", one(self)),
                10 => ("propertyNames", one(self)),
                11 => ("items", one(self)),
                12 => ("prefixItems", json!([one(self), one(self)])),
                13 => ("unevaluatedItems", one(self)),
                14 => ("contains", one(self)),
                15 => ("dependentSchemas", json!({self.name(): one(self)})),
                16 => ("uniqueItems", json!(true)),
                _ => ("required", json!([self.name()])),
            };
            members.insert(key.to_owned(), value);
        }
        Value::Object(members)
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 3 } else { 8 }) {
            0 => json!("text"),
            1 => json!(self.below(9)),
            2 => json!({}),
            3 | 4 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => json!({self.name(): self.value(depth - 1), self.name(): self.value(depth - 1)}),
        }
    }
}

/// Whatever a server lists and a caller sends, a check ends soon, without a panic, on the stack of
/// a worker.
#[test]
fn checks_of_random_schemas_end_soon() {
    let draw = |seeds: std::ops::Range<u64>| {
        let mut checks = 0;
        let mut unfit = 0;
        let mut longest = Duration::ZERO;
        for seed in seeds {
            let mut draw = Draw(seed);
            let mut schema = draw.schema(4);
            let defs = json!({"a": draw.schema(3), "b": draw.schema(3), "c": draw.schema(3)});
            let Some(members) = schema.as_object_mut() else {
                continue;
            };
            members.insert("type".to_owned(), json!("object"));
            members.insert("$defs".to_owned(), defs);
            let Ok(arguments) = Arguments::new(schema.to_string().as_bytes()) else {
                continue;
            };
            for _ in 0..4 {
                let value = json!({"a": draw.value(9), "b": draw.value(5)}).to_string();
                let began = Instant::now();
                checks += 1;
                unfit += usize::from(arguments.check(Some(value.as_bytes())).is_err());
                longest = longest.max(began.elapsed());
            }
        }
        (checks, unfit, longest)
    };
    let run = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || draw(0..RANDOM_SCHEMAS));
    let (checks, unfit, longest) = run.unwrap().join().unwrap();
    assert!(
        checks > 1_000 && unfit > 100 && unfit < checks,
        "{checks} {unfit}"
    );
    assert!(longest < Duration::from_secs(10), "{longest:?}");
}
