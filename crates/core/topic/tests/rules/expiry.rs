//! Expiry of proposals: the warning before it, and more time.

use model::ProposalState;
use topic::{
    Brake, Cause, Decision, EXPIRY_WARNING_MS, EXTENSION_MS, Event, PROPOSAL_EXTENSIONS_MAX,
};

use crate::{
    envelope::Envelope,
    proposals::{REJECT, stage},
    shown::{refused, shown},
    stage::{APPROVE, BOB, EXPIRES_MS, Stage, WALL_EXPIRES_MS, id, op, terms},
};

/// Bob's proposal 1 of a call of `a` at `one`, which expires then; ann and dee may decide.
fn expiring_at(expires_ms: u64, extensions: usize) -> Stage {
    let mut stage = stage();
    stage.caller(model::LinkId(41), "dee", &["mcp/approve:tools/call:one_a"]);
    let terms = topic::Terms {
        expires_ms,
        extensions,
        ..terms(&id("bob"), &[id("one")], "p1")
    };
    stage.restore_with(1, terms);
    stage
}

fn extends(stage: &mut Stage, by: &str) -> Vec<String> {
    let mut lines = shown(&stage.decide(1, by, Decision::Extend));
    lines.extend(shown(&stage.stored(1)));
    lines
}

#[test]
fn there_is_more_time_once_that_is_on_disk() {
    let mut stage = expiring_at(EXPIRES_MS, 0);
    assert_eq!(
        shown(&stage.decide(1, "ann", Decision::Extend)),
        ["store p1 extended by ann"]
    );
    // The clock stands while it is written.
    assert!(shown(&stage.tick(EXPIRES_MS)).is_empty());
    let until = WALL_EXPIRES_MS + EXTENSION_MS;
    let extended = format!("extended p1 by ann to {until}");
    assert_eq!(shown(&stage.stored(1)), [extended.as_str(), "ruled 9"]);
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!((view.expires_wall_ms, view.extensions), (until, 1));
    assert_eq!(view.state, ProposalState::Pending);
    let ended_ms = EXPIRES_MS + EXTENSION_MS;
    assert_eq!(
        shown(&stage.tick(ended_ms - 1)),
        ["expiring p1"],
        "its warning, too, is later"
    );
    assert_eq!(shown(&stage.tick(ended_ms)), ["store p1 ended expired"]);
    // What cannot be written gives no time.
    let mut stage = expiring_at(EXPIRES_MS, 0);
    stage.decide(1, "ann", Decision::Extend);
    assert_eq!(refused(&stage.not_stored(1)), Cause::LogUnavailable);
    assert_eq!(shown(&stage.tick(EXPIRES_MS)), ["store p1 ended expired"]);
}

#[test]
fn those_who_may_decide_give_more_time_and_not_more_often_than_that() {
    let mut stage = expiring_at(EXPIRES_MS, 0);
    let refuses = |stage: &mut Stage, by: &str| refused(&stage.decide(1, by, Decision::Extend));
    assert_eq!(refuses(&mut stage, "bob"), Cause::Own);
    assert_eq!(refuses(&mut stage, "cid"), Cause::NotAdmitted);
    let brake = Brake {
        by: id("ann"),
        reason: None,
        since_ms: 0,
    };
    stage.step(Event::Brake {
        participant: &id("dee"),
        brake: Some(brake),
    });
    assert_eq!(refuses(&mut stage, "dee"), Cause::Paused);
    for _ in 0..PROPOSAL_EXTENSIONS_MAX {
        assert_eq!(extends(&mut stage, "ann").len(), 3);
    }
    assert_eq!(refuses(&mut stage, "ann"), Cause::Extended);
    let view = stage.topic.proposal(op(1)).unwrap();
    let all_ms = EXTENSION_MS * PROPOSAL_EXTENSIONS_MAX as u64;
    assert_eq!(view.expires_wall_ms, WALL_EXPIRES_MS + all_ms);
    // As many as before a restart.
    let mut stage = expiring_at(EXPIRES_MS, PROPOSAL_EXTENSIONS_MAX - 1);
    extends(&mut stage, "ann");
    assert_eq!(refuses(&mut stage, "ann"), Cause::Extended);
    stage.decide(1, "ann", REJECT);
    stage.stored(1);
    assert_eq!(refuses(&mut stage, "ann"), Cause::Decided);
    let mut stage = expiring_at(EXPIRES_MS, 0);
    stage.now_ms = EXPIRES_MS;
    assert_eq!(refuses(&mut stage, "ann"), Cause::Expired);
}

#[test]
fn what_comes_while_more_time_is_written_comes_after_it() {
    let mut stage = expiring_at(EXPIRES_MS, 0);
    stage.decide(1, "ann", Decision::Extend);
    assert!(shown(&stage.decide(1, "dee", APPROVE)).is_empty());
    let lines = shown(&stage.stored(1));
    assert_eq!(
        lines.last().map(String::as_str),
        Some("store p1 decided running by dee"),
        "{lines:?}"
    );
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
    // Its proposer may make the request itself by now: that withdraws it.
    let mut stage = expiring_at(EXPIRES_MS, 0);
    stage.regrant("bob", &["mcp/*"]);
    stage.decide(1, "ann", Decision::Extend);
    let own = Envelope::request(BOB, "r1", &["one"], &[11]).about("p1");
    assert!(shown(&stage.send(own)).is_empty());
    let lines = shown(&stage.stored(1));
    let last = lines.last().map(String::as_str);
    let withdrawn = "store p1 decided withdrawn by bob unasked: carried out by its proposer, bob";
    assert_eq!(last, Some(withdrawn), "{lines:?}");
    let mut stage = expiring_at(EXPIRES_MS, 0);
    stage.decide(1, "ann", Decision::Extend);
    stage.revoke("bob");
    let lines = shown(&stage.stored(1));
    let last = lines.last().map(String::as_str);
    let withdrawn =
        "store p1 decided withdrawn by bob unasked: its proposer may not be here any more";
    assert_eq!(last, Some(withdrawn), "{lines:?}");
}

#[test]
fn a_warning_comes_once_before_each_expiry() {
    let expires_ms = 2 * EXPIRY_WARNING_MS;
    let mut stage = expiring_at(expires_ms, 0);
    let warning_ms = expires_ms - EXPIRY_WARNING_MS;
    assert_eq!(stage.topic.next_deadline_ms(), Some(warning_ms));
    assert!(shown(&stage.tick(warning_ms - 1)).is_empty());
    assert_eq!(shown(&stage.tick(warning_ms)), ["expiring p1"]);
    assert!(shown(&stage.tick(warning_ms + 1)).is_empty());
    extends(&mut stage, "dee");
    let again_ms = warning_ms + EXTENSION_MS;
    assert!(shown(&stage.tick(again_ms - 1)).is_empty());
    assert_eq!(shown(&stage.tick(again_ms)), ["expiring p1"]);
    // One that is over when the clock comes to it has none, and neither has one that lives briefly.
    let mut stage = expiring_at(expires_ms, 0);
    assert_eq!(shown(&stage.tick(expires_ms)), ["store p1 ended expired"]);
    let mut stage = expiring_at(EXPIRY_WARNING_MS, 0);
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRY_WARNING_MS));
    assert!(shown(&stage.tick(EXPIRY_WARNING_MS - 1)).is_empty());
    // One that is decided has none.
    let mut stage = expiring_at(expires_ms, 0);
    stage.decide(1, "dee", REJECT);
    stage.stored(1);
    assert!(shown(&stage.tick(warning_ms)).is_empty());
}
