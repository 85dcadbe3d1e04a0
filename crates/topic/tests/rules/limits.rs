//! Each limit at its edge.

use model::LinkId;
use topic::{About, Cause, Event, Limits};

use crate::stage::{ANN, Stage, delivered, id, op, refused};

#[test]
fn participants() {
    // Three upstreams and ann are in already.
    let mut stage = Stage::with(Limits { participants_max: 5, ..Limits::default() });
    assert_eq!(stage.caller(LinkId(2), "bob", &[]).len(), 1);
    assert_eq!(refused(&stage.caller(LinkId(3), "cid", &[])), Cause::Limit);
    assert!(stage.caller(LinkId(3), "bob", &[]).is_empty(), "a further link takes no further seat");
    stage.step(Event::Leave { link: ANN });
    assert_eq!(stage.caller(LinkId(4), "cid", &[]).len(), 1);
}

#[test]
fn links_of_a_participant() {
    let mut stage = Stage::with(Limits { links_per_participant_max: 2, ..Limits::default() });
    assert!(stage.caller(LinkId(2), "ann", &["mcp/*"]).is_empty());
    assert_eq!(refused(&stage.caller(LinkId(3), "ann", &["mcp/*"])), Cause::Limit);
}

#[test]
fn operations_of_a_link_and_of_the_topic() {
    let limits = Limits { operations_per_link_max: 2, operations_max: 3, ..Limits::default() };
    let mut stage = Stage::with(limits);
    stage.caller(LinkId(2), "bob", &["mcp/*"]);
    delivered(&stage.call(ANN, 1, "x"));
    delivered(&stage.call(ANN, 2, "x"));
    assert_eq!(refused(&stage.call(ANN, 3, "x")), Cause::Limit);
    let ask = Event::Ask {
        upstream: &id("bare"),
        operation: op(9),
        about: About::Call(op(1)),
        method: "roots/list",
    };
    assert_eq!(refused(&stage.step(ask.clone())), Cause::Limit);
    delivered(&stage.call(LinkId(2), 3, "x"));
    assert_eq!(refused(&stage.call(LinkId(2), 4, "x")), Cause::Limit);
    stage.step(Event::Expire { operation: op(2) });
    assert_eq!(stage.step(ask).len(), 1);
}

#[test]
fn operations_of_a_participant_on_all_its_links() {
    let mut stage = Stage::with(Limits { operations_per_participant_max: 2, ..Limits::default() });
    stage.caller(LinkId(2), "ann", &["mcp/*"]);
    stage.caller(LinkId(3), "bob", &["mcp/*"]);
    delivered(&stage.call(ANN, 1, "x"));
    delivered(&stage.call(LinkId(2), 2, "x"));
    assert_eq!(refused(&stage.call(ANN, 3, "x")), Cause::Limit);
    assert_eq!(refused(&stage.call(LinkId(2), 3, "x")), Cause::Limit);
    delivered(&stage.call(LinkId(3), 3, "x"));
    stage.step(Event::Leave { link: LinkId(2) });
    delivered(&stage.call(ANN, 4, "x"));
    assert_eq!(refused(&stage.call(ANN, 5, "x")), Cause::Limit);
    stage.step(Event::Expire { operation: op(1) });
    delivered(&stage.call(ANN, 5, "x"));
}
