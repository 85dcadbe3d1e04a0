use model::Digest;

use super::*;
use crate::arguments::Arguments;
use crate::candidate::Acceptance;
use crate::evidence::EvidenceWeight;
use crate::evidence_log::EVIDENCE_MAX;
use crate::fixture::{NOON_MS, REJECTED, approval, participant};
use crate::value_test::ValueTest;

/// A history that is fed to a learner, one decision after the other, some of them on each day.
struct Story {
    learner: Learner,
    known: RuleSet,
    news: Vec<LearnerNews>,
    decided: u64,
    a_day: u64,
}

impl Story {
    fn new() -> Self {
        Self {
            learner: Learner::default(),
            known: RuleSet::default(),
            news: Vec::new(),
            decided: 0,
            a_day: 12,
        }
    }

    fn decision(&mut self, arguments: &str, verdict: PastVerdict) -> RuleEvidence {
        self.decided += 1;
        RuleEvidence {
            at_ms: NOON_MS + self.decided / self.a_day * DAY_MS + self.decided,
            verdict,
            ..approval(self.decided, arguments)
        }
    }

    fn take(&mut self, evidence: RuleEvidence) {
        let news = self.learner.take(evidence, &self.known);
        self.news.extend(news);
    }

    fn approve(&mut self, arguments: &str) {
        let evidence = self.decision(arguments, PastVerdict::Approved);
        self.take(evidence);
    }

    fn reject(&mut self, arguments: &str) {
        let evidence = self.decision(arguments, REJECTED);
        self.take(evidence);
    }

    /// Approves payments of these amounts to one account.
    fn pay(&mut self, amounts: impl IntoIterator<Item = u64>) {
        for amount in amounts {
            self.approve(&format!(r#"{{"amount":{amount},"to":"acme"}}"#));
        }
    }

    fn general(&self) -> Vec<String> {
        let general = self
            .learner
            .candidates()
            .filter(|one| one.sort == CandidateSort::General);
        general.map(words).collect()
    }

    fn ready(&self) -> Vec<String> {
        self.learner.ready().map(words).collect()
    }

    fn quarantined(&self) -> Option<QuarantineCause> {
        self.news.iter().find_map(|news| match news {
            LearnerNews::Quarantined(_, cause) => Some(*cause),
            LearnerNews::Suspends(_) | LearnerNews::Frozen(_) | LearnerNews::Ready(_) => None,
        })
    }
}

fn words(candidate: &RuleCandidate) -> String {
    let tests: Vec<String> = candidate
        .when
        .iter()
        .map(|(pointer, test)| format!("{} {}", pointer.words(), test.words()))
        .collect();
    tests.join(", ")
}

const RANGE: &str = "amount is a whole number from 1 to 10, to is \"acme\"";

#[test]
fn ten_approvals_freeze_and_ten_more_on_two_days_make_an_offer() {
    let mut story = Story::new();
    story.pay(1..=9);
    assert_eq!(story.general(), [""; 0]);
    story.pay([10]);
    assert_eq!(story.general(), [RANGE]);
    assert_eq!(story.ready(), [""; 0]);
    story.pay([5, 4, 6, 3, 7, 2, 8, 1, 9]);
    assert_eq!(story.ready(), [""; 0], "nine in its shadow");
    story.pay([10]);
    assert_eq!(story.ready(), [RANGE]);
    assert!(
        matches!(story.news.last(), Some(LearnerNews::Ready(_))),
        "{:?}",
        story.news
    );
}

#[test]
fn a_single_day_makes_no_offer() {
    let mut story = Story::new();
    story.a_day = 1_000;
    story.pay((1..=10).chain([5, 4, 6, 3, 7, 2, 8, 1, 9, 10]));
    assert_eq!(story.general(), [RANGE]);
    assert_eq!(story.ready(), [""; 0]);
}

#[test]
fn three_equal_calls_make_an_exact_offer() {
    let mut story = Story::new();
    story.pay([7, 7]);
    assert_eq!(story.ready(), [""; 0]);
    story.pay([7]);
    assert_eq!(story.ready(), ["amount is 7, to is \"acme\""]);
}

#[test]
fn two_equal_calls_make_an_exact_offer_where_many_like_them_were_approved_and_none_rejected() {
    let notes = |story: &mut Story, count: u64| {
        for at in 0..count {
            story.approve(&format!(r#"{{"note":"some words {at}"}}"#));
        }
        story.approve(r#"{"note":"some words 0"}"#);
    };
    let exact = "note is \"some words 0\"";
    let mut proven = Story::new();
    notes(&mut proven, 9);
    assert_eq!(proven.ready(), [exact]);
    let mut young = Story::new();
    notes(&mut young, 8);
    assert_eq!(young.ready(), [""; 0]);
    // One rejection, of whichever call of the tool and proposer, and it takes three.
    let mut doubted = Story::new();
    let mut rejected = doubted.decision(r#"{"amount":9}"#, REJECTED);
    rejected.proposer = participant("bo");
    doubted.take(rejected);
    notes(&mut doubted, 20);
    assert_eq!(doubted.ready(), [""; 0]);
    doubted.approve(r#"{"note":"some words 0"}"#);
    assert_eq!(doubted.ready(), [exact]);
}

#[test]
fn a_wider_candidate_begins_its_shadow_anew() {
    let mut story = Story::new();
    story.pay((1..=10).chain([5, 4, 6, 3, 7, 2, 8, 1]));
    story.pay([11]);
    let wider = "amount is a whole number from 1 to 11, to is \"acme\"";
    assert_eq!(story.general(), [wider]);
    let shadow = |story: &Story| story.learner.candidates().map(|one| one.shadow).max();
    assert_eq!(shadow(&story), Some(0));
}

#[test]
fn extremes_alone_make_no_range() {
    let mut story = Story::new();
    story.pay((1..=9).chain([500]));
    assert_eq!(story.general(), [""; 0]);
}

#[test]
fn a_rejection_inside_a_candidate_ends_it_and_the_learning_of_its_tool() {
    let mut story = Story::new();
    story.pay(1..=10);
    story.reject(r#"{"amount":5,"to":"acme"}"#);
    assert_eq!(story.quarantined(), Some(QuarantineCause::DecidedBothWays));
    story.pay(1..=10);
    assert_eq!(story.learner.candidates().count(), 0);
    let mut story = Story::new();
    story.pay((1..=10).map(|at| at * 10));
    story.reject(r#"{"amount":55,"to":"acme"}"#);
    assert_eq!(story.quarantined(), Some(QuarantineCause::CandidateRefuted));
    // Nothing is learned for 30 days, then it begins anew.
    story.decided += 31 * story.a_day;
    story.pay(1..=10);
    assert_eq!(story.general(), [RANGE]);
}

#[test]
fn a_reason_outside_of_the_arguments_ends_the_learning_of_its_tool() {
    let mut story = Story::new();
    story.pay(1..=10);
    let evidence = story.decision(
        r#"{"amount":9000,"to":"x"}"#,
        PastVerdict::Rejected(RejectReason::Context),
    );
    story.take(evidence);
    assert_eq!(story.quarantined(), Some(QuarantineCause::Context));
}

#[test]
fn a_rejection_of_any_proposer_narrows_a_candidate() {
    let mut story = Story::new();
    // A number in the range was rejected for another proposer, before the candidate took its form.
    let mut evidence = story.decision(
        r#"{"amount":6,"to":"acme"}"#,
        PastVerdict::Rejected(RejectReason::Arguments),
    );
    evidence.proposer = participant("bo");
    story.take(evidence);
    let frequent = [1, 2, 3, 4, 5, 7, 8, 9];
    story.pay(
        [10, 11]
            .into_iter()
            .chain([frequent; 4].into_iter().flatten()),
    );
    let general = story.general();
    let listed = "amount is 1, 2, 3, 4, 5, 7, 8 or 9, to is \"acme\"";
    assert!(general.iter().any(|one| one == listed), "{general:?}");
    assert!(
        general.iter().all(|one| !one.contains("whole number")),
        "{general:?}"
    );
    assert_eq!(story.quarantined(), None);
}

#[test]
fn a_member_splits_what_it_decides() {
    let mut story = Story::new();
    for at in 0..20_u64 {
        story.pay([at % 10 + 1]);
        story.approve(r#"{"amount":900000,"to":"free text"}"#);
    }
    assert!(
        story.general().iter().any(|one| one == RANGE),
        "{:?}",
        story.general()
    );
}

#[test]
fn only_deliberate_approvals_of_others_teach() {
    let unfit: [fn(&mut RuleEvidence); 5] = [
        |one| one.weight = EvidenceWeight::Hasty,
        |one| one.weight = EvidenceWeight::None,
        |one| one.by = one.proposer.clone(),
        |one| one.has_more = true,
        |one| one.redacted = one.members(),
    ];
    for change in unfit {
        let mut story = Story::new();
        for _ in 0..30 {
            let mut evidence = story.decision(r#"{"amount":5,"to":"acme"}"#, PastVerdict::Approved);
            change(&mut evidence);
            story.take(evidence);
        }
        assert_eq!(story.learner.candidates().count(), 0);
    }
}

#[test]
fn a_hasty_rejection_counts_and_a_programs_does_not() {
    for (weight, expect) in [
        (
            EvidenceWeight::Hasty,
            Some(QuarantineCause::DecidedBothWays),
        ),
        (EvidenceWeight::None, None),
    ] {
        let mut story = Story::new();
        story.pay(1..=10);
        let mut evidence = story.decision(r#"{"amount":5,"to":"acme"}"#, REJECTED);
        evidence.weight = weight;
        story.take(evidence);
        assert_eq!(story.quarantined(), expect);
    }
}

#[test]
fn other_definitions_servers_proposers_and_members_are_other_groups() {
    let others: [fn(&mut RuleEvidence); 4] = [
        |one| one.definition = Some(Digest([9; 32])),
        |one| one.server = Some(Digest([9; 32])),
        |one| one.proposer = participant("bo"),
        |one| one.arguments = Arguments::read(br#"{"amount":3,"to":"acme","x":1}"#).unwrap(),
    ];
    for change in others {
        let mut story = Story::new();
        story.pay(1..=9);
        let mut evidence = story.decision(r#"{"amount":10,"to":"acme"}"#, PastVerdict::Approved);
        change(&mut evidence);
        story.take(evidence);
        assert_eq!(story.general(), [""; 0]);
    }
}

#[test]
fn a_session_that_passes_midnight_is_one_day() {
    let mut story = Story::new();
    // Noon of the first day, then the shadow around the midnight twelve days later.
    story.pay(1..=10);
    let midnight_ms = NOON_MS + DAY_MS / 2 + 12 * DAY_MS;
    let mut pay = |count: u64, at_ms: u64| {
        for at in 0..count {
            let arguments = format!(r#"{{"amount":{},"to":"acme"}}"#, at % 10 + 1);
            let mut evidence = story.decision(&arguments, PastVerdict::Approved);
            evidence.at_ms = at_ms + at;
            story.take(evidence);
        }
        story.ready()
    };
    assert_eq!(pay(10, midnight_ms - 60_000), [""; 0]);
    assert_eq!(pay(10, midnight_ms + 60_000), [""; 0]);
    assert_eq!(pay(1, midnight_ms + DAY_MS / 2), [RANGE]);
}

#[test]
fn a_redacted_rejection_may_lie_in_a_rule() {
    let ids = |story: &mut Story| {
        for at in 0..10 {
            story.approve(&format!(r#"{{"id":"AB-{at}"}}"#));
        }
    };
    let rejected = |story: &mut Story| {
        let mut evidence = story.decision(r#"{"id":"[redacted]"}"#, REJECTED);
        evidence.redacted = evidence.members();
        story.take(evidence);
    };
    let mut story = Story::new();
    ids(&mut story);
    let rule = accepted(&story);
    story.known = RuleSet::new([rule.clone()]).unwrap();
    rejected(&mut story);
    assert_eq!(story.quarantined(), Some(QuarantineCause::CandidateRefuted));
    assert!(story.news.contains(&LearnerNews::Suspends(rule.name)));
    let mut story = Story::new();
    rejected(&mut story);
    ids(&mut story);
    assert_eq!(story.general(), [""; 0]);
}

#[test]
fn a_flood_of_undecided_calls_drives_no_rejection_out() {
    let mut story = Story::new();
    story.a_day = 10_000;
    story.reject(r#"{"amount":5,"to":"acme"}"#);
    for _ in 0..=EVIDENCE_MAX {
        let mut evidence = story.decision("{}", PastVerdict::Withdrawn);
        evidence.weight = EvidenceWeight::None;
        story.take(evidence);
    }
    assert_eq!(story.learner.evidence().count(), EVIDENCE_MAX);
    story.pay([1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
    assert_eq!(story.general(), [""; 0]);
}

#[test]
fn a_proposer_named_like_a_pattern_makes_no_rule() {
    for (proposer, target) in [("*", "pay"), ("scout*", "pay"), ("scout", "pay*")] {
        let mut story = Story::new();
        for at in 1..=10 {
            let arguments = format!(r#"{{"amount":{at}}}"#);
            let mut evidence = story.decision(&arguments, PastVerdict::Approved);
            evidence.proposer = participant(proposer);
            evidence.tool.target = target.into();
            story.take(evidence);
        }
        let candidate = story.learner.candidates().next().unwrap();
        assert_eq!(candidate.rule(&acceptance(), &[NOON_MS; 10]), None);
    }
}

#[test]
fn a_budget_rests_on_the_approvals_that_are_kept() {
    let mut story = Story::new();
    story.pay((1..=10).chain(1..=10).chain(1..=10).chain(1..=10));
    let candidate = story.learner.candidates().next().unwrap();
    let uses = |kept: usize| {
        let rule = candidate.rule(&acceptance(), &vec![NOON_MS; kept]);
        rule.map(|rule| rule.uses)
    };
    assert_eq!(uses(40), Some(Some(13)));
    assert_eq!(uses(18), Some(Some(6)));
    assert_eq!(uses(0), None);
}

fn acceptance() -> Acceptance {
    Acceptance {
        name: "r1.1".parse().unwrap(),
        author: participant("ann"),
        at_ms: NOON_MS,
        expires_ms: None,
        destructive: false,
    }
}

fn accepted(story: &Story) -> CallRule {
    let candidate = story.learner.candidates().next().unwrap();
    candidate.rule(&acceptance(), &[NOON_MS; 10]).unwrap()
}

#[test]
fn what_a_rule_covers_is_not_learned_again_and_its_rejection_suspends_it() {
    let mut story = Story::new();
    story.pay(1..=10);
    let rule = accepted(&story);
    let read = crate::parse::parse_rules(&rule.text()).unwrap();
    assert_eq!(read.first(), Some(&rule));
    let mut next = Story::new();
    next.known = RuleSet::new([rule.clone()]).unwrap();
    next.pay((1..=10).chain(1..=10));
    assert_eq!(next.general(), [""; 0]);
    next.reject(r#"{"amount":11,"to":"acme"}"#);
    assert!(
        !next
            .news
            .contains(&LearnerNews::Suspends(rule.name.clone()))
    );
    next.reject(r#"{"amount":10,"to":"acme"}"#);
    assert!(next.news.contains(&LearnerNews::Suspends(rule.name)));
}

#[test]
fn evidence_ends_after_its_time_and_at_its_limit() {
    let mut story = Story::new();
    story.pay(1..=9);
    story.decided += 92 * story.a_day;
    story.pay([10]);
    assert_eq!(story.general(), [""; 0]);
    assert_eq!(story.learner.evidence().count(), 1);
    let mut many = Story::new();
    many.a_day = 1_000;
    for _ in 0..=EVIDENCE_MAX {
        many.reject("{}");
    }
    assert_eq!(many.learner.evidence().count(), EVIDENCE_MAX);
}

#[test]
fn groups_make_way_at_their_limit() {
    let mut story = Story::new();
    story.a_day = 10_000;
    for at in 0..=GROUPS_MAX {
        story.approve(&format!("{{\"m{at}\":1}}"));
    }
    assert_eq!(story.learner.groups.len(), GROUPS_MAX);
    assert!(
        !story
            .learner
            .groups
            .keys()
            .any(|key| key.members[0].as_str() == "/m0")
    );
}

#[test]
fn candidates_of_a_group_make_way_at_their_limit() {
    let mut story = Story::new();
    for at in 0..=GROUP_CANDIDATES_MAX {
        for _ in 0..REPEATS_MIN {
            story.approve(&format!("{{\"command\":\"make {at}\"}}"));
        }
    }
    let shown: Vec<String> = story.learner.candidates().map(words).collect();
    assert_eq!(shown.len(), GROUP_CANDIDATES_MAX);
    assert_eq!(shown[0], "command is \"make 1\"");
}

#[test]
fn a_candidate_has_tests_for_approval_alone() {
    let mut story = Story::new();
    story.pay(1..=10);
    let candidate = story.learner.candidates().next().unwrap();
    assert!(
        candidate
            .when
            .iter()
            .all(|(_, test)| ValueTest::is_for_approval(test))
    );
}
