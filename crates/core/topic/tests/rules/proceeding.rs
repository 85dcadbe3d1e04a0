//! Effects that could not wait and go on later: only if their call is still open.

use topic::{Event, ListScope};

use crate::{
    shown::shown,
    stage::{ANN, BOB, ONE, Stage, op, tools},
};

fn proceed(stage: &mut Stage, operation: u128) -> Vec<String> {
    shown(&stage.step(Event::Proceed {
        operation: op(operation),
        work: 7,
    }))
}

#[test]
fn what_could_not_wait_goes_on_while_its_call_is_open() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.call(ANN, 1, "one_a");
    assert_eq!(proceed(&mut stage, 1), ["proceed with 1: 7"]);
    assert!(proceed(&mut stage, 2).is_empty(), "there is no such call");
    stage.answer(ONE, 1, 5);
    assert!(proceed(&mut stage, 1).is_empty());
    stage.call(ANN, 3, "one_a");
    stage.cancel(ANN, 3);
    assert!(proceed(&mut stage, 3).is_empty());
}

#[test]
fn a_held_call_is_proposed_by_what_goes_on_only_once() {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.promoting(BOB, "bob", &["mcp/proposal:*"]);
    assert_eq!(shown(&stage.call(BOB, 1, "one_a")), ["hold 1 for one as a"]);
    assert_eq!(proceed(&mut stage, 1), ["proceed with 1: 7"]);
    stage.propose(1, "bob", 1);
    assert!(proceed(&mut stage, 1).is_empty(), "it is proposed by now");
}
