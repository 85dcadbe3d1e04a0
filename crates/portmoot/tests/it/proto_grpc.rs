//! Clients of proto-mcp over gRPC, with Google's stubs and runtime, that know the contract alone; health, reflection, gRPC-Web.

use std::io::{Read, Write};
use std::process::Command;

use harness::grpc_client;
use serde_json::{Value, json};

use crate::home::Home;
use crate::socket::{Gateway, fixture_server};
use crate::support;

#[test]
fn a_grpc_client_reaches_what_the_gateway_has() {
    for (prefix, page) in [("", "2"), ("fixture_", "50")] {
        let config = fixture_server("fixture", prefix.trim_end_matches('_'), &["--page", page]);
        let gateway = Gateway::serve(&config);
        check(&grpc_client(&[gateway.address(), prefix, "--tour"]), prefix);
    }
}

/// What a client saw of the fixture.
pub(crate) fn check(report: &Value, prefix: &str) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    // A call has no session: no list is pushed, and no reference is remembered.
    assert_eq!(
        (at("version"), at("list_changed"), at("references")),
        (json!("1.0.0"), json!(false), json!(false)),
        "{report}"
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
    ] {
        assert_eq!(codes[what], json!([status, code]), "{what}: {codes}");
    }
    // Without a prefix the server itself is asked for names that it does not list.
    let unknown = if prefix.is_empty() { "INVALID_ARGUMENT" } else { "NOT_FOUND" };
    for what in ["tool", "unnamed"] {
        assert_eq!(codes[what], json!([unknown, -32602]), "{what}: {codes}");
    }
    assert_eq!(at("deadline"), json!("DEADLINE_EXCEEDED"));
}

#[test]
fn a_grpc_client_that_may_only_propose_gets_the_result_of_the_approved_call() {
    const BOSS: &str = "token-of-the-one-who-decides";
    const SCOUT: &str = "token-of-the-one-who-proposes";
    let home = Home::new().env("BOSS_TOKEN", BOSS).env("SCOUT_TOKEN", SCOUT);
    let boss = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/request:*\", \"mcp/response:*\"]\n";
    let scout = "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let gateway = support::Gateway::start(&home, &[&support::fixture("a", &[]), boss, scout].concat());
    let words = [gateway.address(), "a_", "--token", SCOUT].map(str::to_owned);
    let client = std::thread::spawn(move || grpc_client(&words));
    let id = gateway.pending(&home, BOSS)["id"].as_str().unwrap().to_owned();
    home.run(&["proposals", "approve", &id, "--yes", "--no-wait", "--url", &gateway.url(), "--token", BOSS])
        .expect(0);
    assert_eq!(client.join().unwrap()["echo"], json!(["hello"]));
    // A call that is held ends with its caller's patience; one with a token of another is not taken at all.
    let waits = "DEADLINE_EXCEEDED";
    for (token, status) in [(SCOUT, waits), (BOSS, "UNAUTHENTICATED"), ("not-valid", "UNAUTHENTICATED")] {
        let words = [gateway.address(), "a_", "--token", SCOUT, "--call-token", token, "--timeout", "0.5"];
        assert_eq!(grpc_client(&words)["echo"], json!(status), "{token}");
    }
    let stranger = grpc_client(&[gateway.address(), "a_", "--token", "a-token-that-is-not-valid"]);
    assert_eq!(stranger["refused"][0], json!("UNAUTHENTICATED"), "{stranger}");
}

/// The frames of HTTP/2 that a connection is answered with at first: their types.
fn answered(gateway: &Gateway, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = gateway.connect();
    for piece in pieces {
        stream.write_all(piece).unwrap();
        stream.flush().unwrap();
    }
    let mut types = Vec::new();
    while types.len() < 2 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        std::io::copy(&mut (&stream).take(len.into()), &mut std::io::sink()).unwrap();
        types.push(head[3]);
    }
    types
}

#[test]
fn the_preface_of_http_2_may_come_in_pieces() {
    const SETTINGS: u8 = 4;
    let gateway = Gateway::serve("");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    for at in [1, 14, 18, 23] {
        let (first, rest) = preface.split_at(at);
        let types = answered(&gateway, &[first, rest, &settings]);
        assert_eq!(types[0], SETTINGS, "{types:?}");
    }
}

/// `buf curl` with gRPC to a gateway without TLS.
fn curl(gateway: &Gateway, protocol: &str, method: &str, data: &str) -> Value {
    let url = format!("http://{}/{method}", gateway.address());
    let contract = harness::repository().join("crates/wire/proto");
    let mut words = vec!["curl", "--protocol", protocol, "--http2-prior-knowledge", "--data", data, &url];
    if protocol == "grpcweb" {
        words.retain(|word| *word != "--http2-prior-knowledge");
        // Reflection needs streams in both directions.
        words.extend(["--schema", contract.to_str().unwrap()]);
    }
    let home = Home::new();
    let ran = Command::new(harness::deps().buf()).args(&words).env("HOME", home.path()).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn buf_curl_finds_the_service_by_reflection_and_over_grpc_web() {
    let gateway = Gateway::serve(&fixture_server("fixture", "", &[]));
    let arguments = r#"{"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"text": "hello"}}"#;
    let call = format!(r#"{{"name": "echo", "arguments": {arguments}}}"#);
    for protocol in ["grpc", "grpcweb"] {
        let said = curl(&gateway, protocol, "buf.mcp.v1.MCPService/CallTool", &call);
        assert_eq!(said["success"]["content"][0]["text"], json!("hello"), "{protocol}: {said}");
    }
}

#[test]
fn health_is_served_to_those_who_look() {
    let gateway = Gateway::serve("");
    let script = r#"
import sys, grpc
check = grpc.insecure_channel(sys.argv[1]).unary_unary("/grpc.health.v1.Health/Check")
print(check(b"").hex(), check(b"\n\x15buf.mcp.v1.MCPService").hex())
try:
    check(b"\n\x04none")
except grpc.RpcError as error:
    print(error.code().name)
try:
    grpc.insecure_channel(sys.argv[1]).unary_unary("/other.Service/Method")(b"")
except grpc.RpcError as error:
    print(error.code().name)
"#;
    let ran =
        Command::new(harness::deps().python()).args(["-c", script, gateway.address()]).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    // HealthCheckResponse { status: SERVING }.
    let expected = "0801 0801\nNOT_FOUND\nUNIMPLEMENTED\n";
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&ran.stderr));
}
