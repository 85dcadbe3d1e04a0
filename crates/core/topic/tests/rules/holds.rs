//! Held calls: callers whose wire has no proposals may only propose them.

use model::{LinkId, ListKind, RefusalCode};
use topic::{Cause, Configure, End, Event, ListScope, PublicTarget, ServerLists, Verdict};

use crate::{
    numbers::Effect,
    proposals::REJECT,
    shown::{delivered, notified, refused, shown},
    stage::{
        ANN, APPROVE, BOB, CID, EXPIRES_MS, ONE, OWN, Stage, configured, id, items, op, tools,
    },
};

/// Bob may call `one_b` and propose the rest.
pub(crate) fn stage() -> Stage {
    with(topic::Limits::default())
}

fn with(limits: topic::Limits) -> Stage {
    let mut stage = Stage::with(limits);
    stage.server(OWN, "portmoot");
    stage.lists("portmoot", ListScope::Shared, tools(&["other"]));
    stage.lists(
        "one",
        ListScope::Shared,
        ServerLists {
            prompts: items(&["p"]),
            ..tools(&["a", "b"])
        },
    );
    stage.promoting(
        BOB,
        "bob",
        &["mcp/proposal:tools/*", "mcp/request:tools/call:one_b"],
    );
    stage
}

/// Bob's call 11 of `one_a` waits for proposal 1.
pub(crate) fn held() -> Stage {
    let mut stage = stage();
    stage.call(BOB, 11, "one_a");
    stage.propose(1, "bob", 11);
    stage.stored(1);
    stage
}

#[test]
fn a_call_that_may_only_be_proposed_is_held() {
    let mut stage = stage();
    let effects = stage.call(BOB, 1, "one_a");
    assert_eq!(shown(&effects), ["hold 1 for one as a"]);
    assert_eq!(
        effects.verdict,
        Some(Verdict::Held {
            to: id("one"),
            own: Some("a".into()),
            why: topic::HeldFor::Capability,
        })
    );
    delivered(&stage.call(BOB, 2, "one_b"));
    assert_eq!(refused(&stage.call(BOB, 3, "one_unknown")), Cause::Unknown);
    let built_in = refused(&stage.call(BOB, 3, "other"));
    assert_eq!(
        built_in,
        Cause::NotAdmitted,
        "built-in tools are judged by what they reach"
    );
    let prompt = Some(PublicTarget::Prompt("one_p"));
    assert_eq!(
        refused(&stage.request(BOB, 3, "prompts/get", prompt)),
        Cause::NotAdmitted
    );
    // A capability may propose a request that is no call: the topic does not hold it.
    stage.regrant("bob", &["mcp/proposal:*"]);
    assert_eq!(
        refused(&stage.request(BOB, 4, "completion/complete", prompt)),
        Cause::NotAdmitted
    );
    assert_eq!(
        shown(&stage.request(BOB, 5, "prompts/get", prompt)),
        ["hold 5 for one as p"]
    );
    // The topic holds no call of a link whose wire has proposals.
    stage.caller(CID, "cid", &["mcp/proposal:*"]);
    assert_eq!(refused(&stage.call(CID, 6, "one_a")), Cause::NotAdmitted);
    assert!(stage.topic.may_call(&id("cid"), &id("one"), "one_a", true));
    assert!(!stage.topic.may_call(&id("cid"), &id("one"), "one_a", false));
}

#[test]
fn lists_show_entries_that_could_be_called_or_proposed() {
    let mut stage = stage();
    let held = |stage: &Stage, link| -> Vec<(String, bool)> {
        let snapshot = stage.topic.list_snapshot(link, None).unwrap();
        snapshot
            .list(ListKind::Tools)
            .into_iter()
            .map(|one| (one.public.to_string(), one.held))
            .collect()
    };
    assert_eq!(
        held(&stage, BOB),
        [("one_a".into(), true), ("one_b".into(), false)]
    );
    assert!(stage.sees(BOB, ListKind::Prompts).is_empty());
    let effects = stage.lists("one", ListScope::Shared, tools(&["a", "b", "c"]));
    assert_eq!(notified(&effects, ListKind::Tools), ["link 1", "link 2"]);
    let effects = stage.regrant(
        "bob",
        &["mcp/proposal:tools/*", "mcp/request:tools/call:one_a"],
    );
    let changed = notified(&effects, ListKind::Tools);
    assert_eq!(changed, ["link 2"], "which entries are held has changed");
    let before = stage.topic.list_snapshot(BOB, None).unwrap();
    let after = stage.topic.list_snapshot(ANN, None).unwrap();
    assert!(
        before.is_same(&stage.topic.list_snapshot(BOB, None).unwrap()) && !before.is_same(&after)
    );
}

#[test]
fn an_approved_call_goes_on_as_its_own() {
    let mut stage = held();
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 decided running by ann"]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "approved p1 at ",
            "ruled 9",
            "deliver 11 to one as a for p1"
        ]
    );
    // The topic judges the caller no more, and a wider grant changes nothing.
    stage.regrant("bob", &["mcp/request:*"]);
    stage.regrant("bob", &[]);
    let expected = ["store p1 ended completed with 5", "settle 11 with 5 for p1"];
    assert_eq!(shown(&stage.answer(ONE, 11, 5)), expected);
    assert_eq!(shown(&stage.stored(1)), ["concluded p1 completed"]);
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.proposals_len()),
        (0, 0)
    );
}

#[test]
fn a_held_call_ends_with_its_proposal() {
    let mut stage = held();
    stage.decide(1, "ann", REJECT);
    let expected = [
        "concluded p1 rejected: too broad",
        "report to 11: p1 rejected",
        "ruled 9",
    ];
    let effects = stage.stored(1);
    assert_eq!(shown(&effects), expected);
    match &effects.all[1] {
        Effect::Report { proposal, .. } => {
            assert_eq!(proposal.reason.as_deref(), Some("too broad"))
        }
        other => panic!("{other:?}"),
    }
    let mut stage = held();
    assert_eq!(
        shown(&stage.tick(EXPIRES_MS)),
        ["store p1 ended expired", "park 11 for p1"]
    );
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 expired"],
        "its caller was answered for now"
    );
    let mut stage = self::stage();
    stage.call(BOB, 11, "one_a");
    assert_eq!(shown(&stage.propose(1, "bob", 11)), ["store p1 opened"]);
    let expected = [
        "not proposed p1 of bob held: log_unavailable",
        "refuse 11: log_unavailable",
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn a_cancelled_call_withdraws_its_proposal() {
    let bob = &id("bob");
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let stored = "store p1 decided withdrawn by bob unasked: the call behind it was cancelled";
    let check = |event: crate::numbers::Event<'_>, expected: &[&str]| {
        let mut stage = held();
        assert_eq!(shown(&stage.step(event)), expected);
        let concluded = "concluded p1 withdrawn: the call behind it was cancelled";
        assert_eq!(shown(&stage.stored(1)), [concluded]);
        assert_eq!(
            (stage.topic.operations_len(), stage.topic.proposals_len()),
            (0, 0)
        );
    };
    check(
        Event::Cancel {
            link: BOB,
            which: topic::OperationRef::Request {
                operation: op(11),
                round: 0,
            },
        },
        &[stored, "drop 11"],
    );
    check(
        Event::Leave { link: BOB },
        &["left bob", stored, "drop 11", "closed 2"],
    );
    let revoke = ["left bob", stored, "drop 11", "closed 2: revoked"];
    check(Event::Revoke { participant: bob }, &revoke);
    let capabilities = crate::stage::caps(&[]);
    let regrant = [
        "changed bob",
        stored,
        "refuse 11: withdrawn",
        "Tools changed for link 2",
    ];
    check(
        Event::Regrant {
            participant: bob,
            capabilities,
        },
        &regrant,
    );
    let lost = [
        "left one",
        stored,
        "refuse 11: upstream_down",
        "Tools changed for link 1,link 2",
        "Prompts changed for link 1",
    ];
    check(Event::Configure(Configure::servers(&without)), &lost);
}

#[test]
fn a_call_that_is_cancelled_while_it_is_approved_never_runs() {
    let mut stage = held();
    stage.decide(1, "ann", APPROVE);
    assert_eq!(shown(&stage.cancel(BOB, 11)), ["drop 11"]);
    let why = "the call behind it was cancelled";
    let expected = [
        "refuse decision 9 of ann on p1: moot".to_owned(),
        format!("store p1 ended withdrawn: {why}"),
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    // Cancelling a running call cancels it at its server.
    let mut stage = held();
    stage.approved(1);
    let expected = [
        "store p1 ended failed: the call was cancelled while it ran: it may have been carried out",
        "cancel 11",
        "drop 11",
    ];
    assert_eq!(shown(&stage.cancel(BOB, 11)), expected);
}

#[test]
fn only_a_participants_own_held_call_is_proposed_and_only_once() {
    let mut stage = stage();
    let moot = |by: &str, proposal| [format!("not proposed p{proposal} of {by} held: moot")];
    assert_eq!(
        shown(&stage.propose(1, "bob", 11)),
        moot("bob", 1),
        "no call is held"
    );
    stage.call(BOB, 11, "one_a");
    assert_eq!(shown(&stage.propose(1, "ann", 11)), moot("ann", 1));
    assert_eq!(shown(&stage.propose(1, "bob", 11)), ["store p1 opened"]);
    assert!(shown(&stage.propose(1, "bob", 11)).is_empty());
    assert_eq!(shown(&stage.propose(2, "bob", 11)), moot("bob", 2));
    assert!(
        shown(&stage.answer(ONE, 11, 5)).is_empty(),
        "no server has it"
    );
    // At the limit the call is refused with its proposal.
    let mut stage = with(topic::Limits {
        proposals_max: 0,
        ..<_>::default()
    });
    stage.call(BOB, 11, "one_a");
    let expected = ["not proposed p1 of bob held: limit", "refuse 11: limit"];
    assert_eq!(shown(&stage.propose(1, "bob", 11)), expected);
}

#[test]
fn a_call_that_cannot_be_proposed_is_refused() {
    let mut stage = stage();
    stage.call(BOB, 11, "one_a");
    let refusal = || {
        Box::new(model::Refusal::new(
            RefusalCode::Malformed,
            "the arguments are too long",
        ))
    };
    let held = op(11);
    let effects = stage.step(Event::Unproposable {
        held,
        end: End::Failed(refusal()),
    });
    match effects.all.as_slice() {
        [
            Effect::Refuse {
                call: 11,
                refusal,
                cause: Cause::Failed,
                ..
            },
        ] => {
            assert_eq!(refusal.message, "the arguments are too long");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        shown(&stage.step(Event::Unproposable {
            held,
            end: End::Failed(refusal())
        }))
        .is_empty()
    );
    stage.call(BOB, 12, "one_a");
    stage.propose(1, "bob", 12);
    let late = Event::Unproposable {
        held: op(12),
        end: End::Failed(refusal()),
    };
    assert!(
        shown(&stage.step(late)).is_empty(),
        "it is proposed already"
    );
}

#[test]
fn a_held_call_may_be_answered_instead_of_proposed() {
    let mut stage = stage();
    stage.call(BOB, 11, "one_a");
    let end = || End::Answered {
        outcome: model::Outcome::Ok,
        answer: 7,
    };
    let effects = stage.step(Event::Unproposable {
        held: op(11),
        end: end(),
    });
    match effects.all.as_slice() {
        [
            Effect::Settle {
                call: 11,
                answer: 7,
                proposal: None,
            },
        ] => {}
        other => panic!("{other:?}"),
    }
    assert!(
        shown(&stage.step(Event::Unproposable {
            held: op(11),
            end: end()
        }))
        .is_empty()
    );
}

#[test]
fn a_fulfilment_of_a_held_call_delivers_the_call() {
    let mut stage = held();
    let fulfilment = crate::envelope::Envelope::request(ANN, "f1", &["one"], &[21]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfilment)),
        ["store p1 decided running by ann"]
    );
    // The held call runs, and the topic drops the one that came with the decision.
    let expected = [
        "publish f1",
        "approved p1 at ",
        "ruled 9",
        "drop 21",
        "deliver 11 to one as a for p1",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    let view = stage.topic.proposal(op(1)).unwrap();
    assert_eq!((view.fulfilment.as_deref(), view.held), (Some("f1"), true));
    assert_eq!(stage.links("bob"), [LinkId(2)]);
}
