//! Field numbers that stay when a schema changes.

use crate::{numbers_of, of_schema};
use schema::{FieldNumbering, Style};

/// Converts a schema after an earlier one; returns the text.
fn after(earlier: &str, schema: &str) -> String {
    let first = of_schema(earlier, &FieldNumbering::default(), Style::Lossless).file;
    let numbers = FieldNumbering::read(&[first.source()]).unwrap();
    of_schema(schema, &numbers, Style::Lossless).file.text()
}

const EARLIER: &str = r#"{"type":"object","properties":{
    "a":{"type":"string"},"b":{"type":"integer"},
    "c":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}}},
    "d":{"type":"object","additionalProperties":{"type":"boolean"}},"e":{"type":"array","items":{"type":"string"}}}}"#;

#[test]
fn additions_change_no_number() {
    let text = after(
        EARLIER,
        r#"{"type":"object","properties":{
            "new":{"type":"string"},"e":{"type":"array","items":{"type":"string"}},
            "d":{"type":"object","additionalProperties":{"type":"boolean"}},
            "c":{"type":"object","properties":{"w":{"type":"string"},"y":{"type":"string"},"x":{"type":"string"}}},
            "b":{"type":"integer","minimum":0,"maximum":9},"a":{"type":"string"}}}"#,
    );
    let numbers = numbers_of(&text);
    for (field, number) in [
        ("optional string a", "1"),
        ("C c", "3"),
        ("map<string, bool> d", "4"),
        ("repeated string e", "5"),
        ("optional string new", "6"),
        ("optional string x", "1"),
        ("optional string y", "2"),
        ("optional string w", "3"),
    ] {
        assert_eq!(
            numbers.get(field).map(String::as_str),
            Some(number),
            "{field}\n{text}"
        );
    }
    assert!(numbers["optional int32 b"].starts_with("2 "), "{text}");
    assert!(!text.contains("reserved"), "{text}");
}

#[test]
fn a_number_is_never_given_out_twice() {
    let without = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}"#;
    let first = of_schema(EARLIER, &FieldNumbering::default(), Style::Lossless).file;
    let numbers = FieldNumbering::read(&[first.source()]).unwrap();
    let second = of_schema(without, &numbers, Style::Lossless).file;
    assert!(
        second.text().contains("reserved 2, 3, 4, 5;"),
        "{}",
        second.text()
    );
    assert!(
        second.text().contains("optional string b = 6;"),
        "{}",
        second.text()
    );
    let numbers = FieldNumbering::read(&[second.source()]).unwrap();
    let third = of_schema(EARLIER, &numbers, Style::Lossless).file.text();
    assert!(third.contains("reserved 2, 3, 4, 5, 6;"), "{third}");
    assert!(third.contains("optional int64 b = 7;"), "{third}");
}
