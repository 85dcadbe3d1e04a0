//! Joining and leaving, and the room's announcements of both, in order.

use model::LinkId;
use topic::{Cause, DeliveryMode, Present, RoomEffect};

use crate::{
    shown::{refused, shown},
    stage::{ANN, BOB, CID, ONE, Stage, caps, id},
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
    assert_eq!(stage.topic.handles(&id("one")).count(), 0, "a server has no sending side");
    assert_eq!(shown(&stage.leave(LinkId(2))), ["left ann", "closed 2"]);
    assert!(shown(&stage.leave(LinkId(2))).is_empty());
    assert_eq!(shown(&stage.caller(LinkId(3), "ann", &[])), ["joined ann"]);
}

#[test]
fn no_caller_joins_under_the_name_of_a_server() {
    let mut stage = Stage::new();
    assert_eq!(shown(&stage.caller(BOB, "one", &[])), ["not joined 2: taken"]);
    assert_eq!(shown(&stage.caller(BOB, "portmoot", &[])), ["not joined 2: taken"]);
    assert!(shown(&stage.server(BOB, "unknown")).is_empty(), "only configured servers serve");
    assert!(!stage.topic.has_participant(&id("unknown")));
    assert!(shown(&stage.caller(ANN, "bob", &[])).is_empty(), "a link joins once");
    assert!(shown(&stage.server(ANN, "portmoot")).is_empty(), "a caller's link serves nothing");
    assert!(!stage.topic.has_participant(&id("bob")) && !stage.topic.has_participant(&id("portmoot")));
}

#[test]
fn a_server_leaves_with_its_configuration_alone() {
    let mut stage = Stage::new();
    assert!(shown(&stage.leave(ONE)).is_empty());
    assert!(stage.topic.has_participant(&id("one")));
    let servers: Vec<(String, LinkId)> =
        stage.topic.servers().map(|server| (server.handle, server.link)).collect();
    let expected = [("one", ONE), ("two", LinkId(102)), ("bare", LinkId(103))];
    assert_eq!(servers, expected.map(|(name, link)| (name.to_owned(), link)));
    assert_eq!(stage.topic.server(&id("one")).map(|one| one.link), Some(ONE));
    assert!(stage.topic.server(&id("ann")).is_none());
}

#[test]
fn a_revocation_ends_every_link() {
    let mut stage = Stage::new();
    stage.caller(LinkId(2), "ann", &["mcp/*"]);
    stage.call(LinkId(2), 1, "hidden");
    let expected = ["left ann", "closed 1: revoked", "cancel 1", "drop 1", "closed 2: revoked"];
    assert_eq!(shown(&stage.revoke("ann")), expected);
    assert_eq!(shown(&stage.call(ANN, 2, "hidden")), ["refuse 2: moot"]);
    assert!(shown(&stage.revoke("ann")).is_empty());
    assert!(shown(&stage.revoke("one")).is_empty(), "a server is not revoked");
}

#[test]
fn a_later_link_brings_the_newest_capabilities() {
    let mut stage = Stage::new();
    stage.call(ANN, 1, "hidden");
    assert_eq!(shown(&stage.caller(LinkId(2), "ann", &["chat"])), ["cancel 1", "refuse 1: withdrawn"]);
    assert_eq!(stage.topic.capabilities(&id("ann")), Some(&caps(&["chat"])));
}

#[test]
fn a_listener_is_welcomed_before_its_own_presence() {
    let mut stage = Stage::new();
    let effects = stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    assert_eq!(shown(&effects), ["enter 2 bob All among ann,bare,bob,one,two", "joined bob"]);
    match &effects.room[..] {
        [RoomEffect::Enter { person, .. }, RoomEffect::Joined(joined)] => {
            assert_eq!((&person.capabilities, joined), (&caps(&["chat"]), person));
        }
        other => panic!("{other:?}"),
    }
    // A participant that is already present only enters.
    let effects = stage.listener(CID, "ann", &["mcp/*"], DeliveryMode::Directed);
    assert_eq!(shown(&effects), ["enter 3 ann Directed among ann,bare,bob,one,two"]);
    assert_eq!(stage.topic.listener(&id("ann")), Some(CID));
    assert_eq!(shown(&stage.leave(CID)), ["exit 3", "closed 3"]);
    assert_eq!(stage.topic.listener(&id("ann")), None);
}

#[test]
fn of_two_listeners_the_one_that_was_accepted_later_stays() {
    let mut stage = Stage::new();
    stage.listener(LinkId(9), "bob", &["chat"], DeliveryMode::All);
    let late = stage.listener(LinkId(8), "bob", &["chat"], DeliveryMode::All);
    assert_eq!(shown(&late), ["not joined 8: replaced"]);
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
    assert!(shown(&stage.leave(BOB)).is_empty(), "the older one's close changes nothing");
    assert_eq!(stage.links("bob"), [CID]);
    // Links that do not listen stay, and so does the participant.
    stage.caller(LinkId(4), "bob", &["mcp/*"]);
    let effects = stage.listener(LinkId(5), "bob", &["mcp/*"], DeliveryMode::All);
    let expected = ["exit 3: replaced", "enter 5 bob All among ann,bare,bob,one,two", "closed 3: replaced"];
    assert_eq!(shown(&effects), expected);
    assert_eq!(stage.links("bob"), [LinkId(4), LinkId(5)]);
}

#[test]
fn a_listener_is_replaced_at_the_limit_and_not_without_need() {
    let limits = topic::Limits { links_per_participant_max: 1, participants_max: 5, ..<_>::default() };
    let mut stage = Stage::with(limits);
    stage.listener(BOB, "bob", &[], DeliveryMode::All);
    assert_eq!(refused(&stage.caller(CID, "bob", &[])), Cause::Limit);
    let effects = stage.listener(LinkId(4), "bob", &[], DeliveryMode::All);
    assert_eq!(shown(&effects)[0], "exit 2: replaced");
    assert_eq!(stage.links("bob"), [LinkId(4)]);
    assert_eq!(refused(&stage.listener(LinkId(5), "cid", &[], DeliveryMode::All)), Cause::Limit);
}

#[test]
fn a_listener_is_welcomed_anew_with_other_capabilities() {
    let mut stage = Stage::new();
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let renewed = ["renew 2 bob among ann,bare,bob,one,two"];
    assert_eq!(shown(&stage.regrant("bob", &["chat", "notes/*"])), renewed);
    assert!(shown(&stage.regrant("bob", &["chat", "notes/*"])).is_empty());
    assert_eq!(shown(&stage.caller(CID, "bob", &["chat"])), renewed, "another link brings other ones");
    assert_eq!(shown(&stage.say(BOB, "chat", &[])), ["publish m"]);
    assert_eq!(refused(&stage.say(BOB, "notes/x", &[])), Cause::NotAdmitted);
    assert_eq!(stage.topic.capabilities(&id("bob")).map(|own| own.iter().count()), Some(1));
    // The newcomer's own welcome has its new capabilities.
    let effects = stage.listener(LinkId(4), "bob", &["chat", "notes/*"], DeliveryMode::All);
    let expected = ["exit 2: replaced", "enter 4 bob All among ann,bare,bob,one,two", "closed 2: replaced"];
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
    let expected =
        [("ann", false, 2), ("bare", true, 1), ("bob", false, 1), ("one", true, 1), ("two", true, 1)];
    assert_eq!(all, expected.map(|(name, serves, links)| (name.to_owned(), serves, links)));
    assert_eq!((stage.topic.participants_len(), stage.topic.links_len()), (5, 6));
    assert_eq!((stage.topic.handle(BOB), stage.topic.handle(ONE)), (Some(2), None));
    assert_eq!(stage.topic.participant(ONE), Some(&id("one")));
    assert_eq!(stage.topic.name().as_str(), "main");
}
