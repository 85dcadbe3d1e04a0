//! Tests of what is kept of the end of a proposal.

use std::sync::Arc;

use super::*;
use crate::by_rule::tests::Stage;
use crate::fixture::{OPENED, opened};
use crate::proposals::content::DecidingRule;

const PARAMS: &str = r#"{"name":"pay","arguments":{"amount":5}}"#;
const REJECTED: PastVerdict = PastVerdict::Rejected(RejectReason::Unsaid);

fn proposed(params: &str) -> OpenedProposal {
    OpenedProposal {
        params: Some(params.into()),
        tool: Some(r#"{ "name": "pay" }"#.into()),
        ..opened()
    }
}

fn decided(state: ProposalState, ruling: Option<Ruling>) -> ProposalChange<Live> {
    ProposalChange::Decided {
        by: ParticipantId::new("ann").unwrap(),
        state,
        reason: None,
        fulfilment: None,
        ruling: ruling.map(Arc::new),
    }
}

fn approved(edited: Option<&str>) -> ProposalChange<Live> {
    let ruling = Ruling::restored(edited.map(str::to_owned), None, RejectReason::Unsaid)
        .measured(true, Deliberation::default());
    decided(ProposalState::Running, Some(ruling))
}

fn ended(state: ProposalState) -> ProposalChange<Live> {
    ProposalChange::Ended {
        state,
        reason: None,
        answer: None,
    }
}

/// The decision that is kept of a change, in a topic without servers.
fn kept(opened: &OpenedProposal, change: &ProposalChange<Live>) -> Option<RuleEvidence> {
    let stage = Stage::restarted(&[], &[]);
    let decided = of_change(&stage.dispatch, OPENED, opened, change, 9)?;
    assert_eq!(decided.topic, "main");
    Some(decided.decision.as_ref().clone())
}

#[tokio::test]
async fn a_decision_is_kept_with_what_was_decided() {
    let opened = proposed(PARAMS);
    let decision = kept(&opened, &approved(None)).unwrap();
    assert_eq!((decision.operation, decision.at_ms), (OPENED, 9));
    assert_eq!(
        [&decision.tool.to, &decision.proposer, &decision.by].map(ParticipantId::as_str),
        ["bank", "scout", "ann"]
    );
    assert_eq!(&*decision.tool.target, "pay");
    assert_eq!(decision.definition, definition_digest(r#"{"name":"pay"}"#));
    assert_eq!(decision.server, None, "the topic has no such server");
    assert_eq!(decision.arguments.text(), r#"{"amount":5}"#);
    assert!(!decision.has_more && decision.redacted.is_empty());
    // Other arguments than those that were proposed.
    let edited = r#"{"name":"pay","arguments":{"amount":4},"note":1}"#;
    let decision = kept(&opened, &approved(Some(edited))).unwrap();
    assert_eq!(decision.arguments.text(), r#"{"amount":4}"#);
    assert!(decision.has_more);
    let unknown = OpenedProposal {
        tool: None,
        ..opened
    };
    assert_eq!(kept(&unknown, &approved(None)).unwrap().definition, None);
}

#[tokio::test]
async fn a_decision_weighs_what_the_gateway_knows_of_it() {
    let check = |change, by: &str, verdict, weight, rule: Option<&str>| {
        let decision = kept(&proposed(PARAMS), &change).unwrap();
        assert_eq!((decision.by.as_str(), decision.verdict), (by, verdict));
        assert_eq!(decision.weight, weight);
        assert_eq!(decision.rule.map(|rule| rule.to_string()).as_deref(), rule);
    };
    let (hasty, none) = (EvidenceWeight::Hasty, EvidenceWeight::None);
    let ruling = || Ruling::restored(None, None, RejectReason::Unsaid);
    let by_rule = || {
        ruling()
            .measured(true, Deliberation::default())
            .by_rule(DecidingRule {
                name: "r1.2".parse().unwrap(),
                charges: Vec::new(),
            })
    };
    let (running, rejected) = (ProposalState::Running, ProposalState::Rejected);
    let withdrawn = ProposalState::Withdrawn;
    let approval = PastVerdict::Approved;
    // The gateway has not measured how long it was shown.
    check(approved(None), "ann", approval, hasty, None);
    check(
        decided(running, Some(ruling())),
        "ann",
        approval,
        none,
        None,
    );
    let by_person = ruling().measured(true, Deliberation::default());
    check(
        decided(rejected, Some(by_person)),
        "ann",
        REJECTED,
        hasty,
        None,
    );
    check(
        decided(running, Some(by_rule())),
        "ann",
        approval,
        none,
        Some("r1.2"),
    );
    check(
        decided(rejected, Some(by_rule())),
        "ann",
        REJECTED,
        none,
        Some("r1.2"),
    );
    for chosen in [RejectReason::Arguments, RejectReason::Context] {
        let by_person =
            Ruling::restored(None, None, chosen).measured(true, Deliberation::default());
        check(
            decided(rejected, Some(by_person)),
            "ann",
            PastVerdict::Rejected(chosen),
            hasty,
            None,
        );
    }
    let by_person = ruling().measured(true, Deliberation::default());
    check(
        decided(withdrawn, Some(by_person)),
        "ann",
        PastVerdict::Withdrawn,
        none,
        None,
    );
    check(
        decided(withdrawn, None),
        "ann",
        PastVerdict::Withdrawn,
        none,
        None,
    );
    check(
        ended(ProposalState::Expired),
        "portmoot",
        PastVerdict::Expired,
        none,
        None,
    );
}

#[tokio::test]
async fn nothing_is_kept_of_what_no_rule_could_judge() {
    let whole = proposed(PARAMS);
    let several = OpenedProposal {
        to: vec!["bank".into(), "mint".into()],
        ..whole.clone()
    };
    let none = OpenedProposal {
        to: Vec::new(),
        ..whole.clone()
    };
    let no_target = OpenedProposal {
        context: None,
        ..whole.clone()
    };
    let twice = proposed(r#"{"name":"pay","arguments":{"a":1,"a":2}}"#);
    for opened in [several, none, no_target, twice] {
        assert_eq!(kept(&opened, &approved(None)), None, "{opened:?}");
    }
    // The end of a call that was approved is no second decision.
    for state in [
        ProposalState::Completed,
        ProposalState::Failed,
        ProposalState::Withdrawn,
    ] {
        assert_eq!(kept(&whole, &ended(state)), None);
    }
    assert_eq!(kept(&whole, &ProposalChange::Opened), None);
}

#[test]
fn values_of_secret_members_are_not_kept() {
    let check = |text: &str, shown: &str, redacted: &[&str]| {
        let arguments = Arguments::read(text.as_bytes()).unwrap();
        let redaction = Redaction::new(&["token", "PIN"]);
        let kept = KeptArguments::of(arguments, &redaction).unwrap();
        assert_eq!(kept.arguments.text(), shown);
        let pointers: Vec<&str> = kept.redacted.iter().map(Pointer::as_str).collect();
        assert_eq!(pointers, redacted);
    };
    check(r#"{"a":1}"#, r#"{"a":1}"#, &[]);
    check(
        r#"{"a":1,"p_i_n":1234}"#,
        r#"{"a":1,"p_i_n":"[redacted]"}"#,
        &["/p_i_n"],
    );
    check(
        r#"{"token":{"id":1,"of":"x"},"z":{"token":2}}"#,
        r#"{"token":"[redacted]","z":{"token":"[redacted]"}}"#,
        &["/token", "/z/token"],
    );
    check(
        r#"{"list":[{"token":1},2]}"#,
        r#"{"list":[{"token":"[redacted]"},2]}"#,
        &["/list"],
    );
}
