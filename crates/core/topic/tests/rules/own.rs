//! Proposers' own requests that name their own proposal: the topic settles the proposal before the
//! request runs.

use model::DeliveryMode;
use topic::Limits;

use crate::{
    envelope::Envelope,
    numbers::{Effects, Intent},
    proposals::{WITHDRAW, stage_with},
    shown::shown,
    stage::{ANN, APPROVE, BOB, EXPIRES_MS, ONE, Stage},
};

const WHY: &str = "carried out by its proposer, bob";

/// Bob's proposal 1 is being written, and bob may by now make the request itself.
fn opening() -> Stage {
    let mut stage = stage_with(Limits::default());
    stage.proposes(BOB, "bob", 1);
    stage.regrant("bob", &["mcp/*"]);
    stage
}

fn pending() -> Stage {
    let mut stage = opening();
    stage.stored(1);
    stage
}

fn request(stage: &mut Stage, id: &str, operation: u128) -> Effects {
    stage.send(Envelope::request(BOB, id, &["one"], &[operation]).about("p1"))
}

fn recalled() -> String {
    format!("store p1 decided withdrawn by bob unasked: {WHY}")
}

fn concluded() -> String {
    format!("concluded p1 withdrawn: {WHY}")
}

#[test]
fn a_pending_proposal_is_withdrawn_and_the_request_runs_after() {
    let mut stage = pending();
    assert_eq!(shown(&request(&mut stage, "r1", 11)), [recalled()]);
    assert!(
        shown(&request(&mut stage, "r2", 12)).is_empty(),
        "a second one waits as well"
    );
    let runs = ["deliver 11 to one", "deliver 12 to one"].map(str::to_owned);
    let expected = ["publish r1".into(), "publish r2".into(), concluded()]
        .into_iter()
        .chain(runs);
    let expected: Vec<String> = expected.collect();
    assert_eq!(shown(&stage.stored(1)), expected);
    assert_eq!(
        shown(&stage.answer(ONE, 11, 5)),
        ["settle 11 with 5"],
        "it is no outcome of the proposal"
    );
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["refuse decision 9 of ann on p1: decided"]
    );
}

#[test]
fn before_the_opening_is_on_disk_it_waits_for_both() {
    let mut stage = opening();
    assert!(shown(&request(&mut stage, "r1", 11)).is_empty());
    assert_eq!(shown(&stage.stored(1)), [recalled()]);
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish r1".into(), concluded(), "deliver 11 to one".into()]
    );
    // Without an opening there is no proposal, and the request runs as usual.
    let mut stage = opening();
    request(&mut stage, "r1", 11);
    let expected = [
        "publish r1",
        "not proposed p1 of bob: log_unavailable",
        "deliver 11 to one",
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
}

#[test]
fn a_withdrawal_that_cannot_be_written_refuses_the_request() {
    // After a restart the proposal would be pending again, and could run a second time.
    let mut stage = pending();
    request(&mut stage, "r1", 11);
    assert_eq!(
        shown(&stage.not_stored(1)),
        [concluded(), "refuse 11: log_unavailable".into()]
    );
    let again = ["refuse 12: log_unavailable"];
    assert_eq!(
        shown(&request(&mut stage, "r2", 12)),
        again,
        "nor does it run later"
    );
    let mut stage = opening();
    request(&mut stage, "r1", 11);
    stage.stored(1);
    assert_eq!(
        shown(&stage.not_stored(1)),
        [concluded(), "refuse 11: log_unavailable".into()]
    );
}

#[test]
fn while_it_is_being_approved_runs_or_has_run_the_request_is_refused() {
    let mut stage = pending();
    stage.decide(1, "ann", APPROVE);
    let refused = ["refuse 11: decided"];
    assert_eq!(shown(&request(&mut stage, "r1", 11)), refused);
    stage.stored(1);
    assert_eq!(shown(&request(&mut stage, "r2", 11)), refused);
    stage.execute(1, 5, "one");
    assert_eq!(shown(&request(&mut stage, "r3", 11)), refused);
    stage.answer(ONE, 5, 5);
    assert_eq!(
        shown(&request(&mut stage, "r4", 11)),
        refused,
        "its end is being written"
    );
    stage.stored(1);
    assert_eq!(shown(&request(&mut stage, "r5", 11)), refused);
}

#[test]
fn a_proposal_that_is_being_withdrawn_or_expires_lets_the_request_run_after() {
    let mut stage = pending();
    stage.decide(1, "bob", WITHDRAW);
    assert!(shown(&request(&mut stage, "r1", 11)).is_empty());
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "publish r1",
            "concluded p1 withdrawn",
            "deliver 11 to one",
            "ruled 9"
        ]
    );
    assert_eq!(
        shown(&request(&mut stage, "r2", 12)),
        ["publish r2", "deliver 12 to one"]
    );
    let mut stage = pending();
    stage.tick(EXPIRES_MS);
    assert!(shown(&request(&mut stage, "r1", 11)).is_empty());
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish r1", "concluded p1 expired", "deliver 11 to one"]
    );
}

#[test]
fn a_withdrawal_of_the_proposers_that_cannot_be_written_is_made_by_the_topic() {
    let mut stage = pending();
    stage.decide(1, "bob", WITHDRAW);
    request(&mut stage, "r1", 11);
    let expected = [
        "refuse decision 9 of bob on p1: log_unavailable".into(),
        recalled(),
    ];
    assert_eq!(
        shown(&stage.not_stored(1)),
        expected,
        "the request waits for no approval"
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish r1".into(), concluded(), "deliver 11 to one".into()]
    );
}

#[test]
fn another_request_of_the_proposer_settles_nothing() {
    let mut stage = pending();
    let mut other = Envelope::request(BOB, "r1", &["one"], &[11]).about("p1");
    if let Intent::Request(requested) = &mut other.intent {
        requested.context = Some("b".into());
    }
    assert_eq!(
        shown(&stage.send(other)),
        ["publish r1", "deliver 11 to one"]
    );
    assert_eq!(stage.topic.proposals_len(), 1);
    // Other participants' requests that name the proposal fulfil it.
    let fulfilment = Envelope::request(ANN, "f1", &["one"], &[12]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment)),
        ["store p1 decided running by ann"]
    );
}

#[test]
fn a_request_to_the_room_settles_its_proposal() {
    let mut stage = pending();
    stage.proposes_to(BOB, "bob", 2, &["cid"]);
    stage.stored(2);
    let request = Envelope::request(BOB, "r1", &["cid"], &[11]).about("p2");
    let expected = [recalled().replace("p1", "p2")];
    assert_eq!(shown(&stage.send(request)), expected);
    assert_eq!(
        shown(&stage.stored(2)),
        ["publish r1".to_owned(), concluded().replace("p1", "p2")]
    );
}

#[test]
fn a_proposer_that_was_entitled_meanwhile_and_is_no_more_is_refused() {
    let mut stage = pending();
    request(&mut stage, "r1", 11);
    stage.regrant("bob", &["mcp/request:tools/call:b"]);
    assert_eq!(shown(&stage.stored(1))[1], "refuse 11: withdrawn");
    let mut stage = opening();
    request(&mut stage, "r1", 11);
    stage.regrant("bob", &["mcp/proposal:*"]);
    assert_eq!(shown(&stage.not_stored(1))[1], "refuse 11: withdrawn");
}

#[test]
fn few_requests_wait_for_one_withdrawal() {
    let mut stage = pending();
    for number in 0..16 {
        assert!(
            request(&mut stage, &format!("r{number}"), 100 + number)
                .all
                .len()
                <= 1
        );
    }
    let effects = request(&mut stage, "r16", 116);
    assert_eq!(shown(&effects), ["refuse 116: limit"]);
    assert_eq!(stage.stored(1).all.len(), 17);
}

#[test]
fn a_proposer_that_left_meanwhile_is_refused() {
    let mut stage = pending();
    request(&mut stage, "r1", 11);
    stage.leave(BOB);
    assert_eq!(
        shown(&stage.stored(1)),
        [concluded(), "refuse 11: moot".into()]
    );
    stage.listener(BOB, "bob", &["mcp/*"], DeliveryMode::All);
}
