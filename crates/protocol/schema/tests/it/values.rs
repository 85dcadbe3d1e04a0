//! JSON to messages and back.

use schema::{
    Descriptors, FieldNumbering, ListedTool, Module, ToolReference, ToolSchema, UnsaidParts,
    compile, struct_from_json,
};

fn schema(input: &str) -> ToolSchema {
    let tool = ListedTool {
        name: "t",
        description: None,
        input: input.as_bytes(),
        output: None,
    };
    Module::new("acme.v1", &[tool], &FieldNumbering::default())
        .tool("t")
        .unwrap()
        .clone()
}

fn equal(one: &[u8], other: &[u8]) -> bool {
    json::canonical(one) == json::canonical(other)
}

#[track_caller]
fn assert_same(input: &str, arguments: &str) -> UnsaidParts {
    let schema = schema(input);
    let typed = schema.arguments_from_json(arguments.as_bytes()).unwrap();
    let marks = typed.marks().clone();
    let read = schema
        .arguments_from_message(&typed.type_url(), &typed.bytes(), marks.clone())
        .unwrap();
    let json = schema.json(&read).unwrap();
    assert!(
        equal(&json, arguments.as_bytes()),
        "{}",
        String::from_utf8_lossy(&json)
    );
    marks
}

#[track_caller]
fn assert_refused(input: &str, arguments: &str, why: &str) {
    let error = schema(input)
        .arguments_from_json(arguments.as_bytes())
        .unwrap_err();
    assert_eq!(error.to_string(), why);
}

const ALL: &str = r##"{"type":"object","properties":{
    "maxResults":{"type":"integer"},"small":{"type":"integer","minimum":0,"maximum":9},"ratio":{"type":"number"},
    "on":{"type":"boolean"},"name":{"type":["string","null"]},"tags":{"type":"array","items":{"type":"string"}},
    "labels":{"type":"object","additionalProperties":{"type":"integer"}},"any":{},"free":{"type":"object"},
    "list":{"type":"array"},"in/ner":{"type":"object","properties":{"x~":{"type":"array","items":{"type":"integer"}}}},
    "many":{"type":"array","items":{"type":"object","properties":{"n":{"type":["string","null"]}}}}}}"##;

#[test]
fn json_comes_back_as_it_was() {
    assert_same(ALL, "{}");
    assert_same(
        ALL,
        r#"{"maxResults":9223372036854775807,"small":1,"ratio":-0.1,"on":false,"name":"","tags":["a",""],
        "labels":{"k.[\"":-9007199254740993},"any":[1,{"a":null},[],{}," \u0000"],"free":{"a":{"b":1e300}},
        "list":[[1],{}],"in/ner":{"x~":[0]},"many":[{"n":"1"},{}]}"#,
    );
    for empty in [
        r#"{"any":null}"#,
        r#"{"free":{},"list":[]}"#,
        r#"{"in/ner":{}}"#,
        r#"{"ratio":0,"maxResults":0}"#,
    ] {
        assert_eq!(assert_same(ALL, empty), UnsaidParts::default(), "{empty}");
    }
    for whole in [r#"{"small":1.0}"#, r#"{"small":1e0}"#, r#"{"small":10E-1}"#] {
        let schema = schema(ALL);
        let typed = schema.arguments_from_json(whole.as_bytes()).unwrap();
        assert_eq!(schema.json(&typed).unwrap(), br#"{"small":1}"#, "{whole}");
    }
    // A double holds this one, however long it is written.
    let long = format!("{:.0}", -1e300);
    let typed = schema(ALL)
        .arguments_from_json(format!(r#"{{"ratio":{long}}}"#).as_bytes())
        .unwrap();
    assert_eq!(schema(ALL).json(&typed).unwrap(), br#"{"ratio":-1e300}"#);
    let open = r#"{"type":"object"}"#;
    assert_eq!(
        assert_same(open, r#"{"a":[],"b":null,"c":1.5}"#),
        UnsaidParts::default()
    );
}

#[test]
fn marks_say_what_a_message_cannot() {
    let marks = assert_same(
        ALL,
        r#"{"tags":[],"labels":{},"name":null,"in/ner":{"x~":[]},"many":[{},{"n":null}]}"#,
    );
    assert_eq!(marks.empty, ["/tags", "/labels", "/in~1ner/x~0"]);
    assert_eq!(marks.null, ["/name", "/many/1/n"]);
    let text = UnsaidParts::spell(&marks.empty).unwrap();
    assert_eq!(text, r#"["/tags","/labels","/in~1ner/x~0"]"#);
    assert_eq!(UnsaidParts::pointers(&text), marks.empty);
    assert_eq!(
        (UnsaidParts::spell(&[]), UnsaidParts::pointers("x")),
        (None, Vec::new())
    );
}

#[test]
fn required_members_are_there_without_marks() {
    let schema = schema(
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":["string","null"]},
        "c":{"type":"string"}},"required":["a","b","c"]}"#,
    );
    let typed = schema
        .arguments_from_message("", b"", UnsaidParts::default())
        .unwrap();
    assert_eq!(schema.json(&typed).unwrap(), br#"{"a":[],"b":null}"#);
}

#[test]
fn what_no_message_carries_is_refused_with_its_place() {
    for (arguments, why) in [
        (
            r#"{"maxResults":9223372036854775808}"#,
            "maxResults: is not in the range of int64",
        ),
        (
            r#"{"small":2147483648}"#,
            "small: is not in the range of int32",
        ),
        (r#"{"maxResults":1.5}"#, "maxResults: is not a whole number"),
        (r#"{"maxResults":"1"}"#, "maxResults: is not a number"),
        (
            r#"{"max_results":1}"#,
            "max_results: is not an argument that the schema names",
        ),
        (r#"{"on":1}"#, "on: is not a boolean"),
        (r#"{"name":"\ud800"}"#, "name: has half a surrogate pair"),
        (r#"{"tags":["a",1]}"#, "tags[1]: is not a string"),
        (r#"{"tags":"a"}"#, "tags: is not an array"),
        (r#"{"labels":{"a":"b"}}"#, "labels[\"a\"]: is not a number"),
        (r#"{"many":[{},{"n":[]}]}"#, "many[1].n: is not a string"),
        (r#"{"name":"a","name":"b"}"#, "name: occurs twice"),
        (r#"{"free":{"a":1,"a":2}}"#, "free[\"a\"]: occurs twice"),
        (
            r#"{"any":9007199254740993}"#,
            "any: is an integer that a double cannot hold",
        ),
        ("[]", "is not an object"),
    ] {
        assert_refused(ALL, arguments, why);
    }
    let schema = schema(ALL);
    assert!(schema.arguments_from_json(b"{} x").is_err());
    let nested = format!(r#"{{"any":{}1{}}}"#, "[".repeat(60), "]".repeat(60));
    let error = schema.arguments_from_json(nested.as_bytes()).unwrap_err();
    assert!(error.why.contains("nested deeper than 100"), "{error}");
    // What is not refused is read again by a peer.
    for depth in 30..60 {
        let nested = format!(r#"{{"any":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
        if let Ok(typed) = schema.arguments_from_json(nested.as_bytes()) {
            schema
                .arguments_from_message(&typed.type_url(), &typed.bytes(), UnsaidParts::default())
                .unwrap();
        }
    }
}

#[test]
fn messages_of_another_type_or_with_unknown_fields_are_refused() {
    let schema = schema(ALL);
    let why = |url: &str, bytes: &[u8]| {
        schema
            .arguments_from_message(url, bytes, UnsaidParts::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        why("type.googleapis.com/acme.v1.Other", b""),
        "is a acme.v1.Other, not a acme.v1.TRequest"
    );
    assert_eq!(
        why("x/acme.v1.TRequest", &[0xf8, 0x7f, 1]),
        "has a field 2047 that the schema does not name"
    );
    assert!(why("acme.v1.TRequest", &[0x0a]).starts_with("is no acme.v1.TRequest"));
    let object = struct_from_json(br#"{"maxResults":3,"tags":[]}"#).unwrap();
    assert_eq!(
        object.type_url(),
        "type.googleapis.com/google.protobuf.Struct"
    );
    let read = schema
        .arguments_from_message(&object.type_url(), &object.bytes(), UnsaidParts::default())
        .unwrap();
    assert_eq!(read.type_url(), "type.googleapis.com/acme.v1.TRequest");
    assert!(equal(
        &schema.json(&read).unwrap(),
        br#"{"maxResults":3,"tags":[]}"#
    ));
    let other = struct_from_json(br#"{"other":3}"#).unwrap();
    assert!(why(&other.type_url(), &other.bytes()).starts_with("other: "));
}

#[test]
fn results_have_their_message_or_are_any_value() {
    let any = schema(ALL);
    let typed = any.result_from_json(b"[1,null]").unwrap();
    assert_eq!(
        typed.type_url(),
        "type.googleapis.com/google.protobuf.Value"
    );
    let read = any
        .result_from_message(&typed.type_url(), &typed.bytes(), UnsaidParts::default())
        .unwrap();
    assert_eq!(any.json(&read).unwrap(), b"[1,null]");
    assert!(
        any.result_from_message("acme.v1.TRequest", b"", UnsaidParts::default())
            .is_err()
    );
}

#[test]
fn messages_of_peers_have_the_json_that_protobuf_gives_them() {
    let text = r#"syntax = "proto3"; package acme;
        import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
        enum Color { COLOR_UNSPECIFIED = 0; COLOR_RED = 1; }
        message TRequest { string plain = 1; Color color = 2; bytes raw = 3; oneof which { string a = 4; uint64 b = 5; }
            google.protobuf.Timestamp at = 6; google.protobuf.Int64Value wrapped = 7; map<bool, float> map = 8; TRequest inner = 9; }"#;
    let set = compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
    let found = ToolSchema::find(
        &Descriptors::read(&set).unwrap(),
        &ToolReference {
            tool: "t",
            ..ToolReference::default()
        },
    )
    .unwrap();
    let all = br#"{"plain":"p","color":"COLOR_RED","raw":"AP8=","b":18446744073709551615,"at":"2026-01-01T00:00:00Z",
        "wrapped":-7,"map":{"false":0.5,"true":1.5},"inner":{"plain":"","color":7,"raw":""}}"#;
    let typed = found.arguments_from_json(all).unwrap();
    let read = found
        .arguments_from_message(&typed.type_url(), &typed.bytes(), UnsaidParts::default())
        .unwrap();
    let json = found.json(&read).unwrap();
    assert!(equal(&json, all), "{}", String::from_utf8_lossy(&json));
    let both = found
        .arguments_from_json(br#"{"a":"x","b":1}"#)
        .unwrap_err();
    assert_eq!(both.to_string(), "b: excludes a");
    let color = found
        .arguments_from_json(br#"{"color":"RED"}"#)
        .unwrap_err();
    assert_eq!(color.to_string(), "color: is not one of the names");
}
