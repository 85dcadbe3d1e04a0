//! Proposals of participants that may not propose any more: withdrawn, in the journal too, and
//! never run.

use crate::reviewed::{Reviewed, enter_with, issue};
use crate::ws::token;

const REVOKED: &str = "its proposer may not be here any more";
const UNENTITLED: &str = "its proposer may not propose it any more";
const AGENT: &str = "capabilities = [\"mcp/proposal:*\", \"chat\"]";

/// The proposals are withdrawn, and stay so after a crash.
#[track_caller]
fn end_for_good(reviewed: &mut Reviewed, envelopes: &[&str], reason: &str) {
    for signal in ["KILL", ""] {
        for envelope in envelopes {
            reviewed.withdrawn(envelope, reason);
            reviewed.runs_never(envelope, &format!("f {envelope} {signal}"));
        }
        if !signal.is_empty() {
            reviewed.restart(signal);
        }
    }
    assert_eq!(reviewed.executed(), 0);
}

#[test]
fn a_revoked_token_withdraws_its_participants_proposals() {
    let mut reviewed = Reviewed::new(&[]);
    let (here, away) = (issue(&reviewed, "here", &[]), issue(&reviewed, "away", &[]));
    let mut socket = enter_with(&reviewed.gateway, "here", &here);
    crate::reviewed::propose(&mut socket, "p1");
    reviewed.propose_and_leave(enter_with(&reviewed.gateway, "away", &away), "p2");
    for name in ["here", "away"] {
        let (url, boss) = (reviewed.gateway.url(), token("boss"));
        reviewed
            .home
            .run(&["token", "revoke", name, "--url", &url, "--token", &boss])
            .expect(0);
    }
    // An approval that comes at once does not count either.
    reviewed.runs_never("p1", "f1");
    reviewed.runs_never("p2", "f2");
    assert_eq!(socket.closed(), 4002);
    end_for_good(&mut reviewed, &["p1", "p2"], REVOKED);
}

#[test]
fn an_expired_token_withdraws_its_participants_proposals() {
    let mut reviewed = Reviewed::new(&[]);
    let bearer = issue(&reviewed, "guest", &["--expires", "2s"]);
    reviewed.propose_and_leave(enter_with(&reviewed.gateway, "guest", &bearer), "p1");
    end_for_good(&mut reviewed, &["p1"], REVOKED);
}

#[test]
fn a_removed_participants_proposals_are_withdrawn() {
    let table = format!("[participants.agent]\ntoken_env = \"TOKEN_AGENT\"\n{AGENT}\n");
    // While the gateway runs.
    let mut reviewed = Reviewed::new(&[]);
    reviewed.propose_and_leave(reviewed.enter("agent"), "p1");
    reviewed.change(&table, "");
    reviewed.reload();
    end_for_good(&mut reviewed, &["p1"], REVOKED);
    // While it is stopped.
    let mut reviewed = Reviewed::new(&[]);
    reviewed.propose_and_leave(reviewed.enter("agent"), "p1");
    reviewed.change(&table, "");
    reviewed.restart("TERM");
    end_for_good(&mut reviewed, &["p1"], REVOKED);
}

#[test]
fn proposals_end_with_their_absent_proposers_right_to_propose() {
    let mut reviewed = Reviewed::new(&[]);
    reviewed.propose_and_leave(reviewed.enter("agent"), "p1");
    reviewed.change(
        AGENT,
        "capabilities = [\"mcp/proposal:tools/call:other\", \"chat\"]",
    );
    reviewed.reload();
    end_for_good(&mut reviewed, &["p1"], UNENTITLED);
    let mut reviewed = Reviewed::new(&[]);
    reviewed.propose_and_leave(reviewed.enter("agent"), "p1");
    reviewed.change(AGENT, "capabilities = [\"chat\"]");
    reviewed.restart("TERM");
    end_for_good(&mut reviewed, &["p1"], UNENTITLED);
}
