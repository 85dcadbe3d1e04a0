//! Ids that name a proposal: each names one, for ever, and what its proposer receives about it
//! holds.

use model::{DeliveryMode, LinkId, Refusal, RefusalCode};
use topic::{Limits, REJECTED_PROPOSALS_MAX};

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::{REJECT, pending, stage, stage_with},
    shown::shown,
    stage::{ANN, APPROVE, BOB, ONE, Stage, id, op, terms},
};

/// A proposal of a call of `a` at `one` by this participant under the envelope's id `p1`, with this
/// number and content.
fn under_p1<'a>(link: LinkId, by: &str, number: u128, content: u128) -> Envelope<'a> {
    let terms = terms(&id(by), &[id("one")], "p1");
    let intent = Intent::Propose {
        proposal: op(number),
        terms: Box::new(terms),
        content,
    };
    Envelope {
        intent,
        ..Envelope::new(link, "p1", "mcp/proposal:tools/call:a", &["one"])
    }
}

/// A request at `one` and one in the room that would fulfil `p1`, and their effects.
fn fulfilments(stage: &mut Stage) -> Vec<String> {
    let mut all = Vec::new();
    for (id, to) in [("f1", ["one"]), ("f2", ["one"]), ("f3", ["cid"])] {
        all.extend(shown(
            &stage.send(Envelope::request(ANN, id, &to, &[11]).about("p1")),
        ));
    }
    all
}

/// No fulfilment of `p1` is published or runs.
#[track_caller]
fn is_decided(stage: &mut Stage) {
    assert_eq!(
        fulfilments(stage),
        [
            "refuse 11: decided",
            "refuse 11: decided",
            "withhold from 1: conflict"
        ]
    );
}

#[test]
fn a_proposal_is_published_once_its_opening_is_on_disk() {
    let mut stage = stage();
    assert_eq!(shown(&stage.proposes(BOB, "bob", 1)), ["store p1 opened"]);
    assert_eq!(shown(&stage.stored(1)), ["publish p1", "proposed p1"]);
    // What cannot be written, and what its proposer may not make any more, no participant gets.
    stage.proposes(BOB, "bob", 2);
    assert_eq!(
        shown(&stage.not_stored(2)),
        ["not proposed p2 of bob: log_unavailable"]
    );
    stage.proposes(BOB, "bob", 3);
    stage.revoke("bob");
    let effects = shown(&stage.stored(3));
    assert!(
        effects.iter().all(|line| !line.starts_with("publish")),
        "{effects:?}"
    );
    // Its sender may be gone: it has proposed all the same.
    stage.listener(BOB, "bob", &["mcp/proposal:*"], DeliveryMode::All);
    stage.proposes(BOB, "bob", 4);
    stage.leave(BOB);
    assert_eq!(shown(&stage.stored(4)), ["publish p4", "proposed p4"]);
}

#[test]
fn what_is_rejected_on_arrival_is_decided() {
    // Beyond a limit.
    let mut stage = stage_with(Limits {
        proposals_per_participant_max: 0,
        ..Limits::default()
    });
    assert_eq!(
        shown(&stage.proposes(BOB, "bob", 1)),
        ["not proposed p1 of bob: limit"]
    );
    is_decided(&mut stage);
    // The journal cannot write it.
    let mut stage = self::stage();
    stage.proposes(BOB, "bob", 1);
    stage.not_stored(1);
    is_decided(&mut stage);
    // Nothing that could be proposed.
    let mut stage = self::stage();
    let refusal = Box::new(Refusal::new(
        RefusalCode::Malformed,
        "kind and payload differ",
    ));
    let reject = |link| Envelope {
        intent: Intent::Reject {
            refusal: refusal.clone(),
            published: false,
        },
        ..Envelope::new(link, "p1", "mcp/proposal:tools/call:a", &["one"])
    };
    assert_eq!(
        shown(&stage.send(reject(BOB))),
        ["rejected p1 of bob: malformed"]
    );
    is_decided(&mut stage);
    // However often it is sent, with whatever content: nothing is published, and no other
    // participant can take the id.
    assert_eq!(
        shown(&stage.send(reject(BOB))),
        ["rejected p1 of bob: conflict"]
    );
    assert_eq!(
        shown(&stage.send(under_p1(BOB, "bob", 2, 2))),
        ["rejected p1 of bob: conflict"]
    );
    assert_eq!(
        shown(&stage.send(reject(ANN))),
        ["withhold from 1: conflict"]
    );
    assert_eq!(
        shown(&stage.send(under_p1(ANN, "ann", 3, 3))),
        ["withhold from 1: conflict"]
    );
    is_decided(&mut stage);
}

#[test]
fn a_proposal_that_is_not_what_its_kind_says_is_published_and_decided() {
    let mut stage = stage();
    let refusal = Box::new(Refusal::new(
        RefusalCode::Malformed,
        "kind and payload differ",
    ));
    let reject = || Envelope {
        intent: Intent::Reject {
            refusal: refusal.clone(),
            published: true,
        },
        ..Envelope::new(BOB, "p1", "mcp/proposal:tools/call:a", &["one"])
    };
    assert_eq!(
        shown(&stage.send(reject())),
        ["publish p1", "rejected p1 of bob: malformed"]
    );
    is_decided(&mut stage);
    assert_eq!(
        shown(&stage.send(reject())),
        ["rejected p1 of bob: conflict"]
    );
}

#[test]
fn the_latest_rejected_ids_are_remembered() {
    let mut stage = stage_with(Limits {
        proposals_per_participant_max: 0,
        ..Limits::default()
    });
    for number in 1..=REJECTED_PROPOSALS_MAX as u128 {
        stage.proposes(BOB, "bob", number);
    }
    is_decided(&mut stage);
    stage.proposes(BOB, "bob", REJECTED_PROPOSALS_MAX as u128 + 1);
    assert_eq!(
        fulfilments(&mut stage)[0],
        "publish f1",
        "its oldest is forgotten"
    );
}

#[test]
fn an_id_names_one_proposal() {
    let mut stage = stage();
    stage.proposes(BOB, "bob", 1);
    let others = |stage: &mut Stage, why: &str| {
        for (link, by) in [(BOB, "bob"), (ANN, "ann")] {
            let taken = shown(&stage.send(under_p1(link, by, 9, 2)));
            assert_eq!(
                taken,
                [format!("withhold from {}: conflict", link.0)],
                "{why}"
            );
        }
        let refusal = Box::new(Refusal::new(
            RefusalCode::Malformed,
            "kind and payload differ",
        ));
        let intent = Intent::Reject {
            refusal,
            published: true,
        };
        let reject = Envelope {
            intent,
            ..Envelope::new(BOB, "p1", "mcp/proposal:tools/call:a", &["one"])
        };
        assert_eq!(
            shown(&stage.send(reject)),
            ["withhold from 2: conflict"],
            "{why}"
        );
    };
    others(&mut stage, "opening");
    stage.stored(1);
    others(&mut stage, "pending");
    stage.decide(1, "ann", REJECT);
    others(&mut stage, "being decided");
    assert_eq!(
        shown(&stage.stored(1))[0],
        "concluded p1 rejected: too broad"
    );
    others(&mut stage, "over");
    // Of those that the topic has forgotten it knows the digest.
    let mut later = self::stage();
    later.step(topic::Event::Closed {
        closed: vec![(500, crate::envelope::digest("p1"))],
    });
    others(&mut later, "known by its digest");
    assert_eq!(
        shown(&later.send(under_p1(BOB, "bob", 9, 1))),
        ["withhold from 2: conflict"]
    );
}

#[test]
fn a_proposal_that_is_sent_again_is_answered_with_its_state() {
    let mut stage = stage();
    let again = |stage: &mut Stage| shown(&stage.send(under_p1(BOB, "bob", 9, 1)));
    stage.proposes(BOB, "bob", 1);
    assert!(
        again(&mut stage).is_empty(),
        "its sender hears of it once it is on disk"
    );
    stage.stored(1);
    assert_eq!(again(&mut stage), ["remind 2 of p1 pending"]);
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    assert_eq!(again(&mut stage), ["remind 2 of p1 running"]);
    stage.execute(1, 11, "one");
    stage.answer(ONE, 11, 5);
    stage.stored(1);
    assert_eq!(again(&mut stage), ["remind 2 of p1 completed"]);
    assert_eq!(stage.topic.proposals_len(), 0);
}

#[test]
fn a_request_that_names_a_proposal_and_asks_for_nothing_is_not_published() {
    let mut stage = pending();
    stage.listener(LinkId(4), "dan", &["mcp/response:*"], DeliveryMode::All);
    for intent in [Intent::None, Intent::Mismatch] {
        let request = Envelope {
            intent,
            ..Envelope::new(ANN, "f1", "mcp/request:tools/call:a", &["dan"])
        };
        assert_eq!(
            shown(&stage.send(request.about("p1"))),
            ["withhold from 1: conflict"]
        );
    }
    let differs = Envelope {
        intent: Intent::Mismatch,
        ..Envelope::new(ANN, "f2", "mcp/request:tools/call:a", &["one"])
    };
    let expected = ["ignore f2 of ann by one: mismatch"];
    assert_eq!(
        shown(&stage.send(differs.about("p1"))),
        expected,
        "the server answers with the error"
    );
    // A notification about what runs is none.
    let about =
        Envelope::new(ANN, "n1", "mcp/request:notifications/progress", &["cid"]).about("p1");
    assert_eq!(shown(&stage.send(about)), ["publish n1"]);
}
