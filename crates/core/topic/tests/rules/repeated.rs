//! Calls that repeat a proposal of their participant.

use model::{Digest, Narrowing, OperationId};
use topic::Event;

use crate::{
    holds::{held, stage},
    proposals::{REJECT, WITHDRAW},
    stage::{APPROVE, BOB, Stage, caps, id, op, terms},
};

/// The proposal that the same call of bob's repeats.
fn repeated(stage: &Stage) -> Option<OperationId> {
    let again = terms(&id("bob"), &[id("one")], "again");
    stage.topic.repeated_by(&again, None).map(|one| one.id)
}

#[test]
fn a_call_repeats_an_own_proposal_of_the_same_request() {
    let stage = held();
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
    assert_eq!(repeated(&stage), None);
    stage.stored(1);
    assert_eq!(repeated(&stage), Some(op(1)));
    // It runs at most once, so whoever asks again meanwhile gets this run.
    stage.decide(1, "ann", APPROVE);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.stored(1);
    assert_eq!(repeated(&stage), Some(op(1)));
    stage.answer(crate::stage::ONE, 11, 5);
    assert_eq!(repeated(&stage), None, "its end is being written");
    stage.stored(1);
    assert_eq!(repeated(&stage), None);
}

#[test]
fn a_proposal_that_is_given_up_is_not_repeated() {
    for (by, decision) in [("ann", REJECT), ("bob", WITHDRAW)] {
        let mut stage = held();
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
    let mut stage = held();
    stage.step(Event::Disown {
        participant: &id("bob"),
    });
    assert_eq!(repeated(&stage), None);
}
