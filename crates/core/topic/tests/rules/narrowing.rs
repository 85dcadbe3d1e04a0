//! Access tokens that are good for less than their participant may do: one request, one token.

use std::sync::Arc;

use model::{ListKind, ListenFilter, Narrowing, Refusal, RefusalCode, Scope};
use topic::{Cause, Event, Interest, ListScope, Parked, PublicTarget, Resume, ServerLists};

use crate::{
    envelope::Envelope,
    numbers::{Effect, Effects},
    shown::{delivered, notified, refused, shown},
    stage::{ANN, BOB, ONE, OWN, Stage, caps, id, items, op, tools},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage
}

fn token(to: &[&str], steps_up: bool) -> Narrowing {
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

#[test]
fn a_request_may_only_do_what_its_token_and_its_participant_may() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let kinds = [
        "mcp/request:tools/call:*_a",
        "mcp/request:prompts/*",
        "chat",
    ];
    let token = token(&kinds, false);
    assert_eq!(
        delivered(&stage.call_with(BOB, 1, "one_a", &token)).0,
        "one"
    );
    let not_in_scope = stage.call_with(BOB, 2, "one_b", &token);
    assert_eq!(refused(&not_in_scope), Cause::NotAdmitted);
    let not_granted = stage.call_with(BOB, 3, "hidden", &token);
    assert_eq!(refused(&not_granted), Cause::NotAdmitted);
    assert_eq!(
        stage.sees_with(BOB, Some(&token), ListKind::Tools),
        ["one_a"]
    );
    assert!(!stage.topic.could_call(BOB, Some(&token), "one_b"));
}

#[test]
fn requests_of_several_tokens_are_open_on_one_link_at_once() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let small = token(&["mcp/request:tools/call:one_a"], false);
    let other = token(&["mcp/request:tools/call:one_b"], false);
    // Each is judged by its own, whichever came before.
    for round in 0..3 {
        let first = 10 * round;
        let admitted = stage.call_with(BOB, first + 1, "one_a", &small);
        assert_eq!(delivered(&admitted).0, "one");
        let admitted = stage.call_with(BOB, first + 2, "one_b", &other);
        assert_eq!(delivered(&admitted).0, "one");
        assert_eq!(delivered(&stage.call(BOB, first + 3, "one_b")).0, "one");
        let refusal = stage.call_with(BOB, first + 4, "one_b", &small);
        assert_eq!(refused(&refusal), Cause::NotAdmitted);
    }
    assert_eq!(stage.topic.operations_len(), 9);
    // None ends because another token came, and each is answered by what its own shows.
    assert_eq!(
        stage.sees_with(BOB, Some(&small), ListKind::Tools),
        ["one_a"]
    );
    assert_eq!(
        stage.sees_with(BOB, Some(&other), ListKind::Tools),
        ["one_b"]
    );
    assert_eq!(stage.sees(BOB, ListKind::Tools), ["one_a", "one_b"]);
    assert!(stage.topic.could_call(BOB, None, "one_b"));
}

#[test]
fn a_caller_comes_back_with_the_token_of_its_return() {
    let mut stage = stage();
    stage.join(BOB, "bob", &["mcp/request:tools/call:one_*"], |join| {
        join.joining.pauses = true;
    });
    let small = token(&["mcp/request:tools/call:one_b"], false);
    stage.call(BOB, 1, "one_a");
    stage.ask("one", 21, topic::About::Call(op(1)), "roots/list");
    stage.tick(1_000);
    let parked = Parked::Questions {
        round: 1,
        answers: vec![(op(21), 5)],
    };
    let resume = |narrowing, call| Resume {
        link: BOB,
        operation: op(1),
        tag: None,
        parked: parked.clone(),
        narrowing,
        call,
    };
    let refusal = stage.step(Event::Resume(resume(Some(&small), 2)));
    assert_eq!(refused(&refusal), Cause::NotAdmitted);
    // It is still paused, and its round is still good.
    let settled = shown(&stage.step(Event::Resume(resume(None, 3))));
    assert!(
        !settled.is_empty() && stage.topic.is_open(op(1)),
        "{settled:?}"
    );
}

#[test]
fn an_envelope_is_judged_by_the_token_of_its_sender() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["chat", "news"]);
    let talk = token(&["chat"], false);
    let say = |kind| Envelope {
        token: Some(&talk),
        ..Envelope::new(BOB, "m", kind, &[])
    };
    assert!(stage.send(say("chat")).refusal.is_none());
    assert!(stage.send(say("news")).refusal.is_some());
    assert!(stage.say(BOB, "news", &[]).refusal.is_none());
}

#[test]
fn a_listen_request_gets_what_its_token_is_good_for() {
    let mut stage = stage();
    stage.server(OWN, "portmoot");
    let resources = ServerLists {
        resources: items(&["demo://a"]),
        ..ServerLists::default()
    };
    stage.lists("one", ListScope::Shared, resources);
    let small = token(&["mcp/request:tools/*"], false);
    let mut listen = |operation, narrowing| {
        let filter = ListenFilter {
            resources: vec!["demo://a".into()],
            ..ListenFilter::default()
        };
        stage.request_with(ANN, operation, "subscriptions/listen", None, |request| {
            request.interest = Interest::Listen(Box::new(filter));
            request.narrowing = narrowing;
        });
        let listening = stage.topic.listening(op(operation)).unwrap();
        listening.resources.len()
    };
    assert_eq!((listen(1, Some(&small)), listen(2, None)), (0, 1));
}

#[test]
fn a_link_hears_of_changes_that_any_token_on_it_would_be_good_for() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let token = token(&["mcp/request:tools/call:one_a"], false);
    stage.call_with(BOB, 1, "one_a", &token);
    let listed = stage.lists("one", ListScope::Shared, tools(&["a", "b", "c"]));
    assert_eq!(notified(&listed, ListKind::Tools), ["link 1", "link 2"]);
    let regranted = stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    assert_eq!(notified(&regranted, ListKind::Tools), ["link 2"]);
}

#[test]
fn other_capabilities_of_the_participant_are_narrowed_too() {
    let mut stage = stage();
    let token = token(&["mcp/request:tools/call:one_a"], false);
    assert_eq!(
        delivered(&stage.call_with(ANN, 1, "one_a", &token)).0,
        "one"
    );
    let capabilities = Arc::new(model::Capabilities::full());
    stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities,
    });
    let refusal = stage.call_with(ANN, 2, "one_b", &token);
    assert_eq!(refused(&refusal), Cause::NotAdmitted);
    assert_eq!(
        delivered(&stage.call_with(ANN, 3, "one_a", &token)).0,
        "one"
    );
    stage.step(Event::Regrant {
        participant: &id("ann"),
        capabilities: caps(&["chat"]),
    });
    let refusal = stage.call_with(ANN, 4, "one_a", &token);
    assert_eq!(refused(&refusal), Cause::NotAdmitted);
}

#[test]
fn an_open_call_outlives_the_token_that_it_came_with_and_not_its_right() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let small = token(&["mcp/request:tools/call:one_a"], false);
    stage.call_with(BOB, 1, "one_a", &small);
    let other = token(&["mcp/request:tools/call:one_b"], false);
    stage.call_with(BOB, 2, "one_b", &other);
    assert!(stage.topic.is_open(op(1)));
    stage.answer(ONE, 2, 5);
    let regranted = stage.regrant("bob", &["mcp/request:tools/call:one_b"]);
    let withdrawn = |effect: &Effect| {
        matches!(
            effect,
            Effect::Refuse {
                call: 1,
                cause: Cause::Withdrawn,
                ..
            }
        )
    };
    assert!(regranted.all.iter().any(withdrawn), "{regranted:?}");
}

#[test]
fn lists_may_show_what_another_token_would_be_good_for() {
    let mut stage = stage();
    stage.caller(BOB, "bob", &["mcp/request:tools/call:one_*"]);
    let token = token(&["mcp/request:tools/call:one_a"], true);
    assert_eq!(
        stage.sees_with(BOB, Some(&token), ListKind::Tools),
        ["one_a", "one_b"]
    );
    let refusal = stage.call_with(BOB, 1, "one_b", &token);
    assert_eq!(refused(&refusal), Cause::NotAdmitted);
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
    let steps_up = token(&[], true);
    let check = |stage: &mut Stage, number, tool, scope: Option<&str>| {
        let effects = stage.call_with(BOB, number, tool, &steps_up);
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
    let plain = token(&[], false);
    let effects = stage.call_with(BOB, 5, "one_b", &plain);
    assert_eq!(refusal(&effects).scope, None);
    // A query of another moment answers by the token that it is given.
    let admits = |token| {
        let target = Some(PublicTarget::Tool("one_b"));
        stage.topic.admits(BOB, token, "tools/call", target)
    };
    assert!(admits(None) && !admits(Some(&plain)));
}
