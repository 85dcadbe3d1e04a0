//! Edges of rooms: how deep envelopes are nested, kinds with colons, decisions by envelope,
//! violations that are counted.

use serde_json::{Value, json};
use wire::mcpx::NESTING_MAX;

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::reviewed::{DIRECTED, Reviewed, propose};
use crate::stage::{FULFIL, api, echoes, fulfilment, names, state};
use crate::support::{Client, Gateway};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "acme/*"];

/// An object in which so many objects and arrays lie inside each other.
fn nested(depth: usize) -> String {
    format!(
        "{{\"x\":{}{}}}",
        "[".repeat(depth - 1),
        "]".repeat(depth - 1)
    )
}

#[test]
fn rooms_carry_nothing_that_is_nested_deeper_than_most_readers_follow() {
    let server = Peer::stdio(|message| {
        let said = match message["method"].as_str() {
            Some("tools/call") => {
                let depth = message["params"]["arguments"]["depth"].as_u64().unwrap();
                let deep = nested(usize::try_from(depth).unwrap());
                Some(answer(
                    message,
                    &format!("{{\"content\":[],\"structuredContent\":{deep}}}"),
                ))
            }
            _ => small(message, &format!("[{}]", tool("dig"))),
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let (home, config) = people(&[("ann", FULL), ("bob", FULL), ("cid", FULL)]);
    let config = config + &server.child("tools", "tools") + "[topics.main]\nmcp_calls = \"full\"\n";
    let gateway = Gateway::start(&home, &config);
    gateway.ready("tools");
    let mut bob = Socket::enter(&gateway, "bob", "?echo=false");
    let mut ann = Socket::enter(&gateway, "ann", DIRECTED);
    let says = |socket: &mut Socket, depth: usize| {
        let payload = nested(depth - 1);
        socket.text(format!(
            "{{\"protocol\":\"mcpx/v0.1\",\"id\":\"{depth}\",\"from\":\"ann\",\"kind\":\"acme/x\",\"payload\":{payload}}}"
        ));
    };
    for depth in [NESTING_MAX + 1, 10_000] {
        says(&mut ann, depth);
        let refused = ann.refused(&depth.to_string(), "malformed_envelope");
        assert!(
            refused["payload"]["message"]
                .to_string()
                .contains("deeper than 100"),
            "{refused}"
        );
    }
    says(&mut ann, NESTING_MAX);
    bob.expect(&NESTING_MAX.to_string());
    // Answers of servers, and calls of clients that are shown in the room.
    for (depth, is_carried) in [(50, true), (10_000, false)] {
        let id = format!("call {depth}");
        ann.call(&id, &["tools"], "dig", json!({ "depth": depth }));
        let answer = ann.receive_until(|received| received["correlation_id"] == id);
        assert_eq!(
            answer["payload"]["result"].is_object(),
            is_carried,
            "{answer}"
        );
        let why = answer["payload"]["error"]["message"].to_string();
        assert_eq!(why.contains("deeper than 100"), !is_carried, "{answer}");
        let params = json!({ "name": "tools_dig", "arguments": { "depth": depth } });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let reply = Client::of(&gateway, &token("cid")).post_text(&call.to_string());
        assert!(
            reply.body.contains("[[[[]]]]"),
            "{depth}: the client itself gets it"
        );
        let shown = bob.receive_until(|received| received["to"] == json!(["cid"]));
        let result = &shown["payload"]["result"];
        assert_eq!(
            result["structuredContent"].is_object(),
            is_carried,
            "{shown}"
        );
        assert_eq!(
            result["_meta"]["portmoot/verdict"] == "ok",
            !is_carried,
            "{shown}"
        );
    }
}

#[test]
fn a_wildcard_covers_kinds_of_applications_of_one_part() {
    let (home, config) = people(&[("ann", &["acme/*"]), ("bob", &["acme/x:y"])]);
    let gateway = Gateway::start(&home, &config);
    let mut ann = Socket::enter(&gateway, "ann", "?echo=false");
    let mut bob = Socket::enter(&gateway, "bob", "?echo=false");
    for (kind, is_of_ann) in [("acme/x", true), ("acme/x:y", false)] {
        let (may, may_not) = if is_of_ann {
            (&mut ann, &mut bob)
        } else {
            (&mut bob, &mut ann)
        };
        may.send(kind, kind, &[], json!({}), &json!({}));
        may_not.expect(kind);
        may_not.send(kind, "no", &[], json!({}), &json!({}));
        may_not.refused("no", "capability_violation");
    }
    let other = Home::new();
    other.write(
        "wide.toml",
        "[participants.ann]\ncapabilities = [\"acme/x:*\"]\n",
    );
    let ran = other
        .run(&["config", "check", "--config", "wide.toml"])
        .expect(2);
    assert!(
        ran.stderr.contains("`*` cannot span namespaces"),
        "{}",
        ran.stderr
    );
}

#[test]
fn by_envelope_each_tool_of_the_gateway_needs_its_own_capability() {
    // A tool's own name is judged by envelope, its public name over the API.
    let judge = ["echo", "tools_echo", "reject_proposal"]
        .map(|tool| format!("mcp/request:tools/call:{tool}"));
    let judge = judge.each_ref().map(String::as_str);
    let reviewed = Reviewed::new(&[("clerk", &judge[..2]), ("judge", &judge[..])]);
    let [mut agent, mut clerk, mut judge] =
        ["agent", "clerk", "judge"].map(|name| reviewed.enter(name));
    for id in ["p1", "p2", "p3"] {
        propose(&mut agent, id);
    }
    for tool in [
        "list_proposals",
        "show_proposal",
        "approve_proposal",
        "reject_proposal",
    ] {
        clerk.call(tool, &["portmoot"], tool, json!({ "proposal": "p1" }));
        clerk.refused(tool, "capability_violation");
    }
    // The same participant over the API, and by a request that fulfils.
    let address = reviewed.gateway.address();
    let listed = api(address, "clerk", "GET", "", &Value::Null).json();
    let of = |envelope: &str| {
        let all = listed["proposals"].as_array().unwrap();
        all.iter().find(|one| one["envelope"] == *envelope).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let rejected = api(
        address,
        "clerk",
        "POST",
        &format!("/{}/reject", of("p1")),
        &json!({}),
    );
    assert_eq!(rejected.status, 200, "{rejected:?}");
    state(&mut agent, "p1", "rejected");
    clerk.send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("x"));
    state(&mut agent, "p2", "running");
    judge.call(
        "r3",
        &["portmoot"],
        "reject_proposal",
        json!({ "proposal": "p3" }),
    );
    let answer = judge.receive_until(|received| received["correlation_id"] == "r3");
    assert_eq!(answer["payload"]["result"]["isError"], false, "{answer}");
    agent.receive_until(|received| {
        received["payload"]["proposal"] == "p3" && received["payload"]["state"] == "rejected"
    });
}

#[test]
fn envelopes_that_break_a_rule_are_counted_by_the_rule() {
    let reviewed = Reviewed::new(&[]);
    let [mut agent, mut boss] = ["agent", "boss"].map(|name| reviewed.enter(name));
    let counted = || {
        let metrics = reviewed.gateway.get("/metrics", Some(&token("boss"))).body;
        ["capability", "sender", "malformed", "mismatch"].map(|broken| {
            let line = format!("portmoot_violations_total{{topic=\"main\",broken=\"{broken}\"}} ");
            metrics
                .lines()
                .find_map(|one| one.strip_prefix(&line)?.parse().ok())
        })
    };
    assert_eq!(counted(), [Some(0); 4]);
    agent.call("c1", &["tools"], "echo", json!({}));
    agent.refused("c1", "capability_violation");
    agent.chat("fine");
    boss.expect("fine");
    for _ in 0..2 {
        agent.text(crate::ws::envelope(
            "boss",
            "chat",
            "s1",
            &[],
            json!({}),
            &json!({}),
        ));
        agent.refused("s1", "auth_violation");
    }
    for _ in 0..3 {
        agent.text("{");
        agent.refused("", "malformed_envelope");
    }
    for number in 0..4 {
        let id = format!("m{number}");
        boss.send(
            "mcp/request:tools/call:other",
            &id,
            &["tools"],
            json!({}),
            &fulfilment("x"),
        );
        boss.receive_until(|received| received["correlation_id"] == id);
    }
    assert_eq!(counted(), [1, 2, 3, 4].map(Some));
    // A proposal of which kind and payload differ is counted too.
    agent.send(
        "mcp/proposal:tools/call:other",
        "p1",
        &["tools"],
        json!({}),
        &echoes("x"),
    );
    state(&mut agent, "p1", "rejected");
    assert_eq!(counted(), [1, 2, 3, 5].map(Some));
}
