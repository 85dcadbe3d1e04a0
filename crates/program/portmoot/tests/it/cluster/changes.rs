//! Changes of access: in force on every node once they are confirmed.

use std::time::Instant;

use harness::Link;
use serde_json::{Value, json};

use crate::http::Events;
use crate::support::{Client, until};
use crate::ws::token;

use super::attempt::{api, modern};
use super::nodes::{LONG, Nodes, SHORT};
use super::plain::PLAIN;

/// Changes of each of the threads, of which each is an issue and a revocation.
const ROUNDS: usize = 25;
const THREADS: usize = 3;

/// Issues a token at a node, which has confirmed it.
#[track_caller]
fn issue(nodes: &Nodes, node: usize, name: &str) -> String {
    let body = json!({ "name": name, "capabilities": ["mcp/request:*", "chat"] });
    let issued = nodes.api(node, "boss", "POST /api/v1/tokens", &body);
    assert_eq!(issued.status, 201, "{issued:?}");
    issued.json()["token"].as_str().unwrap().to_owned()
}

/// Revokes the tokens of a name at a node, which has confirmed it.
#[track_caller]
fn revoke(nodes: &Nodes, node: usize, name: &str) {
    let line = format!("DELETE /api/v1/tokens/{name}");
    let revoked = nodes.api(node, "boss", &line, &Value::Null);
    assert_eq!(revoked.status, 200, "{revoked:?}");
}

/// The status of a call with a token at a node, which makes it itself; `None` if there is no answer.
fn status(nodes: &Nodes, node: usize, token: &str) -> Option<u16> {
    let address = nodes.node(node).address();
    let call = json!({ "name": "p_echo", "arguments": { "text": "x" } });
    let reply = modern(address, SHORT, token, "tools/call", call);
    reply.map(|reply| reply.status)
}

/// The streams of a token's holder, one at each node.
fn streams(nodes: &Nodes, token: &str) -> Vec<Events> {
    let all = (0..nodes.count()).map(|number| Client::of(nodes.node(number), token).listen());
    all.collect()
}

#[track_caller]
fn changes_of_one(nodes: &Nodes, name: &str, first: usize) {
    let count = nodes.count();
    for round in first..first + ROUNDS {
        let token = issue(nodes, round % count, name);
        let used = status(nodes, (round + 1) % count, &token);
        assert_eq!(used, Some(200), "{name} {round}");
        revoke(nodes, (round + 2) % count, name);
        for more in 0..count {
            let refused = status(nodes, (round + more) % count, &token);
            assert_eq!(refused, Some(401), "{name} {round} {more}");
        }
    }
}

#[test]
fn a_confirmed_change_is_in_force_on_every_node() {
    let nodes = Nodes::start(3, 1, PLAIN);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let nodes = &nodes;
            scope.spawn(move || changes_of_one(nodes, &format!("t{thread}"), thread));
        }
    });
    let each = begun.elapsed() / u32::try_from(2 * ROUNDS).unwrap();
    println!("{} changes, one in {each:?}", 2 * THREADS * ROUNDS);
    let held = issue(&nodes, 1, "held");
    let streams = streams(&nodes, &held);
    revoke(&nodes, 2, "held");
    for stream in streams {
        stream.rest();
    }
}

/// A node without contact admits nothing that was revoked elsewhere, with a home or not.
#[test]
fn a_confirmed_change_is_in_force_while_a_node_is_cut_off() {
    let nodes = Nodes::start(3, 1, PLAIN);
    let cut = nodes.other();
    let other = (cut + 1) % nodes.count();
    for cut in [cut, nodes.home().node] {
        let held = issue(&nodes, other, "held");
        assert_eq!(status(&nodes, cut, &held), Some(200));
        let epoch = nodes.home().epoch;
        nodes.link(cut, Link::Stalled);
        if cut == nodes.home().node {
            nodes.next_home(epoch);
        }
        let there = (0..nodes.count()).find(|node| *node != cut).unwrap();
        revoke(&nodes, there, "held");
        let admitted = status(&nodes, cut, &held);
        assert_ne!(admitted, Some(200), "node {cut} is cut off");
        nodes.link(cut, Link::Whole);
        until("the node is back", || {
            let status = status(&nodes, cut, &held);
            assert_ne!(status, Some(200), "node {cut} is back");
            (status == Some(401)).then_some(())
        });
        let again = api(
            nodes.node(cut).address(),
            LONG,
            &token("boss"),
            "GET /api/v1/tools",
            &Value::Null,
        );
        assert_eq!(again.unwrap().status, 200);
    }
}
