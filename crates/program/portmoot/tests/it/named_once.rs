//! Ids that name proposals, over real sockets: each names one for ever, and what the gateway says
//! of it is true.

use serde_json::{Value, json};

use crate::reviewed::{DIRECTED, Reviewed, propose};
use crate::stage::{ECHO, FULFIL, echoes, fulfilment, names, state};
use crate::ws::Socket;

/// What an agent may have open, and its bytes of proposals.
const OPEN_MAX: usize = 256;
const LIMITS: &str = "[server.limits]\nproposal_bytes_max = \"256KiB\"\nparticipant_proposal_bytes_max = \"64KiB\"\nbody_bytes_max = \"64KiB\"\n";

/// Two reviewers and one that watches everything.
struct Room {
    reviewed: Reviewed,
    agent: Socket,
    reviewers: [Socket; 2],
    watcher: Socket,
}

impl Room {
    fn new() -> Room {
        let more: &[(&str, &[&str])] = &[
            ("watcher", &["chat"]),
            ("worker", &["mcp/response:*", "chat"]),
        ];
        let reviewed = Reviewed::configured(more, |config| config + LIMITS);
        let agent = reviewed.enter("agent");
        let reviewers = ["boss", "chief"].map(|name| reviewed.enter(name));
        let watcher = Socket::enter(&reviewed.gateway, "watcher", "?mode=all&echo=true");
        Room {
            reviewed,
            agent,
            reviewers,
            watcher,
        }
    }

    /// What the watcher receives up to a message that is sent now.
    fn seen(&mut self) -> Vec<Value> {
        let id = format!("mark {}", self.reviewed.executed());
        self.watcher.chat(&id);
        let mut seen = Vec::new();
        loop {
            let received = self.watcher.receive();
            if received["id"] == *id {
                return seen;
            }
            seen.push(received);
        }
    }

    /// Both reviewers fulfil it, at the server and at a participant: nothing runs, and no other
    /// participant gets it.
    #[track_caller]
    fn runs_never(&mut self, proposal: &str) {
        self.seen();
        let before = self.reviewed.executed();
        for reviewer in &mut self.reviewers {
            for (id, to) in [("server", "tools"), ("room", "worker")] {
                let id = format!("{id} {proposal}");
                reviewer.send(FULFIL, &id, &[to], names(proposal), &fulfilment("x"));
                let answer = reviewer.receive_until(|received| received["correlation_id"] == *id);
                let codes = [
                    &answer["payload"]["error"],
                    &answer["payload"]["error"]["data"]["code"],
                ];
                assert!(codes.contains(&&json!("conflict")), "{answer}");
            }
        }
        assert_eq!(self.reviewed.executed(), before, "{proposal}");
        let seen = self.seen();
        assert!(
            !seen
                .iter()
                .any(|one| one["correlation_id"] == *proposal && one["kind"] == FULFIL),
            "{seen:?}"
        );
    }
}

/// The refusal of an envelope, among what the room says meanwhile.
#[track_caller]
fn refused(socket: &mut Socket, id: &str, code: &str) {
    let received = socket.receive_until(|received| received["kind"] == "system/error");
    assert_eq!(
        (&received["payload"]["error"], &received["correlation_id"]),
        (&json!(code), &json!(id)),
        "{received}"
    );
}

#[test]
fn what_is_rejected_on_arrival_runs_never() {
    let mut room = Room::new();
    // Kind and payload differ; too long; and one more than may be open.
    room.agent.send(
        "mcp/proposal:tools/call:safe",
        "differs",
        &["tools"],
        json!({}),
        &echoes("x"),
    );
    room.agent.send(
        ECHO,
        "long",
        &["tools"],
        json!({}),
        &echoes(&"y".repeat(70_000)),
    );
    for id in ["differs", "long"] {
        state(&mut room.agent, id, "rejected");
    }
    for number in 0..OPEN_MAX {
        propose(&mut room.agent, &format!("p{number}"));
    }
    room.agent
        .send(ECHO, "late", &["tools"], json!({}), &echoes("x"));
    state(&mut room.agent, "late", "rejected");
    let seen = room.seen();
    assert_eq!(
        seen.iter().filter(|one| one["kind"] == ECHO).count(),
        OPEN_MAX,
        "only what is pending is published"
    );
    for id in ["differs", "long", "late"] {
        room.runs_never(id);
        // It is no other's to propose, and stays rejected.
        room.agent
            .send(ECHO, id, &["tools"], json!({}), &echoes("x"));
        state(&mut room.agent, id, "rejected");
        room.reviewers[0].send(ECHO, id, &["tools"], json!({}), &echoes("x"));
        refused(&mut room.reviewers[0], id, "conflict");
    }
    let seen = room.seen();
    assert!(!seen.iter().any(|one| one["kind"] == ECHO), "{seen:?}");
}

#[test]
fn no_other_content_comes_under_the_id_of_a_proposal() {
    let mut room = Room::new();
    propose(&mut room.agent, "p1");
    let shown = room.reviewed.shown("p1");
    room.seen();
    room.agent
        .send(ECHO, "p1", &["tools"], json!({}), &echoes("9999 to Eve"));
    refused(&mut room.agent, "p1", "conflict");
    room.reviewers[1].send(ECHO, "p1", &["tools"], json!({}), &echoes("9999 to Eve"));
    refused(&mut room.reviewers[1], "p1", "conflict");
    let seen = room.seen();
    assert!(!seen.iter().any(|one| one["kind"] == ECHO), "{seen:?}");
    assert_eq!(room.reviewed.shown("p1"), shown);
    let answer = room.reviewed.fulfil("f1", "p1");
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    // Nor after its end, also after a restart.
    for signal in ["KILL", ""] {
        let mut boss = Socket::enter(&room.reviewed.gateway, "chief", DIRECTED);
        boss.send(ECHO, "p1", &["tools"], json!({}), &echoes("9999 to Eve"));
        refused(&mut boss, "p1", "conflict");
        if !signal.is_empty() {
            room.reviewed.restart(signal);
        }
    }
}

#[test]
fn a_proposal_that_is_sent_again_is_told_its_state() {
    let mut room = Room::new();
    propose(&mut room.agent, "p1");
    room.seen();
    let again = |agent: &mut Socket, expected: &str| {
        agent.send(ECHO, "p1", &["tools"], json!({}), &echoes("x"));
        state(agent, "p1", expected);
    };
    again(&mut room.agent, "pending");
    room.reviewed.fulfil("f1", "p1");
    for expected in ["running", "completed"] {
        state(&mut room.agent, "p1", expected);
    }
    again(&mut room.agent, "completed");
    room.reviewed.restart("KILL");
    let mut agent = room.reviewed.enter("agent");
    again(&mut agent, "completed");
    assert_eq!(room.reviewed.executed(), 1);
}
