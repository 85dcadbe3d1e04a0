use super::*;
use crate::evidence::{EvidenceWeight, RejectReason};
use crate::fixture::{NOON_MS, approval, participant};
use crate::learner::Learner;
use crate::rule_set::RuleSet;

/// The approval of this amount.
fn paid(operation: u64, amount: u64) -> RuleEvidence {
    approval(operation, &format!(r#"{{"amount":{amount}}}"#))
}

fn used(operation: u64, amount: u64, rule: &CallRule) -> RuleEvidence {
    RuleEvidence {
        rule: Some(rule.name.clone()),
        weight: EvidenceWeight::None,
        ..paid(operation, amount)
    }
}

/// Twenty approvals of ten amounts from 10 to 100.
fn approvals() -> Vec<RuleEvidence> {
    let all = (0..20).map(|at| paid(at + 1, (at * 7) % 10 * 10 + 10));
    all.collect()
}

fn learned(evidence: &[RuleEvidence]) -> Vec<RuleCandidate> {
    let mut learner = Learner::default();
    for one in evidence {
        learner.take(one.clone(), &RuleSet::default());
    }
    learner.ready().cloned().collect()
}

fn rule_of(evidence: &[RuleEvidence]) -> CallRule {
    let acceptance = Acceptance {
        name: "learned-1.1".parse().unwrap(),
        author: participant("ann"),
        at_ms: NOON_MS + 3 * DAY_MS,
        expires_ms: None,
        destructive: false,
    };
    let times: Vec<u64> = evidence.iter().map(|one| one.at_ms).collect();
    learned(evidence)[0].rule(&acceptance, &times).unwrap()
}

fn times() -> RenewalTimes {
    RenewalTimes {
        since_ms: NOON_MS + 3 * DAY_MS,
        now_ms: NOON_MS + 20 * DAY_MS,
        expires_ms: NOON_MS + 34 * DAY_MS,
    }
}

#[test]
fn a_rule_is_renewed_with_its_uses_and_what_was_rejected_beside_it() {
    let mut past = approvals();
    let rule = rule_of(&past);
    past.extend((0..6).map(|at| used(100 + at, 20, &rule)));
    past.push(used(110, 33, &rule));
    past.push(RuleEvidence {
        verdict: PastVerdict::Rejected(RejectReason::Arguments),
        ..paid(120, 400)
    });
    let ready = learned(&past);
    let candidate = candidate_of(&rule, &ready);
    let RenewalOffer { offer, changes } =
        renewal(&rule, candidate, times(), &past).unwrap().unwrap();
    assert_eq!(offer.rule.name.to_string(), "learned-1.2");
    assert_eq!(offer.digest, offer.rule.digest());
    assert_eq!(
        (&offer.rule.when, &offer.rule.guards),
        (&rule.when, &rule.guards)
    );
    // Twenty approvals and seven uses.
    assert_eq!(offer.rule.uses, Some(9));
    assert_eq!(offer.rule.expires_ms, Some(times().expires_ms));
    assert_eq!(
        (changes.breadth, changes.rejections, changes.different),
        (RenewalBreadth::Same, 1, 2)
    );
    // The one that was never approved by hand comes first.
    let shown: Vec<(u32, &str)> = changes
        .uses
        .iter()
        .map(|one| (one.times, one.arguments.text()))
        .collect();
    assert_eq!(shown, [(1, r#"{"amount":33}"#), (6, r#"{"amount":20}"#)]);
}

#[test]
fn a_renewal_is_wider_where_more_was_approved_since_and_never_by_itself() {
    let mut past = approvals();
    let rule = rule_of(&past);
    let wider = (0..24).map(|at| paid(at + 200, (at * 7) % 12 * 10 + 10));
    past.extend(wider);
    let ready = learned(&past);
    let candidate = candidate_of(&rule, &ready);
    let RenewalOffer { offer, changes } =
        renewal(&rule, candidate, times(), &past).unwrap().unwrap();
    assert_eq!(changes.breadth, RenewalBreadth::Wider);
    let [test] = changes.tests.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(test.after.words(), "is a whole number from 10 to 120");
    assert!(
        offer.rule.sentence().contains("from 10 to 120"),
        "{}",
        offer.rule.sentence()
    );
    // Without a candidate the conditions stay.
    let same = renewal(&rule, None, times(), &past).unwrap().unwrap();
    assert_eq!(
        (same.offer.rule.when, same.changes.breadth),
        (rule.when, RenewalBreadth::Same)
    );
}

#[test]
fn nothing_is_renewed_of_which_no_approval_is_kept() {
    let rule = rule_of(&approvals());
    let uses = [used(100, 20, &rule)];
    assert_eq!(renewal(&rule, None, times(), &uses), Ok(None));
}

#[test]
fn a_rule_that_repeats_a_call_does_not_narrow_another() {
    let rule = rule_of(&approvals());
    let repeats: Vec<RuleEvidence> = (1..=3).map(|at| paid(at, 20)).collect();
    let ready = learned(&repeats);
    assert!(!ready.is_empty());
    assert_eq!(candidate_of(&rule, &ready), None);
}

#[test]
fn a_rule_is_renewed_near_its_end_and_near_that_of_its_budget() {
    let rule = CallRule {
        uses: Some(9),
        expires_ms: Some(NOON_MS),
        ..rule_of(&approvals())
    };
    let days_ms = RENEWAL_DAYS * DAY_MS;
    let early_ms = NOON_MS - days_ms - 1;
    assert!(!rule.nears_its_end(5, early_ms) && rule.nears_its_end(6, early_ms));
    assert!(rule.nears_its_end(9, early_ms) && rule.nears_its_end(0, early_ms + 1));
    let once = CallRule {
        uses: Some(1),
        ..rule
    };
    assert!(!once.nears_its_end(0, early_ms) && once.nears_its_end(1, early_ms));
}
