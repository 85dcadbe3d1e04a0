//! Reports of proposals to participants, over real sockets: which request fulfils one, what became
//! of it, and what may still be decided.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::Connection;
use crate::peer::{Peer, answer, small, tool};
use crate::reviewed::{DIRECTED, PROPOSES, Reviewed, propose};
use crate::stage::{ECHO, FULFIL, Stage, api, echoes, fulfilment, names, says, state};
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat", "portmoot/*"];
const REVIEWS: &str = "?mode=directed%2Bproposals&echo=false";

/// The answer to a request that this socket made, or its refusal.
#[track_caller]
fn outcome(socket: &mut Socket, request: &str) -> Value {
    socket.receive_until(|received| received["correlation_id"] == request)
}

#[test]
fn a_proposer_that_hears_no_fulfilment_finds_each_answer_by_its_state() {
    let mut stage = Stage::new();
    let all = ["p1", "p2", "p3"];
    all.iter().for_each(|id| drop(stage.propose(id, id)));
    // One as proposed, one edited, one over the API.
    stage
        .boss
        .send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("p1"));
    stage
        .boss
        .send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("edited"));
    let shown = stage.shown("p3");
    assert_eq!(stage.approve("boss", &shown).status, 200);
    let (mut fulfilments, mut answers, mut over) = (Vec::new(), Vec::new(), 0);
    while over < all.len() || answers.len() < all.len() {
        let received = stage.agent.receive();
        let payload = &received["payload"];
        match received["kind"].as_str().unwrap() {
            "portmoot/proposal" if payload["state"] == "running" => {
                fulfilments.push(payload.clone())
            }
            "portmoot/proposal" => {
                let running = fulfilments
                    .iter()
                    .find(|one| one["proposal"] == payload["proposal"])
                    .unwrap();
                assert_eq!(
                    (&payload["state"], &payload["fulfilment"]),
                    (&json!("completed"), &running["fulfilment"])
                );
                over += 1;
            }
            "mcp/response:tools/call:echo" => answers.push(received),
            _ => {}
        }
    }
    for (proposal, text) in [("p1", "p1"), ("p2", "edited"), ("p3", "p3")] {
        let running = fulfilments
            .iter()
            .find(|one| one["proposal"] == proposal)
            .unwrap();
        let answer = answers
            .iter()
            .find(|one| one["correlation_id"] == running["fulfilment"])
            .unwrap();
        says(answer, text);
        assert_eq!(
            running["edited"],
            if proposal == "p2" {
                json!(true)
            } else {
                json!(null)
            },
            "{running}"
        );
    }
    assert_eq!(
        fulfilments
            .iter()
            .find(|one| one["proposal"] == "p1")
            .unwrap()["fulfilment"],
        "f1"
    );
}

#[test]
fn whoever_receives_proposals_hears_what_is_decided() {
    let mut stage = Stage::new();
    let mut chief = Socket::enter(&stage.gateway, "chief", REVIEWS);
    let mut clerk = Socket::enter(&stage.gateway, "clerk", DIRECTED);
    stage.propose("p1", "x");
    assert_eq!(
        chief.receive_until(|received| received["kind"] == ECHO)["id"],
        "p1"
    );
    state(&mut chief, "p1", "pending");
    stage
        .boss
        .send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("x"));
    let running = state(&mut chief, "p1", "running");
    assert_eq!(
        (&running["payload"]["by"], &running["payload"]["fulfilment"]),
        (&json!("boss"), &json!("f1"))
    );
    state(&mut chief, "p1", "completed");
    stage
        .agent
        .receive_until(|received| received["payload"]["state"] == "completed");
    let two = stage.propose("p2", "x");
    assert_eq!(
        stage
            .decide("boss", &two, "reject", &json!({ "reason": "no" }))
            .status,
        200
    );
    state(&mut chief, "p2", "pending");
    assert_eq!(
        state(&mut chief, "p2", "rejected")["payload"]["reason"],
        "no"
    );
    // What is rejected on arrival has one state only, for its sender.
    stage.agent.send(
        "mcp/proposal:tools/call:safe",
        "p3",
        &["tools"],
        json!({}),
        &echoes("x"),
    );
    for rejected in ["p2", "p3"] {
        state(&mut stage.agent, rejected, "rejected");
    }
    stage.boss.chat("mark");
    for id in ["p3", "mark"] {
        let next = chief.receive_until(|received| received["kind"] != "system/presence");
        assert_eq!(next["id"], id, "{next}");
    }
    let next = clerk.receive_until(|received| received["kind"] != "system/presence");
    assert_eq!(
        next["id"], "mark",
        "in directed mode it hears nothing of others' proposals: {next}"
    );
    // The lists of a reviewer that came later have the id that a fulfilment names.
    stage.propose("p4", "x");
    chief.call("l1", &["portmoot"], "list_proposals", json!({}));
    let listed = outcome(&mut chief, "l1");
    let listed = &listed["payload"]["result"]["structuredContent"]["proposals"][0];
    assert_eq!(listed["envelope"], "p4", "{listed}");
    chief.call(
        "l2",
        &["portmoot"],
        "show_proposal",
        json!({ "id": listed["id"] }),
    );
    assert_eq!(
        outcome(&mut chief, "l2")["payload"]["result"]["structuredContent"]["envelope"],
        "p4"
    );
}

/// A server whose tool `echo` answers once it is let go, and whose first list waits for the same.
struct Slow {
    peer: Peer,
    goes: Arc<Mutex<()>>,
}

impl Slow {
    fn new(waits_at: &'static str) -> Slow {
        let goes: Arc<Mutex<()>> = Arc::default();
        let gate = Arc::clone(&goes);
        let peer = Peer::stdio(move |message| {
            if message["method"] == waits_at {
                drop(gate.lock().unwrap());
            }
            let said = match message["method"].as_str() {
                Some("tools/call") => {
                    let text = &message["params"]["arguments"]["text"];
                    Some(answer(
                        message,
                        &json!({ "content": [{ "type": "text", "text": text }] }).to_string(),
                    ))
                }
                _ => small(message, &format!("[{}]", tool("echo"))),
            };
            said.into_iter().map(String::into_bytes).collect()
        });
        Slow { peer, goes }
    }

    fn start(&self, more: &str) -> (crate::home::Home, Gateway) {
        let (home, config) = people(&[("agent", PROPOSES), ("boss", FULL), ("chief", FULL)]);
        let gateway = Gateway::start(&home, &(config + &self.peer.child("tools", "tools") + more));
        (home, gateway)
    }
}

#[test]
fn an_approved_call_goes_on_without_its_approver() {
    let slow = Slow::new("tools/call");
    let (_home, gateway) = slow.start("");
    gateway.ready("tools");
    let mut agent = Socket::enter(&gateway, "agent", DIRECTED);
    for (number, how) in ["leaves", "breaks", "reconnects"].iter().enumerate() {
        let proposal = format!("p{number}");
        propose(&mut agent, &proposal);
        let runs = slow.goes.lock().unwrap();
        let mut boss = Socket::enter(&gateway, "boss", DIRECTED);
        boss.send(
            FULFIL,
            &format!("f{number}"),
            &["tools"],
            names(&proposal),
            &fulfilment("x"),
        );
        state(&mut agent, &proposal, "running");
        let newer = match *how {
            "leaves" => (boss.leave(), None).1,
            "breaks" => (drop(boss), None).1,
            _ => Some((Socket::enter(&gateway, "boss", DIRECTED), boss)),
        };
        let gone = || {
            let all = api(gateway.address(), "chief", "GET", "?all=true", &Value::Null).json();
            let all = all["proposals"].as_array().unwrap().clone();
            all.iter()
                .find(|one| one["envelope"] == *proposal)
                .map(|one| one["state"].clone())
        };
        // The gateway notices the end of a connection a little later than it happens.
        until("still running", || {
            (gone() == Some(json!("running"))).then_some(())
        });
        drop(runs);
        let received = agent.receive_until(|received| received["kind"] != "system/presence");
        let (answer, over) = match received["kind"] == "portmoot/proposal" {
            true => (agent.receive_message(), received),
            false => (
                received,
                agent.receive_until(|received| received["kind"] == "portmoot/proposal"),
            ),
        };
        says(&answer, "x");
        assert_eq!(over["payload"]["state"], "completed", "{how}: {over}");
        drop(newer);
    }
    assert_eq!(slow.peer.calls("echo"), 3);
}

#[test]
fn a_held_call_that_an_envelope_fulfils_is_answered_under_that_ones_id() {
    let reviewed = Reviewed::new(&[]);
    let mut boss = Socket::enter(&reviewed.gateway, "boss", REVIEWS);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            Client::of(&reviewed.gateway, &token("agent"))
                .call("tools_echo", json!({ "text": "x" }))
        });
        let proposed = boss.receive_until(|received| received["kind"] == ECHO);
        let id = proposed["id"].as_str().unwrap();
        let mut call = fulfilment("x");
        call["id"] = json!("seventy-seven");
        boss.send(FULFIL, "f1", &["tools"], names(id), &call);
        let answer =
            boss.receive_until(|received| received["kind"] == "mcp/response:tools/call:echo");
        assert_eq!(
            (&answer["correlation_id"], &answer["payload"]["id"]),
            (&json!("f1"), &json!("seventy-seven"))
        );
        says(&answer, "x");
        let called = client.join().unwrap();
        assert!(called.to_string().contains("\"x\""), "{called}");
    });
}

#[test]
fn a_proposal_from_before_its_servers_first_list_can_be_approved() {
    let slow = Slow::new("tools/list");
    let starts = slow.goes.lock().unwrap();
    let (_home, gateway) = slow.start("");
    let mut agent = Socket::enter(&gateway, "agent", DIRECTED);
    let shown = |envelope: &str| {
        let all = api(gateway.address(), "boss", "GET", "", &Value::Null).json();
        let all = all["proposals"].as_array().unwrap().clone();
        all.iter()
            .find(|one| one["envelope"] == *envelope)
            .unwrap()
            .clone()
    };
    propose(&mut agent, "p1");
    propose(&mut agent, "p2");
    let early = shown("p1");
    assert_eq!(early["tool"], Value::Null, "{early}");
    drop(starts);
    gateway.ready("tools");
    // What reviewers are shown now has the definition, and a decision about the proposal without it
    // does not count.
    let described = until("described", || {
        Some(shown("p1")).filter(|one| !one["tool"].is_null())
    });
    assert_eq!(described["tool"]["name"], "echo", "{described}");
    let approve = |proposal: &Value| {
        let path = format!("/{}/approve", proposal["id"].as_str().unwrap());
        api(
            gateway.address(),
            "boss",
            "POST",
            &path,
            &json!({ "digest": proposal["digest"] }),
        )
    };
    assert_eq!(approve(&early).status, 409);
    assert_eq!(approve(&described).status, 200);
    state(&mut agent, "p1", "running");
    let mut boss = Socket::enter(&gateway, "boss", DIRECTED);
    boss.send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("x"));
    says(&outcome(&mut boss, "f2"), "x");
    until("both ran", || (slow.peer.calls("echo") == 2).then_some(()));
}

#[test]
fn approving_what_is_away_for_a_moment_leaves_it_pending() {
    let mut stage = Stage::new();
    let worker = || Socket::enter(&stage.gateway, "worker", DIRECTED);
    let first = worker();
    let asks = json!({ "method": "tools/call", "params": { "name": "dig", "arguments": {} } });
    stage.agent.send(
        "mcp/proposal:tools/call:dig",
        "p1",
        &["worker"],
        json!({}),
        &asks,
    );
    state(&mut stage.agent, "p1", "pending");
    first.leave();
    stage
        .boss
        .receive_until(|received| received["payload"]["event"] == "leave");
    let mut call = asks;
    (call["jsonrpc"], call["id"]) = (json!("2.0"), json!(3));
    stage.boss.send(
        "mcp/request:tools/call:dig",
        "f1",
        &["worker"],
        names("p1"),
        &call,
    );
    stage.boss.refused("f1", "upstream_down");
    let shown = stage.shown("p1");
    assert_eq!(shown["state"], "pending");
    let reply = stage.approve("boss", &shown);
    assert!(
        reply.status >= 500 && reply.body.contains("still pending"),
        "{reply:?}"
    );
    let mut worker = worker();
    stage.boss.send(
        "mcp/request:tools/call:dig",
        "f2",
        &["worker"],
        names("p1"),
        &call,
    );
    assert_eq!(worker.expect("f2")["correlation_id"], "p1");
    state(&mut stage.agent, "p1", "running");
    let done = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
    worker.send(
        "mcp/response:tools/call:dig",
        "a1",
        &["boss"],
        names("f2"),
        &done,
    );
    state(&mut stage.agent, "p1", "completed");
}

#[test]
fn a_proposer_that_hears_everything_gets_the_answer_once() {
    let mut stage = Stage::new();
    stage.agent = Socket::enter(&stage.gateway, "agent", "?mode=all&echo=false");
    let mut worker = Socket::enter(&stage.gateway, "worker", DIRECTED);
    let asks = json!({ "method": "tools/call", "params": { "name": "dig", "arguments": {} } });
    stage.agent.send(
        "mcp/proposal:tools/call:dig",
        "p1",
        &["worker"],
        json!({}),
        &asks,
    );
    state(&mut stage.agent, "p1", "pending");
    let mut call = asks;
    (call["jsonrpc"], call["id"]) = (json!("2.0"), json!(3));
    stage.boss.send(
        "mcp/request:tools/call:dig",
        "f1",
        &["worker"],
        names("p1"),
        &call,
    );
    assert_eq!(
        worker.receive_until(|received| received["id"] == "f1")["correlation_id"],
        "p1"
    );
    let done = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
    worker.send(
        "mcp/response:tools/call:dig",
        "a1",
        &["boss"],
        names("f1"),
        &done,
    );
    let (mut answers, mut is_over) = (0, false);
    while !is_over {
        let received = stage.agent.receive();
        answers += usize::from(received["kind"] == "mcp/response:tools/call:dig");
        is_over = received["payload"]["state"] == "completed";
    }
    stage.boss.chat("mark");
    let next = stage.agent.receive_until(|received| {
        received["id"] == "mark" || received["kind"] == "mcp/response:tools/call:dig"
    });
    assert_eq!((answers, &next["id"]), (1, &json!("mark")));
}

#[test]
fn a_room_has_no_subscriptions_nor_by_a_proposal() {
    let mut stage = Stage::new();
    let params = json!({ "uri": "demo://x" });
    let kind = "resources/subscribe:demo://x";
    let asks = json!({ "method": "resources/subscribe", "params": params });
    stage.agent.send(
        &format!("mcp/proposal:{kind}"),
        "p1",
        &["tools"],
        json!({}),
        &asks,
    );
    state(&mut stage.agent, "p1", "pending");
    let call =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "resources/subscribe", "params": params });
    stage.boss.send(
        &format!("mcp/request:{kind}"),
        "f1",
        &["tools"],
        names("p1"),
        &call,
    );
    let answer = outcome(&mut stage.boss, "f1");
    assert_eq!(
        (
            &answer["payload"]["error"]["code"],
            &answer["payload"]["id"]
        ),
        (&json!(-32601), &json!(5)),
        "{answer}"
    );
    state(&mut stage.agent, "p1", "running");
    state(&mut stage.agent, "p1", "failed");
}

#[test]
fn only_the_gateway_reports_states_and_no_member_looks_like_another() {
    let reviewed = Reviewed::new(&[]);
    let mut agent = reviewed.enter("agent");
    let mut boss = reviewed.enter("boss");
    for kind in ["portmoot/proposal", "portmoot/anything", "portmoot"] {
        boss.send(
            kind,
            kind,
            &["agent"],
            json!({}),
            &json!({ "proposal": "p1", "state": "completed" }),
        );
        boss.refused(kind, "capability_violation");
    }
    for (number, double) in ["KIND", "From", "Payload", "correlation_ID"]
        .iter()
        .enumerate()
    {
        let id = format!("d{number}");
        boss.send(
            "chat",
            &id,
            &[],
            json!({ (*double): "system:gateway" }),
            &json!({ "text": "x" }),
        );
        let refused = boss.refused(&id, "malformed_envelope");
        assert!(
            refused["payload"]["message"]
                .as_str()
                .unwrap()
                .contains("could be taken for"),
            "{refused}"
        );
    }
    boss.chat("mark");
    assert_eq!(agent.receive_message()["id"], "mark");
    // The request that the document prints has no type.
    let (body, bearer) = (
        json!({ "add": ["mcp/request:tools/*"], "remove": [] }).to_string(),
        token("boss"),
    );
    let bearer = format!("Bearer {bearer}");
    let path = "/admin/participants/agent/capabilities";
    let mut connection = Connection::open(reviewed.gateway.address());
    let reply = connection.exchange("POST", path, &[("authorization", &bearer)], &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json()["participantId"], "agent");
    // A page of a browser could send such a request without a token.
    let mut connection = Connection::open(reviewed.gateway.address());
    assert!(connection.exchange("POST", path, &[], &body).status >= 400);
}
