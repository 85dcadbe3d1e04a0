//! Tests of the proposals of the journal: records, ends, limits, digests, and what a compaction
//! writes.

mod closed;

use proptest::prelude::*;

use super::*;
use crate::fixture;

const LINES: &str = r#"{"record":"proposal_opened","id":"p","topic":"main","by":"scout","to":["files"],"method":"tools/call","context":"write_file","envelope":"e1","era":"modern","params":"{}","tool":"{\"name\":\"write_file\"}","digest":"ee","held":true,"door":"d","at_ms":7,"expires_ms":8}
{"record":"proposal_opened","id":"q","topic":"main","by":"scout","method":"tools/list","envelope":"e2","digest":"ff","at_ms":9,"expires_ms":10}
{"record":"proposal_decided","id":"p","by":"ana","decision":"approved","reason":"ok","digest":"ee","params":"{}","envelope":"e3","at_ms":11}
{"record":"proposal_decided","id":"q","by":"ana","decision":"rejected","at_ms":12}
{"record":"proposal_decided","id":"r","by":"scout","decision":"withdrawn","at_ms":13}
{"record":"proposal_decided","id":"s","by":"rules","rule":"r1.2","author":"ann","decision":"approved","envelope":"e4","at_ms":13}
{"record":"proposal_ended","id":"p","state":"completed","reason":"done","answer":"{}","at_ms":14}
{"record":"proposal_ended","id":"q","state":"expired","at_ms":15}
{"record":"plan_opened","steps":[{"id":"t","topic":"main","by":"scout","method":"tools/call","envelope":"e5","digest":"gg","held":true,"plan":{"steps":["t","u"],"step":1},"at_ms":9,"expires_ms":10},{"id":"u","topic":"main","by":"scout","method":"tools/call","envelope":"e6","digest":"hh","held":true,"plan":{"steps":["t","u"],"step":2},"at_ms":9,"expires_ms":10}]}
{"record":"proposals_closed","digests":[[16,"000102030405060708090a0b0c0d0e0f"],[17,"ffffffffffffffffffffffffffffffff"]]}
"#;

#[test]
fn every_record_has_its_golden_line() {
    for line in LINES.lines() {
        let record: ProposalRecord = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn a_decision_by_a_rule_whose_name_cannot_be_read_is_no_record() {
    let line = r#"{"record":"proposal_decided","id":"s","by":"rules","rule":"r1","author":"ann","decision":"approved","at_ms":13}"#;
    assert!(serde_json::from_str::<ProposalRecord>(line).is_err());
}

impl KeptProposals {
    /// The unexpired digests of all topics.
    fn closed(&self, now_ms: u64) -> impl Iterator<Item = (u64, u128)> {
        self.closed.unexpired(now_ms, |_| true)
    }
}

fn folded(records: &[ProposalRecord]) -> KeptProposals {
    let mut kept = KeptProposals::default();
    records.iter().for_each(|record| kept.apply(record));
    kept
}

/// Tests that what a compaction at the beginning of time writes rebuilds the state.
#[track_caller]
fn rebuilds(kept: &KeptProposals) {
    let records = kept.clone().records(0);
    assert_eq!(records.len(), kept.live());
    assert_eq!(folded(&records), *kept);
}

fn opened(id: &str) -> ProposalRecord {
    opened_by("scout", id)
}

fn opened_by(by: &str, id: &str) -> ProposalRecord {
    ProposalRecord::ProposalOpened(OpenedProposal {
        id: id.into(),
        by: by.into(),
        envelope: format!("envelope-{id}"),
        params: Some("{\"name\":\"pay\",\"n\":1.50}".into()),
        held: true,
        ..fixture::opened()
    })
}

fn decided(id: &str, decision: DecisionRecord, by: &str) -> ProposalRecord {
    ProposalRecord::ProposalDecided(DecidedProposal {
        rule: None,
        author: None,
        id: id.into(),
        by: by.into(),
        decision,
        reason: None,
        note: None,
        code: None,
        digest: None,
        params: None,
        envelope: None,
        at_ms: 2,
    })
}

fn ended(id: &str, state: &str) -> ProposalRecord {
    ProposalRecord::ProposalEnded(EndRecord {
        id: id.into(),
        state: state.into(),
        reason: None,
        answer: None,
        at_ms: 3,
    })
}

#[test]
fn a_proposal_ends_once_and_its_first_decision_counts() {
    use DecisionRecord::{Approved, Rejected, Withdrawn};
    let check = |records: &[ProposalRecord], open: bool, by: Option<&str>, end: Option<&str>| {
        let state = folded(&[&[opened("p")], records].concat());
        assert_eq!(state.open().count(), usize::from(open), "{records:?}");
        let known = state.get("p").unwrap();
        assert_eq!(
            known.decided.as_ref().map(|decided| decided.by.as_str()),
            by,
            "{records:?}"
        );
        assert_eq!(
            known.ended.as_ref().map(|ended| ended.state.as_str()),
            end,
            "{records:?}"
        );
    };
    check(&[], true, None, None);
    check(&[opened("p")], true, None, None);
    check(&[decided("p", Approved, "ana")], true, Some("ana"), None);
    check(
        &[decided("p", Approved, "ana"), decided("p", Rejected, "bob")],
        true,
        Some("ana"),
        None,
    );
    check(
        &[decided("p", Approved, "ana"), ended("p", "completed")],
        false,
        Some("ana"),
        Some("completed"),
    );
    check(
        &[decided("p", Rejected, "ana"), decided("p", Approved, "bob")],
        false,
        Some("ana"),
        None,
    );
    check(
        &[decided("p", Withdrawn, "scout"), ended("p", "withdrawn")],
        false,
        Some("scout"),
        None,
    );
    check(
        &[ended("p", "expired"), decided("p", Approved, "ana")],
        false,
        None,
        Some("expired"),
    );
    check(
        &[ended("p", "expired"), ended("p", "failed"), opened("p")],
        false,
        None,
        Some("expired"),
    );
}

#[test]
fn a_plan_is_one_record_and_each_step_ends_by_itself() {
    let step = |id: &str, step| {
        let ProposalRecord::ProposalOpened(one) = opened(id) else {
            unreachable!()
        };
        let steps = vec!["p".to_owned(), "q".to_owned()];
        OpenedProposal {
            plan: Some(PlanRecord { steps, step }),
            ..one
        }
    };
    let plan = OpenedPlan {
        steps: vec![step("p", 1), step("q", 2)],
    };
    let mut kept = folded(&[ProposalRecord::PlanOpened(plan)]);
    assert_eq!(kept.open().count(), 2);
    rebuilds(&kept);
    kept.apply(&decided("p", DecisionRecord::Approved, "ana"));
    kept.apply(&ended("p", "completed"));
    rebuilds(&kept);
    let state = |id| kept.get(id).unwrap().ended_state();
    assert_eq!(
        (state("p"), state("q")),
        (Some(ProposalState::Completed), None)
    );
    let place = kept.get("q").unwrap().opened.plan.as_ref().unwrap();
    assert!(place.place().is_none(), "these are no ids of operations");
}

#[test]
fn the_last_ended_proposals_are_kept_in_full() {
    let mut state = KeptProposals::default();
    for at in 0..ENDED_PROPOSALS_MAX + 10 {
        state.apply(&opened(&at.to_string()));
        state.apply(&ended(&at.to_string(), "expired"));
    }
    assert_eq!(state.ended().count(), ENDED_PROPOSALS_MAX);
    assert!(state.get("9").is_none());
    assert!(state.get("10").is_some());
    assert_eq!(state.closed(0).count(), 10);
    assert_eq!(
        state.live(),
        2 * ENDED_PROPOSALS_MAX + 1,
        "one record holds all digests"
    );
}

#[test]
fn ended_proposals_hold_no_more_text_than_the_limit() {
    let mut state = KeptProposals::default();
    for at in 0..5 {
        let ProposalRecord::ProposalOpened(big) = opened(&at.to_string()) else {
            unreachable!()
        };
        let params = Some("x".repeat(ENDED_PROPOSALS_BYTES_MAX / 4));
        state.apply(&ProposalRecord::ProposalOpened(OpenedProposal {
            params,
            ..big
        }));
        state.apply(&ended(&at.to_string(), "expired"));
    }
    assert_eq!(state.ended().count(), 4);
}

#[test]
fn ended_proposals_of_one_participant_push_out_no_others() {
    let mut state = KeptProposals::default();
    let end = |state: &mut KeptProposals, by: &str, id: &str, bytes: usize| {
        let ProposalRecord::ProposalOpened(one) = opened_by(by, id) else {
            unreachable!()
        };
        state.apply(&ProposalRecord::ProposalOpened(OpenedProposal {
            params: Some("x".repeat(bytes)),
            ..one
        }));
        state.apply(&ended(id, "expired"));
    };
    end(&mut state, "other", "a", 1);
    end(&mut state, "other", "b", 1);
    for number in 0..ENDED_PROPOSALS_MAX + 8 {
        end(&mut state, "greedy", &number.to_string(), 1);
        // Guests have other names each time, and one share together.
        end(
            &mut state,
            &format!("anonymous-{number}"),
            &format!("guest {number}"),
            1,
        );
    }
    assert_eq!(state.ended().count(), ENDED_PROPOSALS_MAX);
    (0..5).for_each(|number| {
        end(
            &mut state,
            "greedy",
            &format!("long {number}"),
            ENDED_PROPOSALS_BYTES_MAX / 2,
        )
    });
    assert!(state.get("a").is_some() && state.get("b").is_some());
    rebuilds(&state);
}

#[test]
fn each_topic_keeps_as_many_ended_proposals_as_it_has_while_it_runs() {
    let mut kept = KeptProposals::default();
    for topic in ["main", "side"] {
        for at in 0..=ENDED_PROPOSALS_MAX {
            let id = format!("{topic} {at}");
            let ProposalRecord::ProposalOpened(one) = opened(&id) else {
                unreachable!()
            };
            kept.apply(&ProposalRecord::ProposalOpened(OpenedProposal {
                topic: topic.into(),
                ..one
            }));
            kept.apply(&ended(&id, "expired"));
        }
    }
    assert_eq!(kept.ended().count(), 2 * ENDED_PROPOSALS_MAX);
    for topic in ["main", "side"] {
        assert!(kept.get(&format!("{topic} 0")).is_none());
        assert!(kept.get(&format!("{topic} 1")).is_some());
    }
    rebuilds(&kept);
}

fn any_record() -> impl Strategy<Value = ProposalRecord> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let decision = prop::sample::select(vec![
        DecisionRecord::Approved,
        DecisionRecord::Rejected,
        DecisionRecord::Withdrawn,
    ]);
    prop_oneof![
        id.clone().prop_map(opened),
        (id.clone(), decision).prop_map(|(id, decision)| decided(id, decision, "ana")),
        id.prop_map(|id| ended(id, "completed")),
        prop::collection::vec((1..u64::MAX, any::<u128>()), 0..4)
            .prop_map(|digests| ProposalRecord::ProposalsClosed(ClosedProposals { digests })),
    ]
}

proptest! {
    #[test]
    fn compacted_records_rebuild_the_same_state(records in prop::collection::vec(any_record(), 0..60)) {
        rebuilds(&folded(&records));
    }
}
