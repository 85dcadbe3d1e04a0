//! Approvals of what participants would carry out that are away for a moment: they do not count,
//! and the proposal stays pending.

use model::{DeliveryMode, LinkId};
use topic::{Cause, Event, Limits, ListScope};

use crate::{
    envelope::Envelope,
    proposals::{REJECT, stage_with},
    serving::serving,
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, EXPIRES_MS, Stage, tools},
};

const DAN: LinkId = LinkId(4);
/// The time for which one that has left counts as away.
const AWAY_MS: u64 = 100;
/// The topic has been open for longer.
const LATER_MS: u64 = 200;

/// Bob's proposal 1 to these participants is pending; dan may answer.
fn proposed(to: &[&str]) -> Stage {
    let mut stage = stage_with(Limits {
        away_ms: AWAY_MS,
        ..Limits::default()
    });
    stage.now_ms = LATER_MS;
    stage.listener(DAN, "dan", &["mcp/response:*"], DeliveryMode::All);
    stage.proposes_to(BOB, "bob", 1, to);
    stage.stored(1);
    stage
}

fn fulfilment<'a>(id: &'a str, to: &'a [&'a str]) -> Envelope<'a> {
    Envelope::request(ANN, id, to, &[]).about("p1")
}

#[test]
fn an_approval_of_what_is_away_for_a_moment_does_not_count() {
    let mut stage = proposed(&["dan"]);
    stage.leave(DAN);
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Away);
    assert_eq!(
        shown(&stage.send(fulfilment("f1", &["dan"]))),
        ["refuse decision 9 of ann on p1: away"]
    );
    stage.listener(DAN, "dan", &["mcp/response:*"], DeliveryMode::All);
    assert_eq!(
        shown(&stage.send(fulfilment("f2", &["dan"]))),
        ["store p1 decided running by ann"]
    );
    assert_eq!(shown(&stage.stored(1))[0], "publish f2");
    // A rejection counts, and after a while the proposal fails at once.
    let mut stage = proposed(&["dan"]);
    stage.leave(DAN);
    assert_eq!(shown(&stage.decide(1, "ann", REJECT)).len(), 1);
    let mut stage = proposed(&["dan"]);
    stage.leave(DAN);
    stage.now_ms = LATER_MS + AWAY_MS;
    assert!(stage.now_ms < EXPIRES_MS);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
    assert!(
        shown(&stage.stored(1))[2].ends_with("dan is not in the topic: it was not carried out")
    );
}

#[test]
fn one_that_is_there_or_may_not_come_back_is_not_waited_for() {
    let mut stage = proposed(&["dan", "cid"]);
    stage.leave(DAN);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"],
        "cid is there"
    );
    let mut stage = proposed(&["dan"]);
    stage.revoke("dan");
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
    let mut stage = proposed(&["eve"]);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"],
        "never there"
    );
    // A configured server is waited for when the call runs.
    let mut stage = proposed(&["dan", "one"]);
    stage.leave(DAN);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
    // Without addressees those count that the request names.
    let mut stage = proposed(&[]);
    stage.leave(DAN);
    assert_eq!(
        shown(&stage.send(fulfilment("f1", &["dan"]))),
        ["refuse decision 9 of ann on p1: away"]
    );
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
}

#[test]
fn after_a_restart_all_may_be_on_their_way() {
    let mut stage = stage_with(Limits {
        away_ms: AWAY_MS,
        ..Limits::default()
    });
    stage.proposes_to(BOB, "bob", 1, &["dan"]);
    stage.stored(1);
    stage.now_ms = AWAY_MS - 1;
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Away);
    stage.now_ms = AWAY_MS;
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
}

#[test]
fn a_held_call_waits_for_a_participant_that_serves() {
    let mut stage = Stage::with(Limits {
        away_ms: AWAY_MS,
        ..Limits::default()
    });
    stage.now_ms = LATER_MS;
    stage.configure(&serving());
    stage.listener(DAN, "worker", &["mcp/response:*"], DeliveryMode::All);
    stage.server(LinkId(8), "worker");
    stage.lists("worker", ListScope::Shared, tools(&["a"]));
    stage.promoting(BOB, "bob", &["mcp/proposal:*"]);
    stage.call(BOB, 11, "worker_a");
    let by = crate::stage::id("bob");
    let to = [crate::stage::id("worker")];
    let proposal = crate::stage::op(1);
    let terms = crate::stage::terms(&by, &to, "p1");
    stage.step(Event::Propose {
        proposal,
        terms: Box::new(terms),
        content: 1,
        held: crate::stage::op(11),
        park_ms: 900,
    });
    stage.stored(1);
    stage.leave(DAN);
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Away);
    stage.listener(DAN, "worker", &["mcp/response:*"], DeliveryMode::All);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
}
