//! Access tokens that are good for less than their participant may do: one link, one token.

use std::sync::Arc;

use model::{LinkId, ListKind, Narrowing};
use topic::{Cause, Event, ListScope, Target};

use crate::{
    shown::{delivered, refused},
    stage::{ANN, BOB, Stage, caps, id, tools},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage
}

fn narrow(stage: &mut Stage, link: LinkId, to: &[&str], lists_all: bool) {
    let narrowing = Some(Narrowing { to: caps(to), lists_all });
    stage.step(Event::Narrow { link, narrowing });
}

#[test]
fn a_narrowed_link_may_only_do_what_both_admit() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    narrow(&mut stage, BOB, &["mcp/request:tools/call:*_a", "mcp/request:prompts/*", "chat"], false);
    assert_eq!(delivered(&stage.call(BOB, 1, "one_a")).0, "one");
    assert_eq!(refused(&stage.call(BOB, 2, "one_b")), Cause::NotAdmitted);
    assert_eq!(refused(&stage.call(BOB, 3, "hidden")), Cause::NotAdmitted, "a scope adds nothing");
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a"]);
    let lacks = |stage: &Stage, name| {
        stage
            .topic
            .lacks(BOB, "tools/call", Some(Target::Tool(name)))
            .map(|(kind, at)| (kind, at.to_string()))
    };
    assert_eq!(lacks(&stage, "one_b"), Some(("mcp/request:tools/call:one_b".into(), "one".into())));
    assert_eq!((lacks(&stage, "one_a"), lacks(&stage, "hidden"), lacks(&stage, "none")), (None, None, None));
    // With another token.
    stage.step(Event::Narrow { link: BOB, narrowing: None });
    assert_eq!(delivered(&stage.call(BOB, 4, "one_b")).0, "one");
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a", "one_b"]);
}

#[test]
fn other_capabilities_of_the_participant_stay_narrowed() {
    let mut stage = stage();
    narrow(&mut stage, ANN, &["mcp/request:tools/call:one_a"], false);
    let capabilities = Arc::new(model::Capabilities::full());
    stage.step(Event::Regrant { participant: &id("ann"), capabilities });
    assert_eq!(refused(&stage.call(ANN, 1, "one_b")), Cause::NotAdmitted);
    assert_eq!(delivered(&stage.call(ANN, 2, "one_a")).0, "one");
    stage.step(Event::Regrant { participant: &id("ann"), capabilities: caps(&["chat"]) });
    assert_eq!(refused(&stage.call(ANN, 3, "one_a")), Cause::NotAdmitted);
}

#[test]
fn lists_may_show_what_another_token_would_be_good_for() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    narrow(&mut stage, BOB, &["mcp/request:tools/call:one_a"], true);
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a", "one_b"]);
    assert_eq!(refused(&stage.call(BOB, 1, "one_b")), Cause::NotAdmitted);
}
