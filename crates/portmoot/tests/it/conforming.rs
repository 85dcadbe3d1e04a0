//! What the two MCPx documents ask for and no other test shows; `docs/mcpx-conformance.md` has the whole list.

use client::participant::Event;
use serde_json::{Value, json};

use crate::participants::{self, hear, home, join};
use crate::runner::Home;
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
    let prompt = json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "a", "arg2": "b" } });
    let reference = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    let complete = json!({ "ref": reference, "argument": { "name": "arg1", "value": "" } });
    let rows = [
        ("tools/call", "echo", json!({ "name": "echo", "arguments": { "text": "x" } }), "content"),
        ("resources/read", "test://static-text", json!({ "uri": "test://static-text" }), "contents"),
        ("prompts/get", "test_prompt_with_arguments", prompt, "messages"),
        ("completion/complete", "test_prompt_with_arguments", complete, "completion"),
    ];
    for (method, context, params, key) in rows {
        for kind in [format!("mcp/request:{method}:{context}"), format!("mcp/request:{method}")] {
            let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
            agent.say(&kind, &kind, &["tools"], json!({}), &payload);
            let answer = agent.hear_said();
            assert_eq!(answer["kind"], format!("mcp/response:{method}:{context}"), "{answer}");
            assert_eq!((&answer["correlation_id"], &answer["payload"]["id"]), (&json!(kind), &json!(9)));
            assert!(!answer["payload"]["result"][key].is_null(), "{answer}");
        }
        // Another context than what the payload names.
        let kind = format!("mcp/request:{method}:{context}x");
        let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
        agent.say(&kind, &kind, &["tools"], json!({}), &payload);
        assert_eq!(agent.hear_said()["payload"]["error"]["code"], -32600, "{kind}");
    }
}

/// Section 4.1 has the kind; who asks learns what to do instead.
#[test]
fn whoever_subscribes_in_a_room_is_told_what_to_do() {
    let (_home, gateway) = start(&[("agent", FULL)], "");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let uri = "test://watched-resource";
    for (method, instead) in [
        ("resources/subscribe", "resources/read"),
        ("resources/unsubscribe", "over MCP"),
        ("acme/no", "acme/no"),
    ] {
        let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": { "uri": uri } });
        agent.say(&format!("mcp/request:{method}"), method, &["tools"], json!({}), &payload);
        let error = agent.hear_said()["payload"]["error"].clone();
        let said = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == -32601 && said.contains(method) && said.contains(instead), "{error}");
    }
}

/// Section 3: any envelope may reference another, for threads.
#[test]
fn anything_may_refer_to_anything() {
    let (_home, gateway) = start(&[("agent", FULL), ("listener", FULL)], "");
    let mut listener = Socket::enter(&gateway, "listener", "");
    let mut agent = Socket::enter(&gateway, "agent", "?echo=false");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for (kind, payload) in [
        ("chat", json!({ "text": "about that", "format": "markdown" })),
        ("acme/status", json!({})),
        ("mcp/request:ping", call),
        ("mcp/response:ping", json!({ "jsonrpc": "2.0", "id": 1, "result": {} })),
    ] {
        agent.say(kind, kind, &["listener"], json!({ "correlation_id": "what was said before" }), &payload);
        let heard = listener.expect(kind);
        assert_eq!((&heard["correlation_id"], &heard["payload"]), (&json!("what was said before"), &payload));
    }
}

/// Sections 3.2.1 and 10.2: only what names the proposal fulfils it; it waits for five minutes.
#[test]
fn the_same_call_without_the_proposals_id_fulfils_nothing() {
    let (home, gateway) = start(&[("agent", &["mcp/proposal:*"]), ("boss", FULL)], "");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
    let asks = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } });
    agent.say("mcp/proposal:tools/call:echo", "p1", &["tools"], json!({}), &asks);
    agent.hear_until(|heard| heard["payload"]["state"] == "pending");
    boss.call("by itself", &["tools"], "echo", json!({ "text": "x" }));
    let answer = boss.hear_until(|heard| heard["correlation_id"] == "by itself");
    assert_eq!(answer["to"], json!(["boss"]), "{answer}");
    let (url, boss) = (gateway.url(), token("boss"));
    let listed = ["proposals", "ls", "--json", "--url", &url, "--token", &boss];
    let all: Value = serde_json::from_str(&home.run(&listed).expect(0).stdout).unwrap();
    let proposal = &all["proposals"][0];
    assert_eq!(proposal["state"], "pending", "{proposal}");
    let [at, expires] = ["at", "expires"].map(|key| {
        let text = proposal[key].as_str().unwrap();
        let parts: Vec<f64> =
            text[11..].trim_end_matches('Z').split(':').map(|part| part.parse().unwrap()).collect();
        parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
    });
    assert!(((expires - at).rem_euclid(86_400.0) - 300.0).abs() < 0.002, "{proposal}");
}

/// Section 7.1: who is given nothing in particular may propose, answer and chat.
#[test]
fn a_newcomer_begins_with_little() {
    let home = Home::new().env("TOKEN_NEWCOMER", &token("newcomer"));
    let config = format!(
        "[server]\ndata_dir = {:?}\n[participants.newcomer]\ntoken_env = \"TOKEN_NEWCOMER\"\n",
        home.path().join("data")
    );
    let gateway = Gateway::start(&home, &config);
    let (mut newcomer, welcome) = Socket::welcomed(&gateway, "newcomer", "?mode=directed");
    let held = &welcome["payload"]["you"]["capabilities"];
    assert_eq!(*held, json!(["mcp/proposal:*", "mcp/response:*", "chat"]), "{welcome}");
    newcomer.hear();
    newcomer.call("call", &["portmoot"], "echo", json!({}));
    newcomer.refused("call", "capability_violation");
}

/// Section 4.3: who joins in the middle sees answers to what it never heard; nobody is blamed for them.
#[tokio::test(flavor = "multi_thread")]
async fn answers_to_what_was_never_heard_are_seen_and_blamed_on_nobody() {
    let home = home();
    let gateway = Gateway::start(&home, &participants::config(&home));
    let (worker, _) = join(&gateway, "worker").await;
    let (late, mut heard) = join(&gateway, "boss").await;
    let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [] } });
    let kind = "mcp/response:tools/call:read_file";
    let id = worker.send(kind, &["somebody"], Some("long ago"), &answer).unwrap();
    let seen = hear(&mut heard, "the answer", |event| match event {
        Event::Other(envelope) if envelope.id() == id => Some(envelope.kind().to_owned()),
        Event::Violation { .. } => panic!("{event:?}"),
        _ => None,
    });
    // The kind alone says of what it is (Decision 002).
    assert_eq!(seen.await, kind);
    assert!(late.violations().is_empty());
}
