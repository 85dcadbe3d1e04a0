//! Envelopes that receivers ignore: repeats, mismatches, answers of participants that were not
//! asked, requests to the absent.

use model::{DeliveryMode, LinkId};

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::pending,
    shown::shown,
    stage::{ANN, BOB, Stage},
};

const DAN: LinkId = LinkId(4);

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.listener(DAN, "dan", &["mcp/*"], DeliveryMode::All);
    stage
}

#[test]
fn a_request_that_comes_again_is_not_acted_on_twice() {
    let mut stage = stage();
    let request =
        |link, id, operation| Envelope::request(link, id, &["one", "ann"], &[operation, 99]);
    assert_eq!(
        shown(&stage.send(request(DAN, "r", 1))),
        ["publish r", "deliver 1 to one"]
    );
    let expected = ["publish r", "ignore r of dan by one: repeat"];
    assert_eq!(shown(&stage.send(request(DAN, "r", 2))), expected);
    stage.leave(DAN);
    stage.listener(LinkId(5), "dan", &["mcp/*"], DeliveryMode::All);
    let expected = ["publish r", "ignore r of dan by one: repeat"];
    assert_eq!(
        shown(&stage.send(request(LinkId(5), "r", 2))),
        expected,
        "on whatever link"
    );
    assert_eq!(
        shown(&stage.send(request(ANN, "r", 3))),
        ["publish r", "deliver 3 to one"],
        "ids belong to senders"
    );
    // A request on which no server acts may be repeated.
    for _ in 0..2 {
        assert_eq!(
            shown(&stage.send(Envelope::request(ANN, "s", &["dan"], &[4]))),
            ["publish s"]
        );
    }
}

#[test]
fn a_fulfilment_that_comes_again_decides_once() {
    let mut stage = pending();
    let fulfilment = |operation| Envelope::request(ANN, "f1", &["one"], &[operation]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment(11))),
        ["store p1 decided running by ann"]
    );
    let again = |operation: u32| {
        let ruling = "refuse decision 9 of ann on p1 and its calls: decided".to_owned();
        [format!("refuse {operation}: decided"), ruling]
    };
    assert_eq!(shown(&stage.send(fulfilment(12))), again(12));
    stage.stored(1);
    assert_eq!(shown(&stage.send(fulfilment(13))), again(13));
}

#[test]
fn an_envelope_whose_kind_and_payload_differ_is_not_acted_on() {
    let mut stage = stage();
    let mismatch = |id, kind, to| Envelope {
        intent: Intent::Mismatch,
        ..Envelope::new(DAN, id, kind, to)
    };
    let request = mismatch("r", "mcp/request:tools/call:a", &["ann", "one", "two"]);
    assert_eq!(
        shown(&stage.send(request)),
        ["publish r", "ignore r of dan by one,two: mismatch"]
    );
    let again = mismatch("r", "mcp/request:tools/call:a", &["one"]);
    assert_eq!(shown(&stage.send(again)), ["publish r"], "once");
    let unnamed = mismatch("s", "mcp/request:tools/call:a", &["ann"]);
    assert_eq!(shown(&stage.send(unnamed)), ["publish s"]);
}

#[test]
fn a_request_to_participants_that_are_not_there_is_noticed() {
    let mut stage = stage();
    let asked = |stage: &mut Stage, id, to| shown(&stage.send(Envelope::request(ANN, id, to, &[])));
    assert_eq!(
        asked(&mut stage, "r1", &["bob"]),
        ["publish r1", "ignore r1 of ann by bob: absent"]
    );
    let expected = ["publish r2", "ignore r2 of ann by bob,cid: absent"];
    assert_eq!(asked(&mut stage, "r2", &["bob", "cid"]), expected);
    // One that is there may answer, and so may any if none is named.
    assert_eq!(asked(&mut stage, "r3", &["bob", "dan"]), ["publish r3"]);
    assert_eq!(asked(&mut stage, "r4", &[]), ["publish r4"]);
    stage.listener(BOB, "bob", &["mcp/response:*"], DeliveryMode::All);
    assert_eq!(asked(&mut stage, "r5", &["bob"]), ["publish r5"]);
    stage.leave(BOB);
    assert_eq!(
        asked(&mut stage, "r6", &["bob"]),
        ["publish r6", "ignore r6 of ann by bob: absent"]
    );
    // A notification waits for no answer.
    let kind = "mcp/request:notifications/progress";
    let notified = stage.send(Envelope {
        intent: Intent::None,
        ..Envelope::new(ANN, "n", kind, &["bob"])
    });
    assert_eq!(shown(&notified), ["publish n"]);
}

#[test]
fn an_answer_of_a_participant_that_was_not_asked_is_noticed() {
    let mut stage = stage();
    stage.listener(BOB, "bob", &["mcp/response:*"], DeliveryMode::All);
    stage.send(Envelope::request(ANN, "r1", &["dan"], &[1]));
    let answer = |link, id, to| Envelope::answer(link, id, to, "r1");
    assert_eq!(
        shown(&stage.send(answer(DAN, "a1", &["ann"]))),
        ["publish a1"]
    );
    let expected = ["publish a2", "ignore a2 of bob by portmoot: not asked"];
    assert_eq!(shown(&stage.send(answer(BOB, "a2", &["ann"]))), expected);
    assert_eq!(
        shown(&stage.send(answer(BOB, "a3", &["dan"]))),
        ["publish a3"],
        "it is none to ann"
    );
    stage.send(Envelope::request(ANN, "r2", &[], &[]));
    assert_eq!(
        shown(&stage.send(Envelope::answer(BOB, "a4", &["ann"], "r2"))),
        ["publish a4"]
    );
    let unrelated = Envelope {
        correlation: None,
        ..Envelope::answer(BOB, "a5", &["ann"], "")
    };
    assert_eq!(shown(&stage.send(unrelated)), ["publish a5"]);
}
