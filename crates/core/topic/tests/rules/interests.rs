//! Subscriptions of links, and levels of log messages.

use model::{LinkId, LogLevel, Narrowing};
use topic::{
    Effect, Event, Interest, ListScope, Logs, PublicTarget, SUBSCRIPTIONS_MAX, ServerLists, Subject,
};

use crate::{
    numbers::{Effects, Event as OwnEvent},
    shown::{delivered, shown},
    stage::{ANN, BARE, BOB, ONE, Stage, caps, configured, id, items},
};

const URI: &str = "demo://a";

fn stage() -> Stage {
    let mut stage = Stage::new();
    let manifest = || ServerLists {
        resources: items(&[URI]),
        ..ServerLists::default()
    };
    stage.lists("one", ListScope::Shared, manifest());
    stage.lists("two", ListScope::Shared, manifest());
    stage.caller(BOB, "bob", &["mcp/request:resources/*"]);
    stage
}

fn interest(
    stage: &mut Stage,
    link: LinkId,
    operation: u128,
    uri: &str,
    interest: Interest,
) -> Effects {
    let method = match interest {
        Interest::Subscribe => "resources/subscribe",
        _ => "resources/unsubscribe",
    };
    stage.request_with(
        link,
        operation,
        method,
        Some(PublicTarget::Uri(uri)),
        |request| request.interest = interest,
    )
}

fn subscribe(stage: &mut Stage, link: LinkId, operation: u128, uri: &str) -> Effects {
    interest(stage, link, operation, uri, Interest::Subscribe)
}

fn updated(stage: &mut Stage, server: &str, session: Option<LinkId>) -> Vec<String> {
    let subject = Subject::Resource { own: URI, session };
    let event: OwnEvent<'_> = Event::Notice {
        server: &id(server),
        subject,
        level: None,
        notice: 3,
    };
    shown(&stage.step(event))
}

#[test]
fn a_subscribed_link_is_notified_under_the_spelling_that_it_used() {
    let mut stage = stage();
    assert!(updated(&mut stage, "one", None).is_empty());
    delivered(&subscribe(&mut stage, ANN, 1, URI));
    assert!(
        stage.topic.follows(ANN, &id("one"), URI) && !stage.topic.follows(ANN, &id("two"), URI)
    );
    assert_eq!(
        updated(&mut stage, "one", None),
        ["notify link 1 of 3 about demo://a"]
    );
    assert!(updated(&mut stage, "two", None).is_empty());
    stage.answer(ONE, 1, 5);
    subscribe(&mut stage, BOB, 2, "portmoot:two/demo://a");
    let spelled = "portmoot:two/demo://a";
    let expected = [format!("notify link 2 of 3 as {spelled} about {spelled}")];
    assert_eq!(updated(&mut stage, "two", None), expected);
    subscribe(&mut stage, BOB, 3, URI);
    let expected = [
        "notify link 1 of 3 about demo://a",
        "notify link 2 of 3 about demo://a",
    ];
    assert_eq!(updated(&mut stage, "one", None), expected);
    assert_eq!(
        updated(&mut stage, "one", Some(BOB)),
        expected[1..],
        "of one session"
    );
}

#[test]
fn updates_go_on_while_another_token_is_the_latest_on_the_link() {
    let mut stage = stage();
    subscribe(&mut stage, BOB, 1, URI);
    let token = Narrowing {
        to: caps(&["mcp/request:tools/*"]),
        step_up: None,
    };
    stage.request_with(BOB, 2, "ping", None, |request| {
        request.narrowing = Some(&token);
    });
    assert_eq!(
        updated(&mut stage, "one", None),
        ["notify link 2 of 3 about demo://a"]
    );
    stage.regrant("bob", &["mcp/request:tools/*"]);
    assert!(updated(&mut stage, "one", None).is_empty());
}

#[test]
fn a_subscription_is_undone_unless_the_server_answers_with_a_result() {
    let mut stage = stage();
    let follows = |stage: &Stage| stage.topic.follows(ANN, &id("one"), URI);
    subscribe(&mut stage, ANN, 1, URI);
    stage.error(ONE, 1, 6);
    assert!(!follows(&stage));
    subscribe(&mut stage, ANN, 2, URI);
    stage.fail(ONE, 2);
    assert!(!follows(&stage));
    subscribe(&mut stage, ANN, 3, URI);
    stage.cancel(ANN, 3);
    assert!(!follows(&stage));
    subscribe(&mut stage, ANN, 4, URI);
    stage.answer(ONE, 4, 5);
    // A second request that fails does not end the first one's.
    subscribe(&mut stage, ANN, 5, URI);
    stage.error(ONE, 5, 6);
    assert!(follows(&stage));
}

#[test]
fn a_caller_unsubscribes_or_leaves() {
    let mut stage = stage();
    subscribe(&mut stage, ANN, 1, URI);
    subscribe(&mut stage, BOB, 2, URI);
    delivered(&interest(&mut stage, ANN, 3, URI, Interest::Unsubscribe));
    assert_eq!(
        updated(&mut stage, "one", None),
        ["notify link 2 of 3 about demo://a"]
    );
    stage.leave(BOB);
    assert!(updated(&mut stage, "one", None).is_empty());
}

#[test]
fn a_caller_that_may_not_subscribe_any_more_gets_nothing() {
    let mut stage = stage();
    subscribe(&mut stage, BOB, 1, URI);
    stage.answer(ONE, 1, 5);
    stage.regrant("bob", &["mcp/request:resources/read"]);
    assert!(updated(&mut stage, "one", None).is_empty());
    stage.regrant("bob", &["mcp/request:resources/*"]);
    assert_eq!(
        updated(&mut stage, "one", None),
        ["notify link 2 of 3 about demo://a"]
    );
}

#[test]
fn subscriptions_are_limited_and_end_with_their_server() {
    let mut stage = stage();
    for number in 0..SUBSCRIPTIONS_MAX as u128 {
        let uri = format!("x://{number}");
        delivered(&subscribe(&mut stage, ANN, number, &uri));
        stage.answer(BARE, number, 5);
    }
    assert_eq!(
        shown(&subscribe(&mut stage, ANN, 9_999, URI)),
        ["refuse 9999: limit"]
    );
    let mut without = configured();
    without.retain(|server| server.id != id("bare"));
    stage.configure(&without);
    delivered(&subscribe(&mut stage, ANN, 9_999, URI));
}

#[test]
fn a_level_holds_back_log_messages_below_it() {
    let mut stage = stage();
    assert_eq!(stage.topic.level(ANN), None);
    stage.call(ANN, 1, "x");
    let log = |stage: &mut Stage, level| {
        let subject = Subject::Call(crate::stage::op(1));
        let event: OwnEvent<'_> = Event::Notice {
            server: &id("bare"),
            subject,
            level,
            notice: 3,
        };
        shown(&stage.step(event)).len()
    };
    assert_eq!(
        log(&mut stage, Some(LogLevel::Debug)),
        1,
        "all, unless it sets a level"
    );
    for (link, operation, level) in [(ANN, 2, LogLevel::Warning), (BOB, 3, LogLevel::Notice)] {
        stage.regrant("bob", &["mcp/*"]);
        let target = Some(PublicTarget::Upstream("bare"));
        stage.request_with(link, operation, "logging/setLevel", target, |request| {
            request.interest = Interest::Level(level);
        });
    }
    assert_eq!(stage.topic.level(ANN), Some(LogLevel::Warning));
    assert_eq!(log(&mut stage, Some(LogLevel::Notice)), 0);
    assert_eq!(log(&mut stage, Some(LogLevel::Warning)), 1);
    assert_eq!(log(&mut stage, None), 1, "it is no log message");
}

#[test]
fn a_request_that_names_its_own_level_gets_those_log_messages_alone() {
    let mut stage = stage();
    let levels = [
        (2, Logs::None, None),
        (3, Logs::From(LogLevel::Error), Some(LogLevel::Error)),
    ];
    for (operation, logs, wanted) in levels {
        let target = Some(PublicTarget::Tool("x"));
        let effects = stage.request_with(ANN, operation, "tools/call", target, |request| {
            request.logs = logs
        });
        assert!(
            matches!(effects.all[..], [Effect::Deliver { logs, .. }] if logs == wanted),
            "{effects:?}"
        );
    }
    // The level of another link of the session does not count.
    let target = Some(PublicTarget::Upstream("bare"));
    stage.request_with(ANN, 4, "logging/setLevel", target, |request| {
        request.interest = Interest::Level(LogLevel::Debug);
    });
    let mut log = |operation, level| {
        let subject = Subject::Call(crate::stage::op(operation));
        let event: OwnEvent<'_> = Event::Notice {
            server: &id("bare"),
            subject,
            level,
            notice: 3,
        };
        shown(&stage.step(event)).len()
    };
    assert_eq!(log(2, Some(LogLevel::Emergency)), 0, "it asked for none");
    assert_eq!(
        (
            log(3, Some(LogLevel::Warning)),
            log(3, Some(LogLevel::Error))
        ),
        (0, 1)
    );
    assert_eq!(
        (log(2, None), log(3, None)),
        (1, 1),
        "they are no log messages"
    );
}
