//! Replay of messages, for late listeners and for readers.

use model::{DeliveryMode, LinkId};
use topic::{Audience, Cursor, Event, Listener, Reach, Replay, RingLimits, RoomEffect};

use crate::{
    numbers::Effects,
    shown::shown,
    stage::{ANN, BOB, CID, Stage, id},
};

const KEPT: RingLimits = RingLimits {
    history: 3,
    readable: false,
};

fn keeping(kept: RingLimits) -> Stage {
    let mut stage = Stage::configured(|config| {
        config.settings.kept = kept;
        config.epoch = 7;
    });
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    stage
}

fn publish(stage: &mut Stage, message: &str, audience: Audience) {
    let (message, bytes) = (message.to_owned(), message.len());
    stage.step(Event::Announce {
        message,
        bytes,
        audience,
    });
}

fn chat(stage: &mut Stage, messages: &[&str]) {
    for message in messages {
        let envelope = crate::envelope::Envelope::new(BOB, message, "chat", &[]);
        assert_eq!(shown(&stage.send(envelope)), [format!("publish {message}")]);
    }
}

fn at(offset: u64) -> Option<Cursor> {
    Some(Cursor { epoch: 7, offset })
}

/// The replay with which a listener enters.
#[track_caller]
fn replayed(effects: &Effects) -> Option<(u64, bool, Vec<String>)> {
    match &effects.room[0] {
        RoomEffect::Enter { replay, .. } => replay.clone().map(of),
        other => panic!("{other:?}"),
    }
}

fn of(replay: Replay<String>) -> (u64, bool, Vec<String>) {
    let Replay {
        first,
        complete,
        messages,
        ..
    } = replay;
    (
        first.offset,
        complete,
        messages.into_iter().map(|one| one.message).collect(),
    )
}

fn enter(
    stage: &mut Stage,
    mode: DeliveryMode,
    echo: bool,
    since: Option<Cursor>,
) -> Option<(u64, bool, Vec<String>)> {
    let effects = stage.join(CID, "cid", &["chat"], |join| {
        join.joining.listener = Some(Listener { mode, echo });
        join.joining.since = since;
    });
    stage.leave(CID);
    replayed(&effects)
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_listener_gets_the_messages_that_it_missed() {
    let mut stage = keeping(KEPT);
    chat(&mut stage, &["a", "b", "c", "d"]);
    let mut check = |since, expected: (u64, bool, &[&str])| {
        let (first, complete, messages) = expected;
        assert_eq!(
            enter(&mut stage, DeliveryMode::All, false, since),
            Some((first, complete, texts(messages))),
            "{since:?}"
        );
    };
    check(None, (1, false, &["b", "c", "d"]));
    check(at(0), (1, false, &["b", "c", "d"]));
    check(at(2), (2, true, &["c", "d"]));
    check(at(4), (4, true, &[]));
    check(
        Some(Cursor {
            epoch: 6,
            offset: 4,
        }),
        (1, false, &["b", "c", "d"]),
    );
}

#[test]
fn a_replay_holds_the_messages_for_its_listener() {
    let mut stage = keeping(RingLimits {
        history: 9,
        readable: false,
    });
    let to_cid = Audience::new(Some(BOB), &["cid"], "chat", Reach::Listeners);
    let to_dan = Audience::new(Some(BOB), &["dan"], "chat", Reach::Listeners);
    let proposal = Audience::new(Some(BOB), &["dan"], "mcp/proposal:x", Reach::Listeners);
    let not_cid = Audience::new(None, &["cid"], "mcp/request:x", Reach::Except(id("cid")));
    publish(&mut stage, "all", Audience::broadcast());
    publish(&mut stage, "cid", to_cid);
    publish(&mut stage, "dan", to_dan);
    publish(&mut stage, "proposal", proposal);
    publish(&mut stage, "not cid", not_cid);
    let mut messages = |mode| enter(&mut stage, mode, false, None).unwrap().2;
    assert_eq!(
        messages(DeliveryMode::All),
        ["all", "cid", "dan", "proposal"]
    );
    assert_eq!(messages(DeliveryMode::Directed), ["all", "cid"]);
    assert_eq!(
        messages(DeliveryMode::DirectedAndProposals),
        ["all", "cid", "proposal"]
    );
}

#[test]
fn readers_and_listeners_share_one_ring() {
    let mut stage = keeping(RingLimits {
        history: 1,
        readable: true,
    });
    chat(&mut stage, &["a", "b", "c"]);
    assert_eq!(
        enter(&mut stage, DeliveryMode::All, false, None),
        Some((2, false, texts(&["c"])))
    );
    publish(
        &mut stage,
        "not cid",
        Audience::new(None, &[], "x", Reach::Except(id("cid"))),
    );
    let read = |name: &str, offset| of(stage.topic.messages(&id(name), at(offset).unwrap()));
    assert_eq!(
        read("ann", 0),
        (0, true, texts(&["a", "b", "c", "not cid"]))
    );
    assert_eq!(read("cid", 1), (1, true, texts(&["b", "c"])));
    assert_eq!(stage.topic.next_message(), at(4).unwrap());
    assert_eq!(
        (stage.topic.kept().history, stage.topic.readable_since(BOB)),
        (1, at(0))
    );
    stage.caller(CID, "cid", &[]);
    assert_eq!(
        stage.topic.readable_since(CID),
        at(3),
        "a newcomer may read the history"
    );
    assert_eq!(stage.topic.readable_since(LinkId(99)), None);
}

#[test]
fn no_message_is_kept_unless_configured() {
    let mut stage = keeping(RingLimits::default());
    chat(&mut stage, &["a"]);
    assert_eq!(
        enter(&mut stage, DeliveryMode::All, false, at(0)),
        None,
        "there is no history"
    );
    assert_eq!(stage.topic.readable_since(BOB), None);
    assert!(shown(&stage.keep(KEPT)).is_empty());
    chat(&mut stage, &["b", "c"]);
    assert_eq!(
        enter(&mut stage, DeliveryMode::All, false, at(0)),
        Some((1, false, texts(&["b", "c"])))
    );
    stage.keep(RingLimits {
        history: 1,
        readable: false,
    });
    assert_eq!(
        enter(&mut stage, DeliveryMode::All, false, at(1)),
        Some((2, false, texts(&["c"])))
    );
    stage.keep(RingLimits::default());
    assert_eq!(
        of(stage.topic.messages(&id("ann"), at(2).unwrap())),
        (3, false, vec![])
    );
}

#[test]
fn withheld_and_private_envelopes_and_mirrors_are_not_kept() {
    let mut stage = keeping(KEPT);
    stage.say(BOB, "notes/x", &[]);
    stage.regrant("bob", &["chat", "mcp/response:*"]);
    let direct = model::OperationId((u128::from(crate::stage::DIRECT) << 64) + 5).to_string();
    stage.send(crate::envelope::Envelope::answer(BOB, "a", &[], &direct));
    stage.promoting(CID, "cid", &["mcp/*"]);
    assert_eq!(
        shown(&stage.call(CID, 1, "x"))[0],
        "mirror 1 of cid to bare to watchers except for bare"
    );
    assert_eq!(stage.topic.next_message(), at(0).unwrap());
    assert_eq!(stage.links("ann"), [ANN]);
}
