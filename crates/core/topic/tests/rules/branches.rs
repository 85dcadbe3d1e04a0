//! Branches: topics of which another process has the proposals and the room.

use model::{DeliveryMode, RateLimit};
use topic::{Brake, Cause, TopicSettings};

use crate::{
    holds,
    numbers::Event,
    shown::{delivered, refused},
    stage::{BOB, CID, Stage, id},
};

/// Bob may call `one_b` and propose the rest, in a branch.
fn stage() -> Stage {
    let mut stage = holds::stage();
    stage.set(TopicSettings {
        is_branch: true,
        ..TopicSettings::default()
    });
    stage
}

/// Whether a branch may make Bob's call of a tool.
fn is_plain(stage: &Stage, tool: &str) -> bool {
    stage.topic.plain_server(BOB, tool).is_some()
}

#[test]
fn a_branch_holds_nothing() {
    let mut stage = stage();
    assert!(!is_plain(&stage, "one_a"));
    assert_eq!(refused(&stage.call(BOB, 1, "one_a")), Cause::Elsewhere);
    assert!(is_plain(&stage, "one_b"));
    delivered(&stage.call(BOB, 2, "one_b"));
    for unknown in ["one_unknown", "two_b", "other"] {
        assert!(!is_plain(&stage, unknown), "{unknown}");
    }
    assert!(stage.topic.plain_server(CID, "one_b").is_none());
}

#[test]
fn calls_that_are_paused_or_counted_are_not_plain() {
    let mut stage = stage();
    let bob = id("bob");
    let brake = |brake| Event::Brake {
        participant: &bob,
        brake,
    };
    let paused = Brake {
        by: id("ann"),
        reason: None,
        since_ms: 7,
    };
    stage.step(brake(Some(paused)));
    assert!(!is_plain(&stage, "one_b"));
    assert_eq!(refused(&stage.call(BOB, 1, "one_b")), Cause::Elsewhere);
    stage.step(brake(None));
    assert!(is_plain(&stage, "one_b"));
    let rate = RateLimit {
        per_minute: 60,
        burst: 5,
    };
    stage.limited(CID, "cid", &["mcp/*"], Some(rate));
    assert!(stage.topic.plain_server(CID, "one_b").is_none());
}

#[test]
fn calls_are_shown_while_a_participant_listens_to_all() {
    let mut stage = stage();
    assert!(!stage.topic.shows_calls());
    stage.listener(CID, "cid", &["chat"], DeliveryMode::Directed);
    assert!(!stage.topic.shows_calls());
    stage.leave(CID);
    stage.listener(CID, "cid", &["chat"], DeliveryMode::All);
    assert!(stage.topic.shows_calls());
    stage.leave(CID);
    assert!(!stage.topic.shows_calls());
}
