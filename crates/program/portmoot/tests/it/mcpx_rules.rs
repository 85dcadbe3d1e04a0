//! Requirements of the two MCPx documents without a test elsewhere; `docs/conformance/mcpx.md` has
//! the whole list.

use participant::Event;
use serde_json::{Value, json};

use crate::home::Home;
use crate::participants::{self, home, join, receive};
use crate::support::{Gateway, fixture};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];

fn start(all: &[(&str, &[&str])], more: &str) -> (Home, Gateway) {
    let (home, config) = people(all);
    let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config + more));
    gateway.ready("tools");
    (home, gateway)
}

/// Decision 002, "Format specification" and "Backward Compatibility".
#[test]
fn servers_carry_out_every_method_under_both_forms_of_its_kind() {
    let (_home, gateway) = start(&[("agent", FULL)], "");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let prompt =
        json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "a", "arg2": "b" } });
    let reference = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    let complete = json!({ "ref": reference, "argument": { "name": "arg1", "value": "" } });
    let rows = [
        (
            "tools/call",
            "echo",
            json!({ "name": "echo", "arguments": { "text": "x" } }),
            "content",
        ),
        (
            "resources/read",
            "test://static-text",
            json!({ "uri": "test://static-text" }),
            "contents",
        ),
        (
            "prompts/get",
            "test_prompt_with_arguments",
            prompt,
            "messages",
        ),
        (
            "completion/complete",
            "test_prompt_with_arguments",
            complete,
            "completion",
        ),
    ];
    for (method, context, params, key) in rows {
        for kind in [
            format!("mcp/request:{method}:{context}"),
            format!("mcp/request:{method}"),
        ] {
            let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
            agent.send(&kind, &kind, &["tools"], json!({}), &payload);
            let answer = agent.receive_message();
            assert_eq!(
                answer["kind"],
                format!("mcp/response:{method}:{context}"),
                "{answer}"
            );
            assert_eq!(
                (&answer["correlation_id"], &answer["payload"]["id"]),
                (&json!(kind), &json!(9))
            );
            assert!(!answer["payload"]["result"][key].is_null(), "{answer}");
        }
        // The context differs from the target in the payload.
        let kind = format!("mcp/request:{method}:{context}x");
        let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
        agent.send(&kind, &kind, &["tools"], json!({}), &payload);
        assert_eq!(
            agent.receive_message()["payload"]["error"]["code"],
            -32600,
            "{kind}"
        );
    }
}

/// Section 4.1 lists the kind; the answer says what to do instead.
#[test]
fn subscribing_in_a_room_is_answered_with_a_hint() {
    let (_home, gateway) = start(&[("agent", FULL)], "");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let uri = "test://watched-resource";
    for (method, instead) in [
        ("resources/subscribe", "resources/read"),
        ("resources/unsubscribe", "over MCP"),
        ("acme/no", "acme/no"),
    ] {
        let payload =
            json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": { "uri": uri } });
        agent.send(
            &format!("mcp/request:{method}"),
            method,
            &["tools"],
            json!({}),
            &payload,
        );
        let error = agent.receive_message()["payload"]["error"].clone();
        let said = error["message"].as_str().unwrap_or_default();
        assert!(
            error["code"] == -32601 && said.contains(method) && said.contains(instead),
            "{error}"
        );
    }
}

/// Section 3: any envelope may reference another, for threads.
#[test]
fn any_envelope_may_name_another_in_correlation_id() {
    let (_home, gateway) = start(&[("agent", FULL), ("listener", FULL)], "");
    let mut listener = Socket::enter(&gateway, "listener", "");
    let mut agent = Socket::enter(&gateway, "agent", "?echo=false");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for (kind, payload) in [
        (
            "chat",
            json!({ "text": "about that", "format": "markdown" }),
        ),
        ("acme/status", json!({})),
        ("mcp/request:ping", call),
        (
            "mcp/response:ping",
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        ),
    ] {
        agent.send(
            kind,
            kind,
            &["listener"],
            json!({ "correlation_id": "an earlier envelope" }),
            &payload,
        );
        let received = listener.expect(kind);
        assert_eq!(
            (&received["correlation_id"], &received["payload"]),
            (&json!("an earlier envelope"), &payload)
        );
    }
}

/// Sections 3.2.1 and 10.2: only a request that names the proposal fulfils it; a proposal is
/// pending for five minutes.
#[test]
fn a_request_without_the_proposal_id_does_not_fulfil_it() {
    let (home, gateway) = start(&[("agent", &["mcp/proposal:*"]), ("boss", FULL)], "");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
    let asks = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } });
    agent.send(
        "mcp/proposal:tools/call:echo",
        "p1",
        &["tools"],
        json!({}),
        &asks,
    );
    agent.receive_until(|received| received["payload"]["state"] == "pending");
    boss.call("by itself", &["tools"], "echo", json!({ "text": "x" }));
    let answer = boss.receive_until(|received| received["correlation_id"] == "by itself");
    assert_eq!(answer["to"], json!(["boss"]), "{answer}");
    let (url, boss) = (gateway.url(), token("boss"));
    let listed = ["proposals", "ls", "--json", "--url", &url, "--token", &boss];
    let all: Value = serde_json::from_str(&home.run(&listed).expect(0).stdout).unwrap();
    let proposal = &all["proposals"][0];
    assert_eq!(proposal["state"], "pending", "{proposal}");
    let [at, expires] = ["at", "expires"].map(|key| {
        let text = proposal[key].as_str().unwrap();
        let parts: Vec<f64> = text[11..]
            .trim_end_matches('Z')
            .split(':')
            .map(|part| part.parse().unwrap())
            .collect();
        parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
    });
    assert!(
        ((expires - at).rem_euclid(86_400.0) - 300.0).abs() < 0.002,
        "{proposal}"
    );
}

/// Section 7.1: by default a participant may propose, answer and chat.
#[test]
fn a_new_participant_has_the_default_capabilities() {
    let home = Home::new().env("TOKEN_NEWCOMER", &token("newcomer"));
    let config = format!(
        "[server]\ndata_dir = {:?}\n[participants.newcomer]\ntoken_env = \"TOKEN_NEWCOMER\"\n",
        home.path().join("data")
    );
    let gateway = Gateway::start(&home, &config);
    let (mut newcomer, welcome) = Socket::welcomed(&gateway, "newcomer", "?mode=directed");
    let held = &welcome["payload"]["you"]["capabilities"];
    assert_eq!(
        *held,
        json!(["mcp/proposal:*", "mcp/response:*", "chat"]),
        "{welcome}"
    );
    newcomer.receive();
    newcomer.call("call", &["portmoot"], "echo", json!({}));
    newcomer.refused("call", "capability_violation");
}

/// Section 4.3: a late joiner receives answers to requests that it never received; they are no
/// violations.
#[tokio::test(flavor = "multi_thread")]
async fn answers_to_requests_from_before_the_join_are_no_violations() {
    let home = home();
    let gateway = Gateway::start(&home, &participants::config(&home));
    let (worker, _) = join(&gateway, "worker").await;
    let (late, mut received) = join(&gateway, "boss").await;
    let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [] } });
    let kind = "mcp/response:tools/call:read_file";
    let id = worker
        .send(kind, &["absent"], Some("long ago"), &answer)
        .unwrap();
    let seen = receive(&mut received, "the answer", |event| match event {
        Event::Other(envelope) if envelope.id() == id => Some(envelope.kind().to_owned()),
        Event::Violation { .. } => panic!("{event:?}"),
        _ => None,
    });
    // Only the kind names the operation (Decision 002).
    assert_eq!(seen.await, kind);
    assert!(late.violations().is_empty());
}
