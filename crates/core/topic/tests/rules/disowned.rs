//! Names that have another bearer: what the former one was sent and has proposed is none of the
//! next one's.

use model::{Capabilities, DeliveryMode, ProposalState};
use topic::{
    Audience, EndedProposal, Event, Listener, PlacedMessage, Reach, Restore, RingLimits, RoomEffect,
};

use crate::stage::{BOB, CID, Stage, id, op, terms};

const KEPT: RingLimits = RingLimits {
    history: 9,
    readable: true,
};

fn publish(stage: &mut Stage, message: &str, audience: Audience) {
    let (message, bytes) = (message.to_owned(), message.len());
    stage.step(Event::Announce {
        message,
        bytes,
        audience,
    });
}

/// The messages that the bearer of a name reads, and the history with which it enters.
#[track_caller]
fn read(stage: &mut Stage, name: &str) -> (Vec<String>, Vec<String>) {
    let from = topic::Cursor {
        epoch: 7,
        offset: 0,
    };
    let readable = stage.topic.messages(&id(name), from).messages;
    let effects = stage.join(CID, name, &["chat"], |join| {
        join.joining.listener = Some(Listener {
            mode: DeliveryMode::All,
            echo: true,
        });
    });
    stage.leave(CID);
    let RoomEffect::Enter {
        replay: Some(replay),
        ..
    } = &effects.room[0]
    else {
        panic!("{effects:?}")
    };
    let texts = |all: Vec<PlacedMessage<String>>| all.into_iter().map(|one| one.message).collect();
    (texts(readable), texts(replay.messages.clone()))
}

#[test]
fn messages_with_addressees_from_before_are_not_the_next_bearers() {
    let mut stage = Stage::configured(|config| {
        config.settings.kept = KEPT;
        config.epoch = 7;
    });
    stage.listener(BOB, "bob", &["chat"], DeliveryMode::All);
    let to = |names: &[&str]| Audience::new(Some(BOB), names, "chat", Reach::Listeners);
    publish(&mut stage, "all", Audience::broadcast());
    publish(&mut stage, "to tmp", to(&["tmp"]));
    publish(&mut stage, "of tmp", to(&["dan"]));
    assert_eq!(read(&mut stage, "tmp").0, ["all", "to tmp", "of tmp"]);
    let disown = |stage: &mut Stage| {
        let effects = stage.step(Event::Disown {
            participant: &id("tmp"),
        });
        assert!(effects.all.is_empty() && effects.room.is_empty());
    };
    disown(&mut stage);
    publish(&mut stage, "to the next tmp", to(&["tmp"]));
    let expected = ["all", "to the next tmp"];
    let (readable, history) = read(&mut stage, "tmp");
    assert_eq!(
        (&*readable, &*history),
        (
            &expected.map(str::to_owned)[..],
            &expected.map(str::to_owned)[..]
        )
    );
    assert_eq!(
        read(&mut stage, "dan").0,
        ["all", "to tmp", "of tmp", "to the next tmp"]
    );
    disown(&mut stage);
    assert_eq!(read(&mut stage, "tmp").0, ["all"]);
}

#[test]
fn proposals_from_before_are_not_the_next_bearers() {
    let mut stage = Stage::new();
    let restored = |stage: &mut Stage, number: u128, by: &str| {
        let end = EndedProposal {
            state: ProposalState::Rejected,
            reason: None,
            decided: None,
            fulfilment: None,
            answer: Some(9),
        };
        let terms = terms(&id(by), &[id("one")], &format!("e{number}"));
        let proposal = op(number);
        let content = number;
        let end = Some(end);
        stage.step(Event::Restore(Restore {
            proposal,
            terms,
            content,
            held: false,
            public: None,
            approved_by: Vec::new(),
            end,
        }));
    };
    restored(&mut stage, 1, "tmp");
    restored(&mut stage, 2, "dan");
    let seen = |stage: &Stage, name: &str| {
        let all = stage
            .topic
            .proposals(&id(name), &Capabilities::default(), true);
        all.into_iter()
            .map(|proposal| proposal.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (seen(&stage, "tmp"), stage.topic.owns(op(1), &id("tmp"))),
        (vec![op(1)], true)
    );
    stage.step(Event::Disown {
        participant: &id("tmp"),
    });
    restored(&mut stage, 3, "tmp");
    assert_eq!(
        (seen(&stage, "tmp"), seen(&stage, "dan")),
        (vec![op(3)], vec![op(2)])
    );
    assert!(
        !stage.topic.owns(op(1), &id("tmp"))
            && stage.topic.own_proposal(op(1), &id("tmp"), None).is_none()
    );
    assert!(
        !stage
            .topic
            .may_see_proposal(op(1), &id("tmp"), &Capabilities::default())
    );
    assert!(
        stage.topic.proposal(op(1)).is_some(),
        "it is there for those who may see it"
    );
}
