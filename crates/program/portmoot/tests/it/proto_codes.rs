//! Error codes of proto-mcp: each one over every wire, by a client with Google's runtime, and its
//! status over gRPC.

use harness::proto_codes;
use serde_json::{Value, json};

use crate::front::pipe;
use crate::home::Home;
use crate::proto_clients::websocket;
use crate::proto_servers::child;
use crate::support::{Gateway, fixture};

/// What is asked; whether the error is of the request or of the call, its code, and the status that
/// gRPC has for it.
const ERRORS: [(&str, &str, i32, &str); 11] = [
    ("version", "request", -33002, "FAILED_PRECONDITION"),
    ("unknown_tool", "request", -32602, "NOT_FOUND"),
    ("unresolved", "request", -33000, "FAILED_PRECONDITION"),
    ("rule", "request", -33001, "INVALID_ARGUMENT"),
    ("type", "request", -32602, "INVALID_ARGUMENT"),
    ("timeout", "call", -33003, "DEADLINE_EXCEEDED"),
    ("failed", "call", -32603, "OK"),
    ("resource", "request", -32002, "NOT_FOUND"),
    ("garbage", "request", -32700, "INVALID_ARGUMENT"),
    ("payload", "request", -32601, "UNIMPLEMENTED"),
    ("long", "request", -32600, "RESOURCE_EXHAUSTED"),
];

fn config() -> String {
    fixture("s", &[]) + "tool_timeouts = { slow = \"200ms\" }\n" + &child("p", &[])
}

#[track_caller]
fn check(report: &Value, expected: impl Fn(&'static str, i32, &'static str) -> Value) {
    for (what, place, code, status) in ERRORS {
        assert_eq!(
            report[what],
            expected(place, code, status),
            "{what}: {report}"
        );
    }
    assert_eq!(
        report["struct"],
        json!(["distant"]),
        "a Struct needs no schema"
    );
}

#[test]
fn every_error_code_is_reached_over_frames() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &config());
    gateway.ready("p");
    let other = Home::new();
    let words = pipe(&other, &config());
    let over_pipe: Vec<&str> = ["--pipe"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let url = websocket(&gateway);
    for way in [
        &over_pipe[..],
        &["--tcp", gateway.address()],
        &["--ws", &url],
    ] {
        check(&proto_codes(way), |place, code, _| json!([place, code]));
    }
}

#[test]
fn every_error_code_is_reached_over_grpc_with_its_status() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &config());
    gateway.ready("p");
    check(
        &proto_codes(&["--grpc", gateway.address()]),
        |place, code, status| {
            // A status is of the request.
            json!([if status == "OK" { place } else { "request" }, code, status])
        },
    );
}
