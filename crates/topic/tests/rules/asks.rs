//! Upstreams' questions: to their current caller only.

use model::{LinkId, Outcome};
use topic::{About, Cause, Effect, Effects, Event, View};

use crate::stage::{ANN, ONE, Stage, id, op, refused, tools};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.caller(LinkId(2), "bob", &["mcp/*"]);
    stage.lists("one", View::Shared, tools(&["a"]));
    stage.call(ANN, 1, "one_a");
    stage
}

fn ask(stage: &mut Stage, upstream: &str, operation: u128, about: About, method: &str) -> Effects {
    stage.step(Event::Ask { upstream: &id(upstream), operation: op(operation), about, method })
}

const SAMPLING: &str = "sampling/createMessage";

#[test]
fn a_question_goes_to_the_link_whose_call_is_open() {
    let mut stage = stage();
    let effects = ask(&mut stage, "one", 2, About::Call(op(1)), SAMPLING);
    let deliver = Effect::DeliverAsk { operation: op(2), from: id("one"), to: ANN, about: Some(op(1)) };
    assert_eq!(effects.as_slice(), [deliver]);
    let answer = |link| Event::Answer { link, operation: op(2), outcome: Outcome::Ok };
    assert!(stage.step(answer(LinkId(2))).is_empty());
    assert!(stage.step(answer(ONE)).is_empty());
    let settle = Effect::SettleAsk { operation: op(2), to: id("one"), outcome: Outcome::Ok };
    assert_eq!(stage.step(answer(ANN)).as_slice(), [settle]);
    assert!(stage.step(answer(ANN)).is_empty());
}

#[test]
fn nobody_else_is_asked() {
    let mut stage = stage();
    let mut check = |upstream: &str, about: About, method: &str, expected: Cause| {
        assert_eq!(
            refused(&ask(&mut stage, upstream, 9, about, method)),
            expected,
            "{upstream} {about:?} {method}"
        );
    };
    check("two", About::Call(op(1)), SAMPLING, Cause::Moot);
    check("one", About::Call(op(7)), SAMPLING, Cause::Moot);
    check("one", About::Session(ANN), SAMPLING, Cause::Moot);
    check("one", About::Call(op(1)), "tools/call", Cause::NotAdmitted);
    check("one", About::Call(op(1)), "a:b", Cause::Malformed);
}

#[test]
fn a_session_of_ones_own_may_be_asked_until_it_is_over() {
    let mut stage = stage();
    let upstream = id("one");
    stage.step(Event::Attach { link: ANN, upstream: &upstream });
    assert_eq!(ask(&mut stage, "one", 2, About::Session(ANN), "roots/list").len(), 1);
    let effects = stage.step(Event::Detach { link: ANN, upstream: &upstream });
    assert_eq!(effects[0], Effect::CancelAsk { operation: op(2), to: ANN });
    assert!(matches!(&effects[1], Effect::RefuseAsk { cause: Cause::Moot, .. }));
    assert_eq!(refused(&ask(&mut stage, "one", 3, About::Session(ANN), "roots/list")), Cause::Moot);
}

#[test]
fn the_end_of_a_call_ends_its_questions() {
    let mut stage = stage();
    ask(&mut stage, "one", 2, About::Call(op(1)), SAMPLING);
    let effects = stage.step(Event::Answer { link: ONE, operation: op(1), outcome: Outcome::Ok });
    assert_eq!(effects[0], Effect::CancelAsk { operation: op(2), to: ANN });
    assert!(matches!(&effects[1], Effect::RefuseAsk { cause: Cause::Moot, .. }));
    assert!(matches!(&effects[2], Effect::Settle { .. }));
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn whoever_leaves_settles_what_it_owed() {
    let mut stage = stage();
    ask(&mut stage, "one", 2, About::Call(op(1)), SAMPLING);
    let effects = stage.step(Event::Leave { link: ANN });
    assert_eq!(effects[0], Effect::CancelAt { operation: op(1), upstream: id("one") });
    assert!(matches!(&effects[1], Effect::RefuseAsk { cause: Cause::Moot, .. }));
    assert_eq!(effects[2], Effect::Left { participant: id("ann") });
    assert_eq!(stage.topic.operations_len(), 0);
}
