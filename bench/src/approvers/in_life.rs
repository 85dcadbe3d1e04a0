//! Our learner as the gateway runs it: the author looks at the offers once a day and accepts them.
//! Rules have their budgets, rates and ends, rest after a week without a use, and know no secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rules::{
    Acceptance, CallRule, DORMANT_MS, EvidenceWeight, Learner, OPEN_OFFERS_MAX, Pointer,
    ReplayStanding, RuleCandidate, RuleEvidence, RuleName, RuleSet, Spent, offer,
};
use store::audit::Redaction;

use super::Approver;
use super::learned::{AUTHOR, approving, evidence_of, use_rule};
use super::trace::{DAY_MS, TracedCall, participant, time_of};

/// A rule that was accepted: the approvals up to then that it covers make no other rule.
struct UsedUpBy {
    rule: CallRule,
    at_ms: u64,
}

/// The learner and its author over the days of a trace.
#[derive(Default)]
pub struct LearnedInLife {
    decisions: Vec<RuleEvidence>,
    rules: RuleSet,
    spent: Spent,
    accepted: Vec<UsedUpBy>,
    last_used_ms: BTreeMap<RuleName, u64>,
    day: u64,
}

/// A decision without the values of secrets.
fn redacted(mut decision: RuleEvidence) -> RuleEvidence {
    let text = decision.arguments.text().as_bytes();
    let Some(Cow::Owned(text)) = Redaction::default().apply(text) else {
        return decision;
    };
    let kept = rules::Arguments::read(&text).expect("redacted arguments");
    let changed = kept
        .leaves()
        .filter(|(at, value)| decision.arguments.get(at) != Some(*value));
    let changed: Vec<Pointer> = changed.map(|(at, _)| at.clone()).collect();
    decision.redacted = changed;
    decision.arguments = kept;
    decision
}

impl UsedUpBy {
    fn has(&self, decision: &RuleEvidence) -> bool {
        decision.at_ms <= self.at_ms
            && self.rule.scope.has_proposer(&decision.proposer)
            && self.rule.covers(decision)
    }
}

impl LearnedInLife {
    /// A day of the author: ends what is over, and accepts what is offered.
    fn look(&mut self, now_ms: u64) {
        self.end_old(now_ms);
        let lessons: Vec<RuleEvidence> =
            self.decisions.iter().map(|one| self.lesson(one)).collect();
        let mut learner = Learner::default();
        for lesson in &lessons {
            learner.take(lesson.clone(), &self.rules);
        }
        let all: Vec<&RuleCandidate> = learner.ready().collect();
        let is_inside_another = |one: &RuleCandidate| {
            let mut others = all.iter().filter(|other| other.group == one.group);
            others.any(|other| other.when != one.when && other.when.includes(&one.when))
        };
        let mut ready: Vec<&RuleCandidate> = all.clone();
        ready.retain(|one| !is_inside_another(one));
        ready.sort_by_key(|one| std::cmp::Reverse(one.approvals()));
        let mut open = OPEN_OFFERS_MAX;
        for candidate in ready {
            if open == 0 {
                break;
            }
            open -= usize::from(self.accept(candidate, &lessons, now_ms));
        }
    }

    fn lesson(&self, decision: &RuleEvidence) -> RuleEvidence {
        let mut decision = decision.clone();
        if decision.teaches() && self.accepted.iter().any(|used| used.has(&decision)) {
            decision.weight = EvidenceWeight::None;
        }
        decision
    }

    fn end_old(&mut self, now_ms: u64) {
        let is_over = |rule: &&CallRule| {
            let used_ms = self.last_used_ms.get(&rule.name).copied();
            rule.expires_ms.is_some_and(|end| now_ms >= end)
                || rule
                    .uses
                    .is_some_and(|most| self.spent.uses(&rule.name) >= most)
                || now_ms.saturating_sub(used_ms.unwrap_or(now_ms)) >= DORMANT_MS
        };
        let over = self.rules.rules().iter().filter(is_over);
        let over: Vec<RuleName> = over.map(|rule| rule.name.clone()).collect();
        self.rules = self.rules.without(&over);
    }

    fn accept(&mut self, candidate: &RuleCandidate, lessons: &[RuleEvidence], at_ms: u64) -> bool {
        let acceptance = Acceptance {
            name: format!("r{}.1", self.accepted.len())
                .parse()
                .expect("a name"),
            author: participant(AUTHOR),
            at_ms,
            expires_ms: None,
            destructive: true,
        };
        let Ok(Some(offered)) = offer(candidate, &acceptance, lessons) else {
            return false;
        };
        assert_eq!(offered.replay.count(ReplayStanding::Contradicts), 0);
        let rule = offered.rule;
        let Ok(rules) = self.rules.with(rule.clone()) else {
            return false;
        };
        self.rules = rules;
        self.last_used_ms.insert(rule.name.clone(), at_ms);
        self.accepted.push(UsedUpBy { rule, at_ms });
        true
    }
}

impl Approver for LearnedInLife {
    fn name(&self) -> String {
        "our rules as the gateway runs them".to_owned()
    }

    fn approves(&self, call: &TracedCall, at: usize) -> bool {
        approving(&self.rules, &self.spent, call, at).is_some()
    }

    fn take(&mut self, call: &TracedCall, at: usize, by_itself: bool) {
        let now_ms = time_of(at);
        if by_itself {
            let name = use_rule(&self.rules, &mut self.spent, call, at);
            self.last_used_ms.extend(name.map(|name| (name, now_ms)));
        } else {
            let decision = redacted(evidence_of(call, at));
            let is_covering = |rule: &&CallRule| !call.is_approved && rule.covers(&decision);
            let covering = self.rules.rules().iter().filter(is_covering);
            let covering: Vec<RuleName> = covering.map(|rule| rule.name.clone()).collect();
            self.rules = self.rules.without(&covering);
            self.decisions.push(decision);
        }
        if now_ms / DAY_MS != self.day {
            self.day = now_ms / DAY_MS;
            self.look(now_ms);
        }
    }

    fn rules(&self) -> usize {
        self.rules.rules().len()
    }

    fn questions(&self) -> usize {
        self.accepted.len()
    }
}
