//! Rules of `buf.validate`, also those of peers.

use std::path::Path;

use schema::{
    Descriptors, FieldNumbering, Invalid, ListedTool, Module, SetError, ToolReference, ToolSchema,
    UnsaidParts, VALIDATE_PROTO, VALIDATE_TEXT, compile,
};

const SEARCH: &[u8] = br#"{"type":"object","properties":{"query":{"type":"string","minLength":2},
    "tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}},"required":["query"]}"#;

fn violations(schema: &ToolSchema, arguments: &str) -> Vec<(String, String)> {
    let typed = schema.arguments_from_json(arguments.as_bytes()).unwrap();
    let typed = schema
        .arguments_from_message(&typed.type_url(), &typed.bytes(), UnsaidParts::default())
        .unwrap();
    match schema.validate(&typed) {
        Ok(()) => Vec::new(),
        Err(Invalid::Violations(all)) => all.into_iter().map(|one| (one.field, one.rule)).collect(),
        Err(unchecked) => panic!("{unchecked}"),
    }
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

#[track_caller]
fn assert_broken(schema: &ToolSchema) {
    let named = |field: &str, rule: &str| (field.to_owned(), rule.to_owned());
    assert_eq!(violations(schema, r#"{"query":"ab","tags":["a"]}"#), []);
    assert_eq!(violations(schema, "{}"), [named("query", "required")]);
    let both = [
        named("query", "string.min_len"),
        named("tags[1]", "string.in"),
    ];
    assert_eq!(
        violations(schema, r#"{"query":"a","tags":["a","c"]}"#),
        both
    );
}

#[test]
fn rules_are_enforced_of_own_tools_and_of_sets_that_came_inline() {
    let tool = ListedTool {
        name: "t",
        description: None,
        input: SEARCH,
        output: None,
    };
    let module = Module::new("acme.v1", &[tool], &FieldNumbering::default());
    let own = module.tool("t").unwrap();
    assert_broken(own);
    for set in [own.set(), own.full_set()] {
        let inline = Descriptors::read(&set).unwrap();
        assert_broken(
            &ToolSchema::find(
                &inline,
                &ToolReference {
                    tool: "t",
                    ..ToolReference::default()
                },
            )
            .unwrap(),
        );
    }
}

#[test]
fn expressions_are_rules() {
    let schema = peer(
        r#"int32 a = 1; int32 b = 2;
        option (buf.validate.message).cel = { id: "order", message: "a is more than b", expression: "this.a <= this.b" };"#,
    );
    let schema = schema.unwrap();
    assert_eq!(violations(&schema, r#"{"a":1,"b":2}"#), []);
    assert_eq!(
        violations(&schema, r#"{"a":3,"b":2}"#),
        [(String::new(), "order".to_owned())]
    );
}

#[test]
fn a_path_names_keys_with_brackets_and_an_empty_reference_is_one() {
    let schema = peer(
        r#"map<string, string> map = 1 [(buf.validate.field).map.values.string.max_len = 1];
        string at = 2 [(buf.validate.field).string.uri_ref = true];"#,
    );
    let schema = schema.unwrap();
    assert_eq!(violations(&schema, r#"{"at":"","map":{"a":"b"}}"#), []);
    let broken = |field: &str| vec![(field.to_owned(), "string.max_len".to_owned())];
    for key in ["a", "a.b", "[a", "^[a-z]+$", "a]", "].x", r#"\"[\""#, "é"] {
        let arguments = format!(r#"{{"map":{{"{key}":"ab"}}}}"#);
        assert_eq!(
            violations(&schema, &arguments),
            broken(&format!("map[\"{key}\"]"))
        );
    }
    assert_eq!(
        violations(&schema, r#"{"at":"%"}"#),
        [("at".to_owned(), "string.uri_ref".to_owned())]
    );
}

#[track_caller]
fn assert_refused(text: &str, why: &str) {
    match peer(text) {
        Err(SetError::Rule(found)) => assert!(found.contains(why), "{found}"),
        other => panic!("{:?}", other.map(|schema| schema.set())),
    }
}

#[test]
fn a_schema_with_a_rule_that_nobody_can_check_is_refused() {
    let rule = |rule: &str| format!("string a = 1 [(buf.validate.field).{rule}];");
    assert_refused(&rule(r#"string.pattern = "(?=a)""#), "pattern");
    assert_refused(&rule(r#"string.pattern = "(\\w{100}){100}""#), "pattern");
    assert_refused(&rule(r#"cel = { id: "x", expression: "this +" }"#), "");
    assert_refused(&rule("int32.gt = 1"), "");
    let expression = |expression: &str| {
        rule(&format!(
            r#"cel = {{ id: "x", expression: "{expression}" }}"#
        ))
    };
    assert_refused(
        &expression(&format!("{}true{}", "(".repeat(65), ")".repeat(65))),
        "expression",
    );
    assert_refused(&expression(&"true || ".repeat(300)), "expression");
    // Also where it is inside another message.
    assert_refused(
        r#"message In { string a = 1 [(buf.validate.field).string.pattern = "(?=a)"]; } In in = 1;"#,
        "pattern",
    );
    let many: String = (1..=101)
        .map(|at| format!("string a{at} = {at} [(buf.validate.field).string.pattern = \"a\"];"))
        .collect();
    assert_refused(&many, "100");
}

#[test]
fn real_tools_have_rules_that_can_be_checked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
    for server in ["filesystem", "gmaps", "memory", "pygit"] {
        let list: crate::List =
            serde_json::from_slice(&std::fs::read(folder.join(format!("{server}.json"))).unwrap())
                .unwrap();
        let tools: Vec<_> = list.tools.iter().map(crate::Listed::borrowed).collect();
        let module = Module::new("acme.v1", &tools, &FieldNumbering::default());
        for tool in tools {
            module.tool(tool.name).unwrap().compile_rules().unwrap();
        }
    }
}

/// `tools/protoc` gives the build the descriptors of `validate.proto`; what it gives must be that
/// file.
#[test]
fn the_stand_in_for_protoc_has_the_file_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let set = compile(&[(VALIDATE_PROTO.to_owned(), VALIDATE_TEXT.to_owned())]).unwrap();
    assert_eq!(
        std::fs::read(root.join("tools/validate.binpb")).unwrap(),
        set,
        "tools/validate.binpb is old"
    );
    let pool = prost_protovalidate::types::DESCRIPTOR_POOL
        .get_file_by_name(VALIDATE_PROTO)
        .unwrap();
    let ours = prost_reflect::DescriptorPool::decode(set.as_slice()).unwrap();
    assert_eq!(
        pool.file_descriptor_proto(),
        ours.get_file_by_name(VALIDATE_PROTO)
            .unwrap()
            .file_descriptor_proto()
    );
    // No other file.
    let refused = std::process::Command::new(root.join("tools/protoc"))
        .args(["-o", "/dev/null", "other.proto"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

#[test]
fn classes_in_patterns_and_expressions_of_peers_are_those_of_ascii() {
    let schema = peer(
        r#"string a = 1 [(buf.validate.field).string.pattern = "^\\d*$"];
        repeated string b = 2 [(buf.validate.field).repeated.items.string.pattern = "^\\w+$"];
        string c = 3 [(buf.validate.field).cel = { id: "c", message: "c", expression: "this.matches('^\\\\d*$')" }];"#,
    );
    let schema = schema.unwrap();
    let set = schema.set();
    assert_eq!(violations(&schema, r#"{"a":"12","b":["a_1"],"c":"3"}"#), []);
    let broken = violations(
        &schema,
        "{\"a\":\"\u{e56}\",\"b\":[\"é\"],\"c\":\"\u{e56}\"}",
    );
    let rules: Vec<_> = broken.iter().map(|(_, rule)| rule.as_str()).collect();
    assert_eq!(rules, ["string.pattern", "string.pattern", "c"]);
    // What is passed on is what came.
    assert!(set.windows(5).any(|part| part == br"^\d*$"));
}
