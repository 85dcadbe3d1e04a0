//! Access tokens that are good for less than their participant may do: one link, one token.

use std::sync::Arc;

use model::{LinkId, ListKind, Narrowing, Refusal, RefusalCode, Scope};
use topic::{Cause, Event, ListScope};

use crate::{
    numbers::{Effect, Effects},
    shown::{delivered, notified, refused},
    stage::{ANN, BOB, Stage, caps, id, tools},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage
}

fn narrowing(to: &[&str], steps_up: bool) -> Narrowing {
    let scope = |name: &str, kinds: &[&str]| Scope {
        name: name.into(),
        capabilities: caps(kinds),
    };
    let scopes = [
        scope("small", &["mcp/request:tools/call:*_a"]),
        scope("large", &["mcp/request:tools/call:*", "mcp/proposal:*"]),
        scope("talk", &["chat"]),
    ];
    let step_up = steps_up.then(|| Arc::new(scopes.into_iter().collect()));
    Narrowing {
        to: caps(to),
        step_up,
    }
}

fn narrow(stage: &mut Stage, link: LinkId, to: &[&str], steps_up: bool) -> Narrowing {
    let narrowing = narrowing(to, steps_up);
    stage.step(Event::Narrow {
        link,
        narrowing: Some(narrowing.clone()),
    });
    narrowing
}

#[test]
fn a_narrowed_link_may_only_do_what_both_admit() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let kinds = [
        "mcp/request:tools/call:*_a",
        "mcp/request:prompts/*",
        "chat",
    ];
    let token = narrow(&mut stage, BOB, &kinds, false);
    assert_eq!(delivered(&stage.call(BOB, 1, "one_a")).0, "one");
    assert_eq!(refused(&stage.call(BOB, 2, "one_b")), Cause::NotAdmitted);
    assert_eq!(
        refused(&stage.call(BOB, 3, "hidden")),
        Cause::NotAdmitted,
        "a scope adds nothing"
    );
    assert_eq!(
        stage.sees_with(BOB, Some(&token), ListKind::Tools),
        ["one_a"]
    );
    assert!(!stage.topic.could_call(BOB, Some(&token), "one_b"));
    // With another token.
    stage.step(Event::Narrow {
        link: BOB,
        narrowing: None,
    });
    assert_eq!(delivered(&stage.call(BOB, 4, "one_b")).0, "one");
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a", "one_b"]);
    assert!(stage.topic.could_call(BOB, None, "one_b"));
    // A request that came with the first token is answered later.
    assert_eq!(
        stage.sees_with(BOB, Some(&token), ListKind::Tools),
        ["one_a"]
    );
    assert!(!stage.topic.could_call(BOB, Some(&token), "one_b"));
}

#[test]
fn tokens_that_take_turns_on_one_link_change_no_list() {
    let mut stage = stage();
    let (small, large) = (narrowing(&["mcp/request:tools/call:one_a"], false), None);
    for narrowing in [Some(small), large].into_iter().cycle().take(6) {
        let effects = stage.step(Event::Narrow {
            link: ANN,
            narrowing,
        });
        assert!(
            effects.all.is_empty() && effects.room.is_empty(),
            "{effects:?}"
        );
    }
}

#[test]
fn a_link_hears_of_changes_that_any_token_on_it_would_be_good_for() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    narrow(&mut stage, BOB, &["mcp/request:tools/call:one_a"], false);
    let listed = stage.lists("one", ListScope::Shared, tools(&["a", "b", "c"]));
    assert_eq!(notified(&listed, ListKind::Tools), ["link 1", "link 2"]);
    let regranted = stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    assert_eq!(notified(&regranted, ListKind::Tools), ["link 2"]);
}

#[test]
fn other_capabilities_of_the_participant_stay_narrowed() {
    let mut stage = stage();
    narrow(&mut stage, ANN, &["mcp/request:tools/call:one_a"], false);
    let capabilities = Arc::new(model::Capabilities::full());
    stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities,
    });
    assert_eq!(refused(&stage.call(ANN, 1, "one_b")), Cause::NotAdmitted);
    assert_eq!(delivered(&stage.call(ANN, 2, "one_a")).0, "one");
    stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities: caps(&["chat"]),
    });
    assert_eq!(refused(&stage.call(ANN, 3, "one_a")), Cause::NotAdmitted);
}

#[test]
fn lists_may_show_what_another_token_would_be_good_for() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let token = narrow(&mut stage, BOB, &["mcp/request:tools/call:one_a"], true);
    assert_eq!(
        stage.sees_with(BOB, Some(&token), ListKind::Tools),
        ["one_a", "one_b"]
    );
    assert_eq!(refused(&stage.call(BOB, 1, "one_b")), Cause::NotAdmitted);
}

/// The refusal that a call was answered with.
fn refusal(effects: &Effects) -> &Refusal {
    let mut refusals = effects.all.iter().filter_map(|effect| match effect {
        Effect::Refuse { refusal, .. } => Some(&**refusal),
        _ => None,
    });
    refusals.next().unwrap()
}

#[test]
fn a_refusal_names_the_scope_that_is_missing_and_only_to_those_who_may() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_b"]);
    narrow(&mut stage, BOB, &[], true);
    let check = |stage: &mut Stage, number, tool, scope: Option<&str>| {
        let effects = stage.call(BOB, number, tool);
        let refusal = refusal(&effects);
        assert_eq!(refusal.scope.as_deref(), scope, "{tool}");
        assert_eq!(
            refusal.code == RefusalCode::InsufficientScope,
            scope.is_some(),
            "{tool}"
        );
        assert_eq!(refused(&effects), Cause::NotAdmitted);
    };
    check(&mut stage, 1, "one_b", Some("large"));
    check(&mut stage, 2, "one_a", None);
    // What it may only propose needs a scope that is good for proposing it.
    stage.regrant("bob", &["mcp/proposal:tools/call:one_a"]);
    check(&mut stage, 3, "one_a", Some("large"));
    check(&mut stage, 4, "one_b", None);
    stage.regrant("bob", &["mcp/request:tools/call:one_b"]);
    narrow(&mut stage, BOB, &[], false);
    assert_eq!(refusal(&stage.call(BOB, 5, "one_b")).scope, None);
}
