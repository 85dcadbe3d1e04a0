//! Envelopes that arrive before the journal has answered: fulfilments of openings, and answers to approvals.

use model::{DeliveryMode, LinkId};

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::REJECT,
    shown::shown,
    stage::{ANN, BOB, Stage, op},
};

const DAN: LinkId = LinkId(4);

/// Bob's proposal 1 to `dan`, which answers in the room, is being opened.
fn opening() -> Stage {
    let mut stage = crate::proposals::stage();
    stage.listener(DAN, "dan", &["mcp/response:*"], DeliveryMode::All);
    stage.proposes_to(BOB, "bob", 1, &["dan"]);
    stage
}

fn fulfilment<'a>(id: &'a str) -> Envelope<'a> {
    Envelope::request(ANN, id, &["dan"], &[11]).about("p1")
}

fn answer<'a>(id: &'a str, about: &'a str, value: u8) -> Envelope<'a> {
    let intent = Intent::Answer { outcome: model::Outcome::Ok, answer: value };
    Envelope { intent, ..Envelope::answer(DAN, id, &["ann", "bob"], about) }
}

#[test]
fn an_answer_that_came_before_its_approval_was_on_disk_counts_after_it() {
    let mut stage = opening();
    stage.stored(1);
    stage.send(fulfilment("f1"));
    assert_eq!(shown(&stage.send(answer("a1", "f1", 5))), ["publish a1"]);
    assert_eq!(shown(&stage.send(answer("a2", "f1", 6))), ["publish a2"], "the first counts");
    let expected = ["approved p1 at ", "ruled 9", "store p1 ended completed with 5"];
    assert_eq!(shown(&stage.stored(1)), expected);
    assert_eq!(stage.topic.next_deadline_ms(), None);
}

#[test]
fn fulfilment_and_answer_may_both_come_before_the_opening_is_on_disk() {
    let mut stage = opening();
    assert_eq!(shown(&stage.send(fulfilment("f1"))), ["publish f1"]);
    assert_eq!(shown(&stage.send(answer("a1", "f1", 5))), ["publish a1"]);
    assert_eq!(shown(&stage.stored(1)), ["proposed p1", "store p1 decided running by ann"]);
    let expected = ["approved p1 at ", "ruled 9", "store p1 ended completed with 5"];
    assert_eq!(shown(&stage.stored(1)), expected);
}

#[test]
fn an_early_answer_ends_with_the_approval_that_it_answered() {
    // The approval could not be written.
    let mut stage = opening();
    stage.stored(1);
    stage.send(fulfilment("f1"));
    stage.send(answer("a1", "f1", 5));
    stage.not_stored(1);
    stage.send(fulfilment("f2"));
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at ", "ruled 9"], "the answer was another's");
    // The fulfilment came first and does not count.
    let mut stage = opening();
    stage.send(fulfilment("f1").redefined());
    stage.send(answer("a1", "f1", 5));
    assert_eq!(
        shown(&stage.stored(1))[1],
        "refuse decision 9 of ann on p1: conflict: the server describes the tool otherwise now"
    );
    assert_eq!(stage.topic.proposal(op(1)).unwrap().fulfilment, None);
    assert_eq!(shown(&stage.send(answer("a2", "f1", 6))), ["publish a2"]);
    stage.send(fulfilment("f2"));
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at ", "ruled 9"], "neither answer is one to it");
    assert_eq!(shown(&stage.send(answer("a3", "f2", 7)))[1], "store p1 ended completed with 7");
}

#[test]
fn an_answer_to_a_late_fulfilment_does_not_count() {
    let mut stage = opening();
    stage.stored(1);
    stage.decide(1, "ann", REJECT);
    stage.send(fulfilment("f1"));
    assert_eq!(shown(&stage.send(answer("a1", "f1", 5))), ["publish a1"]);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 rejected: too broad", "ruled 9"]);
    assert_eq!(shown(&stage.send(answer("a2", "f1", 5))), ["publish a2"]);
}
