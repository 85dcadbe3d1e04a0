//! Participants that are paused: what they could do directly waits for others, and they decide
//! nothing.

use std::sync::Arc;

use model::{Capabilities, Capability, DeliveryMode, LinkId, ListenFilter};
use topic::{
    BRAKES_MAX, Brake, Cause, HeldFor, Interest, Limits, ListScope, PublicTarget, Tightening,
    Verdict,
};

use crate::{
    envelope::Envelope,
    numbers::{Effects, Event, Intent},
    proposals::{REJECT, WITHDRAW, pending},
    shown::{delivered, refused, shown},
    stage::{ANN, APPROVE, BOB, CID, ONE, OWN, RULING, Stage, caps, id, items, op, tools},
};

/// Bob may call everything over MCP, cid may request everything in the room.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists("portmoot", ListScope::Shared, tools(&["say"]));
    stage.lists(
        "one",
        ListScope::Shared,
        topic::ServerLists {
            resources: items(&["r:x"]),
            ..tools(&["a", "b"])
        },
    );
    stage.promoting(BOB, "bob", &["mcp/request:*", "chat"]);
    stage.listener(CID, "cid", &["mcp/request:*", "chat"], DeliveryMode::All);
    stage
}

impl Stage {
    fn brake(&mut self, name: &str) -> Effects {
        let brake = Brake {
            by: id("ann"),
            reason: Some("too fast".into()),
            since_ms: 7,
        };
        self.step(Event::Brake {
            participant: &id(name),
            brake: Some(brake),
        })
    }

    fn release(&mut self, name: &str) -> Effects {
        self.step(Event::Brake {
            participant: &id(name),
            brake: None,
        })
    }
}

#[test]
fn a_call_of_a_paused_participant_is_held_until_it_is_resumed() {
    let mut stage = stage();
    delivered(&stage.call(BOB, 10, "one_a"));
    assert_eq!(shown(&stage.brake("bob")), ["changed bob"]);
    let effects = stage.call(BOB, 11, "one_a");
    assert_eq!(shown(&effects), ["hold 11 for one as a"]);
    assert_eq!(
        effects.verdict,
        Some(Verdict::Held {
            to: id("one"),
            own: Some("a".into()),
            why: HeldFor::Pause,
        })
    );
    // What it has begun goes on, and so does what another participant approves.
    let settled = shown(&stage.answer(ONE, 10, 5));
    assert!(
        settled.contains(&"settle 10 with 5".to_owned()),
        "{settled:?}"
    );
    stage.propose(1, "bob", 11);
    stage.stored(1);
    let expected = [
        "approved p1 at ",
        "ruled 9",
        "deliver 11 to one as a for p1",
    ];
    assert_eq!(shown(&stage.approved(1)), expected);
    assert_eq!(shown(&stage.release("bob")), ["changed bob"]);
    delivered(&stage.call(BOB, 12, "one_a"));
}

#[test]
fn what_cannot_be_held_is_refused_and_what_needs_no_right_passes() {
    let mut stage = stage();
    stage.brake("bob");
    let subscribed = stage.request_with(
        BOB,
        11,
        "resources/subscribe",
        Some(PublicTarget::Uri("r:x")),
        |request| request.interest = Interest::Subscribe,
    );
    assert_eq!(refused(&subscribed), Cause::Paused);
    let completed = stage.request(
        BOB,
        12,
        "completion/complete",
        Some(PublicTarget::Uri("r:x")),
    );
    assert_eq!(refused(&completed), Cause::Paused);
    // Lists, and the gateway's own tools, which are judged by what they do.
    delivered(&stage.request(BOB, 13, "tools/list", None));
    delivered(&stage.call(BOB, 14, "say"));
    // A rule that rejects still does, and a name that is not granted still reads like an unknown one.
    let rejects = Tightening::Reject { by: "r1.1".into() };
    let effects = stage.request_with(
        BOB,
        15,
        "tools/call",
        Some(PublicTarget::Tool("one_a")),
        |request| request.tightening = Some(rejects),
    );
    assert_eq!(refused(&effects), Cause::RuleRejects);
    stage.regrant("bob", &["mcp/request:tools/call:one_b"]);
    assert_eq!(refused(&stage.call(BOB, 16, "one_a")), Cause::NotAdmitted);
    assert_eq!(refused(&stage.call(BOB, 17, "one_x")), Cause::Unknown);
}

#[test]
fn a_paused_participant_proposes_in_the_room_what_it_could_request() {
    let mut stage = stage();
    let lines = shown(&stage.brake("cid"));
    assert_eq!(
        lines.len(),
        2,
        "it is welcomed anew, and all learn of it: {lines:?}"
    );
    let request = Envelope::request(CID, "m1", &["one"], &[11]);
    assert_eq!(refused(&stage.send(request)), Cause::Paused);
    // Also if it names a proposal, and if no server carries it out.
    let request = Envelope::request(CID, "m2", &["bob"], &[12]).about("p9");
    assert_eq!(refused(&stage.send(request)), Cause::Paused);
    // It proposes what it could request, without a capability to propose.
    let effects = stage.proposes(CID, "cid", 1);
    assert_eq!(shown(&effects), ["store p1 opened"]);
    stage.stored(1);
    // It speaks, answers and asks the gateway's tools.
    for (kind, to) in [
        ("chat", &[][..]),
        ("mcp/request:tools/call:say", &["portmoot"]),
        ("mcp/request:tools/list", &["one"]),
        ("mcp/request:notifications/progress", &["bob"]),
    ] {
        let effects = stage.say(CID, kind, to);
        assert!(
            matches!(effects.verdict, Some(Verdict::Admitted { .. })),
            "{kind}: {effects:?}"
        );
    }
    stage.release("cid");
    let refusal = refused(&stage.proposes(CID, "cid", 2));
    assert_eq!(refusal, Cause::NotAdmitted, "it may not propose");
    let request = Envelope::request(CID, "m3", &["one"], &[13]);
    assert_eq!(
        shown(&stage.send(request)),
        ["publish m3", "deliver 13 to one"]
    );
}

#[test]
fn a_paused_participant_decides_nothing_and_withdraws_its_own() {
    let mut stage = pending();
    stage.brake("ann");
    for decision in [APPROVE, REJECT, WITHDRAW] {
        assert_eq!(refused(&stage.decide(1, "ann", decision)), Cause::Paused);
    }
    let fulfilment = Envelope::request(ANN, "f1", &["one"], &[11]).about("p1");
    assert_eq!(refused(&stage.send(fulfilment)), Cause::Paused);
    stage.regrant("ann", &["mcp/*", "portmoot/reject"]);
    let rejection = Envelope {
        intent: Intent::Rejection {
            reason: None,
            ruling: Some(RULING),
        },
        ..Envelope::new(ANN, "r1", "portmoot/reject", &[])
    };
    assert_eq!(refused(&stage.send(rejection.about("p1"))), Cause::Paused);
    assert_eq!(stage.topic.proposal(op(1)).unwrap().deciders, []);
    // One that is not in the topic neither.
    stage.brake("operator");
    let all = caps(&["mcp/*"]);
    let outside = stage.decide_as(1, "operator", Some(&all), APPROVE);
    assert_eq!(refused(&outside), Cause::Paused);
    stage.brake("bob");
    assert_eq!(
        shown(&stage.decide(1, "bob", WITHDRAW)),
        ["store p1 decided withdrawn by bob"]
    );
}

#[test]
fn a_decision_that_waited_for_the_opening_does_not_count_once_its_author_is_paused() {
    let mut stage = crate::proposals::stage();
    stage.proposes(BOB, "bob", 1);
    assert!(shown(&stage.decide(1, "ann", APPROVE)).is_empty());
    stage.brake("ann");
    let lines = shown(&stage.stored(1));
    assert_eq!(
        lines[2], "refuse decision 9 of ann on p1: paused",
        "{lines:?}"
    );
}

#[test]
fn a_pause_outlasts_its_participants_absence_and_is_in_the_roster() {
    let mut stage = stage();
    assert!(shown(&stage.brake("dee")).is_empty(), "it is not here");
    stage.promoting(LinkId(4), "dee", &["mcp/*"]);
    assert_eq!(
        shown(&stage.call(LinkId(4), 11, "one_a")),
        ["hold 11 for one as a"]
    );
    stage.leave(LinkId(4));
    stage.promoting(LinkId(5), "dee", &["mcp/*"]);
    assert_eq!(
        shown(&stage.call(LinkId(5), 12, "one_a")),
        ["hold 12 for one as a"]
    );
    let all = stage.topic.participants();
    let paused = all.iter().filter(|one| one.person.paused);
    let names: Vec<&str> = paused.map(|one| one.person.id.as_str()).collect();
    assert_eq!(names, ["dee"]);
    let brake = stage.topic.brake_of(&id("dee")).unwrap();
    assert_eq!((brake.by.as_str(), brake.since_ms), ("ann", 7));
    // Twice is once.
    assert!(shown(&stage.brake("dee")).is_empty());
    assert_eq!(stage.topic.brakes().count(), 1);
    stage.release("dee");
    assert!(shown(&stage.release("dee")).is_empty());
}

#[test]
fn a_topic_has_so_many_paused_participants() {
    let mut stage = stage();
    for number in 0..BRAKES_MAX {
        assert_eq!(stage.brake(&format!("p{number}")).verdict, None);
    }
    let limit = Some(Verdict::Refused(Cause::Limit));
    assert_eq!(stage.brake("bob").verdict, limit);
    assert!(!stage.topic.is_braked(&id("bob")));
    assert_eq!(stage.brake("p0").verdict, None, "it is paused already");
    stage.release("p1");
    stage.brake("bob");
    assert!(stage.topic.is_braked(&id("bob")));
}

/// An envelope that asks to pause or resume a participant.
fn braking<'a>(kind: &'a str, participant: &str) -> Envelope<'a> {
    Envelope {
        intent: Intent::Brake {
            participant: id(participant),
        },
        ..Envelope::new(CID, "m", kind, &[])
    }
}

#[test]
fn envelopes_that_pause_are_admitted_by_one_right_and_are_for_the_gateway_alone() {
    let mut stage = stage();
    for kind in ["portmoot/pause", "portmoot/resume"] {
        let refusal = refused(&stage.send(braking(kind, "bob")));
        assert_eq!(refusal, Cause::NotAdmitted);
    }
    stage.regrant("cid", &["portmoot/pause", "chat"]);
    for kind in ["portmoot/pause", "portmoot/resume"] {
        let effects = stage.send(braking(kind, "bob"));
        assert!(
            matches!(effects.verdict, Some(Verdict::Admitted { .. })),
            "{effects:?}"
        );
        assert!(shown(&effects).is_empty(), "{effects:?}");
    }
    stage.brake("cid");
    for kind in ["portmoot/pause", "portmoot/resume"] {
        assert_eq!(refused(&stage.send(braking(kind, "bob"))), Cause::Paused);
    }
}

#[test]
fn a_right_to_pause_some_is_judged_by_the_participant_that_is_named() {
    let mut stage = stage();
    let only_bob = Capability::parse("portmoot/pause").unwrap();
    let only_bob = only_bob.to(["bob"]).unwrap();
    stage.step(Event::Regrant {
        participant: &id("cid"),
        capabilities: Arc::new([only_bob].into_iter().collect::<Capabilities>()),
    });
    for kind in ["portmoot/pause", "portmoot/resume"] {
        let effects = stage.send(braking(kind, "bob"));
        assert!(
            matches!(effects.verdict, Some(Verdict::Admitted { .. })),
            "{effects:?}"
        );
        // Wherever the envelope is sent.
        let elsewhere = Envelope {
            to: &["bob"],
            ..braking(kind, "ann")
        };
        assert_eq!(refused(&stage.send(elsewhere)), Cause::NotAdmitted);
    }
}

#[test]
fn a_paused_caller_ends_subscriptions_and_begins_none() {
    let mut stage = stage();
    let subscribes = |request: &mut topic::RequestEvent<'_, _>| {
        request.interest = Interest::Subscribe;
    };
    let uri = Some(PublicTarget::Uri("r:x"));
    delivered(&stage.request_with(BOB, 11, "resources/subscribe", uri, subscribes));
    stage.answer(ONE, 11, 5);
    stage.brake("bob");
    let listens = |stage: &mut Stage, operation: u128| {
        let filter = ListenFilter {
            resources: vec!["r:x".into()],
            ..ListenFilter::default()
        };
        let method = "subscriptions/listen";
        delivered(
            &stage.request_with(BOB, operation, method, None, |request| {
                request.interest = Interest::Listen(Box::new(filter));
            }),
        );
        let granted = stage.topic.listening(op(operation)).unwrap();
        granted.resources.len()
    };
    assert_eq!(listens(&mut stage, 12), 0);
    let ended = stage.request_with(BOB, 13, "resources/unsubscribe", uri, |request| {
        request.interest = Interest::Unsubscribe;
    });
    delivered(&ended);
    let in_room = stage.say(CID, "mcp/request:resources/unsubscribe:r:x", &["one"]);
    assert!(matches!(in_room.verdict, Some(Verdict::Admitted { .. })));
    stage.brake("cid");
    let in_room = stage.say(CID, "mcp/request:resources/unsubscribe:r:x", &["one"]);
    assert!(
        matches!(in_room.verdict, Some(Verdict::Admitted { .. })),
        "{in_room:?}"
    );
    stage.release("bob");
    assert_eq!(listens(&mut stage, 14), 1);
}

#[test]
fn a_proposers_own_request_does_not_run_if_it_was_paused_while_that_waited() {
    for is_paused in [false, true] {
        let mut stage = crate::proposals::stage_with(Limits::default());
        stage.proposes(BOB, "bob", 1);
        stage.regrant("bob", &["mcp/*"]);
        stage.stored(1);
        let own = Envelope::request(BOB, "r1", &["one"], &[11]).about("p1");
        stage.send(own);
        if is_paused {
            stage.brake("bob");
        }
        let lines = shown(&stage.stored(1));
        let has = |line: &str| lines.iter().any(|one| one == line);
        assert_eq!(has("deliver 11 to one"), !is_paused, "{lines:?}");
        assert_eq!(has("publish r1"), !is_paused, "{lines:?}");
        assert_eq!(has("refuse 11: paused"), is_paused, "{lines:?}");
    }
}
