//! Audiences of published messages: the listeners that get each.

use model::{DeliveryMode, LinkId};
use topic::{Audience, Event, ListScope, Listener, Reach, RoomEffect};

use crate::{
    envelope::Envelope,
    numbers::Effects,
    proposals::stage,
    serving::serving,
    shown::shown,
    stage::{ANN, BOB, CID, Stage, id, op, terms, tools},
};

#[track_caller]
fn published(effects: &Effects) -> &Audience {
    match &effects.room[0] {
        RoomEffect::Publish { audience, .. } => audience,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_for_its_addressees_in_directed_modes() {
    let mut stage = stage();
    let modes = [
        DeliveryMode::All,
        DeliveryMode::Directed,
        DeliveryMode::DirectedAndProposals,
    ];
    let mut check = |kind: &str, to: &[&str], expected: [bool; 3]| {
        let mut effects = stage.say(ANN, kind, to);
        if kind.starts_with("mcp/proposal") {
            stage.proposes_to(ANN, "ann", 1, to);
            effects = stage.stored(1);
        }
        let audience = published(&effects);
        assert_eq!(
            (audience.from, &audience.reach),
            (Some(ANN), &Reach::Listeners)
        );
        let got = modes.map(|mode| audience.includes(BOB, "bob", Listener { mode, echo: false }));
        assert_eq!(got, expected, "{kind} {to:?}");
        assert_eq!(audience.is_broadcast(), to.is_empty());
    };
    check("mcp/response:x", &[], [true, true, true]);
    check("mcp/response:x", &["cid", "bob"], [true, true, true]);
    check("mcp/response:x", &["cid"], [true, false, false]);
    check("mcp/proposal:tools/call:a", &["cid"], [true, false, true]);
}

#[test]
fn a_sender_gets_its_own_message_only_if_it_wants_it() {
    let mut stage = stage();
    stage.proposes_to(BOB, "bob", 1, &["cid"]);
    let effects = stage.stored(1);
    let audience = published(&effects);
    let own = |link, echo| {
        audience.includes(
            link,
            "bob",
            Listener {
                mode: DeliveryMode::All,
                echo,
            },
        )
    };
    assert!(!own(BOB, false) && own(BOB, true) && own(LinkId(9), false));
}

#[test]
fn a_participant_that_is_asked_by_the_gateway_is_not_asked_again_in_the_room() {
    let mut stage = Stage::new();
    stage.configure(&serving());
    stage.server(LinkId(8), "worker");
    stage.lists("worker", ListScope::Shared, tools(&["a"]));
    stage.promoting(BOB, "bob", &["mcp/proposal:*"]);
    stage.call(BOB, 11, "worker_a");
    let by = id("bob");
    let to = [id("worker")];
    let proposal = op(1);
    let held = op(11);
    let content = 1;
    let park_ms = 50;
    stage.step(Event::Propose {
        proposal,
        terms: Box::new(terms(&by, &to, "p1")),
        content,
        held,
        park_ms,
    });
    stage.stored(1);
    let request = |id| Envelope::request(ANN, id, &["worker"], &[21]).about("p1");
    stage.send(request("f1"));
    let expected = [
        "approved p1 at ",
        "ruled 9",
        "drop 21",
        "deliver 11 to worker as a for p1",
    ];
    let effects = shown(&stage.stored(1));
    assert_eq!(
        (effects[0].as_str(), &effects[1..]),
        (
            "publish f1 except for worker",
            &expected.map(str::to_owned)[..]
        )
    );
    // The participant gets other kinds and other proposals.
    stage.answer(LinkId(8), 11, 5);
    stage.stored(1);
    let chat = Envelope::new(ANN, "m", "mcp/response:tools/call:a", &["worker"]).about("p1");
    assert_eq!(shown(&stage.send(chat)), ["publish m"]);
    stage.join(CID, "cid", &["mcp/proposal:*"], |_| {});
    stage.proposes_to(CID, "cid", 2, &["worker"]);
    stage.stored(2);
    let open = Envelope::request(ANN, "f3", &["worker"], &[22]).about("p2");
    stage.send(open);
    assert_eq!(
        shown(&stage.stored(2))[0],
        "publish f3",
        "a participant that serves carries it out in the room"
    );
}
