//! Coming and going.

use model::LinkId;
use topic::{Cause, Effect, End, Event, Role};

use crate::stage::{ANN, Stage, caps, id, refused};

#[test]
fn a_participant_joins_with_its_first_link_and_leaves_with_its_last() {
    let mut stage = Stage::new();
    assert!(stage.caller(LinkId(2), "ann", &["mcp/*"]).is_empty());
    assert_eq!(stage.topic.links(&id("ann")), [ANN, LinkId(2)]);
    assert!(stage.step(Event::Leave { link: ANN }).is_empty());
    let effects = stage.step(Event::Leave { link: LinkId(2) });
    assert_eq!(effects.as_slice(), [Effect::Left { participant: id("ann") }]);
    assert!(stage.step(Event::Leave { link: LinkId(2) }).is_empty());
    let effects = stage.caller(LinkId(3), "ann", &[]);
    assert_eq!(effects.as_slice(), [Effect::Joined { participant: id("ann") }]);
}

#[test]
fn nobody_comes_in_under_anothers_name() {
    let mut stage = Stage::new();
    assert_eq!(refused(&stage.caller(LinkId(2), "one", &[])), Cause::Taken);
    assert_eq!(refused(&stage.caller(LinkId(2), "portmoot", &[])), Cause::Taken);
    assert_eq!(refused(&stage.upstream(LinkId(2), "unheard-of")), Cause::Unknown);
    assert!(stage.caller(ANN, "bob", &[]).is_empty(), "a link comes in once");
    assert!(!stage.topic.has_participant(&id("bob")));
}

#[test]
fn a_cut_off_ends_every_link() {
    let mut stage = Stage::new();
    stage.caller(LinkId(2), "ann", &["mcp/*"]);
    stage.call(LinkId(2), 1, "hidden");
    let effects = stage.step(Event::Revoke { participant: &id("ann") });
    let ended = |link| Effect::Ended { link, why: End::Revoked };
    assert_eq!(effects[0], ended(ANN));
    assert_eq!(effects[1], ended(LinkId(2)));
    assert!(matches!(&effects[2], Effect::CancelAt { .. }));
    assert_eq!(effects[3], Effect::Left { participant: id("ann") });
    assert!(stage.call(ANN, 2, "hidden").is_empty(), "nothing comes of what a link says after its end");
}

#[test]
fn a_later_link_brings_the_newest_capabilities() {
    let mut stage = Stage::new();
    stage.call(ANN, 1, "hidden");
    let capabilities = caps(&["chat"]);
    let participant = &id("ann");
    let (link, role, rate, ear, promotes) = (LinkId(2), Role::Caller, None, None, false);
    let effects = stage.step(Event::Join { link, participant, role, capabilities, rate, ear, promotes });
    assert!(matches!(&effects[1], Effect::Refuse { cause: Cause::Withdrawn, to: ANN, .. }));
}
