//! Envelopes that fulfil a proposal: an approval, carried out once.

use model::{DeliveryMode, LinkId};
use topic::Cause;

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::{pending, stage},
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, CID, ONE, Stage, configured, id, op},
};

/// Ann's request `f1` that fulfils proposal 1, with the operation 11.
fn fulfilment<'a>(to: &'a [&'a str]) -> Envelope<'a> {
    Envelope::request(ANN, "f1", to, &[11, 12]).about("p1")
}

fn fulfilled() -> Stage {
    let mut stage = pending();
    stage.send(fulfilment(&["one"]));
    stage
}

#[test]
fn a_fulfilment_is_an_approval_that_is_on_disk_before_a_server_has_it() {
    let mut stage = pending();
    assert_eq!(
        shown(&stage.send(fulfilment(&["one"]))),
        ["store p1 decided running by ann"]
    );
    let expected = [
        "publish f1",
        "approved p1 at ",
        "ruled 9",
        "deliver 11 to one for p1",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    assert_eq!(
        stage.topic.proposal(op(1)).unwrap().fulfilment.as_deref(),
        Some("f1")
    );
    let expected = ["store p1 ended completed with 5", "settle 11 with 5 for p1"];
    assert_eq!(shown(&stage.answer(ONE, 11, 5)), expected);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    let over = stage.topic.proposal(op(1)).unwrap();
    assert_eq!(
        over.fulfilment.as_deref(),
        Some("f1"),
        "its proposer finds the answer by it"
    );
    assert_eq!(
        shown(&stage.send(Envelope::answer(BOB, "a", &["ann"], "f1"))).len(),
        1,
        "it is over"
    );
}

#[test]
fn a_fulfilment_that_differs_from_the_proposal_is_refused() {
    let check = |envelope: Envelope<'_>, cause: &str| {
        let mut stage = pending();
        let effects = shown(&stage.send(envelope));
        let refused = effects.iter().all(|line| line.ends_with(cause));
        assert!(refused && !effects.is_empty(), "{effects:?} {cause}");
        assert_eq!(
            stage.decide(1, "ann", APPROVE).all.len(),
            1,
            "the proposal is open"
        );
    };
    let mismatch = "conflict: this is not what was proposed";
    check(fulfilment(&["two"]), mismatch);
    check(fulfilment(&["one", "two"]), mismatch);
    check(
        fulfilment(&["one"]).redefined(),
        "conflict: the server describes the tool otherwise now",
    );
    let mut other = fulfilment(&["one"]);
    if let Intent::Request(requested) = &mut other.intent {
        requested.context = Some("b".into());
    }
    check(other, mismatch);
    let mut bare = fulfilment(&["one"]);
    if let Intent::Request(requested) = &mut bare.intent {
        requested.ruling = None;
    }
    check(bare, mismatch);
    // A request that names an unknown proposal is its sender's own.
    let mut stage = pending();
    let stray = Envelope::request(ANN, "f1", &["one"], &[11]).about("p7");
    assert_eq!(
        shown(&stage.send(stray)),
        ["publish f1", "deliver 11 to one"]
    );
}

#[test]
fn its_calls_are_refused_with_the_decision() {
    let mut stage = fulfilled();
    let late = Envelope::request(ANN, "f2", &["one"], &[21]).about("p1");
    let expected = [
        "refuse 21: decided",
        "refuse decision 9 of ann on p1 and its calls: decided",
    ];
    assert_eq!(shown(&stage.send(late)), expected);
    let expected = [
        "refuse 11: log_unavailable",
        "refuse decision 9 of ann on p1 and its calls: log_unavailable",
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
    assert_eq!(stage.topic.proposal(op(1)).unwrap().fulfilment, None);
    stage.send(Envelope::request(ANN, "f3", &["one"], &[31]).about("p1"));
    stage.revoke("bob");
    let effects = shown(&stage.stored(1));
    let expected = [
        "refuse 31: moot",
        "refuse decision 9 of ann on p1 and its calls: moot",
    ];
    assert_eq!(effects[..2], expected);
}

#[test]
fn a_participant_that_may_request_it_alone_fulfils() {
    let mut stage = pending();
    stage.listener(
        CID,
        "cid",
        &["mcp/request:tools/call:b", "chat"],
        DeliveryMode::All,
    );
    let request = Envelope::request(CID, "f1", &["one"], &[11]).about("p1");
    assert_eq!(
        refused(&stage.send(request)),
        Cause::NotAdmitted,
        "it may not even send it"
    );
}

#[test]
fn a_fulfilment_names_the_same_participants_and_perhaps_the_proposer() {
    let mut stage = pending();
    let expected = ["store p1 decided running by ann"];
    assert_eq!(shown(&stage.send(fulfilment(&["one", "bob"]))), expected);
    assert_eq!(shown(&stage.stored(1))[3], "deliver 11 to one for p1");
    // Any server may fulfil a proposal without addressees, once.
    let mut stage = self::stage();
    stage.proposes_to(BOB, "bob", 1, &[]);
    stage.stored(1);
    assert_eq!(
        shown(&stage.send(fulfilment(&["two", "one"]))),
        ["store p1 decided running by ann"]
    );
    let expected = [
        "publish f1",
        "approved p1 at ",
        "ruled 9",
        "deliver 11 to two for p1",
        "refuse 12: moot",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
}

#[test]
fn a_fulfilment_that_no_server_can_carry_out_has_failed() {
    let mut stage = fulfilled();
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    stage.configure(&without);
    let effects = shown(&stage.stored(1));
    assert_eq!(effects[3], "refuse 11: unknown");
    assert!(
        effects[4].starts_with("store p1 ended failed"),
        "{effects:?}"
    );
}

#[test]
fn an_approved_call_outlives_the_connection_of_its_approver() {
    // It left before the approval was on disk.
    let mut stage = fulfilled();
    stage.leave(ANN);
    assert_eq!(shown(&stage.stored(1))[3], "deliver 11 to one for p1");
    assert_eq!(
        shown(&stage.answer(ONE, 11, 5))[0],
        "store p1 ended completed with 5"
    );
    // It leaves, or comes back on another connection, while the call runs.
    let running = || {
        let mut stage = fulfilled();
        stage.stored(1);
        stage
    };
    for ends in [
        |stage: &mut Stage| stage.leave(ANN),
        |stage: &mut Stage| {
            let mode = DeliveryMode::All;
            stage.listener(LinkId(5), "ann", &["mcp/*"], mode);
            stage.leave(ANN)
        },
    ] {
        let mut stage = running();
        let effects = shown(&ends(&mut stage));
        assert!(
            !effects
                .iter()
                .any(|line| line.contains("11") || line.contains("p1")),
            "{effects:?}"
        );
        let expected = ["store p1 ended completed with 5", "settle 11 with 5 for p1"];
        assert_eq!(shown(&stage.answer(ONE, 11, 5)), expected);
        assert_eq!(stage.topic.operations_len(), 0);
    }
    // One that may not be here any more stops what it has begun, which is said.
    let mut stage = running();
    let effects = shown(&stage.revoke("ann"));
    let why = "the call was cancelled while it ran: it may have been carried out";
    assert!(
        effects.contains(&format!("store p1 ended failed: {why}")),
        "{effects:?}"
    );
    assert!(effects.contains(&"cancel 11".to_owned()), "{effects:?}");
}

#[test]
fn an_approval_without_an_envelope_is_executed_by_the_gateway() {
    let mut stage = stage();
    stage.proposes_to(BOB, "bob", 1, &["one", "cid", "two"]);
    stage.stored(1);
    assert_eq!(
        shown(&stage.approved(1)),
        ["approved p1 at one,two", "ruled 9"]
    );
    assert_eq!(
        shown(&stage.execute(1, 11, "one")),
        ["deliver 11 to one for p1"]
    );
    assert_eq!(refused(&stage.execute(1, 12, "two")), Cause::Moot, "once");
    // Without the gateway's own participant no call is made.
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["mcp/proposal:*"], DeliveryMode::All);
    stage.proposes(BOB, "bob", 1);
    stage.stored(1);
    stage.approved(1);
    let effects = shown(&stage.execute(1, 11, "one"));
    assert_eq!(effects[0], "refuse 11: upstream_down");
    assert!(
        effects[1].starts_with("store p1 ended failed"),
        "{effects:?}"
    );
}

#[test]
fn a_fulfilment_in_the_room_is_answered_there() {
    let mut stage = stage();
    stage.listener(LinkId(4), "dan", &["mcp/response:*"], DeliveryMode::All);
    stage.proposes_to(BOB, "bob", 1, &["dan"]);
    stage.stored(1);
    let fulfilment = Envelope::request(ANN, "f1", &["dan"], &[11]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment)),
        ["store p1 decided running by ann"]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish f1", "approved p1 at ", "ruled 9"]
    );
    let other = Envelope::answer(LinkId(4), "a0", &["ann"], "f0");
    assert_eq!(shown(&stage.send(other)), ["publish a0"]);
    // The proposer is not among the addressees, and hears everything all the same.
    let answer = Envelope::answer(LinkId(4), "a1", &["ann"], "f1");
    assert_eq!(
        shown(&stage.send(answer)),
        ["publish a1", "store p1 ended completed with 5"]
    );
    let again = Envelope::answer(LinkId(4), "a2", &["ann"], "f1");
    assert_eq!(
        shown(&stage.send(again)),
        ["publish a2"],
        "the first answer counts"
    );
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
}

#[test]
fn an_answer_that_leaves_the_proposer_out_is_relayed_if_it_does_not_hear_it() {
    let check = |mode: Option<DeliveryMode>, to: &[&str], is_relayed: bool| {
        let mut stage = stage();
        stage.listener(LinkId(4), "dan", &["mcp/response:*"], DeliveryMode::All);
        stage.proposes_to(BOB, "bob", 1, &["dan"]);
        stage.stored(1);
        stage.send(Envelope::request(ANN, "f1", &["dan"], &[]).about("p1"));
        stage.stored(1);
        stage.leave(BOB);
        if let Some(mode) = mode {
            stage.listener(BOB, "bob", &["mcp/proposal:*"], mode);
        }
        let effects = shown(&stage.send(Envelope::answer(LinkId(4), "a1", to, "f1")));
        assert_eq!(
            effects.contains(&"relay a1 to bob".to_owned()),
            is_relayed,
            "{mode:?} {to:?}"
        );
    };
    check(Some(DeliveryMode::All), &["ann"], false);
    check(Some(DeliveryMode::Directed), &["ann"], true);
    check(Some(DeliveryMode::DirectedAndProposals), &["ann"], true);
    check(Some(DeliveryMode::Directed), &["ann", "bob"], false);
    check(Some(DeliveryMode::Directed), &[], false);
    check(None, &["ann"], true);
}

#[test]
fn only_a_participant_that_was_asked_answers_for_a_proposal() {
    let mut stage = stage();
    for (link, name) in [(LinkId(4), "dan"), (LinkId(5), "eve")] {
        stage.listener(link, name, &["mcp/response:*"], DeliveryMode::All);
    }
    stage.proposes_to(BOB, "bob", 1, &[]);
    stage.stored(1);
    stage.send(Envelope::request(ANN, "f1", &["dan"], &[11]).about("p1"));
    stage.stored(1);
    let answer = |link, id| Envelope::answer(link, id, &["ann", "bob"], "f1");
    let expected = ["publish a1", "ignore a1 of eve by portmoot: not asked"];
    assert_eq!(shown(&stage.send(answer(LinkId(5), "a1"))), expected);
    let mut wrong = answer(LinkId(4), "a2");
    wrong.kind = "mcp/response:tools/call:b";
    assert_eq!(
        shown(&stage.send(wrong)),
        ["publish a2"],
        "it answers something else"
    );
    let mut error = answer(LinkId(4), "a3");
    error.intent = Intent::Answer {
        outcome: model::Outcome::Error,
        answer: 6,
    };
    let expected = [
        "publish a3",
        "store p1 ended failed with 6: it was answered with an error",
    ];
    assert_eq!(shown(&stage.send(error)), expected);
}

#[test]
fn two_proposals_may_be_fulfilled_under_one_id() {
    let mut stage = stage();
    stage.listener(LinkId(4), "dan", &["mcp/*"], DeliveryMode::All);
    for (proposal, by, link) in [(1, "ann", ANN), (2, "dan", LinkId(4))] {
        stage.proposes_to(BOB, "bob", proposal, &["cid"]);
        stage.stored(proposal);
        let about = format!("p{proposal}");
        let request = Envelope::request(link, "f1", &["cid"], &[]).about(&about);
        assert_eq!(
            shown(&stage.send(request)),
            [format!("store p{proposal} decided running by {by}")]
        );
        stage.stored(proposal);
    }
    stage.regrant("cid", &["mcp/response:*"]);
    let answer = |to| Envelope::answer(CID, "a", to, "f1");
    assert_eq!(
        shown(&stage.send(answer(&[]))),
        ["publish a"],
        "it names neither"
    );
    assert_eq!(
        shown(&stage.send(answer(&["dan"])))[1],
        "store p2 ended completed with 5"
    );
    stage.stored(2);
    assert_eq!(
        shown(&stage.send(answer(&[])))[1],
        "store p1 ended completed with 5"
    );
}

#[test]
fn the_answer_of_a_proposal_is_the_one_that_is_on_disk() {
    let mut stage = stage();
    stage.listener(LinkId(4), "dan", &["mcp/response:*"], DeliveryMode::All);
    stage.proposes_to(BOB, "bob", 1, &["one", "dan"]);
    stage.stored(1);
    stage.send(fulfilment(&["one", "dan"]));
    stage.stored(1);
    let answer = Envelope::answer(LinkId(4), "a1", &["ann", "bob"], "f1");
    assert_eq!(
        shown(&stage.send(answer))[1],
        "store p1 ended completed with 5"
    );
    assert_eq!(
        shown(&stage.answer(ONE, 11, 6)),
        ["settle 11 with 6 for p1"]
    );
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    assert_eq!(stage.topic.proposal(op(1)).unwrap().answer, Some(5));
}

#[test]
fn no_server_carries_out_a_request_that_a_participant_answers_in_the_room() {
    let mut stage = stage();
    stage.proposes_to(BOB, "bob", 1, &[]);
    stage.stored(1);
    assert_eq!(shown(&stage.approved(1)), ["approved p1 at ", "ruled 9"]);
    assert_eq!(refused(&stage.execute(1, 11, "one")), Cause::Moot);
}

#[test]
fn an_approval_that_does_not_count_fulfils_nothing() {
    let mut stage = stage();
    stage.listener(LinkId(4), "dan", &["mcp/*"], DeliveryMode::All);
    stage.listener(LinkId(5), "eve", &["mcp/*"], DeliveryMode::All);
    stage.proposes_to(BOB, "bob", 1, &["cid"]);
    stage.stored(1);
    stage.proposes_to(LinkId(5), "eve", 2, &["cid"]);
    stage.stored(2);
    stage.send(Envelope::request(ANN, "f1", &["cid"], &[]).about("p1"));
    stage.send(Envelope::request(LinkId(4), "f1", &["cid"], &[]).about("p2"));
    stage.revoke("bob");
    assert_eq!(
        shown(&stage.stored(1))[0],
        "refuse decision 9 of ann on p1: moot"
    );
    stage.stored(2);
    stage.regrant("cid", &["mcp/response:*"]);
    let answer = Envelope::answer(CID, "a1", &["eve"], "f1");
    assert_eq!(
        shown(&stage.send(answer))[1],
        "store p2 ended completed with 5"
    );
}
