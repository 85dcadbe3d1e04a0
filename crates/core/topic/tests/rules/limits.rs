//! Limits of a topic, each at its edge.

use model::LinkId;
use topic::{About, Cause, Limits, TopicSettings};

use crate::{
    shown::{delivered, refused, shown},
    stage::{ANN, BARE, BOB, CID, Stage, op},
};

#[test]
fn participants() {
    // Three servers and ann are already in the topic.
    let mut stage = Stage::with(Limits {
        participants_max: 5,
        ..Limits::default()
    });
    assert_eq!(shown(&stage.caller(BOB, "bob", &[])), ["joined bob"]);
    assert_eq!(refused(&stage.caller(CID, "cid", &[])), Cause::Limit);
    assert!(
        shown(&stage.caller(CID, "bob", &[])).is_empty(),
        "a further link takes no further seat"
    );
    stage.leave(ANN);
    assert_eq!(shown(&stage.caller(LinkId(4), "cid", &[])), ["joined cid"]);
}

#[test]
fn links_of_a_participant() {
    let mut stage = Stage::with(Limits {
        links_per_participant_max: 2,
        ..Limits::default()
    });
    assert!(shown(&stage.caller(BOB, "ann", &["mcp/*"])).is_empty());
    assert_eq!(refused(&stage.caller(CID, "ann", &["mcp/*"])), Cause::Limit);
}

#[test]
fn operations_of_a_link_and_of_the_topic() {
    let limits = Limits {
        operations_per_link_max: 2,
        operations_max: 3,
        ..Limits::default()
    };
    let mut stage = Stage::with(limits);
    stage.caller(BOB, "bob", &["mcp/*"]);
    delivered(&stage.call(ANN, 1, "x"));
    delivered(&stage.call(ANN, 2, "x"));
    assert_eq!(refused(&stage.call(ANN, 3, "x")), Cause::Limit);
    let ask = |stage: &mut Stage| stage.ask("bare", 9, About::Call(op(1)), "roots/list");
    assert_eq!(refused(&ask(&mut stage)), Cause::Limit);
    delivered(&stage.call(BOB, 3, "x"));
    assert_eq!(refused(&stage.call(BOB, 4, "x")), Cause::Limit);
    stage.fail(BARE, 2);
    assert_eq!(shown(&ask(&mut stage)), ["ask 9 of 1 at call 1"]);
}

#[test]
fn operations_of_a_participant_on_all_its_links() {
    let mut stage = Stage::with(Limits {
        operations_per_participant_max: 2,
        ..Limits::default()
    });
    stage.caller(BOB, "ann", &["mcp/*"]);
    stage.caller(CID, "bob", &["mcp/*"]);
    delivered(&stage.call(ANN, 1, "x"));
    delivered(&stage.call(BOB, 2, "x"));
    assert_eq!(refused(&stage.call(ANN, 3, "x")), Cause::Limit);
    assert_eq!(refused(&stage.call(BOB, 3, "x")), Cause::Limit);
    delivered(&stage.call(CID, 3, "x"));
    stage.leave(BOB);
    delivered(&stage.call(ANN, 4, "x"));
    assert_eq!(refused(&stage.call(ANN, 5, "x")), Cause::Limit);
    stage.fail(BARE, 1);
    delivered(&stage.call(ANN, 5, "x"));
}

#[test]
fn all_guests_have_the_operations_of_one_participant() {
    let mut stage = Stage::configured(|config| {
        config.settings.limits = Limits {
            operations_per_participant_max: 2,
            ..Limits::default()
        };
        config.guests = "guest-";
    });
    stage.caller(BOB, "guest-1", &["mcp/*"]);
    stage.caller(CID, "guest-2", &["mcp/*"]);
    assert_eq!(stage.topic.guests_len(), 2);
    delivered(&stage.call(BOB, 1, "x"));
    delivered(&stage.call(CID, 2, "x"));
    assert_eq!(refused(&stage.call(BOB, 3, "x")), Cause::Limit);
    delivered(&stage.call(ANN, 3, "x"));
    stage.fail(BARE, 1);
    delivered(&stage.call(CID, 4, "x"));
    assert_eq!(refused(&stage.call(BOB, 5, "x")), Cause::Limit);
    stage.leave(CID);
    delivered(&stage.call(BOB, 5, "x"));
    assert_eq!(stage.topic.guests_len(), 1);
}

#[test]
fn another_configuration_brings_other_limits() {
    let mut stage = Stage::new();
    delivered(&stage.call(ANN, 1, "x"));
    delivered(&stage.call(ANN, 2, "x"));
    let fewer = TopicSettings {
        limits: Limits {
            operations_per_participant_max: 2,
            ..Limits::default()
        },
        ..TopicSettings::default()
    };
    stage.set(fewer);
    assert_eq!(refused(&stage.call(ANN, 3, "x")), Cause::Limit);
    // What was open stays open.
    stage.fail(BARE, 1);
    delivered(&stage.call(ANN, 4, "x"));
    stage.set(TopicSettings::default());
    delivered(&stage.call(ANN, 5, "x"));
}
