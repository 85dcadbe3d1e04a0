//! Proposals that get a definition after they were made: their server had listed nothing before.

use model::Digest;
use topic::{Cause, Decision, Event, Limits};

use crate::{
    envelope::Envelope,
    numbers::Effects,
    proposals::{pending, stage_with},
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, ONE, Stage, op},
};

const DESCRIBED: Digest = Digest([8; 32]);

fn describe(stage: &mut Stage, bytes: usize) -> Effects {
    stage.step(Event::Describe {
        proposal: op(1),
        digest: DESCRIBED,
        content: 1,
        bytes,
    })
}

#[test]
fn a_decision_is_about_the_definition_that_came_first() {
    let mut stage = pending();
    assert!(shown(&describe(&mut stage, 12)).is_empty());
    assert_eq!(
        refused(&stage.decide(1, "ann", APPROVE)),
        Cause::Differs,
        "it was shown without"
    );
    let request = Envelope::request(ANN, "f1", &["one"], &[11])
        .about("p1")
        .redefined();
    assert_eq!(
        shown(&stage.send(request)),
        ["store p1 decided running by ann"]
    );
    stage.stored(1);
    stage.answer(ONE, 11, 5);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    // What is being decided stays as it is.
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    describe(&mut stage, 12);
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
}

#[test]
fn a_definition_counts_like_all_that_is_proposed() {
    // Each proposal has ten bytes.
    let mut stage = stage_with(Limits {
        proposal_bytes_per_participant_max: 30,
        ..Limits::default()
    });
    stage.proposes(BOB, "bob", 1);
    stage.stored(1);
    let shown_now = Decision::Approve {
        shown: DESCRIBED,
        current: Some(DESCRIBED),
    };
    describe(&mut stage, 31);
    assert_eq!(
        refused(&stage.decide(1, "ann", shown_now)),
        Cause::Differs,
        "there is no room for it"
    );
    describe(&mut stage, 21);
    assert!(shown(&stage.proposes(BOB, "bob", 2))[0].starts_with("not proposed p2 of bob: limit"));
    assert_eq!(
        shown(&stage.decide(1, "ann", shown_now)),
        ["store p1 decided running by ann"]
    );
    stage.stored(1);
    stage.execute(1, 11, "one");
    stage.answer(ONE, 11, 5);
    stage.stored(1);
    assert_eq!(
        shown(&stage.proposes(BOB, "bob", 3)),
        ["store p3 opened"],
        "over, it counts no more"
    );
}
