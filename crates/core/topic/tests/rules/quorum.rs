//! Proposals that need several approvals: of different participants, of one request, and of those
//! that may still decide when the last one comes.

use std::sync::Arc;

use model::{Capabilities, Digest, ProposalState};
use topic::{Amended, Brake, Cause, CountedApproval, Decision, Event, Restore};

use crate::{
    envelope::Envelope,
    proposals::{REJECT, WITHDRAW, stage},
    shown::{refused, shown},
    stage::{ANN, APPROVE, SHOWN, Stage, caps, id, op, pending, terms},
};

const DEE: model::LinkId = model::LinkId(41);
const EVE: model::LinkId = model::LinkId(42);
const OTHER: Digest = Digest([8; 32]);

/// Bob's proposal 1 of a call of `a` at `one` needs so many approvals; ann, dee and eve may give them.
fn needs(approvals: usize) -> Stage {
    let mut stage = stage();
    stage.caller(DEE, "dee", &["mcp/request:tools/call:one_a"]);
    stage.caller(EVE, "eve", &["mcp/approve:tools/call:one_a"]);
    restore(&mut stage, approvals, Vec::new());
    stage
}

fn restore(stage: &mut Stage, approvals: usize, approved_by: Vec<CountedApproval>) {
    let terms = topic::Terms {
        approvals,
        ..terms(&id("bob"), &[id("one")], "p1")
    };
    stage.step(Event::Restore(Restore {
        approved_by,
        ..pending(1, terms)
    }));
}

fn approves(stage: &mut Stage, by: &str) -> Vec<String> {
    let mut lines = shown(&stage.decide(1, by, APPROVE));
    lines.extend(shown(&stage.stored(1)));
    lines
}

fn by(stage: &Stage) -> Vec<String> {
    let view = stage.topic.proposal(op(1)).unwrap();
    view.approved_by.iter().map(ToString::to_string).collect()
}

#[test]
fn it_runs_with_the_last_approval_and_not_before() {
    let mut stage = needs(3);
    assert_eq!(
        shown(&stage.decide(1, "ann", APPROVE)),
        ["store p1 approved by ann"]
    );
    assert!(by(&stage).is_empty(), "nothing counts before it is on disk");
    assert_eq!(
        shown(&stage.stored(1)),
        ["counted p1 by ann, of ann: 1 of 3", "ruled 9"]
    );
    assert_eq!(
        approves(&mut stage, "dee"),
        [
            "store p1 approved by dee",
            "counted p1 by dee, of ann,dee: 2 of 3",
            "ruled 9"
        ]
    );
    let state = stage.topic.proposal(op(1)).unwrap().state;
    assert_eq!(state, ProposalState::Pending);
    assert_eq!(
        approves(&mut stage, "eve"),
        [
            "store p1 decided running by eve",
            "approved p1 at one",
            "ruled 9"
        ]
    );
    assert_eq!(by(&stage), ["ann", "dee"]);
}

#[test]
fn one_participant_counts_once_and_the_proposer_never() {
    let mut stage = needs(2);
    approves(&mut stage, "ann");
    assert!(stage.topic.has_approved(op(1), &id("ann")));
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Counted);
    assert_eq!(refused(&stage.decide(1, "bob", APPROVE)), Cause::Own);
    stage.regrant("bob", &["mcp/*"]);
    assert_eq!(refused(&stage.decide(1, "bob", APPROVE)), Cause::Own);
    assert_eq!(by(&stage), ["ann"]);
    // All guests are one participant here: any caller opens as many connections as it likes.
    let full = Arc::new(Capabilities::full());
    let mut stage = Stage::configured(|config| config.guests = "anonymous-");
    restore(&mut stage, 3, Vec::new());
    let guest = |stage: &mut Stage, name: &str| {
        let lines = shown(&stage.decide_as(1, name, Some(&full), APPROVE));
        stage.stored(1);
        lines
    };
    assert_eq!(
        guest(&mut stage, "anonymous-1"),
        ["store p1 approved by anonymous-1"]
    );
    assert_eq!(
        guest(&mut stage, "anonymous-2"),
        ["refuse decision 9 of anonymous-2 on p1: counted"]
    );
}

#[test]
fn one_rejection_or_withdrawal_ends_it() {
    for (who, decision, state) in [
        ("dee", REJECT, ProposalState::Rejected),
        ("ann", REJECT, ProposalState::Rejected),
        ("bob", WITHDRAW, ProposalState::Withdrawn),
    ] {
        let mut stage = needs(2);
        approves(&mut stage, "ann");
        stage.decide(1, who, decision);
        stage.stored(1);
        assert_eq!(stage.topic.proposal(op(1)).unwrap().state, state, "{who}");
        assert_eq!(refused(&stage.decide(1, "dee", APPROVE)), Cause::Decided);
    }
}

#[test]
fn an_approval_counts_while_its_author_may_decide() {
    let loses: [fn(&mut Stage); 4] = [
        |stage| drop(stage.regrant("dee", &["chat"])),
        |stage| {
            drop(stage.step(Event::Revoke {
                participant: &id("dee"),
            }))
        },
        |stage| {
            drop(stage.step(Event::Disown {
                participant: &id("dee"),
            }))
        },
        |stage| {
            let brake = Brake {
                by: id("ann"),
                reason: None,
                since_ms: 7,
            };
            stage.step(Event::Brake {
                participant: &id("dee"),
                brake: Some(brake),
            });
        },
    ];
    for (at, lose) in loses.iter().enumerate() {
        let mut stage = needs(2);
        approves(&mut stage, "dee");
        assert_eq!(by(&stage), ["dee"]);
        lose(&mut stage);
        assert!(by(&stage).is_empty(), "{at}");
        assert_eq!(
            approves(&mut stage, "ann"),
            [
                "store p1 approved by ann",
                "counted p1 by ann, of ann: 1 of 2",
                "ruled 9"
            ],
            "{at}"
        );
        assert_eq!(approves(&mut stage, "eve")[1], "approved p1 at one");
    }
}

#[test]
fn an_approver_that_is_not_in_the_topic_is_judged_by_what_the_topic_learns() {
    let full = Arc::new(Capabilities::full());
    let mut stage = needs(2);
    stage.decide_as(1, "zoe", Some(&full), APPROVE);
    stage.stored(1);
    assert_eq!(by(&stage), ["zoe"]);
    let approvers: Vec<_> = stage.topic.approvers().cloned().collect();
    assert_eq!(
        (approvers, stage.topic.approvers_of(op(1))),
        (vec![id("zoe")], vec![id("zoe")])
    );
    stage.regrant("zoe", &["chat"]);
    assert!(by(&stage).is_empty());
    stage.regrant("zoe", &["mcp/approve:*"]);
    assert_eq!(by(&stage), ["zoe"]);
}

#[test]
fn other_arguments_are_another_version_which_voids_what_was_approved() {
    let amend = |stage: &mut Stage, by: &str, bytes| {
        stage.step(Event::Decide {
            proposal: op(1),
            by: &id(by),
            outside: None,
            narrowing: None,
            decision: APPROVE,
            fulfilment: None,
            amended: Some(Amended {
                digest: OTHER,
                content: 1,
                bytes,
            }),
            ruling: 9,
        })
    };
    let mut stage = needs(2);
    approves(&mut stage, "ann");
    assert_eq!(
        shown(&amend(&mut stage, "dee", 11)),
        ["store p1 amended and approved by dee"]
    );
    assert_eq!(by(&stage), ["ann"], "not before it is on disk");
    assert_eq!(
        shown(&stage.stored(1)),
        ["counted p1 amended by dee, of dee: 1 of 2", "ruled 9"]
    );
    // What was shown before is no more what would run.
    assert_eq!(refused(&stage.decide(1, "ann", APPROVE)), Cause::Differs);
    let other = Decision::Approve {
        shown: OTHER,
        current: Some(OTHER),
    };
    assert_eq!(refused(&stage.decide(1, "dee", other)), Cause::Counted);
    assert_eq!(
        shown(&stage.decide(1, "ann", other)),
        ["store p1 decided running by ann"]
    );
    // A version that has no room, and one that is not on disk, change nothing.
    let mut stage = needs(2);
    approves(&mut stage, "ann");
    assert_eq!(
        refused(&amend(&mut stage, "dee", usize::MAX / 2)),
        Cause::Limit
    );
    amend(&mut stage, "dee", 11);
    stage.not_stored(1);
    assert_eq!(by(&stage), ["ann"]);
}

#[test]
fn a_decision_that_comes_while_an_approval_is_written_is_judged_after_it() {
    let mut stage = needs(2);
    stage.decide(1, "ann", APPROVE);
    assert!(shown(&stage.decide(1, "dee", APPROVE)).is_empty());
    assert_eq!(
        refused(&stage.decide(1, "eve", APPROVE)),
        Cause::Limit,
        "one waits"
    );
    let expected = [
        "counted p1 by ann, of ann: 1 of 2",
        "ruled 9",
        "store p1 decided running by dee",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    let mut stage = needs(2);
    stage.decide(1, "ann", APPROVE);
    stage.decide(1, "eve", APPROVE);
    assert_eq!(
        shown(&stage.decide(1, "dee", REJECT)),
        ["refuse decision 9 of eve on p1: decided"],
        "an approval that waits gives way"
    );
    assert_eq!(
        shown(&stage.decide(1, "bob", WITHDRAW)),
        ["refuse decision 9 of bob on p1: decided"],
        "a rejection that waits does not"
    );
    let expected = [
        "counted p1 by ann, of ann: 1 of 2",
        "ruled 9",
        "store p1 decided rejected by dee: too broad",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
    let mut stage = needs(2);
    stage.decide(1, "ann", APPROVE);
    stage.decide(1, "dee", REJECT);
    let expected = [
        "refuse decision 9 of ann on p1: log_unavailable",
        "store p1 decided rejected by dee: too broad",
    ];
    assert_eq!(shown(&stage.not_stored(1)), expected);
    // Its proposer leaves for good meanwhile.
    let mut stage = needs(2);
    stage.decide(1, "ann", APPROVE);
    stage.step(Event::Revoke {
        participant: &id("bob"),
    });
    stage.stored(1);
    stage.stored(1);
    assert_eq!(
        stage.topic.proposal(op(1)).unwrap().state,
        ProposalState::Withdrawn
    );
}

#[test]
fn an_envelope_that_is_one_of_several_approvals_reaches_no_server() {
    let mut stage = needs(2);
    let fulfils = |stage: &mut Stage| {
        shown(&stage.send(Envelope::request(ANN, "f1", &["one"], &[11, 12]).about("p1")))
    };
    assert_eq!(fulfils(&mut stage), ["store p1 approved by ann"]);
    assert_eq!(
        shown(&stage.stored(1)),
        ["drop 11", "counted p1 by ann, of ann: 1 of 2", "ruled 9"]
    );
    assert_eq!(approves(&mut stage, "dee")[1], "approved p1 at one");
    // As the last one it is carried out.
    let mut stage = needs(2);
    approves(&mut stage, "dee");
    assert_eq!(fulfils(&mut stage), ["store p1 decided running by ann"]);
    let expected = [
        "publish f1",
        "approved p1 at ",
        "ruled 9",
        "deliver 11 to one for p1",
    ];
    assert_eq!(shown(&stage.stored(1)), expected);
}

#[test]
fn approvals_come_back_after_a_restart_and_are_judged_anew() {
    let approval = |by: &str, outside: Option<&[&str]>, shown| CountedApproval {
        by: id(by),
        outside: outside.map(caps),
        shown,
        note: None,
    };
    let mut stage = stage();
    stage.caller(EVE, "eve", &["mcp/approve:tools/call:one_a"]);
    let all = vec![
        approval("zoe", None, SHOWN),
        approval("yan", Some(&["mcp/*"]), OTHER),
        approval("xia", Some(&["mcp/*"]), SHOWN),
    ];
    restore(&mut stage, 3, all);
    assert_eq!(
        by(&stage),
        ["xia"],
        "nothing is known of zoe yet, and yan saw another request"
    );
    stage.regrant("zoe", &["mcp/*"]);
    assert_eq!(by(&stage), ["zoe", "xia"]);
    assert_eq!(approves(&mut stage, "eve")[1], "approved p1 at one");
}

/// The name of an approver gets another bearer while its approval is being written, or waits behind
/// another decision: it counts for no next bearer.
#[test]
fn an_approval_of_a_former_bearer_that_is_not_on_disk_counts_for_none() {
    let mut stage = needs(2);
    let next_bearer = |stage: &mut Stage, link: u64| {
        stage.step(Event::Revoke {
            participant: &id("ann"),
        });
        stage.step(Event::Disown {
            participant: &id("ann"),
        });
        stage.caller(
            model::LinkId(link),
            "ann",
            &["mcp/request:tools/call:one_a"],
        );
    };
    stage.decide(1, "ann", APPROVE);
    next_bearer(&mut stage, 51);
    let refused = ["refuse decision 9 of ann on p1: not_admitted"];
    assert_eq!(shown(&stage.stored(1)), refused);
    assert!(by(&stage).is_empty());
    // The second one waits for the first to be written.
    stage.decide(1, "dee", APPROVE);
    stage.decide(1, "ann", APPROVE);
    next_bearer(&mut stage, 52);
    let counted = "counted p1 by dee, of dee: 1 of 2";
    assert_eq!(shown(&stage.stored(1)), [counted, "ruled 9", refused[0]]);
    assert_eq!(by(&stage), ["dee"]);
    let runs = approves(&mut stage, "ann");
    assert_eq!(runs[0], "store p1 decided running by ann");
}
