//! Mirrors of MCP clients' calls, for listeners that get every message.

use model::{DeliveryMode, LinkId};
use topic::{ListScope, Listener, RoomEffect};

use crate::{
    holds,
    numbers::Effects,
    shown::shown,
    stage::{BOB, CID, ONE, OWN, Stage, configured, id, tools},
};

const DAN: LinkId = LinkId(4);

/// Bob is an MCP client.
fn unwatched() -> Stage {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.promoting(BOB, "bob", &["mcp/*"]);
    stage
}

fn watched() -> Stage {
    let mut stage = unwatched();
    stage.listener(CID, "cid", &["chat"], DeliveryMode::All);
    stage
}

const CALL: &str = "mirror 1 of bob to one as a to watchers except for one";

#[test]
fn a_call_and_its_end_are_shown_in_order() {
    let mut stage = watched();
    assert_eq!(
        shown(&stage.call(BOB, 1, "one_a")),
        [CALL, "deliver 1 to one as a"]
    );
    let end = |how: &str| format!("mirror 1 of bob to one as a: {how} to watchers");
    assert_eq!(
        shown(&stage.answer(ONE, 1, 5)),
        [end("Ok with 5"), "settle 1 with 5".into()]
    );
    stage.call(BOB, 1, "one_a");
    assert_eq!(
        shown(&stage.error(ONE, 1, 6)),
        [end("Error with 6"), "settle 1 with 6".into()]
    );
    stage.call(BOB, 1, "one_a");
    assert_eq!(
        shown(&stage.fail(ONE, 1)),
        [end("Refused"), "refuse 1: failed".into()]
    );
    stage.call(BOB, 1, "one_a");
    assert_eq!(
        shown(&stage.cancel(BOB, 1)),
        [end("Cancelled"), "cancel 1".into(), "drop 1".into()]
    );
    stage.call(BOB, 1, "one_a");
    assert_eq!(shown(&stage.regrant("bob", &["chat"]))[0], end("Refused"));
    stage.regrant("bob", &["mcp/*"]);
    stage.call(BOB, 1, "one_a");
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let effects = stage.configure(&without);
    assert_eq!(shown(&effects)[..2], [end("Refused"), "left one".into()]);
}

#[test]
fn the_end_of_a_call_whose_caller_leaves_is_shown_too() {
    let mut stage = watched();
    stage.call(BOB, 1, "one_a");
    let expected = [
        "mirror 1 of bob to one as a: Cancelled to watchers",
        "left bob",
        "cancel 1",
        "drop 1",
        "closed 2",
    ];
    assert_eq!(shown(&stage.leave(BOB)), expected);
}

#[test]
fn listeners_in_directed_modes_get_no_mirror() {
    let mut stage = unwatched();
    stage.listener(CID, "cid", &[], DeliveryMode::Directed);
    stage.listener(DAN, "dan", &[], DeliveryMode::DirectedAndProposals);
    let effects = stage.call(BOB, 1, "one_a");
    assert_eq!(
        shown(&effects),
        ["deliver 1 to one as a"],
        "without watchers there is none"
    );
    let mut stage = watched();
    let check = |effects: &Effects| match &effects.room[0] {
        RoomEffect::Mirror { audience, .. } => {
            let includes = |name, mode| audience.includes(DAN, name, Listener { mode, echo: true });
            assert!(includes("dan", DeliveryMode::All) && includes("bob", DeliveryMode::All));
            assert!(!includes("bob", DeliveryMode::Directed));
            assert!(!includes("bob", DeliveryMode::DirectedAndProposals));
            includes("one", DeliveryMode::All)
        }
        other => panic!("{other:?}"),
    };
    assert!(
        !check(&stage.call(BOB, 1, "one_a")),
        "the server has the call itself"
    );
    assert!(check(&stage.answer(ONE, 1, 5)));
}

#[test]
fn a_call_that_was_not_shown_has_no_end_to_show() {
    let mut stage = unwatched();
    stage.call(BOB, 1, "one_a");
    stage.listener(CID, "cid", &[], DeliveryMode::All);
    assert_eq!(shown(&stage.answer(ONE, 1, 5)), ["settle 1 with 5"]);
    stage.call(BOB, 2, "one_a");
    stage.leave(CID);
    assert_eq!(
        shown(&stage.answer(ONE, 2, 5)),
        ["settle 2 with 5"],
        "no listener is left"
    );
}

#[test]
fn calls_are_shown_while_some_listener_gets_every_message() {
    let mut stage = watched();
    let shows = |stage: &mut Stage| {
        let shown = stage.call(BOB, 1, "one_a").room.len();
        stage.cancel(BOB, 1);
        shown > 0
    };
    stage.listener(DAN, "dan", &[], DeliveryMode::All);
    stage.leave(DAN);
    assert!(shows(&mut stage));
    // Another connection of the same participant replaces it, in a narrower delivery mode.
    stage.listener(LinkId(5), "cid", &["chat"], DeliveryMode::Directed);
    assert!(!shows(&mut stage));
    stage.listener(LinkId(6), "cid", &["chat"], DeliveryMode::All);
    assert!(shows(&mut stage));
    stage.revoke("cid");
    assert!(!shows(&mut stage));
}

#[test]
fn only_mcp_clients_calls_to_servers_are_shown() {
    let mut stage = watched();
    stage.lists("portmoot", ListScope::Shared, tools(&["list_participants"]));
    assert_eq!(
        shown(&stage.call(BOB, 1, "list_participants")),
        ["deliver 1 to portmoot"]
    );
    stage.caller(DAN, "dan", &["mcp/*"]);
    assert_eq!(
        shown(&stage.call(DAN, 2, "one_a")),
        ["deliver 2 to one as a"],
        "its wire has envelopes"
    );
    let mut stage = Stage::configured(|config| config.settings.mirrors = false);
    stage.listener(CID, "cid", &[], DeliveryMode::All);
    stage.promoting(BOB, "bob", &["mcp/*"]);
    assert_eq!(
        shown(&stage.call(BOB, 3, "x")),
        ["deliver 3 to bare"],
        "the topic does not mirror"
    );
    // A held call is published as proposal and fulfilment instead.
    let mut stage = holds::held();
    stage.listener(CID, "cid", &[], DeliveryMode::All);
    assert_eq!(
        shown(&stage.approved(1))[2],
        "deliver 11 to one as a for p1"
    );
    assert_eq!(stage.answer(ONE, 11, 5).room.len(), 0);
}
