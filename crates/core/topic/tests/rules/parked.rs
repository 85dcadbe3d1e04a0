//! Callers that are answered for now, and come back.

use model::LinkId;
use topic::{Cause, Event, Limits, ListScope, PublicTarget, UpstreamNames};

use crate::{
    holds::{held, stage},
    proposals::REJECT,
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, EXPIRES_MS, ONE, OWN, Stage, caps, configured, id, op, tools},
};

const GIVEN_UP: &str = "store p1 decided withdrawn by bob unasked: its caller has stopped waiting";

/// Bob's call 11 of `one_a` is parked behind proposal 1.
fn parked() -> Stage {
    let mut stage = held();
    assert_eq!(stage.topic.next_deadline_ms(), Some(50));
    assert!(shown(&stage.tick(49)).is_empty());
    assert_eq!(shown(&stage.tick(50)), ["park 11 for p1"]);
    assert!(shown(&stage.tick(51)).is_empty());
    stage
}

#[test]
fn a_caller_that_was_answered_for_now_comes_back() {
    let mut stage = parked();
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.parked_len()),
        (0, 1)
    );
    assert!(!stage.topic.is_busy(BOB));
    let effects = stage.resume(BOB, 12, 1);
    assert!(shown(&effects).is_empty());
    assert!(
        matches!(effects.verdict, Some(topic::Verdict::Admitted { to: Some(to), .. }) if to == id("portmoot"))
    );
    assert!(
        shown(&stage.resume(BOB, 12, 1)).is_empty(),
        "an id counts once"
    );
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRES_MS));
    stage.decide(1, "ann", REJECT);
    let expected = [
        "concluded p1 rejected: too broad",
        "report to 12: p1 rejected",
        "ruled 9",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.parked_len()),
        (0, 0)
    );
    assert_eq!(
        shown(&stage.resume(BOB, 13, 1)),
        ["report to 13: p1 rejected"],
        "over, it is reported at once"
    );
}

#[test]
fn an_approval_delivers_a_parked_call() {
    let mut stage = parked();
    stage.resume(BOB, 12, 1);
    stage.decide(1, "ann", APPROVE);
    assert_eq!(
        shown(&stage.stored(1)),
        [
            "approved p1 at ",
            "ruled 9",
            "deliver 11 to one as a for p1"
        ]
    );
    assert_eq!(
        (stage.topic.operations_len(), stage.topic.parked_len()),
        (2, 0)
    );
    let expected = ["store p1 ended completed with 5", "settle 11 with 5 for p1"];
    assert_eq!(shown(&stage.answer(ONE, 11, 5)), expected);
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 completed", "report to 12: p1 completed"]
    );
}

#[test]
fn a_parked_call_goes_on_without_its_caller() {
    let mut stage = parked();
    assert_eq!(shown(&stage.leave(BOB)), ["left bob", "closed 2"]);
    stage.decide(1, "ann", APPROVE);
    assert_eq!(shown(&stage.stored(1))[2], "deliver 11 to one as a for p1");
    let effects = stage.ask("one", 21, topic::About::Call(op(11)), "roots/list");
    assert_eq!(refused(&effects), Cause::Moot, "its caller cannot be asked");
    assert_eq!(shown(&stage.fail(ONE, 11))[1], "refuse 11: failed");
    // The caller is present, and has its answer for now.
    let mut stage = parked();
    stage.approved(1);
    let effects = stage.ask("one", 21, topic::About::Call(op(11)), "roots/list");
    assert_eq!(refused(&effects), Cause::Moot);
}

#[test]
fn a_caller_that_comes_back_is_parked_again_in_time() {
    let mut stage = held();
    stage.tick(50);
    stage.resume(BOB, 12, 1);
    stage.resume(BOB, 13, 1);
    stage.now_ms = 999;
    stage.restore(2, false);
    let waits = |stage: &mut Stage, operation, until_ms| {
        let parked = topic::Parked::Proposal {
            proposal: op(1),
            until_ms,
        };
        let link = BOB;
        let tag = None;
        let call = operation;
        let operation = op(operation);
        let resume = topic::Resume {
            link,
            operation,
            tag,
            parked,
            narrowing: None,
            call,
        };
        shown(&stage.step(Event::Resume(resume)))
    };
    assert!(waits(&mut stage, 14, 999).is_empty());
    assert_eq!(shown(&stage.tick(999)), ["park 14 for p1"]);
    assert_eq!(stage.topic.operations_len(), 2);
    assert!(shown(&stage.cancel(BOB, 14)).is_empty());
}

#[test]
fn a_caller_is_answered_for_now_only_about_what_is_on_disk() {
    let mut stage = stage();
    stage.call(BOB, 11, "one_a");
    stage.propose(1, "bob", 11);
    assert!(shown(&stage.tick(60)).is_empty());
    assert_eq!(refused(&stage.resume(BOB, 12, 1)), Cause::Unknown);
    assert_eq!(shown(&stage.stored(1)), ["proposed p1", "park 11 for p1"]);
    assert_eq!(stage.topic.next_deadline_ms(), Some(EXPIRES_MS));
}

#[test]
fn only_its_proposer_comes_back() {
    let mut stage = parked();
    assert_eq!(shown(&stage.resume(ANN, 12, 1)), ["refuse 12: unknown"]);
    assert_eq!(shown(&stage.resume(BOB, 12, 7)), ["refuse 12: unknown"]);
    assert_eq!(shown(&stage.resume(LinkId(99), 12, 1)), ["refuse 12: moot"]);
    // It comes back on any of its links, except the one by which it serves.
    stage.configure(&[configured(), vec![UpstreamNames::serving(id("bob"), "b")]].concat());
    stage.server(LinkId(5), "bob");
    assert_eq!(
        shown(&stage.resume(LinkId(5), 12, 1)),
        ["refuse 12: unknown"]
    );
    stage.caller(LinkId(4), "bob", &["mcp/proposal:tools/*"]);
    assert!(shown(&stage.resume(LinkId(4), 12, 1)).is_empty());
}

#[test]
fn a_caller_comes_back_to_its_proposal_with_a_token_that_is_good_for_it() {
    let mut stage = parked();
    let come_back = |stage: &mut Stage, operation: u128, to: &[&str]| {
        let narrowing = model::Narrowing {
            to: caps(to),
            step_up: None,
        };
        let parked = topic::Parked::Proposal {
            proposal: op(1),
            until_ms: 2_000,
        };
        stage.step(Event::Resume(topic::Resume {
            link: BOB,
            operation: op(operation),
            tag: None,
            parked,
            narrowing: Some(&narrowing),
            call: operation,
        }))
    };
    let of_another = come_back(&mut stage, 12, &["mcp/request:tools/call:one_b"]);
    assert_eq!(refused(&of_another), Cause::Unknown);
    let good = [
        "mcp/request:tools/call:one_a",
        "mcp/proposal:tools/call:one_a",
        "mcp/*",
    ];
    for (operation, to) in (13..).zip(good) {
        assert!(shown(&come_back(&mut stage, operation, &[to])).is_empty());
        assert!(stage.topic.is_open(op(operation)), "{to}");
    }
    let by = id("bob");
    let own = |to: &[&str]| {
        let narrowing = model::Narrowing {
            to: caps(to),
            step_up: None,
        };
        stage
            .topic
            .own_proposal(op(1), &by, Some(&narrowing))
            .is_some()
    };
    assert!(own(&["mcp/proposal:*"]) && !own(&["chat"]));
}

#[test]
fn a_caller_that_comes_back_is_admitted_like_any() {
    let mut stage = Stage::with(Limits {
        operations_per_link_max: 1,
        ..Limits::default()
    });
    stage.server(OWN, "portmoot");
    let rate = Some(model::RateLimit {
        burst: 2,
        per_minute: 60,
    });
    stage.limited(BOB, "bob", &["mcp/*"], rate);
    stage.restore(1, true);
    assert!(shown(&stage.resume(BOB, 12, 1)).is_empty());
    assert_eq!(refused(&stage.resume(BOB, 13, 1)), Cause::Limit);
    assert_eq!(refused(&stage.resume(BOB, 14, 1)), Cause::RateLimited);
}

#[test]
fn the_request_that_was_answered_for_now_does_not_cancel_the_call_that_runs() {
    let mut stage = parked();
    stage.approved(1);
    // Its connection, or its access token, ends late.
    assert!(shown(&stage.cancel(BOB, 11)).is_empty());
    assert_eq!(stage.topic.operations_len(), 1);
}

#[test]
fn cancelling_a_resumption_withdraws_the_proposal() {
    for leaves in [true, false] {
        let mut stage = parked();
        stage.resume(BOB, 12, 1);
        stage.resume(BOB, 13, 1);
        let effects = shown(&if leaves {
            stage.leave(BOB)
        } else {
            stage.cancel(BOB, 12)
        });
        assert!(
            effects.contains(&GIVEN_UP.to_owned()) && effects.contains(&"drop 12".to_owned()),
            "{effects:?}"
        );
        let mut expected = vec!["concluded p1 withdrawn: its caller has stopped waiting"];
        expected.extend((!leaves).then_some("report to 13: p1 withdrawn"));
        assert_eq!(shown(&stage.stored(1)), expected);
        assert_eq!(
            stage.topic.parked_len(),
            0,
            "the parked call goes with its proposal"
        );
    }
    // A call that is cancelled while its approval is written never runs; a running one goes on.
    let mut stage = parked();
    stage.resume(BOB, 12, 1);
    stage.decide(1, "ann", APPROVE);
    assert_eq!(shown(&stage.cancel(BOB, 12)), ["drop 12"]);
    assert_eq!(
        shown(&stage.stored(1))[0],
        "refuse decision 9 of ann on p1: moot"
    );
    let mut stage = parked();
    stage.resume(BOB, 12, 1);
    stage.approved(1);
    assert_eq!(shown(&stage.cancel(BOB, 12)), ["drop 12"]);
    assert_eq!(
        shown(&stage.answer(ONE, 11, 5))[0],
        "store p1 ended completed with 5"
    );
}

#[test]
fn cancelling_the_wait_of_a_built_in_tool_changes_nothing() {
    let mut stage = parked();
    stage.lists("portmoot", ListScope::Shared, tools(&["wait_for_proposal"]));
    stage.call(BOB, 12, "wait_for_proposal");
    assert!(shown(&stage.wait(12, 1, None)).is_empty());
    assert!(
        shown(&stage.wait(12, 1, None)).is_empty(),
        "it waits already"
    );
    assert_eq!(shown(&stage.cancel(BOB, 12)), ["drop 12"]);
    assert_eq!(stage.topic.proposals_len(), 1);
    stage.call(BOB, 13, "wait_for_proposal");
    stage.wait(13, 1, Some(60));
    assert_eq!(shown(&stage.tick(60)), ["park 13 for p1"]);
    stage.call(BOB, 14, "wait_for_proposal");
    stage.wait(14, 1, None);
    stage.call(BOB, 15, "wait_for_proposal");
    stage.wait(15, 1, None);
    assert_eq!(
        shown(&stage.answer(OWN, 15, 5)),
        ["settle 15 with 5"],
        "the gateway answers it itself"
    );
    assert_eq!(
        shown(&stage.leave(BOB)),
        ["left bob", "drop 14", "closed 2"]
    );
    // A built-in tool waits only for its caller's own proposals.
    stage.call(ANN, 16, "wait_for_proposal");
    assert_eq!(
        shown(&stage.wait(16, 1, None)),
        ["cancel 16", "refuse 16: unknown"]
    );
    stage.promoting(BOB, "bob", &["mcp/proposal:tools/*"]);
    stage.call(BOB, 17, "wait_for_proposal");
    stage.wait(17, 1, None);
    stage.decide(1, "ann", REJECT);
    assert_eq!(shown(&stage.stored(1))[1], "report to 17: p1 rejected");
    stage.call(BOB, 18, "wait_for_proposal");
    assert_eq!(
        shown(&stage.wait(18, 1, None)),
        ["report to 18: p1 rejected"]
    );
    assert!(
        shown(&stage.wait(19, 1, None)).is_empty(),
        "no such operation"
    );
}

#[test]
fn a_parked_call_is_revoked_with_its_proposer() {
    let why = "its proposer may not be here any more";
    let mut stage = parked();
    let expected = [
        "left bob".into(),
        "closed 2: revoked".into(),
        format!("store p1 decided withdrawn by bob unasked: {why}"),
    ];
    assert_eq!(shown(&stage.revoke("bob")), expected);
    assert_eq!(
        shown(&stage.stored(1)),
        [format!("concluded p1 withdrawn: {why}")]
    );
    assert_eq!(
        (stage.topic.parked_len(), stage.topic.operations_len()),
        (0, 0)
    );
    let mut stage = parked();
    let why = "its proposer may not propose it any more";
    let effects = shown(&stage.regrant("bob", &["chat"]));
    assert_eq!(
        effects[1],
        format!("store p1 decided withdrawn by bob unasked: {why}")
    );
    stage.stored(1);
    assert_eq!(stage.topic.parked_len(), 0);
}

#[test]
fn a_parked_call_ends_with_its_server() {
    let mut stage = parked();
    let mut without = configured();
    without.retain(|server| server.id != id("one"));
    let effects = shown(&stage.configure(&without));
    let stored = "store p1 decided withdrawn by bob unasked: the call behind it was cancelled";
    assert_eq!(effects[1..3], [stored, "refuse 11: upstream_down"]);
    assert_eq!(
        shown(&stage.stored(1)),
        ["concluded p1 withdrawn: the call behind it was cancelled"]
    );
    // Without the gateway's own participant no caller waits.
    let mut stage = Stage::new();
    stage.restore(1, true);
    stage.caller(BOB, "bob", &["mcp/proposal:*"]);
    assert_eq!(shown(&stage.resume(BOB, 12, 1)), ["refuse 12: unknown"]);
    assert!(
        !stage
            .topic
            .admits(BOB, None, "tools/call", Some(PublicTarget::Tool("one_a")))
    );
}
