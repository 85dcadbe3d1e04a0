//! Plays against what a topic keeps and has places for: proposals, requests, guests, participants,
//! refusals.

use super::*;
use crate::audit_log::AuditLog;
use crate::stage::{ECHO, FULFIL, echoes, fulfilment, names, pages_of};
use crate::support::modern_request;

const PROPOSAL_BYTES: usize = 1 << 20;
const REQUESTS: usize = topic::REQUESTS_MAX;
const ENDED: usize = topic::ENDED_PROPOSALS_MAX;
/// Envelopes that are sent before their answers are read.
const AT_ONCE: usize = 200;
/// The places of guests among those of a topic on this stage.
const GUESTS: usize = 3;

pub(super) fn latest_requests(stage: &mut Stage) -> Held {
    let mut other = stage.enters(OTHER);
    let executed = |other: &mut Socket, id: &str| {
        other.call(id, &["tools"], "record", json!({}));
        let received = other.receive_until(|received| received["correlation_id"] == id);
        received["payload"]["result"]["structuredContent"]["calls"]
            .as_u64()
            .unwrap()
    };
    let once = |other: &mut Socket| other.call("once", &["tools"], "echo", json!({ "text": "x" }));
    once(&mut other);
    other.receive_until(|received| received["correlation_id"] == "once");
    let before = executed(&mut other, "before");
    // Each is refused, and remembered all the same.
    let is_refused = |received: &Value| {
        received
            .to_string()
            .contains("you have too many open calls")
    };
    let client = stage.greedy("/mcp", json!({}));
    let held = stage.hanging(&client, "more_hang", UPSTREAM_CALLS);
    stage.open_at("more", UPSTREAM_CALLS);
    let mut socket = stage.enters(GREEDY);
    for first in (0..=REQUESTS).step_by(AT_ONCE) {
        let ids: Vec<String> = (first..first + AT_ONCE)
            .map(|number| format!("l{number}"))
            .collect();
        ids.iter()
            .for_each(|id| socket.call(id, &["more"], "echo", json!({ "text": "x" })));
        for _ in &ids {
            socket.receive_until(is_refused);
        }
    }
    // What the greedy participant sent first is forgotten: sent again, it is refused again.
    socket.call("l0", &["more"], "echo", json!({ "text": "x" }));
    assert_eq!(socket.receive_until(is_refused)["correlation_id"], "l0");
    // What the other sent is not: sent again, it is not carried out again.
    once(&mut other);
    assert_eq!(
        executed(&mut other, "after"),
        before + 1,
        "the one call is the one that asks"
    );
    Box::new((client, held, socket))
}

/// A request of a guest on a connection that stays.
fn guest(stage: &Stage) -> (Connection, Reply) {
    let (headers, body) = modern_request(None, "tools/list", json!({}));
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut connection = Connection::open(stage.gateway.address());
    let reply = connection.exchange("POST", "/mcp", &headers, &body);
    (connection, reply)
}

pub(super) fn guests(stage: &mut Stage) -> Held {
    // Those of before may not have left yet.
    let comes = |_| {
        until("a guest has a place", || {
            Some(guest(stage)).filter(|(_, reply)| reply.status == 200)
        })
    };
    let held: Vec<_> = (0..GUESTS).map(comes).collect();
    let (_, refused) = guest(stage);
    assert!(
        refused.body.contains("too many guests are in this topic"),
        "{refused:?}"
    );
    Box::new(held)
}

pub(super) fn participants(stage: &mut Stage) -> Held {
    let guests = guests(stage);
    let sessions: Vec<Greedy> = (0..20).map(|_| stage.greedy("/mcp", json!({}))).collect();
    let socket = stage.enters(GREEDY);
    // All of them have one place.
    let third = Client::of(&stage.gateway, &token(THIRD));
    assert!(third.call("tools_echo", json!({ "text": "x" }))["content"].is_array());
    assert_eq!(third.delete(), 204);
    Box::new((guests, sessions, socket))
}

pub(super) fn refusals(stage: &mut Stage) -> Held {
    const SENT: usize = 1_000;
    const WRITTEN_MAX: u64 = 256;
    const WINDOW_SECS: u64 = 10;
    let begun = Instant::now();
    let client = stage.greedy("/mcp", json!({}));
    let refused = |client: &Client, name: &str| {
        let answer = client.ask("tools/call", json!({ "name": name, "arguments": {} }));
        assert!(answer["error"].is_object(), "{answer}");
    };
    (0..SENT).for_each(|_| refused(&client, "tools_nothing"));
    let windows = 2 + begun.elapsed().as_secs() / WINDOW_SECS;
    refused(&stage.other, "tools_absent");
    // The log has one order: when it has the last entry, it has those before.
    let log = AuditLog(&stage.home);
    log.has(OTHER, "mcp/request:tools/call:tools_absent", "refused", "");
    let written = log.count(
        GREEDY,
        "mcp/request:tools/call:tools_nothing",
        "refused",
        "unknown",
    );
    assert!(
        written > 0 && written as u64 <= windows * WRITTEN_MAX,
        "{written} in {windows} windows"
    );
    Box::new(client)
}

/// Proposes; returns the answer to it.
fn proposes(socket: &mut Socket, id: &str, text: &str) -> Value {
    socket.send(ECHO, id, &["tools"], json!({}), &echoes(text));
    socket.receive_until(|received| {
        received["correlation_id"] == id || received["payload"]["proposal"] == id
    })
}

pub(super) fn bytes_of_proposals(stage: &mut Stage) -> Held {
    let mut socket = stage.enters(GREEDY);
    let text = "x".repeat(250 << 10);
    let fit = PROPOSAL_BYTES / text.len();
    for number in 0..fit {
        let opened = proposes(&mut socket, &format!("b{number}"), &text);
        assert_eq!(opened["payload"]["state"], "pending", "{number}: {opened}");
    }
    let refused = proposes(&mut socket, "one more", &text);
    assert!(
        refused.to_string().contains("or too long ones"),
        "{refused}"
    );
    let mut other = stage.enters(OTHER);
    assert_eq!(
        proposes(&mut other, "others", &text)["payload"]["state"],
        "pending"
    );
    settle(&mut other, &["others".to_owned()]);
    settle(
        &mut socket,
        &(0..fit)
            .map(|number| format!("b{number}"))
            .collect::<Vec<_>>(),
    );
    Box::new((socket, other))
}

/// Ends proposals by their proposer's own requests.
fn settle(socket: &mut Socket, ids: &[String]) {
    for id in ids {
        socket.send(
            FULFIL,
            &format!("r{id}"),
            &["tools"],
            names(id),
            &fulfilment("x"),
        );
    }
    let mut answers = 0;
    while answers < ids.len() {
        let received = socket.receive_until(|received| received["payload"]["result"].is_object());
        answers += usize::from(
            received["correlation_id"]
                .as_str()
                .is_some_and(|id| id.starts_with('r')),
        );
    }
}

/// The id of a participant's proposal that is over.
fn ended_of(stage: &Stage, who: &str, envelope: &str) -> String {
    let mut socket = stage.enters(who);
    assert_eq!(
        proposes(&mut socket, envelope, "x")["payload"]["state"],
        "pending"
    );
    settle(&mut socket, &[envelope.to_owned()]);
    let all = pages_of(|query| {
        let path = format!("/api/v1/proposals?all=true&{query}");
        stage.get(who, &path).json()
    });
    let own = all
        .iter()
        .find(|one| one["envelope"] == envelope)
        .unwrap_or_else(|| panic!("{all:?}"));
    assert_ne!(own["state"], "pending");
    own["id"].as_str().unwrap().to_owned()
}

fn ends(stage: &Stage, name: &str, count: usize) {
    let mut socket = stage.enters(GREEDY);
    for first in (0..count).step_by(AT_ONCE) {
        let ids: Vec<String> = (first..(first + AT_ONCE).min(count))
            .map(|number| format!("{name}{number}"))
            .collect();
        for id in &ids {
            socket.send(ECHO, id, &["tools"], json!({}), &echoes("x"));
        }
        settle(&mut socket, &ids);
    }
}

fn is_known(stage: &Stage, who: &str, id: &str) -> bool {
    let reply = stage.get(who, &format!("/api/v1/proposals/{id}"));
    assert!([200, 404].contains(&reply.status), "{reply:?}");
    reply.status == 200
}

pub(super) fn ended_proposals(stage: &mut Stage) -> Held {
    let (others, first) = (ended_of(stage, OTHER, "o1"), ended_of(stage, GREEDY, "g1"));
    ends(stage, "e", ENDED);
    assert!(!is_known(stage, GREEDY, &first), "its oldest is forgotten");
    assert!(is_known(stage, OTHER, &others), "and no other's");
    let last = ended_of(stage, GREEDY, "g2");
    // The journal keeps what the topic does.
    stage.restart();
    assert!(!is_known(stage, GREEDY, &first));
    assert!(is_known(stage, GREEDY, &last));
    assert!(is_known(stage, OTHER, &others));
    Box::new(())
}
