//! Stop of the gateway: callers get answers for now, and proposals last.

use topic::{Event, ListScope};

use crate::{
    holds::{held, stage},
    shown::shown,
    stage::{ANN, APPROVE, BOB, ONE, Stage, op, tools},
};

/// Held 11 behind proposal 1, resumption 12 and built-in call 13 wait for it; held 14 is not
/// proposed yet.
fn waiting() -> Stage {
    let mut stage = held();
    stage.lists("portmoot", ListScope::Shared, tools(&["wait_for_proposal"]));
    stage.resume(BOB, 12, 1);
    stage.call(BOB, 13, "wait_for_proposal");
    stage.wait(13, 1, None);
    stage.call(BOB, 14, "one_a");
    stage.call(ANN, 15, "one_a");
    stage
}

#[test]
fn all_callers_that_wait_for_a_proposal_are_answered_for_now() {
    let mut stage = waiting();
    let expected = ["park 11 for p1", "park 12 for p1", "park 13 for p1"];
    assert_eq!(shown(&stage.step(Event::Stop)), expected);
    assert!(shown(&stage.step(Event::Stop)).is_empty());
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.parked_len()),
        (2, 1)
    );
    assert!(stage.topic.is_open(op(14)) && stage.topic.is_open(op(15)));
    assert_eq!(shown(&stage.resume(BOB, 16, 1)), ["park 16 for p1"]);
    stage.call(BOB, 17, "wait_for_proposal");
    assert_eq!(shown(&stage.wait(17, 1, None)), ["park 17 for p1"]);
    // A call that is not yet proposed gets its answer for now once its proposal is on disk.
    assert_eq!(shown(&stage.propose(2, "bob", 14)), ["store p2 opened"]);
    assert_eq!(shown(&stage.stored(2)), ["proposed p2", "park 14 for p2"]);
    assert_eq!(shown(&stage.leave(BOB)), ["left bob", "closed 2"]);
    assert_eq!(stage.topic.proposals_len(), 2);
}

#[test]
fn no_proposal_is_withdrawn_any_more() {
    let mut stage = stage();
    stage.call(BOB, 11, "one_a");
    stage.propose(1, "bob", 11);
    assert!(
        shown(&stage.step(Event::Stop)).is_empty(),
        "its opening is not on disk"
    );
    assert_eq!(
        shown(&stage.leave(BOB)),
        ["left bob", "drop 11", "closed 2"]
    );
    assert_eq!(shown(&stage.stored(1)), ["proposed p1"]);
    assert_eq!(stage.topic.proposals_len(), 1);
    stage.decide(1, "ann", APPROVE);
    assert_eq!(
        shown(&stage.stored(1)),
        ["approved p1 at one", "ruled 9"],
        "the gateway carries it out"
    );
    // A running call is cancelled as usual.
    let mut stage = held();
    stage.approved(1);
    stage.step(Event::Stop);
    let expected = [
        "store p1 ended failed: the call was cancelled while it ran: it may have been carried out",
        "cancel 11",
        "drop 11",
    ];
    assert_eq!(shown(&stage.cancel(BOB, 11)), expected);
    assert!(shown(&stage.answer(ONE, 11, 5)).is_empty());
}
