//! Expressions of peers that would not end.

use schema::{
    Descriptors, Invalid, SetError, ToolReference, ToolSchema, UnsaidParts, VALIDATE_PROTO, compile,
};

const FIELDS: &str = "repeated int32 l = 1; string s = 2; map<string, string> m = 3; repeated string t = 4; TRequest r = 5;";

/// A schema with this expression as a rule of the message.
fn with(expression: &str) -> Result<ToolSchema, SetError> {
    peer(&format!(
        "{FIELDS} option (buf.validate.message).cel = {{ id: \"x\", message: \"m\", expression: {expression:?} }};"
    ))
}

fn peer(text: &str) -> Result<ToolSchema, SetError> {
    let text = format!(
        "syntax = \"proto3\"; package acme; import \"{VALIDATE_PROTO}\"; message TRequest {{ {text} }}"
    );
    let set = compile(&[("a.proto".to_owned(), text)]).unwrap();
    ToolSchema::find(
        &Descriptors::read(&set)?,
        &ToolReference {
            tool: "t",
            ..ToolReference::default()
        },
    )
}

/// Whether all rules hold; `None` if they are not evaluated.
fn holds(schema: &ToolSchema, arguments: &str) -> Option<bool> {
    let typed = schema.arguments_from_json(arguments.as_bytes()).unwrap();
    let typed = schema
        .arguments_from_message(&typed.type_url(), &typed.bytes(), UnsaidParts::default())
        .unwrap();
    match schema.validate(&typed) {
        Ok(()) => Some(true),
        Err(Invalid::Violations(_)) => Some(false),
        Err(Invalid::Unchecked(why)) => why
            .contains("too long")
            .then_some(())
            .map_or_else(|| panic!("{why}"), |()| None),
    }
}

/// A list of this many numbers.
fn list(count: usize) -> String {
    format!(r#"{{"l":[{}]}}"#, vec!["1"; count].join(","))
}

#[test]
fn expressions_that_cannot_be_bounded_are_refused() {
    // Each loop around the others doubles a text.
    let doubling = (0..8).fold("true".to_owned(), |inner, at| {
        let at = 7 - at;
        let list = if at == 0 {
            "'aaaaaaaa'".to_owned()
        } else {
            format!("x{0} + x{0}", at - 1)
        };
        format!("[{list}].all(x{at}, {inner})")
    });
    for (expression, why) in [
        (
            "this.l.all(a, this.l.all(b, this.l.all(c, a + b + c > 0)))",
            "loops",
        ),
        (
            "this.l.map(a, this.l.filter(b, this.l.exists(c, c == a))).size() > 0",
            "loops",
        ),
        (&doubling, "loops"),
        ("this.s.matches(this.t[0])", "pattern"),
        (r"this.s.matches('(\\w{100}){100}')", "pattern"),
        ("this.s.matches('(?=a)')", "pattern"),
    ] {
        match with(expression) {
            Err(SetError::Rule(found)) => assert!(found.contains(why), "{expression}: {found}"),
            other => panic!("{expression}: {:?}", other.map(|schema| schema.set())),
        }
    }
}

#[test]
fn a_message_that_expressions_would_take_too_long_for_is_refused() {
    for (expression, small, large) in [
        (
            "this.l.all(a, this.l.all(b, a + b > 0))",
            list(50),
            list(5_000),
        ),
        ("this.l.all(a, a > 0)", list(20_000), list(1_000_000)),
        (
            "this.l.all(a, string(a).matches('^[0-9]+$'))",
            list(20),
            list(2_000),
        ),
        (
            "(this.s + this.s + this.s + this.s + this.s + this.s + this.s + this.s).size() > 0",
            format!(r#"{{"s":"{}"}}"#, "a".repeat(10_000)),
            format!(r#"{{"s":"{}"}}"#, "a".repeat(4 << 20)),
        ),
    ] {
        let schema = with(expression).unwrap();
        assert_eq!(
            (holds(&schema, &small), holds(&schema, &large)),
            (Some(true), None),
            "{expression}"
        );
    }
    // Also of elements, and inside other messages.
    let text = format!(
        "{FIELDS} repeated string e = 6 [(buf.validate.field).repeated.items.cel = {{ id: \"x\", expression: \"this.matches('^a$')\" }}];"
    );
    let schema = peer(&text).unwrap();
    let elements =
        |count: usize| format!(r#"{{"r":{{"e":[{}]}}}}"#, vec![r#""a""#; count].join(","));
    assert_eq!(holds(&schema, &elements(10)), Some(true));
    assert_eq!(holds(&schema, &elements(1_000)), None);
    assert_eq!(holds(&schema, r#"{"r":{"e":["b"]}}"#), Some(false));
    // What has no expressions has no such limit.
    assert_eq!(holds(&peer(FIELDS).unwrap(), &list(400_000)), Some(true));
}
