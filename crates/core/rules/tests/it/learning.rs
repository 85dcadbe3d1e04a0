//! Properties of the learner: no candidate covers a rejection, and each is a rule that reads back.

use proptest::prelude::*;
use rules::{
    Acceptance, Arguments, EvidenceWeight, Fit, Learner, LearnerNews, PastVerdict, RejectReason,
    ReplayStanding, RuleCandidate, RuleEvidence, RuleSet, ValueTest, offer, parse_rules,
};

use crate::support::{NOON_MS, approval, participant};

const HOUR_MS: u64 = 3_600_000;

/// A call of a story, and its decision.
#[derive(Debug, Clone)]
struct Made {
    arguments: String,
    is_rejected: bool,
    is_hasty: bool,
    proposer: &'static str,
}

/// A story whose values are of one sort, so that something is learned.
fn story() -> impl Strategy<Value = Vec<Made>> {
    let sort = prop_oneof![
        Just("[1-9]|[1-2][0-9]"),
        Just("[1-9]|[1-9]00"),
        Just("\"(A|B)-[0-9]{1,3}\""),
        Just("\"/srv/docs/([ab]/)?[a-c][0-9]\\.md\""),
        Just("\\[\"(x|y)\"(,\"(x|y|z)\"){0,2}\\]"),
        Just("true|false|null"),
    ];
    sort.prop_flat_map(|sort| prop::collection::vec(made(sort), 0..120))
}

fn made(sort: &'static str) -> impl Strategy<Value = Made> {
    let to = prop_oneof![18 => Just("acme"), 4 => Just("bolt"), 1 => Just("evil")];
    let proposer = prop_oneof![9 => Just("scout"), 1 => Just("bo")];
    (sort, to, 0..80_u32, 0..9_u32, proposer).prop_map(|(value, to, coin, haste, proposer)| Made {
        arguments: format!("{{\"v\":{value},\"to\":\"{to}\"}}"),
        is_rejected: coin == 0 || to == "evil",
        is_hasty: haste == 0,
        proposer,
    })
}

fn evidence(at: usize, made: &Made) -> RuleEvidence {
    let at = u64::try_from(at).unwrap();
    let mut decision = approval(at + 1, &made.arguments);
    decision.at_ms = NOON_MS + at * HOUR_MS;
    decision.proposer = participant(made.proposer);
    if made.is_rejected {
        decision.verdict = PastVerdict::Rejected(RejectReason::Unsaid);
    }
    if made.is_hasty {
        decision.weight = EvidenceWeight::Hasty;
    }
    decision
}

/// Checks that a candidate covers no rejection, and claims no more approvals than there are.
fn check(candidate: &RuleCandidate, decided: &[RuleEvidence]) -> Result<(), TestCaseError> {
    let covered = decided
        .iter()
        .filter(|one| candidate.when.fit_closed(&one.arguments) != Fit::Failed);
    for one in covered.clone() {
        prop_assert!(!one.verdict.is_rejection(), "{candidate:?}\n{one:?}");
    }
    let own = covered.filter(|one| one.teaches() && one.proposer == candidate.group.proposer);
    prop_assert!(own.count() >= usize::try_from(candidate.approvals()).unwrap());
    Ok(())
}

/// Checks the rule that is offered for a candidate.
fn check_offer(candidate: &RuleCandidate, decided: &[RuleEvidence]) -> Result<(), TestCaseError> {
    let acceptance = Acceptance {
        name: "r1.1".parse().unwrap(),
        author: participant("ann"),
        at_ms: NOON_MS,
        expires_ms: None,
        destructive: false,
    };
    let Some(offer) = offer(candidate, &acceptance, decided).unwrap() else {
        return Err(TestCaseError::fail("no offer"));
    };
    prop_assert_eq!(offer.replay.count(ReplayStanding::Contradicts), 0);
    let read = parse_rules(&offer.rule.text()).unwrap();
    prop_assert_eq!(&read[..], std::slice::from_ref(&offer.rule));
    prop_assert_eq!(read[0].sentence(), offer.rule.sentence());
    // Calls that are shown as inside of the rule are.
    for made_up in &offer.made_up {
        let arguments = Arguments::read(made_up.as_bytes()).unwrap();
        prop_assert_eq!(offer.rule.when.fit_closed(&arguments), Fit::Held);
    }
    for steps in &offer.steps {
        let is_wider = |one: &ValueTest| one.is_wider_than(&steps.chosen);
        prop_assert!(steps.wider.as_ref().is_none_or(is_wider));
        let is_tighter = |one: &ValueTest| steps.chosen.is_wider_than(one);
        prop_assert!(steps.tighter.as_ref().is_none_or(is_tighter));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_candidate_covers_a_rejection(story in story()) {
        let mut learner = Learner::default();
        let mut decided = Vec::new();
        for (at, made) in story.iter().enumerate() {
            let one = evidence(at, made);
            decided.push(one.clone());
            for news in learner.take(one, &RuleSet::default()) {
                if let LearnerNews::Frozen(candidate) | LearnerNews::Ready(candidate) = news {
                    check(&candidate, &decided)?;
                }
            }
        }
        for candidate in learner.candidates() {
            check(candidate, &decided)?;
            check_offer(candidate, &decided)?;
        }
    }
}
