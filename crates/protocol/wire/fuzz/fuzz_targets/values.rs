//! Any bytes as arguments: as JSON, and as a message. What is read once is read again, and means
//! the same.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use schema::{FieldNumbering, ListedTool, Module, ToolSchema, UnsaidParts};

const INPUT: &[u8] = br##"{"type":"object","properties":{"i":{"type":"integer"},"n":{"type":"number"},"s":{"type":"string"},
    "b":{"type":"boolean"},"l":{"type":"array","items":{"type":"string"}},"a":{},"o":{"type":"object"},"f":{"type":"array"},
    "m":{"type":"object","additionalProperties":{"type":"integer"}},"r":{"$ref":"#"}}}"##;

fn schema() -> &'static ToolSchema {
    static SCHEMA: OnceLock<ToolSchema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let tool = ListedTool {
            name: "t",
            description: None,
            input: INPUT,
            output: None,
        };
        Module::new("a.v1", &[tool], &FieldNumbering::default())
            .tool("t")
            .expect("a tool")
            .clone()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let schema = schema();
    if let Ok(typed) = schema.arguments_from_json(bytes) {
        let message =
            schema.arguments_from_message(&typed.type_url(), &typed.bytes(), typed.marks().clone());
        let json = schema
            .json(&message.expect("what is written is read"))
            .expect("JSON comes back");
        let again = schema
            .arguments_from_json(&json)
            .expect("what is printed is read");
        assert_eq!(schema.json(&again).expect("JSON comes back"), json);
        assert_eq!(again.marks().empty.len(), typed.marks().empty.len());
    }
    let url = "type.googleapis.com/a.v1.TRequest";
    if let Ok(typed) = schema.arguments_from_message(url, bytes, UnsaidParts::default()) {
        let _ = schema.validate(&typed);
        let _ = schema.json(&typed);
    }
});
