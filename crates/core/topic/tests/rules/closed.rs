//! Closed proposals: the topic keeps only digests of their envelopes, and runs none of them again.

use topic::{CLOSED_PROPOSALS_MAX, ENDED_PROPOSALS_MAX, EndedProposal, Event, Restore};

use crate::{
    envelope::{Envelope, digest},
    proposals::stage,
    shown::shown,
    stage::{ANN, BOB, ONE, Stage, id, op, terms},
};

fn close(stage: &mut Stage, until_ms: u64, envelope: &str) {
    let effects = stage.step(Event::Closed {
        closed: vec![(until_ms, digest(envelope))],
    });
    assert!(shown(&effects).is_empty());
}

fn late<'a>(link: model::LinkId, id: &'a str) -> Envelope<'a> {
    Envelope::request(link, id, &["one", "two"], &[11, 12]).about("p1")
}

#[test]
fn a_request_that_names_a_closed_proposal_is_refused_until_its_time_is_over() {
    let mut stage = stage();
    stage.regrant("bob", &["mcp/*"]);
    close(&mut stage, 500, "p1");
    let expected = ["refuse 11: decided", "refuse 12: decided"];
    assert_eq!(shown(&stage.send(late(ANN, "f1"))), expected);
    assert_eq!(
        shown(&stage.send(late(ANN, "f1"))),
        expected,
        "however often it comes"
    );
    let own = ["refuse 11: decided", "refuse 12: decided"];
    assert_eq!(
        shown(&stage.send(late(BOB, "r1"))),
        own,
        "its proposer as well"
    );
    // Participants do not get it, and its sender hears of that once.
    let in_room = Envelope::request(ANN, "f0", &["cid"], &[]).about("p1");
    assert_eq!(shown(&stage.send(in_room)), ["withhold from 1: conflict"]);
    let other = Envelope::request(ANN, "f2", &["one"], &[21]).about("p2");
    assert_eq!(
        shown(&stage.send(other)),
        ["publish f2", "deliver 21 to one"]
    );
    stage.now_ms = 500;
    assert_eq!(
        shown(&stage.send(late(ANN, "f3")))[1..],
        ["deliver 11 to one", "deliver 12 to two"]
    );
}

#[test]
fn the_oldest_are_forgotten_first() {
    let mut stage = stage();
    close(&mut stage, 500, "p1");
    let more = (0..CLOSED_PROPOSALS_MAX as u128 - 1).map(|number| (600, number << 64));
    stage.step(Event::Closed {
        closed: more.collect(),
    });
    assert_eq!(shown(&stage.send(late(ANN, "f1")))[0], "refuse 11: decided");
    close(&mut stage, 700, "p2");
    assert_eq!(shown(&stage.send(late(ANN, "f2")))[1], "deliver 11 to one");
    let other = Envelope::request(ANN, "f3", &["one"], &[21]).about("p2");
    assert_eq!(shown(&stage.send(other)), ["refuse 21: decided"]);
}

#[test]
fn proposals_that_ended_before_a_restart_are_known_or_closed() {
    let mut stage = stage();
    let by = id("bob");
    let to = [id("one")];
    for number in 1..=ENDED_PROPOSALS_MAX as u128 + 1 {
        let envelope = format!("p{number}");
        let state = model::ProposalState::Completed;
        let decided = Some((id("ann"), 3));
        let end = Some(EndedProposal {
            state,
            reason: None,
            decided,
            fulfilment: None,
            answer: Some(5),
        });
        let proposal = op(number);
        let terms = terms(&by, &to, &envelope);
        stage.step(Event::Restore(Restore {
            proposal,
            terms,
            content: number,
            held: false,
            public: None,
            approved_by: Vec::new(),
            end,
        }));
    }
    assert!(
        stage.topic.proposal(op(1)).is_none(),
        "the oldest is not kept"
    );
    let view = stage.topic.proposal(op(2)).unwrap();
    assert_eq!(
        (view.answer, view.ruling, view.decided_by),
        (Some(5), Some(3), Some(id("ann")))
    );
    let named = |number: u128| Envelope::request(ANN, "f", &["one"], &[number]).about("p2");
    assert_eq!(shown(&stage.send(named(11)))[0], "refuse 11: decided");
    close(&mut stage, 500, "p1");
    assert_eq!(shown(&stage.send(late(ANN, "f1")))[0], "refuse 11: decided");
    // A digest counts only for an unknown proposal.
    close(&mut stage, 500, "p2");
    let again = Envelope::request(ANN, "f2", &["one"], &[21]).about("p2");
    let expected = [
        "refuse 21: decided",
        "refuse decision 9 of ann on p2 and its calls: decided",
    ];
    assert_eq!(shown(&stage.send(again)), expected);
}

#[test]
fn a_proposal_that_ended_in_this_run_is_closed_once_it_is_forgotten() {
    let mut stage = stage();
    stage.proposes(BOB, "bob", 1);
    stage.stored(1);
    stage.approved(1);
    stage.execute(1, 11, "one");
    stage.answer(ONE, 11, 5);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    close(&mut stage, 500, "p1");
    for number in 2..=ENDED_PROPOSALS_MAX as u128 + 1 {
        stage.proposes(BOB, "bob", number);
        stage.stored(number);
        stage.decide(number, "ann", crate::proposals::REJECT);
        stage.stored(number);
    }
    assert!(stage.topic.proposal(op(1)).is_none() && stage.topic.proposal(op(2)).is_some());
    let again = Envelope::request(ANN, "f1", &["one"], &[21]).about("p1");
    assert_eq!(shown(&stage.send(again)), ["refuse 21: decided"]);
}

#[test]
fn an_id_that_is_used_again_is_kept_until_its_last_proposal_expires() {
    let mut stage = stage();
    for until_ms in [500, 700, 600] {
        close(&mut stage, until_ms, "p1");
    }
    stage.now_ms = 699;
    assert_eq!(shown(&stage.send(late(ANN, "f1")))[0], "refuse 11: decided");
    stage.now_ms = 700;
    assert_eq!(shown(&stage.send(late(ANN, "f2")))[1], "deliver 11 to one");
}
