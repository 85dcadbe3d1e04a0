//! Two clocks: a proposal expires by the first of them.

use topic::Cause;

use crate::{
    proposals::{REJECT, pending},
    shown::{refused, shown},
    stage::{APPROVE, EXPIRES_MS, WALL_EXPIRES_MS},
};

#[test]
fn a_proposal_expires_by_the_wall_clock_while_the_steady_one_stands() {
    let mut stage = pending();
    let deadlines = (
        stage.topic.next_deadline_ms(),
        stage.topic.next_wall_deadline_ms(),
    );
    assert_eq!(deadlines, (Some(EXPIRES_MS), Some(WALL_EXPIRES_MS)));
    stage.wall_ms = WALL_EXPIRES_MS - 1;
    assert!(shown(&stage.tick(0)).is_empty());
    // Before its tick too, as when an approval is the first thing after the machine has slept.
    stage.wall_ms = WALL_EXPIRES_MS;
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Expired);
    assert_eq!(shown(&stage.tick(0)), ["store p1 ended expired"]);
    let deadlines = (
        stage.topic.next_deadline_ms(),
        stage.topic.next_wall_deadline_ms(),
    );
    assert_eq!(deadlines, (None, None));
    // A clock that is set back changes nothing.
    stage.wall_ms = 0;
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 expired"]);
}

#[test]
fn a_wall_clock_that_is_set_back_gives_a_proposal_no_more_time() {
    let mut stage = pending();
    stage.wall_ms = 5;
    assert_eq!(shown(&stage.tick(EXPIRES_MS)), ["store p1 ended expired"]);
    // What runs does not depend on it.
    let mut stage = pending();
    stage.approved(1);
    stage.wall_ms = WALL_EXPIRES_MS;
    assert!(shown(&stage.tick(0)).is_empty());
    let mut stage = pending();
    stage.wall_ms = WALL_EXPIRES_MS;
    assert_eq!(refused(&stage.decide(1, "ann", REJECT)), Cause::Expired);
}
