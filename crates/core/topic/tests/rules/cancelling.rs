//! Cancelling: by id or by name, and only by the link that opened the operation.

use model::LinkId;
use topic::{About, Ask, Event, ListScope, OperationRef};

use crate::{
    envelope::Envelope,
    numbers::{Effects, Intent},
    shown::shown,
    stage::{ANN, BOB, ONE, Stage, TWO, id, op, tools},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.lists("one", ListScope::Shared, tools(&["a", "b"]));
    stage.lists("two", ListScope::Shared, tools(&["a"]));
    stage.caller(BOB, "bob", &["mcp/*"]);
    stage
}

fn call(stage: &mut Stage, link: LinkId, operation: u128, tag: u8) {
    let target = Some(topic::PublicTarget::Tool("one_a"));
    stage.request_with(link, operation, "tools/call", target, |request| {
        request.tag = Some(tag)
    });
}

fn cancel(stage: &mut Stage, link: LinkId, tag: u8) -> Effects {
    stage.step(Event::Cancel {
        link,
        which: OperationRef::Tag(tag),
    })
}

#[test]
fn the_link_that_opened_a_request_cancels_it_and_its_server_stops() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    assert!(shown(&stage.cancel(BOB, 1)).is_empty());
    assert!(
        shown(&stage.cancel(ONE, 1)).is_empty(),
        "its server fails it instead"
    );
    assert!(shown(&stage.cancel(ANN, 2)).is_empty());
    assert_eq!(shown(&stage.cancel(ANN, 1)), ["cancel 1", "drop 1"]);
    assert!(shown(&stage.cancel(ANN, 1)).is_empty());
    assert!(shown(&stage.answer(ONE, 1, 5)).is_empty(), "a late answer");
}

#[test]
fn of_one_name_the_youngest_is_cancelled() {
    let mut stage = stage();
    call(&mut stage, ANN, 1, 7);
    call(&mut stage, ANN, 2, 7);
    call(&mut stage, ANN, 3, 8);
    call(&mut stage, BOB, 4, 7);
    assert!(shown(&cancel(&mut stage, ANN, 9)).is_empty());
    assert_eq!(shown(&cancel(&mut stage, ANN, 7)), ["cancel 2", "drop 2"]);
    assert_eq!(shown(&cancel(&mut stage, ANN, 7)), ["cancel 1", "drop 1"]);
    assert!(
        shown(&cancel(&mut stage, ANN, 7)).is_empty(),
        "names belong to links"
    );
    assert_eq!(stage.topic.operations_len(), 2);
}

#[test]
fn a_server_withdraws_its_questions_by_name() {
    let mut stage = stage();
    stage.call(ANN, 1, "one_a");
    stage.call(ANN, 2, "two_a");
    let mut ask = |server: &str, operation, about| {
        let server = &id(server);
        let tag = Some(7);
        let about = About::Call(op(about));
        let method = model::Method::Known("roots/list");
        let question = operation;
        let operation = op(operation);
        stage.step(Event::Ask(Ask {
            server,
            operation,
            tag,
            about,
            method,
            question,
        }))
    };
    ask("one", 11, 1);
    ask("one", 12, 1);
    ask("two", 13, 2);
    assert!(
        shown(&cancel(&mut stage, ANN, 7)).is_empty(),
        "a caller does not cancel questions"
    );
    assert!(
        shown(&stage.cancel(TWO, 12)).is_empty(),
        "nor does another server"
    );
    assert_eq!(
        shown(&cancel(&mut stage, ONE, 7)),
        ["cancel ask 12 at call 1"]
    );
    assert_eq!(shown(&stage.cancel(ONE, 11)), ["cancel ask 11 at call 1"]);
    assert!(shown(&cancel(&mut stage, ONE, 7)).is_empty());
    assert!(shown(&stage.answer(ANN, 12, 5)).is_empty(), "a late answer");
    assert_eq!(stage.topic.operations_len(), 3);
}

#[test]
fn an_envelope_cancels_a_request_of_its_sender() {
    let mut stage = stage();
    let kind = "mcp/request:notifications/cancelled";
    for (link, id, operation) in [(ANN, "r1", 1), (BOB, "r2", 2)] {
        let mut request = Envelope::request(link, id, &["one"], &[operation]);
        if let Intent::Request(requested) = &mut request.intent {
            requested.tag = Some(7);
        }
        stage.send(request);
    }
    let cancels = |link| Envelope {
        intent: Intent::Cancel { tag: 7 },
        ..Envelope::new(link, "c", kind, &["one"])
    };
    assert_eq!(
        shown(&stage.send(cancels(BOB))),
        ["publish c", "cancel 2", "drop 2"]
    );
    assert_eq!(shown(&stage.send(cancels(BOB))), ["publish c"]);
    assert_eq!(
        shown(&stage.send(cancels(ANN))),
        ["publish c", "cancel 1", "drop 1"]
    );
}
