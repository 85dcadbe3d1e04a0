//! Form tests: schemas to fields, typed lines to values.

use serde_json::{Value, json};

use super::*;

fn one(schema: Value, required: bool) -> FormField {
    let required: &[&str] = if required { &["x"] } else { &[] };
    let schema = json!({ "type": "object", "properties": { "x": schema }, "required": required });
    fields(&schema.to_string()).unwrap().remove(0)
}

#[test]
fn fields_keep_the_order_of_the_schema() {
    let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"},"m":{"type":"number"}},"required":["a"]}"#;
    let fields: Vec<_> = fields(schema)
        .unwrap()
        .into_iter()
        .map(|field| (field.name, field.required))
        .collect();
    assert_eq!(
        fields,
        [("z".into(), false), ("a".into(), true), ("m".into(), false)]
    );
}

#[test]
fn typed_values_are_checked() {
    let color = json!({ "type": "string", "enum": ["red", "green"], "enumNames": ["Rot", "Grün"] });
    let titled = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "2", "title": "Two" }] });
    let many = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] }, "minItems": 1, "maxItems": 2 });
    let any_of =
        json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "Aye" }] } });
    let text = |extra: &str, value: Value| {
        let mut schema = json!({ "type": "string" });
        schema[extra] = value;
        schema
    };
    let whole = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
    for (schema, line, expect) in [
        (json!({ "type": "string" }), " hello ", Some(json!("hello"))),
        (text("minLength", json!(3)), "ab", None),
        (text("maxLength", json!(3)), "äöü", Some(json!("äöü"))),
        (text("maxLength", json!(3)), "abcd", None),
        (
            text("format", json!("email")),
            "ann@example.com",
            Some(json!("ann@example.com")),
        ),
        (text("format", json!("email")), "ann", None),
        (
            text("format", json!("uri")),
            "https://example.com/x",
            Some(json!("https://example.com/x")),
        ),
        (
            text("format", json!("uri")),
            "urn:isbn:1",
            Some(json!("urn:isbn:1")),
        ),
        (text("format", json!("uri")), "no uri", None),
        (
            text("format", json!("date")),
            "2024-02-29",
            Some(json!("2024-02-29")),
        ),
        (text("format", json!("date")), "2023-02-29", None),
        (
            text("format", json!("date")),
            "1912-06-23",
            Some(json!("1912-06-23")),
        ),
        (text("format", json!("date")), "2024-2-29", None),
        (
            text("format", json!("date-time")),
            "2026-07-28T12:30:00Z",
            Some(json!("2026-07-28T12:30:00Z")),
        ),
        (
            text("format", json!("date-time")),
            "2026-07-28T12:30:00.5+02:00",
            Some(json!("2026-07-28T12:30:00.5+02:00")),
        ),
        (text("format", json!("date-time")), "2026-07-28 12:30", None),
        (
            text("format", json!("date-time")),
            "2026-07-28 12:30:00Z",
            None,
        ),
        (whole.clone(), "5", Some(json!(5))),
        (whole.clone(), "5.5", None),
        (whole.clone(), "0", None),
        (whole.clone(), "11", None),
        (whole, "five", None),
        (json!({ "type": "number" }), "-2.5", Some(json!(-2.5))),
        (json!({ "type": "number" }), "1e999", None),
        (json!({ "type": "boolean" }), "YES", Some(json!(true))),
        (json!({ "type": "boolean" }), "0", Some(json!(false))),
        (json!({ "type": "boolean" }), "maybe", None),
        (color.clone(), "green", Some(json!("green"))),
        (color.clone(), "1", Some(json!("red"))),
        (color.clone(), "Grün", Some(json!("green"))),
        (color, "3", None),
        (titled.clone(), "2", Some(json!("2"))),
        (titled, "Red", Some(json!("r"))),
        (many.clone(), "a, 3, a", Some(json!(["a", "c"]))),
        (many.clone(), "a,b,c", None),
        (many, "x", None),
        (any_of, "Aye", Some(json!(["a"]))),
    ] {
        let found = one(schema.clone(), true).read(line);
        assert_eq!(
            found.clone().ok(),
            expect.map(Some),
            "{schema} {line}: {found:?}"
        );
    }
}

#[test]
fn an_empty_line_gives_the_default_or_no_value_or_an_error() {
    assert_eq!(
        one(json!({ "type": "string", "default": "x" }), true).read(""),
        Ok(Some(json!("x")))
    );
    assert_eq!(
        one(json!({ "type": "boolean", "default": false }), false).read(" "),
        Ok(Some(json!(false)))
    );
    assert_eq!(one(json!({ "type": "string" }), false).read(""), Ok(None));
    assert!(one(json!({ "type": "string" }), true).read("").is_err());
}

#[test]
fn prompts_show_hidden_characters() {
    let schema = json!({ "type": "string", "title": "Name\u{1b}[2K", "description": "a\nb\u{202e}", "default": "\u{7}" });
    assert_eq!(
        one(schema, true).prompt(),
        "Name\\u{1b}[2K: a\\u{a}b\\u{202e} (text) [\\u{7}]"
    );
    let choice = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] });
    assert_eq!(
        one(choice, false).prompt(),
        "x (one of these, optional)\n  1. r - Red"
    );
}

#[test]
fn invalid_form_schemas_are_rejected() {
    for schema in [
        "[]",
        r#"{"type":"object","properties":{"x":{"type":"object"}}}"#,
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"string"}}}}"#,
        r#"{"type":"object","properties":{"x":{}}}"#,
        r#"{"type":"object","properties":[]}"#,
        r#"{"type":"object","properties":{"x":{"type":"string"},"x":{"type":"boolean"}}}"#,
    ] {
        assert!(fields(schema).is_err(), "{schema}");
    }
}
