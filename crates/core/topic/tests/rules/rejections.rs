//! Rejections by an envelope: judged as every decision, and published once they count.

use model::{DeliveryMode, LinkId, Refusal, RefusalCode};
use topic::Cause;

use crate::{
    envelope::Envelope,
    numbers::Intent,
    proposals::pending,
    shown::{refused, shown},
    stage::{ANN, APPROVE, BOB, CID, RULING, Stage, op},
};

/// Dee may reject in the room what it may request, and nothing else.
const DEE: LinkId = LinkId(4);

/// An envelope that rejects the proposal of the envelope `about`.
fn rejection<'a>(link: LinkId, id: &'a str, about: &'a str) -> Envelope<'a> {
    Envelope {
        intent: Intent::Rejection {
            reason: Some("too broad".into()),
            ruling: Some(RULING),
        },
        ..Envelope::new(link, id, "portmoot/reject", &[])
    }
    .about(about)
}

/// Bob's proposal 1 is pending, and dee is there.
fn staged(grants: &[&str]) -> Stage {
    let mut stage = pending();
    stage.listener(DEE, "dee", grants, DeliveryMode::All);
    stage
}

const REVIEWER: &[&str] = &["portmoot/reject", "mcp/request:tools/call:a"];

#[test]
fn a_rejection_is_published_once_it_is_on_disk() {
    let mut stage = staged(REVIEWER);
    assert_eq!(
        shown(&stage.send(rejection(DEE, "r1", "p1"))),
        ["store p1 decided rejected by dee: too broad"]
    );
    let expected = ["publish r1", "concluded p1 rejected: too broad", "ruled 9"];
    assert_eq!(shown(&stage.stored(1)), expected);
    // It is decided.
    let late = shown(&stage.send(rejection(DEE, "r2", "p1")));
    assert_eq!(late, ["refuse decision 9 of dee on p1: decided"]);
}

#[test]
fn a_rejection_that_the_journal_cannot_write_is_not_published() {
    let mut stage = staged(REVIEWER);
    stage.send(rejection(DEE, "r1", "p1"));
    let expected = ["refuse decision 9 of dee on p1: log_unavailable"];
    assert_eq!(shown(&stage.not_stored(1)), expected);
    assert_eq!(stage.approved(1).room.len(), 0, "it is pending again");
}

#[test]
fn it_needs_the_right_to_send_it_and_to_decide() {
    let check = |grants: &[&str], expected: Cause| {
        let mut stage = staged(grants);
        let effects = stage.send(rejection(DEE, "r1", "p1"));
        assert_eq!(refused(&effects), expected, "{grants:?}");
        assert_eq!(stage.decide(1, "ann", APPROVE).all.len(), 1, "it is open");
    };
    check(&["mcp/*", "chat"], Cause::NotAdmitted);
    check(&["portmoot/rejects", "mcp/*"], Cause::NotAdmitted);
    check(&["portmoot/reject", "chat"], Cause::NotAdmitted);
    check(&["portmoot/*", "mcp/proposal:*"], Cause::NotAdmitted);
    // Judged by the name of envelopes, as an approval by an envelope is.
    check(
        &["portmoot/reject", "mcp/request:tools/call:one_a"],
        Cause::NotAdmitted,
    );
    // Without a capability for the kind nothing is decided, and the envelope itself is refused.
    let mut stage = staged(&["mcp/*"]);
    let lines = shown(&stage.send(rejection(DEE, "r1", "p1")));
    assert!(
        lines
            .iter()
            .all(|line| line == "withhold from 4: capability_violation"),
        "{lines:?}"
    );
}

#[test]
fn no_proposer_rejects_its_own_and_an_unknown_one_reads_like_a_hidden_one() {
    let mut stage = pending();
    stage.regrant("bob", &["mcp/*", "portmoot/reject"]);
    assert_eq!(refused(&stage.send(rejection(BOB, "r1", "p1"))), Cause::Own);
    let mut stage = staged(REVIEWER);
    let unknown = stage.send(rejection(DEE, "r1", "p7"));
    assert_eq!(refused(&unknown), Cause::Unknown);
    let mut hidden = staged(&["portmoot/reject"]);
    let hidden = hidden.send(rejection(DEE, "r1", "p1"));
    let words = |effects: &crate::numbers::Effects| match effects.all.as_slice() {
        [crate::numbers::Effect::Withhold { refusal, .. }] => refusal.to_string(),
        [crate::numbers::Effect::RefuseDecision(refused)] => refused.refusal.to_string(),
        other => panic!("no refusal: {other:?}"),
    };
    assert_eq!(words(&unknown), words(&hidden));
    // Nor does one that names none.
    let bare = Envelope {
        correlation: None,
        ..rejection(DEE, "r2", "p1")
    };
    assert_eq!(refused(&stage.send(bare)), Cause::Unknown);
}

#[test]
fn it_waits_for_the_opening_and_is_judged_then() {
    let mut stage = crate::proposals::stage();
    stage.listener(DEE, "dee", REVIEWER, DeliveryMode::All);
    stage.proposes(BOB, "bob", 1);
    assert!(shown(&stage.send(rejection(DEE, "r1", "p1"))).is_empty());
    let expected = [
        "publish p1",
        "proposed p1",
        "store p1 decided rejected by dee: too broad",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    assert_eq!(shown(&stage.stored(1))[0], "publish r1");
}

#[test]
fn what_cannot_be_read_and_kinds_beside_it_are_refused() {
    let mut stage = staged(REVIEWER);
    let refusal = Refusal::new(RefusalCode::Malformed, "no such code");
    let unreadable = Envelope {
        intent: Intent::Unreadable {
            refusal: Box::new(refusal),
        },
        ..rejection(DEE, "r1", "p1")
    };
    assert_eq!(refused(&stage.send(unreadable)), Cause::Malformed);
    stage.regrant("ann", &["mcp/*", "portmoot/*"]);
    for kind in [
        "portmoot",
        "portmoot/proposal",
        "portmoot/grants",
        "portmoot/reject/x",
        "portmoot/reject:x",
    ] {
        let envelope = Envelope {
            kind,
            ..rejection(ANN, "r2", "p1")
        };
        assert_eq!(refused(&stage.send(envelope)), Cause::Reserved, "{kind}");
    }
    assert_eq!(
        refused(&stage.send(rejection(CID, "r3", "p1"))),
        Cause::NotAdmitted
    );
    assert!(
        stage
            .topic
            .proposal(op(1))
            .is_some_and(|one| !one.state.is_over())
    );
}
