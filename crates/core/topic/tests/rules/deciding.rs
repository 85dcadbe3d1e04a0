//! The rights to decide about a proposal and to see it.

use std::sync::Arc;

use model::{Capabilities, Capability, Digest, LinkId, ListKind, Narrowing, ProposalState};
use topic::{Cause, Decision, ListScope};

use crate::{
    numbers::Effect,
    proposals::{REJECT, WITHDRAW, pending, stage},
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, CID, EXPIRES_MS, SHOWN, caps, id, op, tools},
};

#[test]
fn a_participant_that_could_make_the_request_decides_but_for_the_proposer() {
    let check = |by: &str, decision, expected: Result<&str, Cause>| {
        let effects = pending().decide(1, by, decision);
        match expected {
            Ok(stored) => assert_eq!(shown(&effects), [stored], "{by} {decision:?}"),
            Err(cause) => assert_eq!(refused(&effects), cause, "{by} {decision:?}"),
        }
    };
    let other = Decision::Approve {
        shown: Digest([8; 32]),
        current: Some(SHOWN),
    };
    let redefined = Decision::Approve {
        shown: SHOWN,
        current: Some(Digest([8; 32])),
    };
    let gone = Decision::Approve {
        shown: SHOWN,
        current: None,
    };
    check("ann", APPROVE, Ok("store p1 decided running by ann"));
    check(
        "ann",
        REJECT,
        Ok("store p1 decided rejected by ann: too broad"),
    );
    check("ann", other, Err(Cause::Differs));
    check("ann", redefined, Err(Cause::Redefined));
    check("ann", gone, Err(Cause::Redefined));
    check("ann", WITHDRAW, Err(Cause::NotAdmitted));
    check("bob", APPROVE, Err(Cause::Own));
    check("bob", REJECT, Err(Cause::Own));
    check("bob", WITHDRAW, Ok("store p1 decided withdrawn by bob"));
    check("cid", APPROVE, Err(Cause::NotAdmitted));
    check("cid", REJECT, Err(Cause::NotAdmitted));
    check("stranger", APPROVE, Err(Cause::NotAdmitted));
    check("stranger", WITHDRAW, Err(Cause::NotAdmitted));
}

#[test]
fn a_decision_without_an_envelope_is_judged_under_the_public_name() {
    let may = |capabilities: &Arc<Capabilities>| {
        let effects = pending().decide_as(1, "dee", Some(capabilities), APPROVE);
        matches!(&effects.all[0], Effect::Store { .. })
    };
    let could = |grant: &str| may(&caps(&[grant]));
    assert!(
        could("mcp/request:tools/call:one_a")
            && could("mcp/request:tools/call:one_*")
            && could("mcp/*")
    );
    // The server's own name is that of envelopes.
    assert!(!could("mcp/request:tools/call:a") && !could("mcp/request:tools/call:a*"));
    assert!(!could("mcp/request:tools/call:two_a") && !could("mcp/proposal:*"));
    assert!(!could("mcp/request:prompts/*"));
    let narrowed = |to: &str| {
        let one = Capability::parse("mcp/request:tools/call")
            .unwrap()
            .to([to])
            .unwrap();
        Arc::new([one].into_iter().collect::<Capabilities>())
    };
    assert!(may(&narrowed("one")) && !may(&narrowed("two")));
    let mut stage = pending();
    stage.promoting(LinkId(4), "dee", &["mcp/request:tools/call:one_a"]);
    assert_eq!(
        stage.topic.proposal(op(1)).unwrap().deciders,
        [id("ann"), id("dee")]
    );
}

#[test]
fn a_participant_outside_of_the_topic_decides_with_its_own_capabilities() {
    let full = Arc::new(Capabilities::full());
    let decide = |by: &str, outside| pending().decide_as(1, by, outside, APPROVE);
    assert_eq!(
        shown(&decide("operator", Some(&full))),
        ["store p1 decided running by operator"]
    );
    assert_eq!(refused(&decide("operator", None)), Cause::NotAdmitted);
    let inside = refused(&decide("cid", Some(&full)));
    assert_eq!(
        inside,
        Cause::NotAdmitted,
        "a participant in the topic has what is granted there"
    );
    assert_eq!(refused(&decide("bob", Some(&full))), Cause::Own);
}

#[test]
fn the_first_decision_counts() {
    let mut stage = pending();
    stage.decide(1, "ann", REJECT);
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Decided);
    assert_eq!(refused(&stage.decide(1, "bob", WITHDRAW)), Cause::Decided);
    stage.stored(1);
    for (by, decision) in [("ann", APPROVE), ("bob", WITHDRAW)] {
        let effects = stage.decide(1, by, decision);
        assert_eq!(refused(&effects), Cause::Decided, "{by}");
    }
    assert_eq!(refused(&stage.decide(2, "ann", APPROVE)), Cause::Unknown);
}

#[test]
fn a_decision_that_came_before_the_opening_was_on_disk_waits_for_it() {
    let full = Arc::new(Capabilities::full());
    let decide = |by: &str, outside, decision| {
        let mut stage = stage();
        stage.proposes(BOB, "bob", 1);
        assert!(shown(&stage.decide_as(1, by, outside, decision)).is_empty());
        assert_eq!(
            refused(&stage.decide(1, "ann", REJECT)),
            Cause::Decided,
            "the first counts"
        );
        (shown(&stage.stored(1)), stage)
    };
    let (effects, mut stage) = decide("ann", None, APPROVE);
    assert_eq!(
        effects,
        [
            "publish p1",
            "proposed p1",
            "store p1 decided running by ann"
        ]
    );
    assert_eq!(shown(&stage.stored(1)), ["approved p1 at one", "ruled 9"]);
    let (effects, _) = decide("operator", Some(&full), REJECT);
    assert_eq!(
        effects,
        [
            "publish p1",
            "proposed p1",
            "store p1 decided rejected by operator: too broad"
        ]
    );
    let (effects, _) = decide("bob", None, WITHDRAW);
    assert_eq!(
        effects,
        [
            "publish p1",
            "proposed p1",
            "store p1 decided withdrawn by bob"
        ]
    );
    let other = Decision::Approve {
        shown: Digest([8; 32]),
        current: Some(SHOWN),
    };
    let (effects, mut stage) = decide("ann", None, other);
    assert_eq!(
        effects,
        [
            "publish p1",
            "proposed p1",
            "refuse decision 9 of ann on p1: differs"
        ]
    );
    assert_eq!(
        stage.decide(1, "ann", APPROVE).all.len(),
        1,
        "it is still open"
    );
}

#[test]
fn a_decision_that_waits_is_judged_again() {
    let opening = || {
        let mut stage = stage();
        stage.proposes(BOB, "bob", 1);
        stage.decide(1, "ann", APPROVE);
        stage
    };
    let mut stage = opening();
    stage.regrant("ann", &["chat"]);
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "publish p1",
            "proposed p1",
            "refuse decision 9 of ann on p1: not_admitted"
        ]
    );
    let mut stage = opening();
    stage.now_ms = EXPIRES_MS;
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "publish p1",
            "proposed p1",
            "refuse decision 9 of ann on p1: expired"
        ]
    );
    let mut stage = opening();
    let expected = [
        "refuse decision 9 of ann on p1: unknown",
        "not proposed p1 of bob: log_unavailable",
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
}

#[test]
fn a_proposal_is_seen_by_its_proposer_and_by_participants_that_could_decide() {
    let mut stage = pending();
    stage.proposes(BOB, "bob", 2);
    let sees = |stage: &crate::stage::Stage, name: &str, grants: &[&str], all| {
        let who = id(name);
        let capabilities = caps(grants);
        let shown = stage
            .topic
            .proposals(&who, &capabilities, all)
            .into_iter()
            .map(|one| one.id.0)
            .collect::<Vec<_>>();
        assert_eq!(
            shown.contains(&1),
            stage.topic.may_see_proposal(op(1), &who, &capabilities)
                && (all || stage.topic.proposals_len() > 1)
        );
        shown
    };
    assert_eq!(
        sees(&stage, "bob", &[], false),
        [1],
        "the other one is not on disk"
    );
    assert_eq!(
        sees(&stage, "ann", &["mcp/request:tools/call:one_a"], false),
        [1]
    );
    assert!(sees(&stage, "cid", &["chat"], false).is_empty());
    stage.stored(2);
    assert_eq!(sees(&stage, "bob", &[], false), [1, 2]);
    stage.decide(1, "ann", REJECT);
    stage.stored(1);
    stage.decide(2, "ann", REJECT);
    stage.stored(2);
    assert!(sees(&stage, "bob", &[], false).is_empty());
    assert_eq!(sees(&stage, "bob", &[], true), [1, 2]);
    assert_eq!(
        (stage.links("ann"), stage.links("cid")),
        (vec![ANN], vec![CID])
    );
}

/// A token that is good for this alone.
fn token(to: &[&str]) -> Narrowing {
    Narrowing {
        to: caps(to),
        step_up: None,
    }
}

#[test]
fn a_decision_is_judged_by_the_token_that_it_came_with() {
    let other = token(&["mcp/request:tools/call:one_b", "mcp/proposal:tools/call:b"]);
    let requests = token(&["mcp/request:tools/call:one_a"]);
    let proposes = token(&["mcp/proposal:tools/call:a"]);
    let counts = |opened: bool, by: &str, token: &Narrowing, decision| {
        let mut stage = if opened { pending() } else { stage() };
        if !opened {
            stage.proposes(BOB, "bob", 1);
        }
        let effects = stage.decide_with(1, by, token, decision);
        !matches!(effects.all.first(), Some(Effect::RefuseDecision(_)))
    };
    // Also of one that waits until the opening is on disk.
    for opened in [true, false] {
        for decision in [APPROVE, REJECT] {
            assert!(!counts(opened, "ann", &other, decision));
            assert!(counts(opened, "ann", &requests, decision));
            assert!(!counts(opened, "ann", &proposes, decision));
        }
        // Its proposer needs a token for proposing it, or for what it proposes.
        assert!(!counts(opened, "bob", &other, WITHDRAW));
        assert!(counts(opened, "bob", &requests, WITHDRAW));
        assert!(counts(opened, "bob", &proposes, WITHDRAW));
    }
    let mut stage = pending();
    let own = stage.decide_with(1, "bob", &other, APPROVE);
    assert_eq!(refused(&own), Cause::NotAdmitted, "it is unknown to it");
}

#[test]
fn a_proposal_is_seen_with_a_token_that_is_good_for_it_alone() {
    let mut stage = pending();
    let sees = |stage: &crate::stage::Stage, scope: &[&str]| {
        let narrowed = caps(&["mcp/proposal:*"]).within(&caps(scope));
        let bob = id("bob");
        let seen = stage.topic.may_see_proposal(op(1), &bob, &narrowed);
        let listed = stage.topic.proposals(&bob, &narrowed, true);
        assert_eq!(listed.len(), usize::from(seen), "{scope:?}");
        seen
    };
    for _ in ["pending", "over"] {
        assert!(sees(&stage, &["mcp/proposal:tools/call:a"]));
        assert!(sees(&stage, &["mcp/request:tools/call:one_a"]));
        assert!(!sees(&stage, &["mcp/proposal:tools/call:b", "chat"]));
        assert!(!sees(&stage, &[]));
        stage.decide(1, "ann", REJECT);
        stage.stored(1);
    }
}

#[test]
fn a_proposal_that_is_over_is_seen_by_those_that_could_decide_before() {
    let mut stage = pending();
    let sees = |stage: &crate::stage::Stage, grants: &[&str]| {
        let capabilities = caps(grants);
        let topic = &stage.topic;
        let sees = topic.may_see_proposal(op(1), &id("dee"), &capabilities);
        // Also when the topic does not keep it any more.
        let covered = topic.covers_request(&capabilities, "tools/call", "a", &id("one"));
        assert_eq!(covered, sees, "{grants:?}");
        sees
    };
    for _ in ["pending", "over"] {
        // As clients call it, and as an envelope names it.
        assert!(sees(&stage, &["mcp/request:tools/call:one_a"]));
        assert!(sees(&stage, &["mcp/request:tools/call:a"]));
        assert!(!sees(&stage, &["mcp/request:tools/call:one_b"]));
        stage.decide(1, "ann", REJECT);
        stage.stored(1);
    }
}

#[test]
fn a_name_that_another_has_in_public_gives_no_right_to_decide() {
    let may = |listed: &[&str]| {
        let mut stage = stage();
        stage.lists("one", ListScope::Shared, tools(listed));
        stage.restore(1, false);
        let outside = caps(&["mcp/request:tools/call:one_a"]);
        let effects = stage.decide_as(1, "dee", Some(&outside), APPROVE);
        matches!(&effects.all[0], Effect::Store { .. })
    };
    // The proposal is for `a`. Where the server has an `one_a` of its own, that name means another
    // tool.
    assert!(may(&["a"]) && may(&[]));
    assert!(!may(&["a", "one_a"]) && !may(&["one_a"]));
}

#[test]
fn a_participant_that_may_approve_decides_and_may_do_no_more() {
    let approves = caps(&["mcp/approve:tools/call:one_a"]);
    let decide =
        |by: &str, outside: &Arc<Capabilities>| pending().decide_as(1, by, Some(outside), APPROVE);
    assert_eq!(
        shown(&decide("dee", &approves)),
        ["store p1 decided running by dee"]
    );
    for other in [
        "mcp/approve:tools/call:one_b",
        "mcp/approve:tools/call:a",
        "mcp/approve:prompts/*",
    ] {
        let effects = decide("dee", &caps(&[other]));
        assert_eq!(refused(&effects), Cause::NotAdmitted, "{other}");
    }
    assert_eq!(refused(&decide("bob", &approves)), Cause::Own);
    let mut stage = pending();
    stage.lists("one", ListScope::Shared, tools(&["a"]));
    stage.caller(LinkId(4), "dee", &["mcp/approve:*"]);
    assert_eq!(
        stage.topic.proposal(op(1)).unwrap().deciders,
        [id("ann"), id("dee")]
    );
    assert!(stage.sees(LinkId(4), ListKind::Tools).is_empty());
    assert_eq!(
        refused(&stage.call(LinkId(4), 9, "one_a")),
        Cause::NotAdmitted
    );
    // It keeps no proposal of its own, once it may not propose.
    stage.regrant("bob", &["mcp/approve:*"]);
    stage.stored(1);
    let state = stage.topic.proposal(op(1)).unwrap().state;
    assert_eq!(state, ProposalState::Withdrawn);
}

#[test]
fn a_token_is_good_for_decisions_with_either_right() {
    let may = |own: &str, scope: &str| {
        let narrowed = caps(&[own]).within(&caps(&[scope]));
        pending().topic.could_decide(op(1), &id("dee"), &narrowed)
    };
    let (request, approve) = (
        "mcp/request:tools/call:one_a",
        "mcp/approve:tools/call:one_a",
    );
    for own in [request, approve] {
        assert!(may(own, request) && may(own, approve), "{own}");
        assert!(!may(own, "mcp/approve:tools/call:one_b"), "{own}");
        assert!(!may(own, "chat"), "{own}");
    }
}
