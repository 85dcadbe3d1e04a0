//! Rooms as the specification has them: capabilities, its own examples, the envelopes of the
//! gateway.

use std::collections::BTreeMap;

use super::*;

fn example(name: &str) -> String {
    let path = format!(
        "{}/../../protocol/wire/tests-data/mcpx/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

/// The payload that a kind requires.
fn needed(kind: &str) -> Value {
    if kind.starts_with("mcp/response") {
        json!({ "correlation_id": "earlier" })
    } else {
        json!({})
    }
}

#[test]
fn the_table_of_capabilities() {
    let table = format!(
        "{}/../../base/model/tests-data/capabilities.tsv",
        env!("CARGO_MANIFEST_DIR")
    );
    let table = std::fs::read_to_string(table).unwrap();
    let rows: Vec<[&str; 3]> = table
        .lines()
        .map(|line| {
            line.split('\t')
                .take(3)
                .collect::<Vec<_>>()
                .try_into()
                .unwrap()
        })
        .collect();
    assert_eq!(rows.len(), 90);
    let names: Vec<String> = (0..rows.len()).map(|row| format!("row-{row}")).collect();
    // The configuration rejects invalid capabilities; such a participant is configured without any.
    let grants: Vec<[&str; 1]> = rows
        .iter()
        .map(|row| {
            [if model::Capability::parse(row[0]).is_ok() {
                row[0]
            } else {
                NOTHING[0]
            }]
        })
        .collect();
    let mut all: Vec<(&str, &[&str])> = names
        .iter()
        .zip(&grants)
        .map(|(name, grant)| (name.as_str(), grant.as_slice()))
        .collect();
    all.push(("listener", FULL));
    let (home, config) = people(&all);
    for row in rows
        .iter()
        .filter(|row| model::Capability::parse(row[0]).is_err())
    {
        assert_eq!(row[2], "deny");
        home.write(
            "bad.toml",
            &format!("[participants.a]\ncapabilities = [{:?}]\n", row[0]),
        );
        home.run(&["config", "check", "--config", "bad.toml"])
            .expect(2);
    }

    let gateway = Gateway::start(&home, &config);
    let mut listener = Socket::enter(&gateway, "listener", "");
    let mut expected = Vec::new();
    for ([capability, kind, verdict], name) in rows.iter().zip(&names) {
        let mut socket = Socket::enter(&gateway, name, "");
        socket.send(kind, name, &[], needed(kind), &json!({}));
        if *verdict == "allow" {
            socket.expect(name);
            expected.push(name.clone());
        } else {
            let is_kind = model::KindRef::parse(kind).is_ok();
            let code = if is_kind {
                "capability_violation"
            } else {
                "malformed_envelope"
            };
            let received = socket.refused(name, code);
            assert!(
                !is_kind || received["payload"]["attempted_kind"] == *kind,
                "{capability}: {received}"
            );
        }
        socket.leave();
    }
    listener.chat("end");
    let received: Vec<String> = std::iter::repeat_with(|| {
        listener.receive_message()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    })
    .take_while(|id| id != "end")
    .collect();
    assert_eq!(received, expected);
}

#[test]
fn examples_of_the_documents_are_forwarded_as_printed() {
    let names = [
        "robot-alpha",
        "trusted-agent",
        "target-agent",
        "untrusted-agent",
        "human-user",
        "user-alice",
    ];
    let mut all: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, FULL)).collect();
    all.push(("listener", FULL));
    let (home, config) = people(&all);
    let gateway = Gateway::start(&home, &config);
    let mut listener = Socket::enter(&gateway, "listener", "");
    let said = [
        "3-envelope",
        "3.1.1-request",
        "3.1.2-response",
        "3.2-proposal",
        "3.2.1-fulfilment",
        "3.2.1-outcome",
        "3.3-chat",
        "decision-002",
    ];
    let mut sockets: BTreeMap<String, Socket> = BTreeMap::new();
    for name in said {
        let text = example(name);
        let from = serde_json::from_str::<Value>(&text).unwrap()["from"]
            .as_str()
            .unwrap()
            .to_owned();
        let enter = || Socket::welcomed(&gateway, &from, "?echo=false").0;
        // They stay: what is asked of those who have just left is not delivered.
        sockets
            .entry(from.clone())
            .or_insert_with(enter)
            .text(&text);
        let received = loop {
            let received = listener.receive_text();
            if !received.contains("system/presence") && !received.contains("portmoot/proposal") {
                break received;
            }
        };
        assert_eq!(received, text, "{name}");
    }
    // The partial examples of Decision 002.
    let result = json!({ "jsonrpc": "2.0", "id": 42, "result": {} });
    let verbose = json!({
        "jsonrpc": "2.0", "id": 42, "method": "tools/call",
        "params": { "name": "read_file", "arguments": { "path": "/tmp/test.txt" } },
        "result": { "content": [{ "type": "text", "text": "File contents here" }] }
    });
    let correlated = json!({ "correlation_id": "env-call-1" });
    for (kind, payload) in [
        ("mcp/response:tools/call", &verbose),
        ("mcp/response:tools/call", &result),
        ("mcp/response:tools/call:read_file", &result),
        ("mcp/response:resources/read:config.json", &result),
        ("mcp/response:prompts/get:debug_prompt", &result),
        ("mcp/response:completion/complete:ref", &result),
    ] {
        listener.send(kind, kind, &["requester"], correlated.clone(), payload);
        assert_eq!(listener.expect(kind)["payload"], *payload);
    }
}

#[test]
fn envelopes_of_the_gateway_match_the_specification() {
    let (home, config) = people(&[
        ("agent-1", &["mcp/*", "chat"]),
        ("agent-2", &["mcp/response:*", "chat"]),
        ("new-participant", &["mcp/proposal:*", "chat"]),
        ("new-agent", &["mcp/proposal:*", "chat"]),
        ("violator", &["mcp/proposal:*", "chat"]),
    ]);
    let gateway = Gateway::start(&home, &config);
    let like = |mut received: Value, name: &str| {
        let printed: Value = serde_json::from_str(&example(name)).unwrap();
        let (id, ts) = (received["id"].take(), received["ts"].take());
        assert!(
            !id.as_str().unwrap().is_empty() && ts.as_str().unwrap().ends_with('Z'),
            "{id} {ts}"
        );
        received["id"] = printed["id"].clone();
        received.as_object_mut().unwrap().remove("ts");
        assert_eq!(received, printed, "{name}");
    };
    let mut first = Socket::enter(&gateway, "agent-1", "");
    let _second = Socket::enter(&gateway, "agent-2", "");
    first.receive();
    let (mut newcomer, mut welcome) = Socket::welcomed(&gateway, "new-participant", "");
    // The gateway's own participant is in addition to the example.
    let others = welcome["payload"]["participants"].as_array_mut().unwrap();
    let own = others
        .iter()
        .position(|other| other["id"] == "portmoot")
        .unwrap();
    others.remove(own);
    like(welcome, "3.5.1-welcome");
    // It receives its own join after its welcome, as all others do.
    assert_eq!(newcomer.receive(), first.receive());
    let _agent = Socket::enter(&gateway, "new-agent", "");
    like(first.receive(), "3.4-presence");
    let (mut violator, _) = Socket::welcomed(&gateway, "violator", "");
    violator.send(
        "mcp/request:tools/call",
        "env-bad-call",
        &[],
        json!({}),
        &json!({}),
    );
    violator.receive();
    like(violator.receive(), "3.5.2-violation");
    first.receive();
    violator.leave();
    let gone = first.receive();
    assert_eq!(gone["kind"], "system/presence");
    assert_eq!(
        gone["payload"],
        json!({ "event": "leave", "participant": { "id": "violator" } })
    );
}
