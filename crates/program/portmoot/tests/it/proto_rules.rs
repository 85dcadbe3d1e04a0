//! Refusals of messages that break rules, beside those of Python's protovalidate, through a whole
//! call.

use std::fs;

use harness::proto_rules;
use serde_json::{Value, json};

use crate::front::pipe;
use crate::home::Home;
use crate::proto_convert::lists;
use crate::proto_servers::child;

/// Random messages for each tool; those with all rules get 25 times as many.
const EACH: &str = "6";

/// A schema with each keyword that becomes a rule.
fn ruled() -> Value {
    let text = |keyword: &str, value: Value| json!({ "type": "string", keyword: value });
    let mut properties = json!({
        "short": { "type": "string", "minLength": 2, "maxLength": 4 },
        "pattern": text("pattern", json!("^[a-z]+-?[0-9]*$")),
        "one": text("const", json!("a")),
        "several": text("enum", json!(["a", "ab", "A-1", "é\""])),
        "small": { "type": "integer", "minimum": 1, "maximum": 10 },
        "large": { "type": "integer", "exclusiveMinimum": 0 },
        "of": { "type": "integer", "enum": [1, 2, 100] },
        "ratio": { "type": "number", "exclusiveMinimum": 0, "maximum": 2.5 },
        "yes": { "type": "boolean", "const": true },
        "list": { "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1, "maxItems": 3, "uniqueItems": true },
        "numbers": { "type": "array", "items": { "type": "integer", "maximum": 2 } },
        "map": { "type": "object", "additionalProperties": { "type": "string", "maxLength": 2 }, "minProperties": 2, "maxProperties": 2 },
        "inner": { "type": "object", "properties": { "camelCase": { "type": "string", "minLength": 2 } }, "required": ["camelCase"] },
        "many": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer", "minimum": 2 } }, "required": ["n"] } },
        "self": { "$ref": "#" },
        "maybe": { "type": ["string", "null"], "minLength": 2 },
    });
    for format in [
        "email",
        "uri",
        "uri-reference",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ] {
        properties[format] = text("format", json!(format));
    }
    json!({ "type": "object", "properties": properties, "required": ["short", "small", "list", "inner"] })
}

#[test]
fn violations_are_those_of_protovalidate() {
    let home = Home::new();
    let script = home.write("listed.py", include_str!("listed.py"));
    let (mut config, mut servers) = (String::new(), vec!["peer".to_owned()]);
    let mut serve = |name: &str, tools: &Value| {
        let list = home.write(&format!("{name}.tools"), &tools.to_string());
        config +=
            &format!("[servers.{name}]\ncommand = \"python3\"\nargs = [{script:?}, {list:?}]\n");
        servers.push(name.to_owned());
    };
    for list in lists() {
        let read: Value = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
        serve(&list.file_stem().unwrap().to_string_lossy(), &read["tools"]);
    }
    serve(
        "made",
        &json!([{ "name": "ruled", "inputSchema": ruled() }]),
    );
    config += &child("peer", &[]);
    let words = pipe(&home, &config);
    let servers = servers.join(",");
    let words: Vec<_> = ["--each", EACH, "--servers", &servers, "--pipe"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let report = proto_rules(&words);
    assert_eq!(report["different"], json!([]));
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(
        count("tools") > 380 && count("valid") > 1_000 && count("invalid") > 1_000,
        "{report:#}"
    );
    let broken = report["rules"].as_object().unwrap();
    let expected = [
        "required",
        "string.min_len",
        "string.max_len",
        "string.pattern",
        "string.const",
        "string.in",
        "string.email",
        "string.uri",
        "string.uri_ref",
        "string.hostname",
        "string.ipv4",
        "string.ipv6",
        "string.uuid",
        "int32.gte_lte",
        "int64.gt",
        "int32.in",
        "double.gt_lte",
        "bool.const",
        "repeated.min_items",
        "repeated.max_items",
        "repeated.unique",
        "map.min_pairs",
        "map.max_pairs",
        // Of the peer's own schema.
        "order",
        "begin",
        "enum.defined_only",
        "bytes.min_len",
        "uint32.gt",
        "sint64.gt_lt_exclusive",
    ];
    for rule in expected {
        assert!(broken.contains_key(rule), "no message broke {rule}");
    }
}
