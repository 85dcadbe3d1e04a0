//! Proposals whose proposer, approver and executor are at several nodes.

use serde_json::json;

use crate::ws::Socket;

use super::callers::{Caller, Learned, Worker, decide, proposal};
use super::nodes::{LONG, Nodes};

/// The proposer at one node, the approver at the next one, who reads at a third one.
#[track_caller]
fn a_held_call(nodes: &Nodes, number: u64, shift: usize) {
    let [proposes, reads, approves] = [0, 1, 2].map(|more| (shift + more) % nodes.count());
    let address = nodes.node(proposes).address();
    std::thread::scope(|scope| {
        let call = scope.spawn(move || Caller::new(number).ask(address, LONG));
        let pending = proposal(nodes, reads, number, "pending");
        let at = nodes.node(approves).address();
        assert_eq!(decide(at, LONG, &pending, "approve"), Some(200));
        let learned = call.join().unwrap();
        let Learned::End(answer) = learned else {
            panic!("{number}: {learned:?}");
        };
        assert_eq!(answer["result"]["content"], json!([]), "{answer}");
        proposal(nodes, reads, number, "completed");
    });
}

/// A proposal in the room that is carried out by a participant at a third node.
#[track_caller]
fn a_fulfilled_proposal(nodes: &Nodes, number: u64) {
    let (mut agent, _) = Socket::welcomed(nodes.node(0), "agent", "?mode=directed&echo=false");
    let (mut boss, _) = Socket::welcomed(nodes.node(1), "boss", "?mode=directed&echo=false");
    let params = json!({ "name": "work", "arguments": { "n": number } });
    let mut call = json!({ "method": "tools/call", "params": params });
    let kind = "mcp/proposal:tools/call:work";
    agent.send(kind, "p", &["worker"], json!({}), &call);
    proposal(nodes, 2, number, "pending");
    call["jsonrpc"] = json!("2.0");
    call["id"] = json!(7);
    let names = json!({ "correlation_id": "p" });
    boss.send(
        "mcp/request:tools/call:work",
        "f",
        &["worker"],
        names,
        &call,
    );
    let answer = boss.receive_until(|received| received["correlation_id"] == "f");
    assert_eq!(
        answer["payload"]["result"]["content"],
        json!([]),
        "{answer}"
    );
    let done = proposal(nodes, 2, number, "completed");
    assert_eq!(done["decided_by"], "boss", "{done}");
}

#[test]
fn proposals_across_nodes() {
    let worker = Worker::new();
    let nodes = Nodes::start(3, 1, &worker.config("50s"));
    for shift in 0..nodes.count() {
        a_held_call(&nodes, shift as u64, shift);
    }
    a_fulfilled_proposal(&nodes, 3);
    let address = nodes.node(1).address();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| Caller::new(4).ask(nodes.node(2).address(), LONG));
        let pending = proposal(&nodes, 0, 4, "pending");
        assert_eq!(decide(address, LONG, &pending, "reject"), Some(200));
        let learned = call.join().unwrap();
        let rejected = matches!(&learned, Learned::End(end) if end["result"]["isError"] == true);
        assert!(rejected, "{learned:?}");
        assert_eq!(decide(address, LONG, &pending, "approve"), Some(409));
    });
    let ran: Vec<_> = worker.ran().into_iter().collect();
    assert_eq!(ran, [(0, 1), (1, 1), (2, 1), (3, 1)]);
}

#[test]
fn a_held_call_outlives_its_home() {
    let worker = Worker::new();
    let mut nodes = Nodes::start(3, 1, &worker.config("1s"));
    let [first, second] = [1, 2].map(|more| (nodes.home().node + more) % 3);
    let mut caller = Caller::new(1);
    let learned = caller.ask(nodes.node(first).address(), LONG);
    assert!(matches!(learned, Learned::Later), "{learned:?}");
    let before = proposal(&nodes, second, 1, "pending");
    let book = nodes.book();
    let waiting = std::thread::spawn(move || caller.end(&book));
    nodes.kill(nodes.home().node);
    let after = proposal(&nodes, second, 1, "pending");
    for key in ["id", "digest", "by", "params"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let at = nodes.node(first).address();
    assert_eq!(decide(at, LONG, &before, "approve"), Some(200));
    let answer = waiting.join().unwrap();
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    proposal(&nodes, second, 1, "completed");
    assert_ne!(decide(at, LONG, &before, "approve"), Some(200));
    assert_eq!(worker.ran()[&1], 1);
}
