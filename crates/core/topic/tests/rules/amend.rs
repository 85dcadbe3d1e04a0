//! Amendments: a proposer replaces the arguments of a proposal that is open to decisions.

use model::{Digest, LinkId, ProposalState};
use topic::{AMENDMENTS_MAX, Amended, Cause, Decision, Event, Limits};

use crate::{
    numbers::Effects,
    proposals::{REJECT, stage},
    shown::{refused, shown},
    stage::{APPROVE, BOB, EXPIRES_MS, SHOWN, Stage, id, op, terms},
};

const OTHER: Digest = Digest([8; 32]);
const OF_OTHER: Decision<'_> = Decision::Approve {
    shown: OTHER,
    current: Some(OTHER),
};

/// Bob's proposal 1 of a call of `a` at `one`, which needs so many approvals; ann and dee may decide.
fn proposed(approvals: usize, amendments: usize) -> Stage {
    let mut stage = stage();
    stage.caller(LinkId(41), "dee", &["mcp/approve:tools/call:one_a"]);
    let terms = topic::Terms {
        approvals,
        amendments,
        ..terms(&id("bob"), &[id("one")], "p1")
    };
    stage.restore_with(1, terms);
    stage
}

fn amends(stage: &mut Stage, by: &str, bytes: usize) -> Effects {
    amends_one(stage, 1, by, bytes)
}

fn amends_one(stage: &mut Stage, proposal: u128, by: &str, bytes: usize) -> Effects {
    stage.step(Event::Decide {
        proposal: op(proposal),
        by: &id(by),
        outside: None,
        narrowing: None,
        decision: Decision::Amend,
        fulfilment: None,
        amended: Some(Amended {
            digest: OTHER,
            content: proposal,
            bytes,
        }),
        ruling: 9,
    })
}

#[test]
fn an_amendment_voids_what_reviewers_saw_once_it_is_on_disk() {
    let mut stage = proposed(1, 0);
    assert_eq!(
        shown(&amends(&mut stage, "bob", 11)),
        ["store p1 amended by bob"]
    );
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(view.amendments, 0, "not before");
    assert_eq!(shown(&stage.stored(1)), ["amended p1", "ruled 9"]);
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(view.amendments, 1);
    assert_eq!(view.state, ProposalState::Pending);
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Differs);
    stage.decide(1, "ann", OF_OTHER);
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
    assert_eq!(refused(&amends(&mut stage, "bob", 11)), Cause::Decided);
    // One that is not on disk changes nothing.
    let mut stage = proposed(1, 0);
    amends(&mut stage, "bob", 11);
    assert_eq!(refused(&stage.not_stored(1)), Cause::LogUnavailable);
    assert_eq!(refused(&stage.decide(1, "ann", OF_OTHER)), Cause::Differs);
    stage.approved(1);
}

#[test]
fn approvals_of_an_earlier_version_never_count_again() {
    let mut stage = proposed(2, 0);
    stage.approved(1);
    amends(&mut stage, "bob", 11);
    stage.stored(1);
    let approved_by = |stage: &Stage| stage.topic.proposal(op(1)).unwrap().approved_by;
    assert!(approved_by(&stage).is_empty());
    assert!(stage.topic.approvers_of(op(1)).is_empty());
    // Not even if the first arguments come back.
    stage.step(Event::Decide {
        proposal: op(1),
        by: &id("bob"),
        outside: None,
        narrowing: None,
        decision: Decision::Amend,
        fulfilment: None,
        amended: Some(Amended {
            digest: SHOWN,
            content: 1,
            bytes: 10,
        }),
        ruling: 9,
    });
    stage.stored(1);
    assert!(approved_by(&stage).is_empty());
    stage.decide(1, "dee", APPROVE);
    assert_eq!(
        shown(&stage.stored(1)),
        ["counted p1 by dee, of dee: 1 of 2", "ruled 9"]
    );
}

#[test]
fn its_proposer_alone_amends_it_and_not_for_ever() {
    let mut stage = proposed(1, 0);
    assert_eq!(refused(&amends(&mut stage, "ann", 11)), Cause::NotAdmitted);
    for _ in 0..AMENDMENTS_MAX {
        amends(&mut stage, "bob", 11);
        assert_eq!(shown(&stage.stored(1)).len(), 2);
    }
    assert_eq!(refused(&amends(&mut stage, "bob", 11)), Cause::Amended);
    // As many as before a restart.
    let mut stage = proposed(1, AMENDMENTS_MAX);
    assert_eq!(refused(&amends(&mut stage, "bob", 11)), Cause::Amended);
    // Both contents have room until one is on disk, as others are judged meanwhile.
    let mut stage = proposed(1, 0);
    let limit = Limits::default().proposal_bytes_per_participant_max;
    amends(&mut stage, "bob", limit);
    let other = topic::Terms {
        bytes: 1,
        ..terms(&id("bob"), &[id("one")], "p2")
    };
    let opens = |stage: &mut Stage| {
        stage.restore_with(2, other.clone());
        amends_one(stage, 2, "bob", 2)
    };
    assert_eq!(refused(&opens(&mut stage)), Cause::Limit);
    let mut stage = proposed(1, 0);
    amends(&mut stage, "bob", limit - 2);
    stage.not_stored(1);
    assert_eq!(shown(&opens(&mut stage)), ["store p2 amended by bob"]);
    let mut stage = proposed(1, 0);
    let most = Limits::default().proposal_bytes_per_participant_max;
    assert_eq!(refused(&amends(&mut stage, "bob", most + 1)), Cause::Limit);
    assert_eq!(shown(&amends(&mut stage, "bob", most)).len(), 1);
    // An amendment without arguments is none.
    let mut stage = proposed(1, 0);
    let none = stage.decide(1, "bob", Decision::Amend);
    assert_eq!(refused(&none), Cause::Differs);
    stage.now_ms = EXPIRES_MS;
    assert_eq!(refused(&amends(&mut stage, "bob", 11)), Cause::Expired);
}

#[test]
fn a_decision_that_comes_while_an_amendment_is_written_is_judged_after_it() {
    let mut stage = proposed(1, 0);
    amends(&mut stage, "bob", 11);
    assert!(shown(&stage.decide(1, "ann", APPROVE)).is_empty());
    let lines = shown(&stage.stored(1));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[2], "refuse decision 9 of ann on p1: differs");
    let mut stage = proposed(1, 0);
    amends(&mut stage, "bob", 11);
    stage.decide(1, "ann", REJECT);
    let lines = shown(&stage.stored(1));
    let last = lines.last().map(String::as_str);
    assert_eq!(last, Some("store p1 decided rejected by ann: too broad"));
}

#[test]
fn an_amendment_waits_for_the_opening_and_gives_way_to_an_end() {
    let mut stage = stage();
    stage.caller(LinkId(41), "dee", &["mcp/approve:tools/call:one_a"]);
    stage.proposes_to(BOB, "bob", 1, &["one"]);
    assert!(shown(&amends(&mut stage, "bob", 11)).is_empty());
    let withdraws = Decision::Withdraw { reason: None };
    let lines = shown(&stage.decide(1, "bob", withdraws));
    assert_eq!(lines, ["refuse decision 9 of bob on p1: decided"]);
    let lines = shown(&stage.stored(1));
    let last = lines.last().map(String::as_str);
    assert_eq!(last, Some("store p1 decided withdrawn by bob"));
}
