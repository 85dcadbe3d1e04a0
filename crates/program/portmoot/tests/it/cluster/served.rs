//! Every node serves every client.

use harness::{Proxy, Running, conformance, grpc_client, proto_client};
use serde_json::json;

use crate::conformance::{LEGACY, MODERN};
use crate::front::{over_http, over_stdio};
use crate::home::Home;
use crate::proto_clients;
use crate::proto_grpc;
use crate::shared_accounts::refresh::renewed_by_one;
use crate::signin::{config_at, signs_in_through};
use crate::socket;
use crate::support::{Client, fixture, modern};
use crate::ws::{Socket, token};

use super::attempt::send;
use super::nodes::{LONG, Nodes};
use super::plain::PLAIN;

/// A client of a session that sends each message to the next node.
struct Roamer<'n> {
    nodes: &'n Nodes,
    session: String,
    turn: usize,
}

impl Roamer<'_> {
    /// The client at the next node.
    fn at_next(&mut self) -> Client {
        self.turn += 1;
        let node = self.nodes.node(self.turn % self.nodes.count());
        Client::resume(node, Some(&token("boss")), "/mcp", &self.session)
    }

    /// Begins a stream at the next node, after this event.
    #[track_caller]
    fn stream(&mut self, after: Option<&str>) -> socket::Events {
        let bearer = format!("Bearer {}", token("boss"));
        let mut headers = vec![
            ("accept", "text/event-stream"),
            ("authorization", bearer.as_str()),
            ("mcp-session-id", self.session.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        headers.extend(after.map(|id| ("last-event-id", id)));
        self.turn += 1;
        let node = self.nodes.node(self.turn % self.nodes.count());
        let stream = send(node.address(), LONG, "GET /mcp", &headers, "").unwrap();
        socket::Events::new(stream)
    }
}

#[track_caller]
fn a_session_at_every_node(nodes: &Nodes) {
    let opened = Client::of(nodes.node(0), &token("boss"));
    let mut roamer = Roamer {
        nodes,
        session: opened.session,
        turn: 0,
    };
    for round in 0..6 {
        let client = roamer.at_next();
        assert!(client.names("tools").iter().any(|name| name == "a_add"));
        let sum = client.call("a_add", json!({ "a": round, "b": 1 }));
        assert_eq!(sum["structuredContent"]["sum"], round + 1);
    }
    let mut stream = roamer.stream(None);
    assert_eq!(stream.status, 200);
    roamer.at_next().call("a_toggle_tool", json!({}));
    let (id, first) = stream.message().unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed");
    drop(stream);
    roamer
        .at_next()
        .call("a_test_trigger_prompt_change", json!({}));
    let mut again = roamer.stream(Some(&id));
    let (next, second) = again.message().unwrap();
    assert_eq!(second["method"], "notifications/prompts/list_changed");
    assert_eq!(roamer.stream(Some(&id)).message().unwrap(), (next, second));
    assert_eq!(roamer.at_next().delete(), 204);
    for _ in 0..nodes.count() {
        assert_eq!(roamer.at_next().status("tools/list", json!({})), 404);
    }
}

#[track_caller]
fn a_question_at_another_node(nodes: &Nodes) {
    let able = json!({ "sampling": {} });
    let asker = Client::open(nodes.node(0), Some(&token("boss")), "/mcp", able);
    let call = asker.begin_call("a_test_sampling", json!({ "prompt": "?" }));
    let question = call.next_of("sampling/createMessage");
    let other = Client::resume(nodes.node(1), Some(&token("boss")), "/mcp", &asker.session);
    let text = json!({ "type": "text", "text": "from afar" });
    other.answer(
        &question,
        json!({ "role": "assistant", "content": text, "model": "m" }),
    );
    let result = call.next();
    let said = &result["result"]["content"][0]["text"];
    assert_eq!(said, "LLM response: from afar", "{result}");
}

#[track_caller]
fn a_room_at_all_nodes(nodes: &Nodes) {
    let (mut boss, _) = Socket::welcomed(nodes.node(0), "boss", "");
    let (mut ann, _) = Socket::welcomed(nodes.node(1), "ann", "");
    let (mut agent, _) = Socket::welcomed(nodes.node(2), "agent", "");
    boss.chat("one");
    agent.expect("one");
    agent.chat("two");
    for listener in [&mut boss, &mut ann] {
        assert_eq!(listener.expect("one")["from"], "boss");
        assert_eq!(listener.expect("two")["from"], "agent");
    }
    ann.call("sum", &["a"], "add", json!({ "a": 1, "b": 2 }));
    let answer = ann.receive_until(|received| received["correlation_id"] == "sum");
    let sum = &answer["payload"]["result"]["structuredContent"]["sum"];
    assert_eq!(sum, 3, "{answer}");
    ann.leave();
}

/// A call of a modern client whose stream is at one node, with progress.
#[track_caller]
fn modern_requests_at_all_nodes(nodes: &Nodes) {
    for round in 0..2 * nodes.count() {
        let node = nodes.node(round % nodes.count());
        let params = json!({ "name": "a_add", "arguments": { "a": round, "b": 1 } });
        let reply = modern(node, Some(&token("ann")), "tools/call", params);
        let sum = &reply.json()["result"]["structuredContent"]["sum"];
        assert_eq!(*sum, round + 1, "{reply:?}");
        let refused = modern(node, Some("no-such-token"), "tools/list", json!({}));
        assert_eq!(refused.status, 401);
    }
}

#[test]
fn clients_of_proto_mcp_reach_the_home_at_any_node() {
    let config = socket::fixture_server("fixture", "fixture", &["--page", "50"]);
    let mut nodes = Nodes::open(2, 1, &config);
    let other = nodes.other();
    for round in 0..2 {
        for node in 0..nodes.count() {
            let gateway = nodes.node(node);
            let address = gateway.address();
            proto_grpc::check(&grpc_client(&[address, "fixture_", "--tour"]), "fixture_");
            let report = proto_client(&["--prefix", "fixture_", "--tcp", address]);
            proto_clients::check(&report, "fixture_", &json!([0, 0]));
            let websocket = proto_clients::websocket(gateway);
            let report = proto_client(&["--prefix", "fixture_", "--ws", &websocket]);
            proto_clients::check(&report, "fixture_", &json!(proto_clients::TOO_BIG));
            proto_clients::check_messages(&report);
        }
        if round == 0 {
            nodes.kill(other);
            nodes.restart(other);
            nodes.wait_until_served(other);
        }
    }
}

#[test]
fn any_node_serves_any_session() {
    let nodes = Nodes::start(3, 1, &(fixture("a", &["--era", "legacy"]) + PLAIN));
    a_session_at_every_node(&nodes);
    a_question_at_another_node(&nodes);
    modern_requests_at_all_nodes(&nodes);
    a_room_at_all_nodes(&nodes);
    for number in 0..nodes.count() {
        assert_eq!(nodes.readiness(number), Some(200));
    }
}

/// The official suite, with each connection to the next node.
#[test]
fn conformance_through_two_nodes() {
    conforms(&over_stdio("", &[]));
}

/// As above, with a server that each node calls.
#[test]
fn conformance_through_two_nodes_that_make_calls() {
    let fixture = Running::fixture(&[]);
    conforms(&over_http(&fixture, ""));
}

#[track_caller]
fn conforms(config: &str) {
    let nodes = Nodes::open(2, 1, config);
    let addresses = nodes.addresses();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let balancer = Proxy::between(&addresses);
    let url = format!("http://{}/mcp", balancer.address());
    std::thread::scope(|scope| {
        for (revision, required) in [LEGACY, MODERN] {
            let url = &url;
            scope.spawn(move || assert_eq!(conformance(url, revision).required, required));
        }
    });
}

/// A sign-in of which each request goes to the next node.
#[test]
fn a_sign_in_crosses_nodes() {
    let balancer = Proxy::between(&[]);
    let (_, port) = balancer.address().split_once(':').unwrap();
    let port = port.parse().unwrap();
    let mut nodes = Nodes::open(2, 1, &config_at(port));
    let addresses = nodes.addresses();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    balancer.lead_to(&addresses);
    let data = nodes.folder.path().join("n1").display().to_string();
    let home = Home::beside(&nodes.folder).env("PORTMOOT_DATA_DIR", &data);
    signs_in_through(home, nodes.give(1), port);
}

/// A hundred calls at the nodes, and one request with the refresh token.
#[test]
fn a_refresh_token_is_used_by_one_node() {
    let mut held = None;
    renewed_by_one(|home, config| {
        let nodes = held.insert(Nodes::of(Home::beside(home), 3, 1, config));
        let data = home.path().join("n0").display().to_string();
        let gateways = (0..3).map(|number| nodes.give(number)).collect();
        let home = Home::beside(home).env("PORTMOOT_DATA_DIR", &data);
        (home, gateways)
    });
}
