//! Descriptions as tools: names, schemas and requests, what is left out, and what hostile descriptions and arguments cannot do.

use std::sync::LazyLock;

use openapi::{
    Configured, DEFINITIONS_BYTES_MAX, DOCUMENT_BYTES_MAX, Document, OPERATIONS_MAX, Operations,
    TEXT_CHARS_MAX,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use url::Url;

fn base() -> Url {
    Url::parse("https://api.test/v1?fixed=1").unwrap()
}

fn operations_of(text: &Value) -> Operations {
    configured(text, &Configured::default())
}

fn configured(text: &Value, configured: &Configured) -> Operations {
    Document::read(text.to_string().as_bytes()).unwrap().operations(&base(), configured)
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
    assert_eq!((all.title.as_str(), all.version.as_str(), all.left_out.len()), ("T", "1", 0));
    let tool = definition(&all, "storeFile");
    assert_eq!(tool["title"], "Stores a file");
    assert_eq!(tool["description"], "Stores a file\n\nIt replaces one.\n\nPOST /users/{id}/files/{name}");
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["X-Trace", "body", "filter_a", "id", "name", "path_id", "sid"]);
    assert_eq!(properties["filter_a"]["description"], "Sent as `filter[a]` (query).");
    assert_eq!(tool["inputSchema"]["required"], json!(["name", "path_id", "body"]));
    assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    let output = json!({ "type": "object", "properties": { "size": { "type": ["integer", "null"] } } });
    assert_eq!(tool["outputSchema"], output);
    assert!(tool.get("annotations").is_none());
}

#[test]
fn a_call_becomes_a_request() {
    let all = rich();
    let call = json!({ "path_id": "a/b", "name": "ü?#%", "id": ["1", "2&3"], "filter_a": { "k": "v" },
        "X-Trace": "t 1", "sid": "s;x", "body": { "text": "hi" } });
    let request = all.get("storeFile").unwrap().request(&arguments(&call)).unwrap();
    assert_eq!(request.method, "POST");
    assert_eq!(
        request.target,
        "/v1/users/a%2Fb/files/%C3%BC%3F%23%25?fixed=1&id=1&id=2%263&filter%5Ba%5D%5Bk%5D=v"
    );
    let headers = [("X-Trace", "t 1"), ("Cookie", "sid=s%3Bx")];
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(request.body, Some(("application/json".to_owned(), br#"{"text":"hi"}"#.to_vec())));
    let mut request = request;
    request.add_query("key", "a b&c");
    assert!(request.target.ends_with("&key=a%20b%26c"), "{}", request.target);
    for (call, why) in [
        (json!({}), "missing: `name`, `path_id`, `body`"),
        (json!({ "path_id": "1", "name": null, "body": {} }), "missing: `name`"),
        (json!({ "path_id": "1", "name": "n", "body": {}, "other": 1 }), "there is no argument `other`"),
        (json!({ "path_id": "", "name": "n", "body": {} }), "must not be empty"),
        (json!({ "path_id": "..", "name": "n", "body": {} }), "must not be `.` or `..`"),
        (json!({ "path_id": ".", "name": "n", "body": {} }), "must not be `.` or `..`"),
        (json!({ "path_id": "1", "name": "n", "body": {}, "X-Trace": "a\r\nHost: b" }), "one line"),
        (json!({ "path_id": "x".repeat(40_000), "name": "n", "body": {} }), "longer than"),
    ] {
        let refused = all.get("storeFile").unwrap().request(&arguments(&call)).unwrap_err();
        assert!(refused.contains(why), "{call}: {refused}");
    }
}

#[test]
fn methods_have_their_annotations() {
    let operation = json!({ "responses": {} });
    let methods = ["get", "head", "options", "post", "put", "patch", "delete", "trace"];
    let item: Map<String, Value> =
        methods.map(|method| (method.to_owned(), operation.clone())).into_iter().collect();
    let all = operations_of(&with_paths(&json!({ "/a": item })));
    for (name, annotations) in [
        ("get_a", json!({ "readOnlyHint": true })),
        ("head_a", json!({ "readOnlyHint": true })),
        ("options_a", json!({ "readOnlyHint": true })),
        ("post_a", json!(null)),
        ("put_a", json!({ "idempotentHint": true })),
        ("patch_a", json!(null)),
        ("delete_a", json!({ "destructiveHint": true, "idempotentHint": true })),
    ] {
        assert_eq!(definition(&all, name)["annotations"], annotations, "{name}");
    }
    assert_eq!(all.left_out.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["TRACE /a"]);
}

#[test]
fn what_is_configured_is_no_argument() {
    let paths = json!({ "/a": { "get": { "operationId": "a", "parameters": [
        { "in": "header", "name": "X-Key" }, { "in": "query", "name": "key" }, { "in": "query", "name": "q" },
        { "in": "cookie", "name": "sid" }] } } });
    let names =
        Configured { headers: vec!["x-key".to_owned(), "Cookie".to_owned()], query: vec!["key".to_owned()] };
    let all = configured(&with_paths(&paths), &names);
    let properties = definition(&all, "a")["inputSchema"]["properties"].clone();
    assert_eq!(properties, json!({ "q": {} }));
    assert!(all.get("a").unwrap().request(&arguments(&json!({ "key": "mine" }))).is_err());
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
    let target = |name: &str| all.get(name).map(|one| one.request(&Map::new()).unwrap().target);
    assert_eq!(target("https_api.test_v2").as_deref(), Some("/v2/a"));
    assert_eq!(target("v3").as_deref(), Some("/v3/a"));
    // A server of the whole description is what the operator has put in its place.
    assert_eq!(target("https_main.test_api").as_deref(), Some("/v1/c?fixed=1"));
    let left: Vec<&str> = all.left_out.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(left, ["evil.test_x", "https_evil.test", "insecure"]);
    assert!(all.left_out.iter().all(|one| one.reason.contains("at another origin")));
}

#[test]
fn hostile_operations_are_left_out_and_the_rest_stays() {
    let query = |schema: Value| json!({ "parameters": [{ "in": "query", "name": "q", "schema": schema }] });
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
    let left: Vec<(&str, &str)> =
        all.left_out.iter().map(|one| (one.name.as_str(), one.reason.as_str())).collect();
    assert_eq!(left.len(), 14, "{left:#?}");
    let remote = left.iter().filter(|(_, why)| why.contains("another document")).count();
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
        assert!(left.iter().any(|(one, reason)| *one == name && reason.contains(why)), "{name}: {left:#?}");
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
    let words = definition(&all, "same")["description"].as_str().unwrap().to_owned();
    assert_eq!(words.chars().count(), TEXT_CHARS_MAX);
}

#[test]
fn operations_are_listed_up_to_their_most_and_not_beyond() {
    let paths: Map<String, Value> = (0..=OPERATIONS_MAX)
        .map(|number| (format!("/{number:06}"), json!({ "get": { "operationId": "same" } })))
        .collect();
    let all = operations_of(&with_paths(&paths.into()));
    assert_eq!(all.operations.len(), OPERATIONS_MAX);
    assert_eq!(all.left_out.len(), 1);
    assert!(all.left_out[0].reason.contains("more than 10000 operations"));
}

/// Each operation refers to the same large schemas, so that the definitions would be far larger than the description.
#[test]
fn definitions_of_all_operations_together_are_bounded() {
    let big: Vec<String> = (0..12).map(|number| format!("{number}{}", "x".repeat(5000))).collect();
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
    assert!(bytes > DEFINITIONS_BYTES_MAX && bytes < DEFINITIONS_BYTES_MAX + 100_000, "{bytes}");
    assert!(all.left_out.iter().all(|one| one.reason.contains("too large")));
    assert_eq!(all.operations.len() + all.left_out.len(), 2000);
}

/// 10 MB with schemas that all refer to each other.
#[test]
fn a_description_of_ten_megabytes_is_read() {
    let schema = |number: usize| {
        let property =
            |next: usize| json!({ "$ref": format!("#/components/schemas/S{}", (number * 7 + next) % 4000) });
        json!({ "type": "object", "description": "d".repeat(2300), "properties": {
            "a": property(1), "b": property(2), "c": property(3) } })
    };
    let schemas: Map<String, Value> =
        (0..4000).map(|number| (format!("S{number}"), schema(number))).collect();
    let reference = |number: usize| json!({ "$ref": format!("#/components/schemas/S{}", number * 30) });
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
    assert!(text.len() > 9_700_000 && text.len() < DOCUMENT_BYTES_MAX, "{}", text.len());
    let all = Document::read(text.as_bytes()).unwrap().operations(&base(), &Configured::default());
    assert_eq!((all.operations.len(), all.left_out.len()), (100, 0));
    for one in all.operations.iter().step_by(25) {
        let schema = definition(&all, &one.name)["inputSchema"].clone();
        assert!(schema.to_string().len() <= openapi::INPUT_SCHEMA_BYTES_MAX * 2);
        let checker = jsonschema::validator_for(&schema).unwrap();
        assert!(checker.is_valid(&json!({ "body": { "a": { "a": {} } } })));
        assert!(!checker.is_valid(&json!({ "body": 7 })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the arguments: the request stays at its origin, its path has the same segments, and no header breaks its line.
    #[test]
    fn no_argument_changes_where_a_request_goes(
        id in any::<String>(), name in "[./\\\\%?#@:;a-z0-9 ]{1,12}", query in any::<Vec<String>>(), trace in any::<String>(), sid in any::<String>(),
    ) {
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
            let _ = document.operations(&base(), &Configured::default());
        }
    }
}
