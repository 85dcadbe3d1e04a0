//! Envelopes that arrive before the journal has answered: requests that name a proposal, and
//! answers to them.

use model::{DeliveryMode, LinkId};

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::REJECT,
    shown::shown,
    stage::{ANN, BOB, Stage},
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
    let intent = Intent::Answer {
        outcome: model::Outcome::Ok,
        answer: value,
    };
    Envelope {
        intent,
        ..Envelope::answer(DAN, id, &["ann", "bob"], about)
    }
}

#[test]
fn a_fulfilment_is_published_once_its_approval_is_on_disk() {
    let mut stage = opening();
    stage.stored(1);
    assert_eq!(
        shown(&stage.send(fulfilment("f1"))),
        ["store p1 decided running by ann"]
    );
    assert_eq!(
        shown(&stage.send(answer("a1", "f1", 5))),
        ["publish a1"],
        "it was not asked yet"
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish f1", "approved p1 at ", "ruled 9"]
    );
    let expected = ["publish a2", "store p1 ended completed with 6"];
    assert_eq!(shown(&stage.send(answer("a2", "f1", 6))), expected);
}

#[test]
fn a_fulfilment_may_come_before_the_opening_is_on_disk() {
    let mut stage = opening();
    assert!(shown(&stage.send(fulfilment("f1"))).is_empty());
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "publish p1",
            "proposed p1",
            "store p1 decided running by ann"
        ]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["publish f1", "approved p1 at ", "ruled 9"]
    );
}

#[test]
fn a_fulfilment_that_does_not_count_is_not_published() {
    // The approval could not be written.
    let mut stage = opening();
    stage.stored(1);
    stage.send(fulfilment("f1"));
    assert_eq!(
        shown(&stage.not_stored(1)),
        ["refuse decision 9 of ann on p1: log_unavailable"]
    );
    // The next one counts, and the third comes too late.
    stage.send(fulfilment("f2"));
    assert_eq!(shown(&stage.stored(1))[0], "publish f2");
    let late = ["refuse decision 9 of ann on p1: decided"];
    assert_eq!(shown(&stage.send(fulfilment("f3"))), late);
    // It came before the opening was on disk, and is of another request than the server lists now.
    let mut stage = opening();
    stage.send(fulfilment("f1").redefined());
    assert_eq!(
        shown(&stage.stored(1))[2],
        "refuse decision 9 of ann on p1: conflict: the server describes the tool otherwise now"
    );
    assert_eq!(shown(&stage.send(answer("a2", "f1", 6))), ["publish a2"]);
}

#[test]
fn a_fulfilment_after_the_end_is_not_published() {
    let mut stage = opening();
    stage.stored(1);
    stage.decide(1, "ann", REJECT);
    let late = ["refuse decision 9 of ann on p1: decided"];
    assert_eq!(shown(&stage.send(fulfilment("f1"))), late);
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 rejected: too broad", "ruled 9"]
    );
    assert_eq!(shown(&stage.send(fulfilment("f2"))), late);
}

#[test]
fn a_proposers_own_request_is_published_once_the_withdrawal_is_on_disk() {
    let own = |id| Envelope::request(BOB, id, &["dan"], &[11]).about("p1");
    let granted = || {
        let mut stage = opening();
        stage.stored(1);
        stage.regrant("bob", &["mcp/*"]);
        stage
    };
    let mut stage = granted();
    assert_eq!(
        shown(&stage.send(own("r1"))).len(),
        1,
        "the withdrawal is being written"
    );
    assert_eq!(shown(&stage.stored(1))[0], "publish r1");
    assert_eq!(
        shown(&stage.send(own("r2"))),
        ["publish r2"],
        "the proposal never runs"
    );
    // A repeated one waits for nothing and is not published before the first.
    let mut stage = granted();
    stage.send(own("r1"));
    assert_eq!(
        shown(&stage.send(own("r1"))),
        ["ignore r1 of bob by : repeat"]
    );
    // The withdrawal could not be written: after a restart the proposal could be approved.
    let mut stage = granted();
    stage.send(own("r1"));
    assert_eq!(
        shown(&stage.not_stored(1))[1],
        "withhold from 2: log_unavailable"
    );
    // It is approved meanwhile.
    let mut stage = granted();
    stage.approved(1);
    assert_eq!(shown(&stage.send(own("r1"))), ["withhold from 2: conflict"]);
    // The proposer may not request it any more.
    let mut stage = granted();
    stage.send(own("r1"));
    stage.regrant("bob", &["mcp/proposal:*"]);
    assert_eq!(shown(&stage.stored(1))[1], "withhold from 2: forbidden");
}
