//! Clients of proto-mcp over gRPC, with Google's stubs and runtime, that know the contract alone.

use harness::grpc_client;
use serde_json::{Value, json};

use crate::socket::{Gateway, fixture_server};

#[test]
fn a_grpc_client_reaches_what_the_gateway_has() {
    for (prefix, page) in [("", "2"), ("fixture_", "50")] {
        let config = fixture_server("fixture", prefix, &["--page", page]);
        let gateway = Gateway::serve(&config);
        check(&grpc_client(&[gateway.address(), prefix, "--tour"]), prefix);
    }
}

fn check(report: &Value, prefix: &str) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    // A call has no session: no list is pushed, and no reference is remembered.
    assert_eq!(
        (at("version"), at("list_changed"), at("references")),
        (json!("1.0.0"), json!(false), json!(false))
    );
    assert_eq!(
        (at("echo"), at("plain"), at("typed")),
        (json!(["hello"]), json!(["hello"]), json!(["grüße"]))
    );
    let tools = at("tools");
    for tool in ["echo", "add", "json_schema_2020_12_tool"] {
        assert!(tools.as_array().unwrap().contains(&json!(format!("{prefix}{tool}"))), "{tools}");
    }
    assert_eq!(at("schemas"), json!(tools.as_array().unwrap().len()));
    assert_eq!(at("is_error"), json!(true));
    assert_eq!(at("blocks"), json!([["text", ""], ["image", "image/png"], ["data", ""]]));
    assert_eq!(at("text"), json!(["This is the content of the static text resource."]));
    assert_eq!(at("blob"), json!(["image/png", "89504e47"]));
    let codes = at("codes");
    for (what, status, code) in [
        ("version", "FAILED_PRECONDITION", -33002),
        ("type", "INVALID_ARGUMENT", -32602),
        ("rule", "INVALID_ARGUMENT", -33001),
        ("resource", "NOT_FOUND", -32002),
        ("cursor", "INVALID_ARGUMENT", -32602),
        ("unnamed", "INVALID_ARGUMENT", -32602),
    ] {
        assert_eq!(codes[what], json!([status, code]), "{what}: {codes}");
    }
    // Without a prefix the server itself is asked for names that it does not list.
    let unknown = if prefix.is_empty() { "INVALID_ARGUMENT" } else { "NOT_FOUND" };
    assert_eq!(codes["tool"], json!([unknown, -32602]), "{codes}");
    assert_eq!(at("deadline"), json!("DEADLINE_EXCEEDED"));
}
