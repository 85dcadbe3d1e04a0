//! Ended proposals: no participant carries one out a second time, however many ended since.

use std::collections::BTreeMap;

use serde_json::json;

use crate::reviewed::{Reviewed, propose};
use crate::stage::{FULFIL, fulfilment, names};
use crate::support::until;

/// The agent makes so many more proposals that more of its own end than a topic and the journal
/// keep of it.
const ROUNDS: usize = 5;
const EACH: usize = topic::ENDED_PROPOSALS_MAX / ROUNDS + 1;

/// Makes and ends as many proposals of the agent as a topic keeps.
fn fill(reviewed: &Reviewed) {
    for round in 0..ROUNDS {
        let mut agent = reviewed.enter("agent");
        (0..EACH).for_each(|number| propose(&mut agent, &format!("{round} {number}")));
        agent.leave();
        until("all have ended", || {
            let pending = reviewed.api("boss", "GET", "", &json!(null)).json();
            let pending = pending["proposals"]
                .as_array()
                .unwrap_or_else(|| panic!("{pending}"))
                .clone();
            for proposal in &pending {
                let path = format!("/{}/reject", proposal["id"].as_str().unwrap());
                assert_eq!(reviewed.api("boss", "POST", &path, &json!({})).status, 200);
            }
            pending.is_empty().then_some(())
        });
    }
}

#[test]
fn a_fulfilled_proposal_never_runs_again_however_many_end_after_it() {
    let mut reviewed = Reviewed::new(&[]);
    propose(&mut reviewed.enter("agent"), "p1");
    let id = reviewed.shown("p1")["id"].as_str().unwrap().to_owned();
    let answer = reviewed.fulfil("f1", "p1");
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    until("it is over", || {
        (reviewed.shown("p1")["state"] == "completed").then_some(())
    });
    fill(&reviewed);
    let forgotten = reviewed.api("boss", "GET", &format!("/{id}"), &json!(null));
    assert_eq!(
        forgotten.status, 404,
        "the topic keeps it no more: {forgotten:?}"
    );
    for (round, signal) in ["TERM", "KILL", ""].into_iter().enumerate() {
        // The same envelope and another, within the run that carried it out and after it.
        for envelope in [&format!("again {round}"), "f1"] {
            let answer = reviewed.fulfil(envelope, "p1");
            assert_eq!(answer["error"]["data"]["code"], "conflict", "{answer}");
        }
        let filler = reviewed.fulfil(&format!("filler {round}"), "0 0");
        assert_eq!(filler["error"]["data"]["code"], "conflict", "{filler}");
        assert_eq!(reviewed.executed(), 1);
        if !signal.is_empty() {
            reviewed.restart(signal);
        }
    }
    // A request that names what never was a proposal is one of its sender's own.
    let answer = reviewed.fulfil("f2", "p2");
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(reviewed.executed(), 2);
}

#[test]
fn a_proposers_own_request_settles_its_proposal() {
    let mut reviewed = Reviewed::new(&[]);
    let mut agent = reviewed.enter("agent");
    propose(&mut agent, "p1");
    let proposal = reviewed.shown("p1");
    reviewed.change(
        "capabilities = [\"mcp/proposal:*\", \"chat\"]",
        "capabilities = [\"mcp/proposal:*\", \"mcp/request:tools/*\", \"chat\"]",
    );
    reviewed.reload();
    agent.receive_until(|received| received["kind"] == "system/welcome");
    agent.send(FULFIL, "r1", &["tools"], names("p1"), &fulfilment("x"));
    let answer = agent.receive_until(|received| received["correlation_id"] == "r1");
    assert_eq!(
        answer["payload"]["result"]["content"][0]["text"], "x",
        "{answer}"
    );
    let reply = reviewed.approve("boss", &proposal);
    assert_eq!(reply.status, 409, "{reply:?}");
    for signal in ["KILL", ""] {
        reviewed.withdrawn("p1", "carried out by its proposer, agent");
        reviewed.runs_never("p1", &format!("f1 {signal}"));
        assert_eq!(reviewed.executed(), 1);
        if !signal.is_empty() {
            reviewed.restart(signal);
        }
    }
}

#[test]
fn only_the_reviewer_whose_decision_counts_is_confirmed() {
    const ROUNDS: usize = 120;
    let reviewed = Reviewed::new(&[]);
    let mut agent = reviewed.enter("agent");
    let all: Vec<String> = (0..ROUNDS).map(|number| format!("p{number}")).collect();
    all.iter()
        .for_each(|envelope| propose(&mut agent, envelope));
    let proposals: Vec<_> = all
        .iter()
        .map(|envelope| reviewed.shown(envelope))
        .collect();
    // One reviewer approves by envelopes and both through the API.
    let mut chief = reviewed.enter("chief");
    let confirmed = std::thread::scope(|scope| {
        let [boss, other] = ["boss", "chief"].map(|who| {
            let (reviewed, proposals) = (&reviewed, &proposals);
            let approve = move |proposal| match reviewed.approve(who, proposal).status {
                200 => true,
                409 => false,
                other => panic!("{who}: {other}"),
            };
            scope.spawn(move || proposals.iter().map(approve).collect::<Vec<bool>>())
        });
        let sent = scope.spawn(|| {
            for envelope in &all {
                let id = format!("f {envelope}");
                chief.send(FULFIL, &id, &["tools"], names(envelope), &fulfilment("x"));
            }
            // An approval is answered later than a refusal.
            let mut ran = BTreeMap::new();
            while ran.len() < ROUNDS {
                let answer = chief.receive_message();
                let of = answer["correlation_id"]
                    .as_str()
                    .and_then(|id| id.strip_prefix("f "));
                if let Some(of) = of {
                    ran.insert(of.to_owned(), answer["payload"]["result"].is_object());
                }
            }
            all.iter().map(|envelope| ran[envelope]).collect()
        });
        [
            boss.join().unwrap(),
            other.join().unwrap(),
            sent.join().unwrap(),
        ]
    });
    for (number, envelope) in all.iter().enumerate() {
        let shown = until("its end", || {
            Some(reviewed.shown(envelope)).filter(|shown| shown["state"] == "completed")
        });
        let counts = confirmed.each_ref().map(|of| of[number]);
        assert_eq!(
            counts.iter().filter(|counts| **counts).count(),
            1,
            "{envelope}: {counts:?}"
        );
        assert_eq!(
            shown["decided_by"],
            if counts[0] { "boss" } else { "chief" },
            "{envelope}: {counts:?}"
        );
    }
    assert_eq!(reviewed.executed(), ROUNDS);
}
