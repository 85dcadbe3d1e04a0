//! Questions of servers: one current caller, one end.

use std::sync::Arc;

use model::{Capabilities, Capability, RateLimit};
use topic::{About, Cause, Event, Limits, ListScope};

use crate::{
    shown::{refused, shown},
    stage::{ANN, BOB, ONE, Stage, TWO, caps, configured, id, op, tools},
};

fn stage() -> Stage {
    with(Limits::default())
}

fn with(limits: Limits) -> Stage {
    let mut stage = Stage::with(limits);
    stage.caller(BOB, "bob", &["mcp/*"]);
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.call(ANN, 1, "one_a");
    stage
}

const SAMPLING: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

#[test]
fn a_question_goes_to_the_link_whose_call_is_open() {
    let mut stage = stage();
    let effects = stage.ask("one", 2, About::Call(op(1)), SAMPLING);
    assert_eq!(shown(&effects), ["ask 2 of 1 at call 1"]);
    assert_eq!(stage.topic.questions(ANN), [2]);
    assert!(shown(&stage.answer(BOB, 2, 5)).is_empty());
    assert!(shown(&stage.answer(ONE, 2, 5)).is_empty());
    assert_eq!(shown(&stage.answer(ANN, 2, 5)), ["settle ask 2 with 5"]);
    assert!(shown(&stage.answer(ANN, 2, 5)).is_empty());
    stage.ask("one", 3, About::Call(op(1)), SAMPLING);
    assert_eq!(
        shown(&stage.fail(ANN, 3)),
        ["refuse ask 3: failed"],
        "the caller could not be asked"
    );
    assert!(stage.topic.questions(ANN).is_empty());
}

#[test]
fn no_other_caller_is_asked() {
    let mut stage = stage();
    let mut check = |server: &str, about: About, method: &'static str, expected: Cause| {
        assert_eq!(
            refused(&stage.ask(server, 9, about, method)),
            expected,
            "{server} {about:?} {method}"
        );
    };
    check("two", About::Call(op(1)), SAMPLING, Cause::Moot);
    check("one", About::Call(op(7)), SAMPLING, Cause::Moot);
    check("one", About::Session(ANN), SAMPLING, Cause::Moot);
    check("unknown", About::Call(op(1)), SAMPLING, Cause::Moot);
    check("ann", About::Call(op(1)), SAMPLING, Cause::Moot);
    check("one", About::Call(op(1)), "tools/call", Cause::NotAdmitted);
    check("one", About::Call(op(1)), "a:b", Cause::Malformed);
    // No question belongs to another question.
    check("one", About::Call(op(2)), SAMPLING, Cause::Moot);
    stage.ask("one", 2, About::Call(op(1)), SAMPLING);
    assert_eq!(
        refused(&stage.ask("one", 9, About::Call(op(2)), SAMPLING)),
        Cause::Moot
    );
    assert!(
        shown(&stage.ask("one", 2, About::Call(op(1)), SAMPLING)).is_empty(),
        "an id counts once"
    );
}

#[test]
fn the_configured_capabilities_of_a_server_judge_its_questions() {
    let mut stage = stage();
    let to_bob = Capability::parse("mcp/request:sampling/*")
        .unwrap()
        .to(["bob"])
        .unwrap();
    let roots = Capability::parse("mcp/request:roots/list").unwrap();
    let capabilities: Arc<Capabilities> = Arc::new([to_bob, roots].into_iter().collect());
    stage.ask("one", 2, About::Call(op(1)), SAMPLING);
    stage.ask("one", 3, About::Call(op(1)), ROOTS);
    // The server keeps its seat, and open questions that it may no longer ask end.
    let effects = stage.server_with(ONE, "one", capabilities);
    assert_eq!(
        shown(&effects),
        [
            "changed one",
            "cancel ask 2 at call 1",
            "refuse ask 2: withdrawn"
        ]
    );
    stage.call(BOB, 4, "one_a");
    let mut ask = |call, operation, method| {
        shown(&stage.ask("one", operation, About::Call(op(call)), method))
    };
    assert_eq!(ask(1, 5, SAMPLING), ["refuse ask 5: not_admitted"]);
    assert_eq!(ask(4, 5, SAMPLING), ["ask 5 of 2 at call 4"]);
    assert_eq!(ask(1, 6, ROOTS), ["ask 6 of 1 at call 1"]);
    assert_eq!(
        ask(1, 7, "elicitation/create"),
        ["refuse ask 7: not_admitted"]
    );
    // The new capabilities of a server judge its questions.
    let effects = stage.regrant("one", &["mcp/request:sampling/*"]);
    assert_eq!(
        shown(&effects),
        [
            "changed one",
            "cancel ask 3 at call 1",
            "refuse ask 3: withdrawn",
            "cancel ask 6 at call 1",
            "refuse ask 6: withdrawn"
        ]
    );
    let effects = stage.server_with(ONE, "one", caps(&[]));
    assert_eq!(shown(&effects)[0], "changed one", "it is present already");
    assert_eq!(stage.topic.operations_len(), 2);
}

#[test]
fn a_session_of_a_links_own_may_be_asked_until_it_is_over() {
    let mut stage = stage();
    let server = &id("one");
    stage.step(Event::Attach { link: ANN, server });
    assert_eq!(
        shown(&stage.ask("one", 2, About::Session(ANN), ROOTS)),
        ["ask 2 of 1 at link 1"]
    );
    assert_eq!(
        refused(&stage.ask("two", 3, About::Session(ANN), ROOTS)),
        Cause::Moot
    );
    stage.ask("one", 4, About::Call(op(1)), ROOTS);
    let effects = stage.step(Event::Detach {
        link: ANN,
        server,
        keeps_lists: false,
    });
    assert_eq!(
        shown(&effects),
        ["cancel ask 2 at link 1", "refuse ask 2: moot"]
    );
    assert_eq!(
        refused(&stage.ask("one", 3, About::Session(ANN), ROOTS)),
        Cause::Moot
    );
    assert_eq!(stage.topic.questions(ANN), [4]);
}

#[test]
fn only_a_link_that_can_be_reached_is_asked() {
    let mut stage = stage();
    stage.step(Event::Attach {
        link: TWO,
        server: &id("one"),
    });
    assert_eq!(
        refused(&stage.ask("one", 2, About::Session(TWO), ROOTS)),
        Cause::Moot
    );
    // The gateway has no user to answer questions about calls in its own name.
    let mut stage = crate::proposals::pending();
    stage.approved(1);
    stage.execute(1, 5, "one");
    assert_eq!(
        refused(&stage.ask("one", 6, About::Call(op(5)), ROOTS)),
        Cause::Moot
    );
}

#[test]
fn the_end_of_a_call_ends_its_questions_first() {
    let mut stage = stage();
    stage.ask("one", 2, About::Call(op(1)), SAMPLING);
    stage.ask("one", 3, About::Call(op(1)), ROOTS);
    let expected = [
        "cancel ask 2 at call 1",
        "refuse ask 2: moot",
        "cancel ask 3 at call 1",
        "refuse ask 3: moot",
        "settle 1 with 5",
    ];
    assert_eq!(shown(&stage.answer(ONE, 1, 5)), expected);
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn a_caller_or_server_that_leaves_ends_its_questions() {
    let mut stage = stage();
    stage.ask("one", 2, About::Call(op(1)), SAMPLING);
    let effects = stage.leave(ANN);
    let expected = [
        "left ann",
        "cancel ask 2 at call 1",
        "refuse ask 2: moot",
        "cancel 1",
        "drop 1",
        "closed 1",
    ];
    assert_eq!(shown(&effects), expected);
    assert_eq!(stage.topic.operations_len(), 0);
    let mut stage = self::stage();
    stage.step(Event::Attach {
        link: ANN,
        server: &id("one"),
    });
    stage.ask("one", 2, About::Session(ANN), ROOTS);
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let effects = stage.configure(&without);
    let expected = [
        "left one",
        "cancel ask 2 at link 1",
        "refuse ask 2: moot",
        "cancel 1",
        "refuse 1: upstream_down",
        "Tools changed for link 1,link 2",
    ];
    assert_eq!(shown(&effects), expected);
}

#[test]
fn questions_are_limited_for_each_link_and_each_server() {
    let mut stage = with(Limits {
        asks_per_link_max: 1,
        asks_per_server_max: 2,
        ..Limits::default()
    });
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    stage.call(ANN, 2, "two_a");
    stage.call(BOB, 3, "one_a");
    stage.caller(model::LinkId(4), "dan", &["mcp/*"]);
    stage.call(model::LinkId(4), 4, "one_a");
    assert_eq!(stage.ask("one", 11, About::Call(op(1)), ROOTS).all.len(), 1);
    assert_eq!(
        refused(&stage.ask("two", 12, About::Call(op(2)), ROOTS)),
        Cause::Limit,
        "of the link"
    );
    stage.ask("one", 13, About::Call(op(3)), ROOTS);
    assert_eq!(
        refused(&stage.ask("one", 14, About::Call(op(4)), ROOTS)),
        Cause::Limit,
        "of the server"
    );
    stage.answer(ANN, 11, 5);
    assert_eq!(
        shown(&stage.ask("one", 14, About::Call(op(4)), ROOTS)),
        ["ask 14 of 4 at call 4"]
    );
    stage.cancel(ONE, 13);
    stage.answer(ONE, 3, 5);
    assert_eq!(
        shown(&stage.ask("one", 15, About::Call(op(1)), ROOTS)),
        ["ask 15 of 1 at call 1"]
    );
}

#[test]
fn questions_of_a_server_are_limited_for_each_participant() {
    let limits = Limits {
        asks_per_server_max: 4,
        asks_per_server_and_participant_max: 1,
        ..Limits::default()
    };
    let mut stage = with(limits);
    let other = model::LinkId(4);
    let dan = model::LinkId(5);
    stage.caller(other, "ann", &["mcp/*"]);
    stage.caller(dan, "dan", &["mcp/*"]);
    stage.call(other, 2, "one_a");
    stage.call(dan, 3, "one_a");
    assert_eq!(stage.ask("one", 11, About::Call(op(1)), ROOTS).all.len(), 1);
    let asked = stage.ask("one", 12, About::Call(op(2)), ROOTS);
    assert_eq!(
        refused(&asked),
        Cause::Limit,
        "on another link of the same participant"
    );
    assert_eq!(
        stage.ask("one", 13, About::Call(op(3)), ROOTS).all.len(),
        1,
        "of another participant"
    );
    stage.answer(ANN, 11, 5);
    assert_eq!(stage.ask("one", 14, About::Call(op(2)), ROOTS).all.len(), 1);
}

#[test]
fn a_question_takes_no_token_of_the_callers() {
    let mut stage = Stage::new();
    stage.limited(
        BOB,
        "bob",
        &["mcp/*"],
        Some(RateLimit {
            burst: 1,
            per_minute: 1,
        }),
    );
    stage.call(BOB, 1, "x");
    assert_eq!(refused(&stage.call(BOB, 2, "x")), Cause::RateLimited);
    assert_eq!(
        shown(&stage.ask("bare", 3, About::Call(op(1)), ROOTS)),
        ["ask 3 of 2 at call 1"]
    );
}
