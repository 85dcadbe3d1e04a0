//! Clients of proto-mcp over gRPC, with Google's stubs and runtime, that know the contract alone;
//! health, reflection, gRPC-Web.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::Connection;
use crate::peer::{Peer, small, tool};
use crate::proto_clients::websocket;
use crate::socket::{Gateway, fixture_server};
use crate::support::{self, until};
use crate::ws::{answer as upgrade, people, token};

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
        assert!(
            tools
                .as_array()
                .unwrap()
                .contains(&json!(format!("{prefix}{tool}"))),
            "{tools}"
        );
    }
    assert_eq!(at("schemas"), json!(tools.as_array().unwrap().len()));
    assert_eq!(at("is_error"), json!(true));
    assert_eq!(
        at("blocks"),
        json!([["text", ""], ["image", "image/png"], ["data", ""]])
    );
    assert_eq!(
        at("text"),
        json!(["This is the content of the static text resource."])
    );
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
    let unknown = if prefix.is_empty() {
        "INVALID_ARGUMENT"
    } else {
        "NOT_FOUND"
    };
    for what in ["tool", "unnamed"] {
        assert_eq!(codes[what], json!([unknown, -32602]), "{what}: {codes}");
    }
    assert_eq!(at("deadline"), json!("DEADLINE_EXCEEDED"));
}

#[test]
fn a_grpc_client_that_may_only_propose_gets_the_result_of_the_approved_call() {
    const BOSS: &str = "token-of-the-one-who-decides";
    const SCOUT: &str = "token-of-the-one-who-proposes";
    let home = Home::new()
        .env("BOSS_TOKEN", BOSS)
        .env("SCOUT_TOKEN", SCOUT);
    let boss = "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/request:*\", \"mcp/response:*\"]\n";
    let scout =
        "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let gateway =
        support::Gateway::start(&home, &[&support::fixture("a", &[]), boss, scout].concat());
    let words = [gateway.address(), "a_", "--token", SCOUT].map(str::to_owned);
    let client = std::thread::spawn(move || grpc_client(&words));
    let id = gateway.pending(&home, BOSS)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    home.run(&[
        "proposals",
        "approve",
        &id,
        "--yes",
        "--no-wait",
        "--url",
        &gateway.url(),
        "--token",
        BOSS,
    ])
    .expect(0);
    assert_eq!(client.join().unwrap()["echo"], json!(["hello"]));
    // A call that is held ends with its caller's patience; one with a token of another is not taken
    // at all.
    let waits = "DEADLINE_EXCEEDED";
    for (token, status) in [
        (SCOUT, waits),
        (BOSS, "UNAUTHENTICATED"),
        ("not-valid", "UNAUTHENTICATED"),
    ] {
        let words = [
            gateway.address(),
            "a_",
            "--token",
            SCOUT,
            "--call-token",
            token,
            "--timeout",
            "0.5",
        ];
        assert_eq!(grpc_client(&words)["echo"], json!(status), "{token}");
    }
    let stranger = grpc_client(&[
        gateway.address(),
        "a_",
        "--token",
        "a-token-that-is-not-valid",
    ]);
    assert_eq!(
        stranger["refused"][0],
        json!("UNAUTHENTICATED"),
        "{stranger}"
    );
}

/// A client that calls the tool `wait` as ann, and cancels once it gets a line.
fn waiting(gateway: &support::Gateway) -> Child {
    let script = harness::repository().join("tests/third-party/proto_grpc.py");
    let mut python = Command::new(harness::deps().python());
    python.arg(script).args([
        gateway.address(),
        "s_",
        "--token",
        &token("ann"),
        "--cancel",
        "s_wait",
    ]);
    python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_call_whose_stream_or_connection_ends_is_cancelled_at_its_server() {
    let peer = Peer::stdio(|message| {
        let tools = format!("[{}]", tool("wait"));
        small(message, &tools)
            .map(String::into_bytes)
            .into_iter()
            .collect()
    });
    let (home, config) = people(&[("ann", &["mcp/request:*"])]);
    let gateway = support::Gateway::start(&home, &(config + &peer.child("s", "s")));
    gateway.ready("s");
    let cancelled = || {
        peer.received()
            .iter()
            .filter(|line| line.contains("notifications/cancelled"))
            .count()
    };
    for (count, by_its_client) in [(1, true), (2, false)] {
        let mut client = waiting(&gateway);
        until("the call arrives", || {
            (peer.calls("wait") == count).then_some(())
        });
        assert_eq!(cancelled(), count - 1);
        if by_its_client {
            client.stdin.take().unwrap().write_all(b"\n").unwrap();
        } else {
            client.kill().unwrap();
        }
        until("the server hears of it", || {
            (cancelled() == count).then_some(())
        });
        let ended = client.wait_with_output().unwrap();
        if by_its_client {
            assert_eq!(
                String::from_utf8_lossy(&ended.stdout).trim(),
                r#"{"cancelled": "CANCELLED"}"#
            );
        }
    }
    let log = AuditLog(&home);
    log.comes_to(2, "ann", "mcp/request:tools/call:s_wait", "admitted", "");
    log.is_whole();
}

/// The answers to a call of the fixture that a participant makes so many times.
type Caller = fn(&support::Gateway, &str, &str) -> Value;

fn over_grpc(gateway: &support::Gateway, name: &str, times: &str) -> Value {
    let token = token(name);
    grpc_client(&[
        gateway.address(),
        "",
        "--token",
        &token,
        "--call",
        "a_echo",
        "hello",
        "--times",
        times,
    ])
}

fn over_frames(way: [&str; 2], name: &str, times: &str) -> Value {
    let token = token(name);
    let more = ["--token", &token, "--times", times];
    proto_client(&[&["--call", "a_echo", "hello"], &way[..], &more].concat())
}

#[test]
fn a_participant_comes_in_over_protobuf_only_where_its_wires_say_so() {
    let (home, config) = people(&[("ann", &["mcp/request:*"]), ("bob", &["mcp/request:*"])]);
    let limited = |config: String, name: &str, wire: &str| {
        let head = format!("[participants.{name}]\n");
        config.replace(&head, &format!("{head}wires = [{wire:?}]\n"))
    };
    let config =
        limited(limited(config, "ann", "mcp"), "bob", "proto") + &support::fixture("a", &[]);
    let gateway = support::Gateway::start(&home, &config);
    gateway.ready("a");
    let over_http = |name: &str| {
        let bearer = format!("Bearer {}", token(name));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
        let mut connection = Connection::open(gateway.address());
        connection
            .exchange("POST", "/mcp", &headers, &initialize.to_string())
            .status
    };
    assert_eq!((over_http("ann"), over_http("bob")), (200, 403));
    let socket = websocket(&gateway);
    for way in [["--tcp", gateway.address()], ["--ws", &socket]] {
        assert_eq!(
            over_frames(way, "bob", "1")["answers"][0],
            json!(["hello"]),
            "{way:?}"
        );
    }
    let refused = over_frames(["--tcp", gateway.address()], "ann", "1");
    assert_eq!(refused["answers"][2], "forbidden", "{refused}");
    let bearer = format!("Bearer {}", token("ann"));
    assert_eq!(
        upgrade(&gateway, "/proto", &[("authorization", &bearer)]).status,
        403
    );
    assert_eq!(
        over_grpc(&gateway, "bob", "1")["answers"][0],
        json!(["hello"])
    );
    let refused = over_grpc(&gateway, "ann", "1");
    assert_eq!(refused["answers"][0][0], "PERMISSION_DENIED", "{refused}");
}

#[test]
fn calls_beyond_the_rate_are_refused_with_a_status_and_on_record() {
    // Frames have no status.
    let none = [Value::Null, Value::Null];
    let wires: [(Caller, [Value; 2]); 3] = [
        (over_grpc, [json!("RESOURCE_EXHAUSTED"), json!("NOT_FOUND")]),
        (
            |gateway, name, times| over_frames(["--tcp", gateway.address()], name, times),
            none.clone(),
        ),
        (
            |gateway, name, times| over_frames(["--ws", &websocket(gateway)], name, times),
            none,
        ),
    ];
    for (call, statuses) in wires {
        check_rate(call, &statuses);
    }
}

/// Checks a wire, with its statuses of a call beyond the rate and of one of an unknown tool.
fn check_rate(call: Caller, [beyond, unknown]: &[Value; 2]) {
    const ECHO: &str = "mcp/request:tools/call:a_echo";
    let (home, config) = people(&[
        ("ann", &["mcp/request:*"]),
        ("eve", &["mcp/request:tools/list"]),
    ]);
    let rate = "[participants.ann]\nrate = { limit = \"60/min\", burst = 3 }\n";
    let config = config.replace("[participants.ann]\n", rate) + &support::fixture("a", &[]);
    let gateway = support::Gateway::start(&home, &config);
    gateway.ready("a");
    let call = |name: &str, times: &str| {
        let report = call(&gateway, name, times);
        report["answers"]
            .as_array()
            .unwrap_or_else(|| panic!("{report}"))
            .clone()
    };
    let answers = call("ann", "8");
    assert_eq!(answers[0], json!(["hello"]), "{answers:?}");
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| **answer != json!(["hello"]))
        .collect();
    assert!(!refused.is_empty(), "{answers:?}");
    for refused in &refused {
        assert_eq!(
            (&refused[0], &refused[1]),
            (beyond, &json!(-31002)),
            "{refused}"
        );
        assert_eq!(refused[2]["code"], "rate_limited", "{refused}");
        assert!(
            (1.0..=1_000.0).contains(&refused[2]["retryAfterMs"].as_f64().unwrap()),
            "{refused}"
        );
    }
    // Another participant has a rate of its own, and no right to call.
    let hers = &call("eve", "1")[0];
    assert_eq!((&hers[0], &hers[1]), (unknown, &json!(-32602)), "{hers}");
    let log = AuditLog(&home);
    log.comes_to(answers.len() - refused.len(), "ann", ECHO, "admitted", "");
    log.comes_to(refused.len(), "ann", ECHO, "refused", "rate_limited");
    let entry = log.has("ann", ECHO, "admitted", "");
    assert_eq!(
        (&entry["to"], &entry["topic"]),
        (&json!(["a"]), &json!("main")),
        "{entry}"
    );
    log.comes_to(1, "eve", ECHO, "refused", "not_admitted");
    log.is_whole();
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
    let contract = harness::repository().join("crates/protocol/wire/proto");
    let mut words = vec![
        "curl",
        "--protocol",
        protocol,
        "--http2-prior-knowledge",
        "--data",
        data,
        &url,
    ];
    if protocol == "grpcweb" {
        words.retain(|word| *word != "--http2-prior-knowledge");
        // Reflection needs streams in both directions.
        words.extend(["--schema", contract.to_str().unwrap()]);
    }
    let home = Home::new();
    let ran = Command::new(harness::deps().buf())
        .args(&words)
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn buf_curl_finds_the_service_by_reflection_and_over_grpc_web() {
    let gateway = Gateway::serve(&fixture_server("fixture", "", &[]));
    let arguments =
        r#"{"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"text": "hello"}}"#;
    let call = format!(r#"{{"name": "echo", "arguments": {arguments}}}"#);
    for protocol in ["grpc", "grpcweb"] {
        let said = curl(&gateway, protocol, "buf.mcp.v1.MCPService/CallTool", &call);
        assert_eq!(
            said["success"]["content"][0]["text"],
            json!("hello"),
            "{protocol}: {said}"
        );
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
    let ran = Command::new(harness::deps().python())
        .args(["-c", script, gateway.address()])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    // HealthCheckResponse { status: SERVING }.
    let expected = "0801 0801\nNOT_FOUND\nUNIMPLEMENTED\n";
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn reflection_answers_about_what_it_does_not_know_and_goes_on() {
    let gateway = Gateway::serve("");
    // Requests: file_containing_symbol (4), file_by_filename (3), list_services (7).
    let script = r#"
import sys, grpc
text = lambda key, text: bytes([key << 3 | 2, len(text)]) + text
questions = [text(4, b"no.such.Symbol"), text(3, b"absent.proto"), text(4, b"buf.mcp.v1.MCPService"), text(7, b"")]
for version in ("v1", "v1alpha"):
    ask = grpc.insecure_channel(sys.argv[1]).stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
    answers = list(ask(iter(questions)))
    print(len(answers), b"no such symbol" in answers[0], b"no such file" in answers[1], b"CallTool" in answers[2], b"MCPService" in answers[3])
"#;
    let ran = Command::new(harness::deps().python())
        .args(["-c", script, gateway.address()])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(
        text,
        "4 True True True True\n".repeat(2),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
