//! A home that was stopped for a while, and goes on when another one has begun.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::http::{ApiRequest, Reply};
use crate::support::{modern_request, until};
use crate::ws::{Socket, token};

use super::attempt::{answer, send};
use super::callers::{Caller, Learned, Worker, decide, proposal};
use super::nodes::{LONG, Nodes, SHORT};

/// The number of the first call of one whose token was revoked.
const REVOKED_FROM: u64 = 100;
/// The sockets of that one.
const SOCKETS: usize = 8;

/// Sockets of the token's holder at a node, in the room.
fn sockets(nodes: &Nodes, node: usize, held: &str) -> Vec<Socket> {
    let bearer = format!("Bearer {held}");
    let open = |_| {
        let query = "?mode=directed&echo=false";
        let mut socket = Socket::open_with(nodes.node(node), "held", query, &bearer);
        let welcome = socket.receive();
        assert_eq!(welcome["kind"], "system/welcome", "{welcome}");
        socket
    };
    (0..SOCKETS).map(open).collect()
}

/// Sends a request of the API; its answer is read later.
fn sent(address: &str, token: &str, line: &str, body: &Value) -> TcpStream {
    let request = ApiRequest::new(token, body);
    send(address, LONG, line, &request.headers(), &request.body).unwrap()
}

/// Sends the agent's call of this number.
fn called(address: &str, number: u64) -> TcpStream {
    let params = json!({ "name": "worker_work", "arguments": { "n": number } });
    let (headers, body) = modern_request(Some(&token("agent")), "tools/call", params);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    send(address, LONG, "POST /mcp", &headers, &body).unwrap()
}

/// The requests that the home finds when it goes on: they came while it was stopped.
struct Found {
    revoked: TcpStream,
    approval: TcpStream,
    change: TcpStream,
    call: TcpStream,
}

impl Found {
    fn leave(nodes: &Nodes, home: usize, held: &str, pending: &Value) -> Found {
        let address = nodes.node(home).address();
        let boss = token("boss");
        let id = pending["id"].as_str().unwrap();
        let digest = json!({ "digest": pending["digest"] });
        let late = json!({ "name": "late", "capabilities": ["chat"] });
        Found {
            revoked: sent(address, held, "GET /api/v1/tools", &json!(null)),
            approval: sent(
                address,
                &boss,
                &format!("POST /api/v1/proposals/{id}/approve"),
                &digest,
            ),
            change: sent(address, &boss, "POST /api/v1/tokens", &late),
            call: called(address, 3),
        }
    }
}

/// The agent's proposal of this number, pending.
#[track_caller]
fn proposed(nodes: &Nodes, number: u64) -> Value {
    let address = nodes.node(nodes.other()).address();
    let learned = Caller::new(number).ask(address, LONG);
    assert!(matches!(learned, Learned::Later), "{learned:?}");
    proposal(nodes, nodes.other(), number, "pending")
}

fn has_status(reply: Option<&Reply>, status: u16) -> bool {
    reply.is_some_and(|reply| reply.status == status)
}

/// Checks the answers to the requests of [`Found`] against the state of the successor.
#[track_caller]
fn agrees(nodes: &Nodes, at: usize, found: Found, held: &str, worker: &Worker) {
    let revoked = answer(found.revoked, LONG);
    assert!(!has_status(revoked.as_ref(), 200), "{revoked:?}");
    let approval = answer(found.approval, LONG);
    if has_status(approval.as_ref(), 200) {
        proposal(nodes, at, 2, "completed");
        assert_eq!(worker.ran().get(&2), Some(&1));
    } else {
        proposal(nodes, at, 2, "pending");
        assert_eq!(worker.ran().get(&2), None, "{approval:?}");
    }
    let change = answer(found.change, LONG);
    if has_status(change.as_ref(), 201) {
        let late = change.unwrap().json()["token"].as_str().unwrap().to_owned();
        let address = nodes.node(at).address();
        let used = answer(
            sent(address, &late, "GET /api/v1/tools", &json!(null)),
            LONG,
        );
        assert!(!has_status(used.as_ref(), 401), "{used:?}");
    }
    let call = answer(found.call, LONG);
    if has_status(call.as_ref(), 200) {
        proposal(nodes, at, 3, "pending");
    }
    for number in 0..nodes.count() {
        let address = nodes.node(number).address();
        let used = answer(sent(address, held, "GET /api/v1/tools", &json!(null)), LONG);
        assert!(has_status(used.as_ref(), 401), "{number}: {used:?}");
    }
}

#[test]
fn a_deposed_home_changes_nothing() {
    let worker = Worker::new();
    let nodes = Nodes::start(3, 1, &worker.config("200ms"));
    let first = nodes.home();
    let body = json!({ "name": "held", "capabilities": ["mcp/request:*", "chat"] });
    let issued = nodes.api(first.node, "boss", "POST /api/v1/tokens", &body);
    let held = issued.json()["token"].as_str().unwrap().to_owned();
    let [one, two] = [1, 2].map(|number| proposed(&nodes, number));
    let mut sockets = sockets(&nodes, first.node, &held);
    nodes.signal(first.node, "STOP");
    let found = Found::leave(&nodes, first.node, &held, &two);
    for (number, socket) in (REVOKED_FROM..).zip(&mut sockets) {
        let arguments = json!({ "n": number });
        socket.call("late", &["worker"], "work", arguments);
    }
    let next = nodes.next_home(first.epoch);
    assert_ne!(next.node, first.node);
    let line = "DELETE /api/v1/tokens/held";
    assert_eq!(nodes.api(next.node, "boss", line, &Value::Null).status, 200);
    let at = nodes.node(next.node).address();
    assert_eq!(decide(at, LONG, &one, "approve"), Some(200));
    proposal(&nodes, next.node, 1, "completed");
    nodes.signal(first.node, "CONT");
    until("it is an ordinary node", || {
        let log = nodes.node(first.node).log();
        log.contains("is the home of the cluster no more")
            .then_some(())
    });
    nodes.wait_until_served(first.node);
    agrees(&nodes, next.node, found, &held, &worker);
    let old = nodes.node(first.node).address();
    assert_ne!(decide(old, SHORT, &one, "approve"), Some(200));
    assert_eq!(worker.ran()[&1], 1);
    let late = worker.ran().split_off(&REVOKED_FROM);
    assert!(late.is_empty(), "calls with a revoked token ran: {late:?}");
    assert_eq!(nodes.home(), next);
}
