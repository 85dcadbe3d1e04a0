//! Origins of acts in the audit log: the address of each, and the name that its client gives.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

const CALL: &str = "mcp/request:tools/call:tools_echo";
const CONNECTION: &str = "portmoot/connection";
const HERE: &str = "127.0.0.1";

/// Address and client of an entry.
fn origin(entry: &Value) -> (&Value, &Value) {
    (&entry["address"], &entry["client"])
}

/// A call of a modern client that calls itself so.
fn modern_call(gateway: &Gateway, info: &Value) {
    let mut params = json!({ "name": "tools_echo", "arguments": { "text": "x" } });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": info,
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let bearer = format!("Bearer {}", token("ann"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "tools_echo"),
    ];
    let mut connection = Connection::open(gateway.address());
    let reply = connection.exchange("POST", "/mcp", &headers, &message.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[test]
fn calls_say_from_which_address_and_client_they_came() {
    let (home, config) = people(&[("ann", &["mcp/*", "chat", "portmoot/*"])]);
    let gateway = Gateway::start(&home, &(config + &fixture("tools", &[])));
    gateway.ready("tools");
    let log = AuditLog(&home);
    let calls = |count: usize| {
        log.comes_to(count, "ann", CALL, "admitted", "");
        let entries = log.entries(&[CALL]);
        entries.last().unwrap().clone()
    };
    // A session, by its handshake.
    Client::of(&gateway, &token("ann")).call("tools_echo", json!({ "text": "x" }));
    let here = json!(HERE);
    assert_eq!(origin(&calls(1)), (&here, &json!("test 1")));
    // Modern requests, each by itself, and a name without an end.
    modern_call(&gateway, &json!({ "name": "first", "version": "1.0" }));
    assert_eq!(origin(&calls(2)), (&here, &json!("first 1.0")));
    modern_call(&gateway, &json!({ "name": "second", "version": "2.0" }));
    assert_eq!(origin(&calls(3)), (&here, &json!("second 2.0")));
    modern_call(
        &gateway,
        &json!({ "name": "n".repeat(5_000), "version": "1" }),
    );
    assert_eq!(calls(4)["client"], "n".repeat(64));
    // The REST API has no name of its client.
    let bearer = format!("Bearer {}", token("ann"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({ "arguments": { "text": "x" } }).to_string();
    let reply = Connection::open(gateway.address()).exchange(
        "POST",
        "/api/v1/tools/tools_echo/call",
        &headers,
        &body,
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(origin(&calls(5)), (&here, &Value::Null));
    // A refused one.
    Client::of(&gateway, &token("ann"))
        .ask("tools/call", json!({ "name": "none", "arguments": {} }));
    let refused = log.has("ann", "mcp/request:tools/call:none", "refused", "");
    assert_eq!(origin(&refused), (&here, &json!("test 1")));
}

#[test]
fn rooms_and_refused_connections_say_from_which_address() {
    let (home, config) = people(&[("ann", &["chat"])]);
    let gateway = Gateway::start(&home, &config);
    let log = AuditLog(&home);
    let mut ann = Socket::enter(&gateway, "ann", "");
    ann.send(
        "chat",
        "c1",
        &[],
        json!({}),
        &json!({ "text": "x", "format": "plain" }),
    );
    let opened = log.has("ann", CONNECTION, "admitted", "opened");
    assert_eq!(origin(&opened), (&json!(HERE), &Value::Null));
    assert_eq!(log.has("ann", "chat", "admitted", "chat")["address"], HERE);
    drop(ann);
    let left = until("its end", || {
        let ended = log.entries(&["--participant", "ann", "--verdict", "completed"]);
        ended.first().cloned()
    });
    assert_eq!(left["address"], HERE, "{left}");
    for path in ["/mcp", "/api/v1/participants"] {
        let headers = [
            ("authorization", "Bearer pm_wrong"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        let method = if path == "/mcp" { "POST" } else { "GET" };
        let reply = Connection::open(gateway.address()).exchange(method, path, &headers, "{}");
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    let unknown = || log.entries(&["--participant", "system:nobody"]);
    let refused = until("both are recorded", || {
        Some(unknown()).filter(|entries| entries.len() == 2)
    });
    assert!(
        refused.iter().all(|entry| entry["address"] == HERE),
        "{refused:?}"
    );
}

#[test]
fn decisions_and_changes_of_access_say_from_which_address() {
    let (home, config) = people(&[
        ("ann", &["mcp/*", "chat", "portmoot/*"]),
        ("scout", &["mcp/proposal:*"]),
    ]);
    let gateway = Gateway::start(&home, &(config + &fixture("tools", &[])));
    gateway.ready("tools");
    let url = gateway.url();
    let ann = token("ann");
    let run = |words: &[&str]| {
        let whole = [words, &["--url", &url, "--token", &ann]].concat();
        home.run(&whole).expect(0);
    };
    for decision in [&["approve", "--yes"][..], &["reject"]] {
        let scout = Client::of(&gateway, &token("scout"));
        let _call = scout.begin_call("tools_echo", json!({ "text": decision[0] }));
        let pending = gateway.pending(&home, &ann);
        let id = pending["id"].as_str().unwrap();
        run(&["proposals", "claim", id]);
        run(&[&["proposals"], decision, &[id]].concat());
    }
    run(&["token", "new", "guest", "--capability", "chat"]);
    run(&["token", "rotate", "guest"]);
    run(&["token", "revoke", "guest"]);
    run(&["participants", "grant", "scout", "chat"]);
    run(&["participants", "pause", "scout"]);
    run(&["participants", "resume", "scout"]);
    run(&["servers", "restart", "tools"]);
    // One that is refused: it is not paused.
    let again = [
        "participants",
        "resume",
        "scout",
        "--url",
        &url,
        "--token",
        &ann,
    ];
    home.run(&again);
    let log = AuditLog(&home);
    let acts = [
        ("mcp/proposal:tools/call:echo", "approved"),
        ("mcp/proposal:tools/call:echo", "rejected"),
        ("portmoot/tokens", "admitted"),
        ("portmoot/grants", "admitted"),
        ("portmoot/pause", "admitted"),
        ("portmoot/resume", "admitted"),
        ("portmoot/restart", "admitted"),
        ("portmoot/resume", "refused"),
    ];
    for (kind, verdict) in acts {
        let entry = log.has("ann", kind, verdict, "");
        assert_eq!(entry["address"], HERE, "{entry}");
    }
}
