//! Messages to JSON Schema.

use std::path::Path;

use schema::{Descriptors, FieldNumbering, ListedTool, Module, STRUCT, compile, json_schema};

/// The JSON Schemas of what these become; an open object stays one.
fn all_there_and_back(tools: &[ListedTool<'_>]) -> Vec<Vec<u8>> {
    let module = Module::new("acme.v1", tools, &FieldNumbering::default());
    let back = |tool: &ListedTool<'_>| match module.tool(tool.name).unwrap().input() {
        message if message.full_name() == STRUCT => br#"{"type":"object"}"#.to_vec(),
        message => json_schema(message),
    };
    tools.iter().map(back).collect()
}

/// The JSON Schema of what this one becomes.
fn there_and_back(input: &[u8]) -> Vec<u8> {
    all_there_and_back(&[ListedTool {
        name: "t",
        description: None,
        input,
        output: None,
    }])
    .remove(0)
}

#[track_caller]
fn assert_fixed(input: &[u8]) {
    let once = there_and_back(input);
    let twice = there_and_back(&once);
    assert_eq!(
        String::from_utf8_lossy(&twice),
        String::from_utf8_lossy(&once)
    );
}

#[test]
fn real_tools_have_a_fixed_point() {
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools")).unwrap()
    {
        let list: crate::List =
            serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let tools: Vec<_> = list.tools.iter().map(crate::Listed::borrowed).collect();
        let once = all_there_and_back(&tools);
        let again: Vec<_> = tools
            .iter()
            .zip(&once)
            .map(|(tool, input)| ListedTool { input, ..*tool })
            .collect();
        for (once, twice) in once.iter().zip(all_there_and_back(&again)) {
            assert_eq!(
                String::from_utf8_lossy(&twice),
                String::from_utf8_lossy(once)
            );
        }
    }
}

#[test]
fn schemas_that_lead_back_have_a_fixed_point() {
    assert_fixed(br##"{"type":"object","properties":{"more":{"$ref":"#"},"a":{"$ref":"#/$defs/Node"},"b":{"$ref":"#/$defs/Node"}},
        "$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"v":{"type":"integer"}}}}}"##);
}

#[test]
fn rules_are_keywords_again() {
    let input = br#"{"type":"object","properties":{"query":{"type":"string","minLength":2,"maxLength":9,"pattern":"^a"},
        "mail":{"type":"string","format":"email"},"kind":{"type":"string","enum":["a","b"]},
        "ratio":{"type":"number","exclusiveMinimum":0.5},"size":{"type":"integer","minimum":1},
        "tags":{"type":"array","maxItems":3,"uniqueItems":true,"items":{"type":"string","minLength":1}},
        "labels":{"type":"object","minProperties":1,"additionalProperties":{"type":"boolean"}}},"required":["query"],
        "additionalProperties":false}"#;
    let back = there_and_back(input);
    let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&back), read(input));
}

#[test]
fn messages_of_peers_have_schemas() {
    let text = r#"syntax = "proto3"; package acme; import "google/protobuf/timestamp.proto"; import "google/protobuf/struct.proto";
        enum Color { NONE = 0; RED = 1; }
        message M { oneof which { string a = 1; int64 b = 2; } Color color = 3; bytes raw = 4; uint32 n = 5;
            google.protobuf.Timestamp at = 6; google.protobuf.Value any = 7; map<string, M> more = 8; }"#;
    let set = compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
    let schema = json_schema(&Descriptors::read(&set).unwrap().message("acme.M").unwrap());
    let read: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    let expected = serde_json::json!({"type": "object", "additionalProperties": false, "properties": {
        "a": {"description": "At most one of a, b.", "type": "string"},
        "b": {"description": "At most one of a, b.", "type": "integer"},
        "color": {"type": "string", "enum": ["NONE", "RED"]},
        "raw": {"type": "string", "contentEncoding": "base64"},
        "n": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
        "at": {"type": "string", "format": "date-time"}, "any": {},
        "more": {"type": "object", "additionalProperties": {"$ref": "#"}}}});
    assert_eq!(read, expected);
}
