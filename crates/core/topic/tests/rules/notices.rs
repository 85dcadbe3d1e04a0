//! Notifications of servers about calls and sessions.

use model::LinkId;
use topic::{Event, Subject};

use crate::{
    shown::shown,
    stage::{ANN, BARE, BOB, Stage, id, op},
};

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.join(BOB, "bob", &["mcp/*"], |join| join.joining.notified = false);
    stage.call(ANN, 1, "x");
    stage
}

fn notice(stage: &mut Stage, server: &str, subject: Subject<'_>) -> Vec<String> {
    shown(&stage.step(Event::Notice {
        server: &id(server),
        subject,
        level: None,
        notice: 3,
    }))
}

#[test]
fn a_notification_about_a_call_goes_to_its_caller() {
    let mut stage = stage();
    let about = Subject::Call(op(1));
    assert_eq!(notice(&mut stage, "bare", about), ["notify call 1 of 3"]);
    for server in ["one", "unknown", "ann"] {
        assert!(
            notice(&mut stage, server, about).is_empty(),
            "{server} does not have the call"
        );
    }
    stage.ask("bare", 2, topic::About::Call(op(1)), "roots/list");
    assert!(
        notice(&mut stage, "bare", Subject::Call(op(2))).is_empty(),
        "a question is no call"
    );
    stage.answer(BARE, 1, 5);
    assert!(notice(&mut stage, "bare", about).is_empty(), "it is over");
}

#[test]
fn a_notification_of_a_session_goes_to_its_link() {
    let mut stage = stage();
    let about = |link| Subject::Session(link);
    assert!(
        notice(&mut stage, "bare", about(ANN)).is_empty(),
        "it has no session there"
    );
    let server = &id("bare");
    for link in [ANN, BOB] {
        stage.step(Event::Attach { link, server });
    }
    assert_eq!(
        notice(&mut stage, "bare", about(ANN)),
        ["notify link 1 of 3"]
    );
    assert!(
        notice(&mut stage, "bare", about(BOB)).is_empty(),
        "it takes none outside of its requests"
    );
    assert!(notice(&mut stage, "one", about(ANN)).is_empty());
    assert!(notice(&mut stage, "bare", about(LinkId(99))).is_empty());
    stage.step(Event::Detach {
        link: ANN,
        server,
        keeps_lists: false,
    });
    assert!(notice(&mut stage, "bare", about(ANN)).is_empty());
}
