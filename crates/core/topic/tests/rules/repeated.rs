//! Calls that repeat a proposal of their participant.

use model::{Digest, Narrowing, OperationId};
use topic::{About, Event, GATHER_MS};

use crate::{
    holds::{held, stage},
    proposals::{REJECT, WITHDRAW},
    shown::shown,
    stage::{APPROVE, BOB, CID, ONE, Stage, caps, id, op, terms},
};

/// The time at which the callers of `Stage::propose` are answered for now.
const PARKED_MS: u64 = 50;

/// Bob's call 11 of `one_a` was answered for now with proposal 1.
fn parked() -> Stage {
    let mut stage = held();
    stage.tick(PARKED_MS);
    stage
}

/// The proposal that the same call of bob's repeats.
fn repeated(stage: &Stage) -> Option<OperationId> {
    let again = terms(&id("bob"), &[id("one")], "again");
    stage.topic.repeated_by(&again, None).map(|one| one.id)
}

#[test]
fn a_call_repeats_an_own_proposal_of_the_same_request() {
    let stage = parked();
    assert_eq!(repeated(&stage), Some(op(1)));
    let mut other = terms(&id("bob"), &[id("one")], "again");
    other.digest = Digest([8; 32]);
    assert!(stage.topic.repeated_by(&other, None).is_none());
    let of_ann = terms(&id("ann"), &[id("one")], "again");
    assert!(stage.topic.repeated_by(&of_ann, None).is_none());
    // A token that is not good for the proposal does not lead to it.
    let token = |to: &str| Narrowing {
        to: caps(&[to]),
        step_up: None,
    };
    let again = terms(&id("bob"), &[id("one")], "again");
    for (to, found) in [
        ("mcp/proposal:tools/call:one_a", true),
        ("mcp/proposal:tools/call:one_b", false),
    ] {
        let seen = stage.topic.repeated_by(&again, Some(&token(to)));
        assert_eq!(seen.is_some(), found, "{to}");
    }
    // The proposal of an envelope is none of a call.
    let mut stage = self::stage();
    stage.restore(1, false);
    assert_eq!(repeated(&stage), None);
    stage.restore(2, true);
    assert_eq!(repeated(&stage), Some(op(2)));
}

#[test]
fn a_proposal_is_repeated_from_the_disk_until_its_end() {
    // Its caller must not rely on it before it is on disk.
    let mut stage = self::stage();
    stage.call(BOB, 11, "one_a");
    stage.propose(1, "bob", 11);
    stage.tick(PARKED_MS);
    assert_eq!(repeated(&stage), None);
    stage.stored(1);
    assert_eq!(repeated(&stage), Some(op(1)));
    // More time changes nothing of the call.
    stage.decide(1, "ann", topic::Decision::Extend);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.stored(1);
    // It runs at most once, so each caller that asks again meanwhile gets this run.
    stage.decide(1, "ann", APPROVE);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.stored(1);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.answer(ONE, 11, 5);
    assert_eq!(repeated(&stage), None, "its end is being written");
    stage.stored(1);
    assert_eq!(repeated(&stage), None);
}

#[test]
fn a_call_whose_caller_waits_is_not_repeated_by_another_at_the_same_time() {
    let mut stage = held();
    assert_eq!(repeated(&stage), None, "it is held");
    // The other is a proposal of its own, and is repeated once its caller is answered so.
    stage.call(BOB, 12, "one_a");
    stage.propose(2, "bob", 12);
    stage.stored(2);
    assert_eq!(stage.topic.proposals_len(), 2);
    stage.approved(1);
    assert_eq!(repeated(&stage), None, "one runs, the other is held");
    stage.tick(PARKED_MS);
    assert_eq!(repeated(&stage), Some(op(2)), "the running one is not over");
    stage.answer(ONE, 11, 5);
    stage.stored(1);
    assert_eq!(repeated(&stage), Some(op(2)));
}

#[test]
fn a_call_that_was_answered_for_now_is_repeated_whoever_waits_since() {
    // Its caller is back, and waits once more.
    let mut stage = parked();
    stage.resume(BOB, 20, 1);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.approved(1);
    assert_eq!(repeated(&stage), Some(op(1)), "it runs");
    // The gateway stops: every caller is answered, and none is there after the restart.
    let mut stage = held();
    stage.step(Event::Stop);
    assert_eq!(repeated(&stage), Some(op(1)));
    let mut stage = self::stage();
    stage.restore(1, true);
    stage.approved(1);
    assert_eq!(repeated(&stage), Some(op(1)), "no call is behind it");
    stage.execute(1, 11, "one");
    assert_eq!(repeated(&stage), Some(op(1)), "the gateway carries it out");
}

#[test]
fn a_caller_that_is_asked_questions_still_waits() {
    let mut stage = self::stage();
    stage.join(CID, "bob", &["mcp/proposal:*"], |join| {
        join.joining.promotes = true;
        join.joining.pauses = true;
    });
    stage.call(CID, 11, "one_a");
    stage.propose(1, "bob", 11);
    stage.stored(1);
    stage.approved(1);
    stage.ask("one", 12, About::Call(op(11)), "roots/list");
    let paused = stage.tick(GATHER_MS);
    assert_eq!(shown(&paused), ["pause 11 in round 1 with 12"]);
    assert_eq!(repeated(&stage), None, "it comes back with the answers");
    stage.come_back(CID, (11, 13), 1, &[(12, 5)]);
    assert_eq!(repeated(&stage), None, "it is back");
}

#[test]
fn a_proposal_that_is_given_up_is_not_repeated() {
    for (by, decision) in [("ann", REJECT), ("bob", WITHDRAW)] {
        let mut stage = parked();
        stage.decide(1, by, decision);
        assert_eq!(repeated(&stage), None, "{by}");
    }
    // Its caller has cancelled it, and calls again at once.
    let mut stage = held();
    stage.cancel(BOB, 11);
    assert_eq!(repeated(&stage), None);
    // The same while an approval is being written.
    let mut stage = held();
    stage.decide(1, "ann", APPROVE);
    stage.cancel(BOB, 11);
    assert_eq!(repeated(&stage), None);
    // Its name has another bearer.
    let mut stage = parked();
    stage.step(Event::Disown {
        participant: &id("bob"),
    });
    assert_eq!(repeated(&stage), None);
}
