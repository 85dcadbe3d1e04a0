//! Joining and leaving, and the room's announcements of both, in order.

use model::{DeliveryMode, LinkId};
use topic::{Cause, Present, RoomEffect};

use crate::{
    shown::{delivered, not_joined, refused, shown},
    stage::{ANN, BOB, CID, ONE, Stage, caps, configured, id},
};

#[test]
fn a_participant_joins_with_its_first_link_and_leaves_with_its_last() {
    let mut stage = Stage::new();
    assert!(shown(&stage.caller(LinkId(2), "ann", &["mcp/*"])).is_empty());
    assert_eq!(stage.links("ann"), [ANN, LinkId(2)]);
    let handles = |stage: &Stage| {
        let mut all: Vec<u64> = stage.topic.handles(&id("ann")).copied().collect();
        all.sort_unstable();
        all
    };
    assert_eq!(handles(&stage), [1, 2]);
    assert_eq!(shown(&stage.leave(ANN)), ["closed 1"]);
    assert_eq!(handles(&stage), [2]);
    assert_eq!(
        stage.topic.handles(&id("one")).count(),
        0,
        "a server has no sending side"
    );
    assert_eq!(shown(&stage.leave(LinkId(2))), ["left ann", "closed 2"]);
    assert!(shown(&stage.leave(LinkId(2))).is_empty());
    assert_eq!(shown(&stage.caller(LinkId(3), "ann", &[])), ["joined ann"]);
}

#[test]
fn no_caller_joins_under_the_name_of_a_server() {
    let mut stage = Stage::new();
    assert_eq!(not_joined(&stage.caller(BOB, "one", &[])), "taken");
    assert_eq!(not_joined(&stage.caller(BOB, "portmoot", &[])), "taken");
    assert!(
        shown(&stage.server(BOB, "unknown")).is_empty(),
        "only configured servers serve"
    );
    assert!(!stage.topic.has_participant(&id("unknown")));
    assert!(
        shown(&stage.caller(ANN, "bob", &[])).is_empty(),
        "a link joins once"
    );
    assert!(
        shown(&stage.server(ANN, "portmoot")).is_empty(),
        "a caller's link serves nothing"
    );
    assert!(
        !stage.topic.has_participant(&id("bob")) && !stage.topic.has_participant(&id("portmoot"))
    );
}

#[test]
fn a_server_leaves_with_its_configuration_alone() {
    let mut stage = Stage::new();
    assert!(shown(&stage.leave(ONE)).is_empty());
    assert!(stage.topic.has_participant(&id("one")));
    let servers: Vec<(String, LinkId)> = stage
        .topic
        .servers()
        .map(|server| (server.handle, server.link))
        .collect();
    let expected = [("one", ONE), ("two", LinkId(102)), ("bare", LinkId(103))];
    assert_eq!(
        servers,
        expected.map(|(name, link)| (name.to_owned(), link))
    );
    assert_eq!(
        stage.topic.server(&id("one")).map(|one| one.link),
        Some(ONE)
    );
    assert!(stage.topic.server(&id("ann")).is_none());
}

#[test]
fn a_revocation_ends_every_link() {
    let mut stage = Stage::new();
    stage.caller(LinkId(2), "ann", &["mcp/*"]);
    stage.call(LinkId(2), 1, "hidden");
    let expected = [
        "left ann",
        "closed 1: revoked",
        "cancel 1",
        "drop 1",
        "closed 2: revoked",
    ];
    assert_eq!(shown(&stage.revoke("ann")), expected);
    assert_eq!(shown(&stage.call(ANN, 2, "hidden")), ["refuse 2: moot"]);
    assert!(shown(&stage.revoke("ann")).is_empty());
    assert!(
        shown(&stage.revoke("one")).is_empty(),
        "a server is not revoked"
    );
}

#[test]
fn a_later_link_brings_the_newest_capabilities() {
    let mut stage = Stage::new();
    stage.call(ANN, 1, "hidden");
    let expected = ["changed ann", "cancel 1", "refuse 1: withdrawn"];
    assert_eq!(shown(&stage.caller(LinkId(2), "ann", &["chat"])), expected);
    assert_eq!(stage.topic.capabilities(&id("ann")), Some(&caps(&["chat"])));
}

#[test]
fn a_listener_is_welcomed_before_its_own_presence() {
    let mut stage = Stage::new();
    let effects = stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    assert_eq!(
        shown(&effects),
        ["enter 2 bob All among ann,bare,bob,one,two", "joined bob"]
    );
    match &effects.room[..] {
        [RoomEffect::Enter { person, .. }, RoomEffect::Joined(joined)] => {
            assert_eq!((&person.capabilities, joined), (&caps(&["chat"]), person));
        }
        other => panic!("{other:?}"),
    }
    // A participant that is already present only enters.
    let effects = stage.listener(CID, "ann", &["mcp/*"], DeliveryMode::Directed);
    assert_eq!(
        shown(&effects),
        ["enter 3 ann Directed among ann,bare,bob,one,two"]
    );
    assert_eq!(stage.topic.listener(&id("ann")), Some(CID));
    assert_eq!(shown(&stage.leave(CID)), ["exit 3", "closed 3"]);
    assert_eq!(stage.topic.listener(&id("ann")), None);
}

#[test]
fn of_two_listeners_the_one_that_was_accepted_later_stays() {
    let mut stage = Stage::new();
    stage.listener(LinkId(9), "bob", &["chat"], DeliveryMode::All);
    let late = stage.listener(LinkId(8), "bob", &["chat"], DeliveryMode::All);
    assert_eq!(not_joined(&late), "replaced");
    assert!(shown(&stage.say(LinkId(8), "chat", &[])).is_empty());
    assert_eq!(shown(&stage.say(LinkId(9), "chat", &[])), ["publish m"]);
    // A link that does not listen replaces no listener.
    assert!(shown(&stage.promoting(LinkId(7), "bob", &["chat"])).is_empty());
}

#[test]
fn a_second_listener_replaces_the_first() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["mcp/*"], DeliveryMode::All);
    stage.call(BOB, 1, "hidden");
    let effects = stage.listener(CID, "bob", &["mcp/*"], DeliveryMode::Directed);
    let expected = [
        "exit 2: replaced",
        "left bob",
        "enter 3 bob Directed among ann,bare,bob,one,two",
        "joined bob",
        "cancel 1",
        "drop 1",
        "closed 2: replaced",
    ];
    assert_eq!(shown(&effects), expected);
    assert!(
        shown(&stage.leave(BOB)).is_empty(),
        "the older one's close changes nothing"
    );
    assert_eq!(stage.links("bob"), [CID]);
    // Links that do not listen stay, and so does the participant.
    stage.caller(LinkId(4), "bob", &["mcp/*"]);
    let effects = stage.listener(LinkId(5), "bob", &["mcp/*"], DeliveryMode::All);
    let expected = [
        "exit 3: replaced",
        "enter 5 bob All among ann,bare,bob,one,two",
        "closed 3: replaced",
    ];
    assert_eq!(shown(&effects), expected);
    assert_eq!(stage.links("bob"), [LinkId(4), LinkId(5)]);
}

#[test]
fn a_listener_is_replaced_at_the_limit_and_not_without_need() {
    let limits = topic::Limits {
        links_per_participant_max: 1,
        participants_max: 5,
        ..<_>::default()
    };
    let mut stage = Stage::with(limits);
    stage.listener(BOB, "bob", &[], DeliveryMode::All);
    assert_eq!(refused(&stage.caller(CID, "bob", &[])), Cause::Limit);
    let effects = stage.listener(LinkId(4), "bob", &[], DeliveryMode::All);
    assert_eq!(shown(&effects)[0], "exit 2: replaced");
    assert_eq!(stage.links("bob"), [LinkId(4)]);
    assert_eq!(
        refused(&stage.listener(LinkId(5), "cid", &[], DeliveryMode::All)),
        Cause::Limit
    );
}

#[test]
fn a_listener_is_welcomed_anew_with_other_capabilities() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let renewed = ["renew 2 bob among ann,bare,bob,one,two", "changed bob"];
    assert_eq!(shown(&stage.regrant("bob", &["chat", "notes/*"])), renewed);
    assert!(shown(&stage.regrant("bob", &["chat", "notes/*"])).is_empty());
    assert_eq!(
        shown(&stage.caller(CID, "bob", &["chat"])),
        renewed,
        "another link brings other ones"
    );
    assert_eq!(shown(&stage.say(BOB, "chat", &[])), ["publish m"]);
    assert_eq!(refused(&stage.say(BOB, "notes/x", &[])), Cause::NotAdmitted);
    assert_eq!(
        stage
            .topic
            .capabilities(&id("bob"))
            .map(|own| own.iter().count()),
        Some(1)
    );
    // The newcomer's own welcome has its new capabilities.
    let effects = stage.listener(LinkId(4), "bob", &["chat", "notes/*"], DeliveryMode::All);
    let expected = [
        "exit 2: replaced",
        "changed bob",
        "enter 4 bob All among ann,bare,bob,one,two",
        "closed 2: replaced",
    ];
    assert_eq!(shown(&effects), expected);
}

#[test]
fn the_topic_knows_its_participants_and_links() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    stage.caller(CID, "ann", &["mcp/*"]);
    let here = |present: &Present| (present.person.id.to_string(), present.serves, present.links);
    let mut all: Vec<_> = stage.topic.participants().iter().map(here).collect();
    all.sort();
    let expected = [
        ("ann", false, 2),
        ("bare", true, 1),
        ("bob", false, 1),
        ("one", true, 1),
        ("two", true, 1),
    ];
    assert_eq!(
        all,
        expected.map(|(name, serves, links)| (name.to_owned(), serves, links))
    );
    assert_eq!(
        (stage.topic.participants_len(), stage.topic.links_len()),
        (5, 6)
    );
    assert_eq!(
        (stage.topic.handle(BOB), stage.topic.handle(ONE)),
        (Some(2), None)
    );
    assert_eq!(stage.topic.participant(ONE), Some(&id("one")));
    assert_eq!(stage.topic.name().as_str(), "main");
}

#[test]
fn a_server_that_does_not_run_has_left_and_keeps_its_seat() {
    let mut stage = Stage::new();
    stage.lists("one", topic::ListScope::Shared, crate::stage::tools(&["a"]));
    stage.call(ANN, 1, "one_a");
    let available = |stage: &mut Stage, server: &str, runs| {
        shown(&stage.step(topic::Event::Available {
            server: &id(server),
            runs,
        }))
    };
    assert!(
        available(&mut stage, "one", true).is_empty(),
        "it has joined with its seat"
    );
    assert_eq!(available(&mut stage, "one", false), ["left one"]);
    assert!(available(&mut stage, "one", false).is_empty());
    // Who enters now does not see it, and its new capabilities are announced to no participant.
    let entered = ["enter 2 bob All among ann,bare,bob,two", "joined bob"];
    assert_eq!(
        shown(&stage.listener(BOB, "bob", &["chat"], DeliveryMode::All)),
        entered
    );
    let names: Vec<String> = stage
        .topic
        .participants()
        .iter()
        .map(|present| present.person.id.to_string())
        .collect();
    assert!(!names.contains(&"one".to_owned()), "{names:?}");
    assert!(shown(&stage.regrant("one", &["chat"])).is_empty());
    assert!(
        shown(&stage.server(ONE, "one")).is_empty(),
        "a reload changes nothing about it"
    );
    // Its calls, its lists and its names stay: a call starts it, or learns why it cannot.
    assert!(
        stage
            .sees(ANN, model::ListKind::Tools)
            .contains(&"one_a".to_owned())
    );
    assert_eq!(delivered(&stage.call(ANN, 2, "one_a")).0, "one");
    assert_eq!(shown(&stage.answer(ONE, 1, 5)), ["settle 1 with 5"]);
    assert_eq!(not_joined(&stage.caller(CID, "one", &[])), "taken");
    assert_eq!(available(&mut stage, "one", true), ["joined one"]);
    // One that is no longer configured leaves once.
    available(&mut stage, "one", false);
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let removed = shown(&stage.configure(&without));
    assert!(!removed.contains(&"left one".to_owned()), "{removed:?}");
    for server in ["one", "ann", "unknown"] {
        assert!(
            available(&mut stage, server, false).is_empty(),
            "{server} is no server here"
        );
    }
}

#[test]
fn new_capabilities_are_announced_to_all_that_see_the_participant() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let effects = stage.regrant("ann", &["mcp/*", "chat"]);
    match &effects.room[..] {
        [RoomEffect::Changed(person)] => {
            assert_eq!(
                (&person.id, &person.capabilities),
                (&id("ann"), &caps(&["mcp/*", "chat"]))
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(
        shown(&stage.regrant("ann", &["mcp/*", "chat"])).is_empty(),
        "nothing has changed"
    );
    assert!(
        shown(&stage.regrant("cid", &["chat"])).is_empty(),
        "an absent participant is not announced"
    );
    let narrowed = std::sync::Arc::new(model::Capabilities::default());
    assert_eq!(
        shown(&stage.server_with(ONE, "one", narrowed)),
        ["changed one"]
    );
}
