//! A participant that may only propose, and its own proposals: over its WebSocket it withdraws them
//! and waits for them.

use serde_json::{Value, json};

use crate::stage::{ECHO, Stage, echoes, state};
use crate::ws::Socket;

const WITHDRAW: &str = "mcp/request:tools/call:withdraw_proposal";

/// Calls a tool of the gateway, and waits for its answer.
#[track_caller]
fn ask(socket: &mut Socket, id: &str, tool: &str, arguments: Value) -> Value {
    socket.call(id, &["portmoot"], tool, arguments);
    let answer = socket.receive_until(|received| received["correlation_id"] == id);
    assert_eq!(
        (&answer["from"], &answer["payload"]["id"]),
        (&json!("portmoot"), &json!(id)),
        "{answer}"
    );
    answer["payload"].clone()
}

#[test]
fn a_participant_that_may_only_propose_withdraws_over_its_websocket() {
    let mut stage = Stage::new();
    let mut watcher = Socket::enter(&stage.gateway, "chief", "");
    let proposal = stage.propose("p1", "please");
    let arguments = json!({ "id": proposal["id"], "reason": "a better idea" });
    let answer = ask(&mut stage.agent, "w1", "withdraw_proposal", arguments);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let shown = stage.shown("p1");
    assert_eq!(
        (&shown["state"], &shown["reason"]),
        (&json!("withdrawn"), &json!("a better idea"))
    );
    // By the id of its envelope, and before it knows that the proposal is on disk.
    stage
        .agent
        .send(ECHO, "p2", &["tools"], json!({}), &echoes("no"));
    let answer = ask(
        &mut stage.agent,
        "w2",
        "withdraw_proposal",
        json!({ "proposal": "p2" }),
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(stage.shown("p2")["state"], "withdrawn");
    assert_eq!(stage.approve("boss", &stage.shown("p2")).status, 409);
    // Another participant's proposal looks like none.
    stage
        .boss
        .send(ECHO, "p3", &["tools"], json!({}), &echoes("mine"));
    state(&mut stage.boss, "p3", "pending");
    for named in [
        stage.shown("p3")["id"].clone(),
        json!("p3"),
        json!("nothing"),
    ] {
        let answer = ask(
            &mut stage.agent,
            &format!("w {named}"),
            "withdraw_proposal",
            json!({ "id": named }),
        );
        assert_eq!(
            answer["error"]["message"], "there is no such task or proposal",
            "{answer}"
        );
    }
    assert_eq!(stage.shown("p3")["state"], "pending");
    // Nothing of it was published: its sender has no capability for such a request.
    stage.boss.chat("the end");
    let seen: Vec<String> = std::iter::from_fn(|| {
        let received = watcher.receive();
        (received["id"] != "the end").then(|| received["kind"].as_str().unwrap().to_owned())
    })
    .collect();
    assert!(seen.iter().any(|kind| kind == ECHO), "{seen:?}");
    assert!(
        !seen
            .iter()
            .any(|kind| kind.contains("tools/call:withdraw_proposal")),
        "{seen:?}"
    );
}

#[test]
fn a_participant_that_may_only_propose_waits_over_its_websocket() {
    let mut stage = Stage::new();
    let proposal = stage.propose("p1", "please");
    stage.agent.call(
        "w1",
        &["portmoot"],
        "wait_for_proposal",
        json!({ "id": proposal["id"] }),
    );
    assert_eq!(
        stage
            .decide(
                "boss",
                &proposal,
                "reject",
                &json!({ "reason": "not today" })
            )
            .status,
        200
    );
    let answer = stage
        .agent
        .receive_until(|received| received["correlation_id"] == "w1");
    assert!(
        answer["payload"]["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("not today"),
        "{answer}"
    );
}

#[test]
fn a_request_about_own_proposals_admits_nothing_else() {
    let mut stage = Stage::new();
    let proposal = stage.propose("p1", "please");
    let id = proposal["id"].clone();
    // Only to the gateway, only these tools, only for participants that may propose.
    for (number, to) in [&["tools"][..], &["portmoot", "tools"], &["worker"], &[]]
        .iter()
        .enumerate()
    {
        let envelope = format!("x{number}");
        stage
            .agent
            .call(&envelope, to, "withdraw_proposal", json!({ "id": id }));
        stage.agent.refused(&envelope, "capability_violation");
    }
    for tool in [
        "approve_proposal",
        "reject_proposal",
        "show_proposal",
        "list_proposals",
        "echo",
    ] {
        stage
            .agent
            .call(tool, &["portmoot"], tool, json!({ "id": id }));
        stage.agent.refused(tool, "capability_violation");
    }
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    worker.call("y", &["portmoot"], "withdraw_proposal", json!({ "id": id }));
    worker.refused("y", "capability_violation");
    // A kind that the payload contradicts reaches no participant and does nothing.
    let mut watcher = Socket::enter(&stage.gateway, "chief", "");
    let arguments = json!({ "id": id, "digest": proposal["digest"] });
    let params = json!({ "name": "approve_proposal", "arguments": arguments });
    let payload = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
    stage
        .agent
        .send(WITHDRAW, "z", &["portmoot"], json!({}), &payload);
    let answer = stage
        .agent
        .receive_until(|received| received["correlation_id"] == "z");
    assert_eq!(answer["payload"]["error"]["code"], -32600, "{answer}");
    stage.agent.chat("the end");
    watcher.receive_until(|received| {
        assert_ne!(received["id"], "z", "{received}");
        received["id"] == "the end"
    });
    assert_eq!(stage.shown("p1")["state"], "pending");
}
