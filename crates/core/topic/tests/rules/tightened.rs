//! Requests that their senders may make, and of which a rule takes something.

use model::{DeliveryMode, LinkId, Method, RefusalCode};
use topic::{Cause, Interest, ListScope, PublicTarget, RequestDestination, Tightening, Verdict};

use crate::{
    envelope::Envelope,
    numbers::{Effect, Effects},
    proposals::REJECT,
    shown::{delivered, refused, shown},
    stage::{ANN, APPROVE, BOB, ONE, OWN, Stage, caps, id, items, op, tools},
};

/// Bob may call everything, but no proposal of his counts for more than another's.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server(OWN, "portmoot");
    stage.lists("portmoot", ListScope::Shared, tools(&["other"]));
    stage.lists(
        "one",
        ListScope::Shared,
        topic::ServerLists {
            resources: items(&["r:x"]),
            ..tools(&["a", "b", "c"])
        },
    );
    stage.promoting(BOB, "bob", &["mcp/request:*"]);
    stage
}

fn reject() -> Tightening {
    Tightening::Reject {
        by: "rule r1.1 of ann: at most 100".into(),
    }
}

impl Stage {
    /// A call of which a rule takes something.
    fn tightened(&mut self, link: LinkId, call: u128, tool: &str, by: Tightening) -> Effects {
        let target = Some(PublicTarget::Tool(tool));
        self.request_with(link, call, "tools/call", target, |request| {
            request.tightening = Some(by);
        })
    }
}

/// The words of the only effect, a refusal.
#[track_caller]
fn words(effects: &Effects) -> (RefusalCode, String) {
    match effects.all.as_slice() {
        [Effect::Refuse { refusal, .. } | Effect::Withhold { refusal, .. }] => {
            (refusal.code, refusal.to_string())
        }
        other => panic!("not one refusal: {other:?}"),
    }
}

#[test]
fn a_call_of_which_a_rule_asks_is_held_and_runs_once_it_is_approved() {
    let mut stage = stage();
    let effects = stage.tightened(BOB, 11, "one_a", Tightening::Ask);
    assert_eq!(shown(&effects), ["hold 11 for one as a"]);
    assert_eq!(
        effects.verdict,
        Some(Verdict::Held {
            to: id("one"),
            own: Some("a".into()),
            asked: true,
        })
    );
    stage.propose(1, "bob", 11);
    stage.stored(1);
    let own = stage.decide(1, "bob", APPROVE);
    assert_eq!(
        refused(&own),
        Cause::Own,
        "its proposer may call, and not approve"
    );
    assert_eq!(
        shown(&stage.approved(1)),
        [
            "approved p1 at ",
            "ruled 9",
            "deliver 11 to one as a for p1"
        ]
    );
    delivered(&stage.call(BOB, 12, "one_a"));
}

#[test]
fn a_held_call_needs_its_callers_capability_for_as_long_as_it_waits() {
    let mut stage = stage();
    stage.tightened(BOB, 11, "one_a", Tightening::Ask);
    stage.propose(1, "bob", 11);
    stage.stored(1);
    stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    assert!(stage.topic.is_open(op(11)) && stage.topic.is_undecided(op(1), |_| true));
    let effects = shown(&stage.regrant("bob", &["mcp/request:tools/call:one_b"]));
    assert!(
        effects.contains(&"refuse 11: withdrawn".to_owned()),
        "{effects:?}"
    );
    assert!(
        effects.contains(
            &"store p1 decided withdrawn by bob unasked: the call behind it was cancelled"
                .to_owned()
        ),
        "{effects:?}"
    );
}

#[test]
fn a_proposal_for_which_a_rule_asked_is_its_callers_after_a_restart() {
    let mut stage = stage();
    stage.restore(1, true);
    stage.regrant("bob", &["mcp/request:tools/call:one_a"]);
    assert!(stage.topic.is_undecided(op(1), |_| true));
    let effects = shown(&stage.regrant("bob", &["chat"]));
    let withdrawn =
        "store p1 decided withdrawn by bob unasked: its proposer may not propose it any more";
    assert!(effects.contains(&withdrawn.to_owned()), "{effects:?}");
}

#[test]
fn what_a_rule_rejects_is_refused_in_its_words() {
    let mut stage = stage();
    let effects = stage.tightened(BOB, 1, "one_a", reject());
    assert_eq!(refused(&effects), Cause::RuleRejects);
    assert_eq!(effects.verdict, Some(Verdict::Refused(Cause::RuleRejects)));
    let (code, words) = words(&effects);
    assert_eq!(code, RefusalCode::CapabilityViolation);
    assert_eq!(words, "rejected by rule r1.1 of ann: at most 100");
    assert_eq!(stage.topic.operations_len(), 0);
}

#[test]
fn what_cannot_be_held_is_refused_with_the_advice_to_propose_it() {
    let mut stage = stage();
    // A link whose wire has proposals.
    let effects = stage.tightened(ANN, 1, "one_a", Tightening::Ask);
    assert_eq!(refused(&effects), Cause::RuleAsks);
    assert_eq!(
        words(&effects).1,
        "a rule leaves this request to the decision of another participant (propose it with `mcp/proposal`, and wait for the decision)"
    );
    // A change of what a link is notified of, and a method of which no call is held.
    let uri = Some(PublicTarget::Uri("r:x"));
    let effects = stage.request_with(BOB, 2, "resources/subscribe", uri, |request| {
        request.interest = Interest::Subscribe;
        request.tightening = Some(Tightening::Ask);
    });
    assert_eq!(refused(&effects), Cause::RuleAsks);
    let effects = stage.request_with(BOB, 3, "completion/complete", uri, |request| {
        request.tightening = Some(Tightening::Ask);
    });
    assert_eq!(refused(&effects), Cause::RuleAsks);
    let effects = stage.request_with(BOB, 4, "resources/read", uri, |request| {
        request.tightening = Some(Tightening::Ask);
    });
    assert_eq!(shown(&effects), ["hold 4 for one"]);
    let effects = stage.tightened(BOB, 5, "other", Tightening::Ask);
    assert_eq!(refused(&effects), Cause::RuleAsks);
}

#[test]
fn a_rule_gives_nothing_and_shows_nothing() {
    let mut stage = stage();
    stage.regrant(
        "bob",
        &[
            "mcp/request:tools/call:one_b",
            "mcp/proposal:tools/call:one_a",
        ],
    );
    for by in [Tightening::Ask, reject()] {
        let unknown = stage.tightened(BOB, 1, "one_c", by.clone());
        assert_eq!(refused(&unknown), Cause::NotAdmitted);
        // What may only be proposed is left to the rules for proposals.
        let effects = stage.tightened(BOB, 2, "one_a", by);
        assert!(matches!(
            effects.verdict,
            Some(Verdict::Held { asked: false, .. })
        ));
        stage.cancel(BOB, 2);
    }
}

#[test]
fn an_envelope_of_which_a_rule_takes_something_is_not_published() {
    for (by, cause) in [
        (Tightening::Ask, Cause::RuleAsks),
        (reject(), Cause::RuleRejects),
    ] {
        let mut stage = stage();
        stage.listener(BOB, "bob", &["mcp/*"], DeliveryMode::All);
        for to in [&["one"][..], &["one", "two"], &["ann"], &[]] {
            let request = Envelope::request(BOB, "m1", to, &[1, 2]).tightened(by.clone());
            let effects = stage.send(request);
            assert_eq!(refused(&effects), cause, "{to:?}");
            assert!(effects.room.is_empty(), "{to:?}");
            assert_eq!(
                effects.refusal.as_ref().map(|it| it.code),
                Some(words(&effects).0)
            );
        }
        // Nothing was acted on: the same envelope may come again.
        let again = Envelope::request(BOB, "m1", &["one"], &[1]);
        assert_eq!(
            shown(&stage.send(again)),
            ["publish m1", "deliver 1 to one"]
        );
    }
}

#[test]
fn a_proposer_cannot_carry_out_itself_what_a_rule_takes() {
    let mut stage = crate::proposals::pending();
    stage.regrant("bob", &["mcp/*"]);
    let own = Envelope::request(BOB, "m1", &["one"], &[1]).about("p1");
    assert_eq!(
        refused(&stage.send(own.tightened(Tightening::Ask))),
        Cause::RuleAsks
    );
    assert!(
        stage.topic.is_undecided(op(1), |_| true),
        "it is not withdrawn"
    );
    // Another participant's request approves it: a decision, of which no rule takes anything.
    let fulfils = Envelope::request(ANN, "f1", &["one"], &[11]).about("p1");
    assert_eq!(
        shown(&stage.send(fulfils.tightened(Tightening::Ask))),
        ["store p1 decided running by ann"]
    );
    assert!(shown(&stage.stored(1)).contains(&"deliver 11 to one for p1".to_owned()));
}

#[test]
fn a_rejected_call_for_which_a_rule_asked_never_runs() {
    let mut stage = stage();
    stage.tightened(BOB, 11, "one_a", Tightening::Ask);
    stage.propose(1, "bob", 11);
    stage.stored(1);
    stage.decide(1, "ann", REJECT);
    let effects = shown(&stage.stored(1));
    assert!(
        effects.iter().all(|line| !line.contains("deliver")),
        "{effects:?}"
    );
    assert_eq!(stage.topic.operations_len(), 0);
    assert!(stage.answer(ONE, 11, 5).all.is_empty());
}

#[test]
fn destinations_name_what_servers_name() {
    let mut stage = stage();
    let call = |stage: &Stage, tool: &str| {
        let method = Method::Known("tools/call");
        let target = Some(PublicTarget::Tool(tool));
        stage.topic.destination(BOB, &method, target)
    };
    let at_one = call(&stage, "one_a").unwrap();
    assert_eq!(
        (at_one.to.as_str(), at_one.own.as_deref()),
        ("one", Some("a"))
    );
    assert_eq!(call(&stage, "bare_c").unwrap().to, id("bare"));
    // The gateway serves these itself.
    for own in ["other", "wait_for_proposal"] {
        assert_eq!(call(&stage, own), None);
    }
    let may = |stage: &Stage, grant: &str, at: &RequestDestination| {
        let granted = caps(&[grant]);
        stage.topic.could_request(&granted, "tools/call", at)
    };
    let in_room = RequestDestination::in_room(id("one"), Some("a"));
    for at in [&at_one, &in_room] {
        assert!(may(&stage, "mcp/request:tools/call:one_a", at));
        assert!(!may(&stage, "mcp/request:tools/call:a", at));
    }
    // At another participant the kind itself is judged.
    let at_ann = RequestDestination::in_room(id("ann"), Some("a"));
    assert!(may(&stage, "mcp/request:tools/call:a", &at_ann));
    stage.leave(BOB);
    assert_eq!(call(&stage, "one_a"), None);
}
