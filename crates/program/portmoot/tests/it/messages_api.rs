//! Messages that scripts send into a room over the API.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::Gateway;
use crate::ws::{Socket, people, token};

/// A script that may chat and send notes, one that may not, and a listener; envelopes of 4 KiB.
fn stage() -> (Home, Gateway) {
    let (home, config) = people(&[
        ("script", &["chat", "acme/*", "mcp/*"]),
        ("silent", &["mcp/response:*"]),
        ("ann", &["chat"]),
        ("hasty", &["chat"]),
    ]);
    let hasty = "[participants.hasty]\n";
    let config = config.replace(hasty, &format!("{hasty}rate = \"2/min\"\n"));
    let more =
        "[server.limits]\nenvelope_bytes_max = 4096\n[topics.main]\nhistory = 20\n[topics.other]\n";
    let gateway = Gateway::start(&home, &(config + more));
    (home, gateway)
}

fn post(gateway: &Gateway, who: &str, topic: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {}", token(who));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/api/v1/topics/{topic}/messages");
    Connection::open(gateway.address()).exchange("POST", &path, &headers, body)
}

#[track_caller]
fn sent(gateway: &Gateway, body: &Value) -> Value {
    let reply = post(gateway, "script", "main", &body.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[track_caller]
fn refused(gateway: &Gateway, who: &str, body: &Value, status: u16, words: &str) {
    let reply = post(gateway, who, "main", &body.to_string());
    assert_eq!(reply.status, status, "{body}: {reply:?}");
    assert!(reply.json().to_string().contains(words), "{reply:?}");
}

#[test]
fn a_script_speaks_in_a_room_and_its_envelope_is_like_any_other() {
    let (home, gateway) = stage();
    let mut ann = Socket::enter(&gateway, "ann", "?mode=directed");
    let chat = sent(&gateway, &json!({ "text": "the build is green" }));
    let received = ann.receive_until(|one| one["kind"] == "chat");
    assert_eq!(
        [&received["id"], &received["from"]],
        [&chat["id"], &json!("script")]
    );
    assert_eq!(received["payload"]["text"], "the build is green");
    let note = json!({
        "kind": "acme/build", "payload": { "number": 7 }, "to": ["ann", "gone"],
        "correlation_id": chat["id"],
    });
    let note = sent(&gateway, &note);
    assert_eq!(note["absent"], json!(["gone"]), "{note}");
    let received = ann.receive_until(|one| one["kind"] == "acme/build");
    assert_eq!(
        [
            &received["id"],
            &received["to"],
            &received["correlation_id"]
        ],
        [&note["id"], &json!(["ann", "gone"]), &chat["id"]]
    );
    assert_eq!(received["payload"], json!({ "number": 7 }));
    // A payload without a kind is a chat.
    let last = sent(
        &gateway,
        &json!({ "payload": { "text": "*hi*", "format": "markdown" } }),
    );
    assert_eq!(last["kind"], "chat", "{last}");
    // Those that come later have them in the history.
    ann.leave();
    let (_, welcome) = Socket::welcomed(&gateway, "ann", "?mode=all");
    let kept = welcome["payload"]["history"]["envelopes"].to_string();
    for one in [&chat, &note, &last] {
        assert!(kept.contains(one["id"].as_str().unwrap()), "{kept}");
    }
    let log = AuditLog(&home);
    log.has("script", "chat", "admitted", "chat");
    log.has("script", "acme/build", "admitted", "acme/*");
    log.is_whole();
}

#[test]
fn it_is_admitted_as_over_a_websocket() {
    let (home, gateway) = stage();
    let text = json!({ "text": "hello" });
    refused(&gateway, "silent", &text, 403, "capability for 'chat'");
    AuditLog(&home).has("silent", "chat", "refused", "not_admitted");
    let kind = |kind: &str| json!({ "kind": kind });
    refused(&gateway, "script", &kind("other/x"), 403, "capability");
    refused(
        &gateway,
        "script",
        &kind("system/error"),
        403,
        "gateway's own",
    );
    refused(
        &gateway,
        "script",
        &kind("portmoot/proposal"),
        403,
        "gateway's own",
    );
    let request = "mcp/request:tools/call:x";
    refused(
        &gateway,
        "script",
        &kind(request),
        400,
        "a request cannot be sent",
    );
    refused(
        &gateway,
        "script",
        &kind("portmoot/reject"),
        400,
        "rejection cannot be sent",
    );
    refused(&gateway, "script", &kind("a:b:c:d*"), 400, "kind");
    // A rate limit is of the participant, whatever the wire.
    for _ in 0..2 {
        assert_eq!(
            post(&gateway, "hasty", "main", &text.to_string()).status,
            200
        );
    }
    refused(&gateway, "hasty", &text, 429, "too many");
    // Not in a topic of others, nor in none.
    for topic in ["none", "%2e%2e"] {
        let status = post(&gateway, "script", topic, &text.to_string()).status;
        assert!(status == 403 || status == 404, "{topic}: {status}");
    }
    assert_eq!(
        post(&gateway, "stranger", "main", &text.to_string()).status,
        401
    );
}

#[test]
fn hostile_bodies_are_refused() {
    let (_home, gateway) = stage();
    let mut ann = Socket::enter(&gateway, "ann", "");
    for body in [
        json!({}),
        json!({ "to": ["ann"] }),
        json!({ "text": "a", "kind": "chat" }),
        json!({ "text": "a", "payload": {} }),
        json!({ "text": 1 }),
        json!({ "text": "a", "from": "ann" }),
        json!({ "kind": "acme/x", "payload": [1] }),
        json!({ "kind": "acme/x", "payload": "text" }),
        json!([]),
    ] {
        refused(&gateway, "script", &body, 400, "malformed");
    }
    let to: Vec<String> = (0..65).map(|number| format!("p{number}")).collect();
    refused(
        &gateway,
        "script",
        &json!({ "text": "a", "to": to }),
        400,
        "malformed",
    );
    let deep = format!(
        "{{\"kind\":\"acme/x\",\"payload\":{}1{}}}",
        "{\"a\":".repeat(110),
        "}".repeat(110)
    );
    assert_eq!(post(&gateway, "script", "main", &deep).status, 400);
    let twice = r#"{"kind":"acme/x","payload":{"a":1},"payload":{"a":2}}"#;
    assert_eq!(post(&gateway, "script", "main", twice).status, 400);
    refused(
        &gateway,
        "script",
        &json!({ "text": "x".repeat(4096) }),
        413,
        "4096",
    );
    // Of an envelope that has line breaks in its payload others get one line.
    let broken = "{\"kind\":\"acme/x\",\"payload\":{\n\"a\":\r\n1}}";
    assert_eq!(post(&gateway, "script", "main", broken).status, 200);
    let received = ann.receive_until(|one| one["from"] == "script");
    assert_eq!(
        received["payload"],
        json!({ "a": 1 }),
        "the first that came"
    );
}

#[test]
fn a_message_needs_the_way_into_the_room() {
    let (home, config) = people(&[("plain", &["chat"])]);
    let table = "[participants.plain]\n";
    let config = config.replace(
        table,
        &format!("{table}wires = [\"mcp\"]\ntopics = [\"main\", \"open\"]\n"),
    );
    let topics = "[topics.main]\n[topics.open]\nbuiltin = [\"room\"]\n";
    let gateway = Gateway::start(&home, &(config + topics));
    let text = json!({ "text": "hello" }).to_string();
    let reply = post(&gateway, "plain", "main", &text);
    assert_eq!(reply.status, 403, "{reply:?}");
    assert!(reply.json().to_string().contains("wires"), "{reply:?}");
    // Where it has the tool `say` it speaks anyway.
    assert_eq!(post(&gateway, "plain", "open", &text).status, 200);
}
