//! Descriptions as tools: names, schemas and requests, what is left out, and what hostile
//! descriptions and arguments cannot do.

use std::sync::LazyLock;

use openapi::{
    DEFINITIONS_BYTES_MAX, DOCUMENT_BYTES_MAX, Document, OPERATIONS_MAX, Operations, Presets,
    TEXT_CHARS_MAX,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use url::Url;

fn base() -> Url {
    Url::parse("https://api.test/v1?fixed=1").unwrap()
}

fn operations_of(text: &Value) -> Operations {
    configured(text, &Presets::default())
}

fn configured(text: &Value, configured: &Presets) -> Operations {
    Document::read(text.to_string().as_bytes())
        .unwrap()
        .operations(&base(), configured)
}

fn with_paths(paths: &Value) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "paths": paths })
}

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn definition(all: &Operations, name: &str) -> Value {
    serde_json::from_str(&all.get(name).unwrap().definition).unwrap()
}

/// An operation with a parameter of each kind, and a body.
fn rich() -> Operations {
    operations_of(&with_paths(&json!({ "/users/{id}/files/{name}": {
        "parameters": [{ "in": "path", "name": "id", "required": true, "schema": { "type": "string" } }],
        "post": {
            "operationId": "storeFile", "summary": "Stores a file", "description": "It replaces one.",
            "parameters": [
                { "in": "path", "name": "name", "required": true, "schema": { "type": "string" } },
                { "in": "query", "name": "id", "schema": { "type": "array", "items": { "type": "string" } } },
                { "in": "query", "name": "filter[a]", "style": "deepObject", "explode": true, "schema": { "type": "object" } },
                { "in": "header", "name": "X-Trace", "schema": { "type": "string" } },
                { "in": "header", "name": "Authorization", "schema": { "type": "string" } },
                { "in": "cookie", "name": "sid", "schema": { "type": "string" } }
            ],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "type": "object", "properties": { "text": { "type": "string" } } } } } },
            "responses": { "200": { "description": "Good.", "content": { "application/json": {
                "schema": { "type": "object", "required": ["size"], "properties": { "size": { "type": "integer" } } } } } } }
        } } })))
}

#[test]
fn an_operation_becomes_a_tool() {
    let all = rich();
    assert_eq!(
        (all.title.as_str(), all.version.as_str(), all.left_out.len()),
        ("T", "1", 0)
    );
    let tool = definition(&all, "storeFile");
    assert_eq!(tool["title"], "Stores a file");
    assert_eq!(
        tool["description"],
        "Stores a file\n\nIt replaces one.\n\nPOST /users/{id}/files/{name}"
    );
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "X-Trace", "body", "filter_a", "id", "name", "path_id", "sid"
        ]
    );
    assert_eq!(
        properties["filter_a"]["description"],
        "Sent as `filter[a]` (query)."
    );
    assert_eq!(
        tool["inputSchema"]["required"],
        json!(["name", "path_id", "body"])
    );
    assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    let output =
        json!({ "type": "object", "properties": { "size": { "type": ["integer", "null"] } } });
    assert_eq!(tool["outputSchema"], output);
    assert!(tool.get("annotations").is_none());
}

#[test]
fn a_call_becomes_a_request() {
    let all = rich();
    let call = json!({ "path_id": "a/b", "name": "ü?#%", "id": ["1", "2&3"], "filter_a": { "k": "v" },
        "X-Trace": "t 1", "sid": "s;x", "body": { "text": "hi" } });
    let request = all
        .get("storeFile")
        .unwrap()
        .request(&arguments(&call))
        .unwrap();
    assert_eq!(request.method, "POST");
    assert_eq!(
        request.target,
        "/v1/users/a%2Fb/files/%C3%BC%3F%23%25?fixed=1&id=1&id=2%263&filter%5Ba%5D%5Bk%5D=v"
    );
    let headers = [("X-Trace", "t 1"), ("Cookie", "sid=s%3Bx")];
    assert_eq!(
        request.headers,
        headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(
        request.body,
        Some(("application/json".to_owned(), br#"{"text":"hi"}"#.to_vec()))
    );
    let mut request = request;
    request.add_query("key", "a b&c");
    assert!(
        request.target.ends_with("&key=a%20b%26c"),
        "{}",
        request.target
    );
    for (call, why) in [
        (json!({}), "missing: `name`, `path_id`, `body`"),
        (
            json!({ "path_id": "1", "name": null, "body": {} }),
            "missing: `name`",
        ),
        (
            json!({ "path_id": "1", "name": "n", "body": {}, "other": 1 }),
            "there is no argument `other`",
        ),
        (
            json!({ "path_id": "", "name": "n", "body": {} }),
            "must not be empty",
        ),
        (
            json!({ "path_id": "..", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": ".", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": "1", "name": "n", "body": {}, "X-Trace": "a\r\nHost: b" }),
            "one line",
        ),
        (
            json!({ "path_id": "a/../../admin", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": "..\\admin", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": "..;x", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": "%2e%2e", "name": "n", "body": {} }),
            "must not be `.` or `..`",
        ),
        (
            json!({ "path_id": { "a": 1 }, "name": "n", "body": {}, "sid": { "a": 1 } }),
            "`sid` must not be an object",
        ),
        (
            json!({ "path_id": "x".repeat(40_000), "name": "n", "body": {} }),
            "too long: its URL",
        ),
        (
            json!({ "path_id": "1", "name": "n", "body": {}, "X-Trace": "x".repeat(40_000) }),
            "too long: a header",
        ),
    ] {
        let refused = all
            .get("storeFile")
            .unwrap()
            .request(&arguments(&call))
            .unwrap_err();
        assert!(refused.contains(why), "{call}: {refused}");
    }
}

/// An operation whose parameters may have each other's names in their keys, with those that are
/// configured.
fn keyed() -> Operations {
    let object = json!({ "type": "object" });
    let parameter = |place: &str, name: &str, schema: &Value| json!({ "in": place, "name": name, "schema": schema });
    let mut filter = parameter("query", "filter", &object);
    filter["style"] = "deepObject".into();
    let mut matrix = parameter("path", "at", &object);
    (matrix["style"], matrix["explode"]) = ("matrix".into(), true.into());
    let text = json!({ "type": "string" });
    let parameters = [
        parameter("query", "q", &object),
        parameter("query", "text", &text),
        filter,
        matrix,
        parameter("path", "zone", &text),
        parameter("cookie", "lang", &object),
        parameter("cookie", "word", &text),
        // These are what the operator presets or hides; no call here has them.
        parameter("query", "owner", &text),
        parameter("query", "filter[owner]", &text),
        parameter("cookie", "sid", &text),
        parameter("query", "api_key", &text),
    ];
    let paths = json!({ "/find{at}/{zone}": { "get": { "operationId": "find", "parameters": parameters } } });
    let names = Presets {
        headers: Vec::new(),
        query: vec!["api_key".to_owned(), "token".to_owned()],
    };
    configured(&with_paths(&paths), &names)
}

#[test]
fn no_argument_is_sent_as_another_one() {
    let all = keyed();
    let find = all.get("find").unwrap();
    let with = |name: &str, value: Value| {
        let mut call = arguments(&json!({ "at": { "x": 1 }, "zone": "z" }));
        call.insert(name.to_owned(), value);
        find.request(&call)
    };
    let other = "is the name of another parameter";
    for (name, value, why) in [
        ("q", json!({ "owner": "me" }), other),
        ("q", json!({ "x": 1, "OWNER[]": "me" }), other),
        ("q", json!({ "api_key": "mine" }), other),
        ("q", json!({ "token": "mine" }), other),
        ("q", json!({ "fixed": "2" }), other),
        ("q", json!({ "filter[owner]": "me" }), other),
        ("filter", json!({ "owner": "me" }), other),
        ("filter", json!({ "owner": { "x": ["me"] } }), other),
        ("at", json!({ "zone": "mine" }), other),
        ("lang", json!({ "sid": "mine" }), other),
        (
            "text",
            json!({ "owner": "me" }),
            "`text` must not be an object",
        ),
        (
            "word",
            json!({ "sid": "mine" }),
            "`word` must not be an object",
        ),
    ] {
        let refused = with(name, value.clone()).unwrap_err();
        assert!(refused.contains(why), "{name} {value}: {refused}");
    }
    let good = with("q", json!({ "sort": "up", "q": "x" })).unwrap();
    assert_eq!(good.target, "/v1/find;x=1/z?fixed=1&q=x&sort=up");
    let good = with("filter", json!({ "name": "x", "not": { "owner": 1 } })).unwrap();
    assert_eq!(
        good.target,
        "/v1/find;x=1/z?fixed=1&filter%5Bname%5D=x&filter%5Bnot%5D%5Bowner%5D=1"
    );
    assert_eq!(
        with("lang", json!({ "de": 1 })).unwrap().headers,
        [("Cookie".to_owned(), "de=1".to_owned())]
    );
}

/// Two megabytes of arguments whose name is repeated for each item.
#[test]
fn a_request_is_not_far_longer_than_its_arguments() {
    let name = "n".repeat(256);
    let content = "application/x-www-form-urlencoded";
    let zeros = vec![0; 1_000_000];
    let parameter =
        |place: &str| json!({ "in": place, "name": name, "schema": { "type": "array" } });
    let all = operations_of(&with_paths(&json!({
        "/a": { "get": { "operationId": "query", "parameters": [parameter("query")] },
                "put": { "operationId": "cookie", "parameters": [parameter("cookie")] },
                "post": { "operationId": "form", "requestBody": { "content": { content: {} } } } } })));
    let argument = "n".repeat(64);
    for (tool, call, part) in [
        (
            "query",
            json!({ &argument: zeros }),
            "its URL may have at most 32768 bytes",
        ),
        (
            "cookie",
            json!({ &argument: zeros }),
            "a header may have at most 32768 bytes",
        ),
        (
            "form",
            json!({ "body": { "n".repeat(2 << 20): zeros } }),
            "its body may have at most 16777216 bytes",
        ),
    ] {
        let refused = all
            .get(tool)
            .unwrap()
            .request(&arguments(&call))
            .unwrap_err();
        assert_eq!(refused, format!("the request would be too long: {part}"));
    }
    // `/v1/a?fixed=1`, and 259 bytes for each item.
    let items = (32_768 - 13) / 259;
    let of = |count: usize| {
        all.get("query")
            .unwrap()
            .request(&arguments(&json!({ &argument: vec![0; count] })))
    };
    assert_eq!(of(items).unwrap().target.len(), 13 + items * 259);
    assert!(of(items + 1).is_err());
}

/// Paths with very many variables, each of which would be compared with all others.
#[test]
fn paths_with_many_variables_are_left_out() {
    let variables = |count: usize| {
        (0..count)
            .map(|number| format!("/{{v{number}}}"))
            .collect::<String>()
    };
    let all = operations_of(&with_paths(&json!({
        variables(256): { "get": { "operationId": "most" } }, variables(1_000_000): { "get": { "operationId": "more" } } })));
    assert!(all.get("most").is_some());
    let left: Vec<&str> = all.left_out.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(left, ["its path has more than 256 variables"]);
}

#[test]
fn methods_have_their_annotations() {
    let operation = json!({ "responses": {} });
    let methods = [
        "get", "head", "options", "post", "put", "patch", "delete", "trace",
    ];
    let item: Map<String, Value> = methods
        .map(|method| (method.to_owned(), operation.clone()))
        .into_iter()
        .collect();
    let all = operations_of(&with_paths(&json!({ "/a": item })));
    for (name, annotations) in [
        ("get_a", json!({ "readOnlyHint": true })),
        ("head_a", json!({ "readOnlyHint": true })),
        ("options_a", json!({ "readOnlyHint": true })),
        ("post_a", json!(null)),
        ("put_a", json!({ "idempotentHint": true })),
        ("patch_a", json!(null)),
        (
            "delete_a",
            json!({ "destructiveHint": true, "idempotentHint": true }),
        ),
    ] {
        assert_eq!(definition(&all, name)["annotations"], annotations, "{name}");
    }
    assert_eq!(
        all.left_out
            .iter()
            .map(|one| one.name.as_str())
            .collect::<Vec<_>>(),
        ["TRACE /a"]
    );
}

#[test]
fn what_is_configured_is_no_argument() {
    let paths = json!({ "/a": { "get": { "operationId": "a", "parameters": [
        { "in": "header", "name": "X-Key" }, { "in": "query", "name": "key" }, { "in": "query", "name": "q" },
        { "in": "cookie", "name": "sid" }] } } });
    let names = Presets {
        headers: vec!["x-key".to_owned(), "Cookie".to_owned()],
        query: vec!["key".to_owned()],
    };
    let all = configured(&with_paths(&paths), &names);
    let properties = definition(&all, "a")["inputSchema"]["properties"].clone();
    assert_eq!(properties, json!({ "q": {} }));
    assert!(
        all.get("a")
            .unwrap()
            .request(&arguments(&json!({ "key": "mine" })))
            .is_err()
    );
}

#[test]
fn only_the_origin_of_the_base_is_requested() {
    let at = |url: &str| json!({ "operationId": url, "servers": [{ "url": url }] });
    let mut text = with_paths(&json!({
        "/a": { "get": at("https://api.test/v2"), "put": at("https://evil.test/"), "post": at("//evil.test/x"), "delete": at("/v3/") },
        "/b": { "servers": [{ "url": "http://api.test/" }], "get": { "operationId": "insecure" } },
        "/c": { "get": at("https://main.test/api") } }));
    text["servers"] = json!([{ "url": "https://main.test/api" }]);
    let all = operations_of(&text);
    let target = |name: &str| {
        all.get(name)
            .map(|one| one.request(&Map::new()).unwrap().target)
    };
    assert_eq!(target("https_api.test_v2").as_deref(), Some("/v2/a"));
    assert_eq!(target("v3").as_deref(), Some("/v3/a"));
    // A server of the whole description is what the operator has put in its place.
    assert_eq!(
        target("https_main.test_api").as_deref(),
        Some("/v1/c?fixed=1")
    );
    let left: Vec<&str> = all.left_out.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(left, ["evil.test_x", "https_evil.test", "insecure"]);
    assert!(
        all.left_out
            .iter()
            .all(|one| one.reason.contains("at another origin"))
    );
}

#[test]
fn hostile_operations_are_left_out_and_the_rest_stays() {
    let query =
        |schema: Value| json!({ "parameters": [{ "in": "query", "name": "q", "schema": schema }] });
    let all = operations_of(&with_paths(&json!({
        "/good": { "get": { "operationId": "good" } },
        "/remote": { "get": query(json!({ "$ref": "https://evil.test/schema.json#/A" })) },
        "/file": { "get": query(json!({ "items": { "$ref": "file:///etc/passwd" } })) },
        "/relative": { "get": query(json!({ "$ref": "common.yaml" })) },
        "/parameter": { "get": { "parameters": [{ "$ref": "http://169.254.169.254/latest" }] } },
        "/body": { "post": { "requestBody": { "$ref": "other.json#/body" } } },
        "/item": { "$ref": "https://evil.test/item" },
        "/circle": { "$ref": "#/paths/~1circle" },
        "/{open": { "get": {} },
        "/a/../b": { "get": {} },
        "/a/%2E%2e/b": { "get": {} },
        "/q?x=1": { "get": {} },
        "/many": { "get": { "parameters": vec![json!({ "in": "query", "name": "q" }); 257] } },
        "/dynamic": { "get": query(json!({ "$dynamicRef": "#a" })) },
        "/large": { "get": query(json!({ "enum": ["x".repeat(100_000)] })) },
        "/odd": { "get": 7, "put": { "parameters": 7, "requestBody": 7, "responses": 7, "servers": 7, "operationId": 7 } },
        "relative": { "get": {} }
    })));
    let names: Vec<&str> = all.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["good", "put_odd"]);
    let left: Vec<(&str, &str)> = all
        .left_out
        .iter()
        .map(|one| (one.name.as_str(), one.reason.as_str()))
        .collect();
    assert_eq!(left.len(), 14, "{left:#?}");
    let remote = left
        .iter()
        .filter(|(_, why)| why.contains("another document"))
        .count();
    assert_eq!(remote, 6, "{left:#?}");
    for (name, why) in [
        ("/circle", "circle"),
        ("get_open", "path"),
        ("get_a_.._b", "leads to another"),
        ("get_q_x_1", "path"),
        ("get_many", "more than 256 parameters"),
        ("get_dynamic", "$dynamicRef"),
        ("get_large", "too large"),
    ] {
        assert!(
            left.iter()
                .any(|(one, reason)| *one == name && reason.contains(why)),
            "{name}: {left:#?}"
        );
    }
}

#[test]
fn texts_are_cut_and_ids_that_repeat_are_numbered() {
    let long = "x".repeat(TEXT_CHARS_MAX + 1);
    let operation = json!({ "operationId": "same", "description": long });
    let all = operations_of(&with_paths(
        &json!({ "/a": { "get": operation, "put": operation }, "/b": { "get": operation } }),
    ));
    let names: Vec<&str> = all.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["same", "same_2", "same_3"]);
    let words = definition(&all, "same")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(words.chars().count(), TEXT_CHARS_MAX);
}

#[test]
fn operations_are_listed_up_to_their_most_and_not_beyond() {
    let paths: Map<String, Value> = (0..=OPERATIONS_MAX)
        .map(|number| {
            (
                format!("/{number:06}"),
                json!({ "get": { "operationId": "same" } }),
            )
        })
        .collect();
    let all = operations_of(&with_paths(&paths.into()));
    assert_eq!(all.operations.len(), OPERATIONS_MAX);
    assert_eq!(all.left_out.len(), 1);
    assert!(
        all.left_out[0]
            .reason
            .contains("more than 10000 operations")
    );
}

/// Each operation refers to the same large schemas, so that the definitions would be far larger
/// than the description.
#[test]
fn definitions_of_all_operations_together_are_bounded() {
    let big: Vec<String> = (0..12)
        .map(|number| format!("{number}{}", "x".repeat(5000)))
        .collect();
    let paths: Map<String, Value> = (0..2000)
        .map(|number| {
            let query =
                json!([{ "in": "query", "name": "q", "schema": { "$ref": "#/components/schemas/Big" } }]);
            (format!("/{number:06}"), json!({ "get": { "parameters": query } }))
        })
        .collect();
    let mut text = with_paths(&paths.into());
    text["components"] = json!({ "schemas": { "Big": { "enum": big } } });
    let all = operations_of(&text);
    let bytes: usize = all.operations.iter().map(|one| one.definition.len()).sum();
    assert!(
        bytes > DEFINITIONS_BYTES_MAX && bytes < DEFINITIONS_BYTES_MAX + 100_000,
        "{bytes}"
    );
    assert!(
        all.left_out
            .iter()
            .all(|one| one.reason.contains("too large"))
    );
    assert_eq!(all.operations.len() + all.left_out.len(), 2000);
}

/// 10 MB with schemas that all refer to each other.
#[test]
fn a_description_of_ten_megabytes_is_read() {
    let schema = |number: usize| {
        let property = |next: usize| json!({ "$ref": format!("#/components/schemas/S{}", (number * 7 + next) % 4000) });
        json!({ "type": "object", "description": "d".repeat(2300), "properties": {
            "a": property(1), "b": property(2), "c": property(3) } })
    };
    let schemas: Map<String, Value> = (0..4000)
        .map(|number| (format!("S{number}"), schema(number)))
        .collect();
    let reference =
        |number: usize| json!({ "$ref": format!("#/components/schemas/S{}", number * 30) });
    let paths: Map<String, Value> = (0..100)
        .map(|number| {
            let json = json!({ "application/json": { "schema": reference(number) } });
            let post = json!({ "operationId": format!("op{number}"), "description": "d".repeat(1000),
                "requestBody": { "content": json }, "responses": { "200": { "content": json } } });
            (format!("/{number}"), json!({ "post": post }))
        })
        .collect();
    let mut text = with_paths(&paths.into());
    text["components"] = json!({ "schemas": schemas });
    let text = text.to_string();
    assert!(
        text.len() > 9_700_000 && text.len() < DOCUMENT_BYTES_MAX,
        "{}",
        text.len()
    );
    let all = Document::read(text.as_bytes())
        .unwrap()
        .operations(&base(), &Presets::default());
    assert_eq!((all.operations.len(), all.left_out.len()), (100, 0));
    for one in all.operations.iter().step_by(25) {
        let schema = definition(&all, &one.name)["inputSchema"].clone();
        assert!(schema.to_string().len() <= openapi::INPUT_SCHEMA_BYTES_MAX * 2);
        let checker = jsonschema::validator_for(&schema).unwrap();
        assert!(checker.is_valid(&json!({ "body": { "a": { "a": {} } } })));
        assert!(!checker.is_valid(&json!({ "body": 7 })));
    }
}

/// Values that are often objects, with names of other parameters among their keys.
fn objects() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-z\\[\\];&= ]{0,6}",
        proptest::sample::select(vec![
            "owner",
            "OWNER",
            "owner[]",
            "filter[owner]",
            "sid",
            "zone",
            "api_key",
            "token",
            "fixed"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let members = proptest::collection::btree_map(key.clone(), inner.clone(), 0..3);
        prop_oneof![
            4 => members.prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the arguments: the request stays at its origin, its path has the same segments, and
    /// no header breaks its line.
    #[test]
    fn no_argument_changes_where_a_request_goes(
        id in any::<String>(), name in "[./\\\\%?#@:;a-z0-9 ]{1,12}", query in any::<Vec<String>>(), trace in any::<String>(), sid in any::<String>(),
        at in objects(), q in objects(), filter in objects(), lang in objects(), text in objects(),
    ) {
        static KEYED: LazyLock<Operations> = LazyLock::new(keyed);
        let call = json!({ "at": at, "zone": "z", "q": q, "filter": filter, "lang": lang, "text": text });
        if let Ok(request) = KEYED.get("find").unwrap().request(&arguments(&call)) {
            // Every name that a caller chose is there once, and none of them is one that callers
            // have no argument for.
            let url = base().join(&request.target).unwrap();
            let names: Vec<String> = url.query_pairs().map(|(name, _)| name.to_lowercase()).collect();
            prop_assert_eq!(names.iter().filter(|name| *name == "fixed").count(), 1, "{}", url);
            for name in ["owner", "filter[owner]", "api_key", "token"] {
                let taken = |one: &String| one == name || one.starts_with(&format!("{name}["));
                prop_assert!(!names.iter().any(taken), "{}: {}", name, url);
            }
            prop_assert!(!url.path().contains(";zone="), "{}", url);
            for (_, cookies) in &request.headers {
                prop_assert!(cookies.split("; ").all(|pair| pair.split('=').next() != Some("sid")), "{}", cookies);
            }
        }

        static RICH: LazyLock<Operations> = LazyLock::new(rich);
        let all = &*RICH;
        let call = json!({ "path_id": id, "name": name, "id": query, "X-Trace": trace, "sid": sid, "body": {} });
        let Ok(request) = all.get("storeFile").unwrap().request(&arguments(&call)) else { return Ok(()) };
        prop_assert!(request.target.is_ascii() && request.target.starts_with("/v1/users/"));
        let url = base().join(&request.target).unwrap();
        prop_assert_eq!(url.origin(), base().origin());
        let segments: Vec<String> = url.path_segments().unwrap().map(str::to_owned).collect();
        prop_assert_eq!(segments.len(), 5, "{}", url);
        prop_assert_eq!((segments[0].as_str(), segments[1].as_str(), segments[3].as_str()), ("v1", "users", "files"));
        prop_assert!(url.fragment().is_none());
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(&pairs[0], &("fixed".to_owned(), "1".to_owned()));
        prop_assert!(pairs[1..].iter().all(|(name, _)| name == "id"));
        prop_assert_eq!(pairs[1..].iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), query);
        for (_, value) in &request.headers {
            prop_assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }
    }

    /// Bytes that are no description are an error, and never more.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>(), text in "[ -~\n]{0,200}") {
        let _ = Document::read(&bytes);
        let yaml = format!("openapi: 3.0.0\npaths:\n  {text}");
        if let Ok(document) = Document::read(yaml.as_bytes()) {
            let _ = document.operations(&base(), &Presets::default());
        }
    }
}
