//! Our learner as the gateway runs it: from time to time the author looks at what is offered, accepts it,
//! and renews what was used. Rules have their budgets, rates and ends, rest after a week without a use,
//! leave spot checks to the author, and know no secrets.

use std::borrow::Cow;

use rules::{
    Acceptance, CallRule, EvidenceWeight, Learner, OPEN_OFFERS_MAX, Pointer, RenewalTimes,
    ReplayStanding, RuleCandidate, RuleEvidence, RuleName, RuleSet, Spent, SpentEvent, SpotEnd,
    Surrounding, SuspendCause, TERM_DAYS, ToolTraits, candidate_of, offer, renewal, suspends,
};
use store::audit::Redaction;

use super::Approver;
use super::learned::{AUTHOR, approving, evidence_of, use_rule};
use super::trace::{DAY_MS, TracedCall, operation_of, participant};

/// The secret by which spot checks are drawn.
const SEED: [u8; 32] = [7; 32];
/// Looks of the author a day, of one that is asked something all the time: it is the one who decides.
pub const LOOKS_A_DAY: u64 = 24;
/// The most times that the author asks for further offers at one look.
const ASKED_MAX: usize = 16;

/// A rule that was accepted and has not ended.
struct LivingRule {
    rule: CallRule,
    since_ms: u64,
    /// Why it decides nothing, if it is suspended.
    cause: Option<SuspendCause>,
}

/// A rule that was accepted: the approvals up to then that it covers make no other rule.
struct UsedUpBy {
    rule: CallRule,
    at_ms: u64,
}

/// The learner and its author over the days of a trace.
pub struct LearnedInLife {
    /// Those by hand, and those by rule.
    decisions: Vec<RuleEvidence>,
    living: Vec<LivingRule>,
    in_force: RuleSet,
    used_up: Vec<UsedUpBy>,
    spent: Spent,
    every_ms: u64,
    looks: u64,
    accepted: Vec<CallRule>,
    renewed: usize,
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

impl LivingRule {
    /// The cause that suspends it now, if there is one.
    fn suspended(&self, spent: &Spent, now_ms: u64) -> Option<SuspendCause> {
        let scope = &self.rule.scope;
        let around = Surrounding {
            now_ms,
            since_ms: self.since_ms,
            definition: scope.definition,
            server: scope.server,
            author_may: true,
            replaced: None,
            traits: ToolTraits::default(),
        };
        suspends(&self.rule, spent, &around)
    }

    /// Whether its next version is offered.
    fn is_ending(&self, spent: &Spent, now_ms: u64) -> bool {
        let used = spent.uses(&self.rule.name);
        self.cause.is_some() || self.rule.nears_its_end(used, now_ms)
    }
}

/// The candidates that are ready after these lessons, the widest of each group alone, those that rest
/// on most approvals first.
fn learned(lessons: &[RuleEvidence], known: &RuleSet) -> Vec<RuleCandidate> {
    let mut learner = Learner::default();
    for lesson in lessons {
        learner.take(lesson.clone(), known);
    }
    let ready: Vec<&RuleCandidate> = learner.ready().collect();
    let is_inside_another = |one: &&&RuleCandidate| {
        let mut others = ready.iter().filter(|other| other.group == one.group);
        others.any(|other| other.when != one.when && other.when.includes(&one.when))
    };
    let widest = ready.iter().filter(|one| !is_inside_another(one));
    let mut widest: Vec<RuleCandidate> = widest.map(|one| (*one).clone()).collect();
    widest.sort_by_key(|one| std::cmp::Reverse(one.approvals()));
    widest
}

impl LearnedInLife {
    /// The learner with an author that looks so many times a day.
    pub fn looking(times_a_day: u64) -> Self {
        Self {
            decisions: Vec::new(),
            living: Vec::new(),
            in_force: RuleSet::default(),
            used_up: Vec::new(),
            spent: Spent::default(),
            every_ms: DAY_MS / times_a_day.clamp(1, DAY_MS),
            looks: 0,
            accepted: Vec::new(),
            renewed: 0,
        }
    }

    /// A look of the author: ends what was of no use or is contradicted, and accepts what is offered.
    fn look(&mut self, now_ms: u64) {
        self.suspend(now_ms);
        let spent = &self.spent;
        self.living.retain(|one| {
            let is_contradicted = matches!(one.cause, Some(SuspendCause::Contradicted(_)));
            let is_of_no_use = one.cause.is_some() && spent.uses(&one.rule.name) == 0;
            !is_contradicted && !is_of_no_use
        });
        for _ in 0..ASKED_MAX {
            let mut open = OPEN_OFFERS_MAX;
            self.renew(&mut open, now_ms);
            self.accept_learned(&mut open, now_ms);
            self.put_in_force();
            if open > 0 {
                break;
            }
        }
    }

    fn suspend(&mut self, now_ms: u64) {
        for one in &mut self.living {
            if one.cause.is_none() {
                one.cause = one.suspended(&self.spent, now_ms);
            }
        }
        self.put_in_force();
    }

    fn put_in_force(&mut self) {
        let active = self.living.iter().filter(|one| one.cause.is_none());
        self.in_force = RuleSet::new(active.map(|one| one.rule.clone())).expect("rules");
    }

    /// The rules that have not ended, but for one.
    fn known_but(&self, renewed: Option<&RuleName>) -> RuleSet {
        let known = self.living.iter().map(|one| &one.rule);
        let others = known.filter(|rule| Some(&rule.name) != renewed);
        RuleSet::new(others.cloned()).expect("rules")
    }

    /// The decisions as they teach, each for one rule only: for this one, if it is to be renewed.
    fn lessons(&self, renewed: Option<&CallRule>) -> Vec<RuleEvidence> {
        let is_other =
            |used: &&UsedUpBy| renewed.is_none_or(|rule| rule.name.id != used.rule.name.id);
        let used_up: Vec<&UsedUpBy> = self.used_up.iter().filter(is_other).collect();
        let is_of_tool =
            |one: &&RuleEvidence| renewed.is_none_or(|rule| rule.scope.is_of_tool(&one.tool));
        let lessons = self.decisions.iter().filter(is_of_tool).map(|decision| {
            let mut decision = decision.clone();
            if decision.teaches() && used_up.iter().any(|used| used.has(&decision)) {
                decision.weight = EvidenceWeight::None;
            }
            decision
        });
        lessons.collect()
    }

    fn renew(&mut self, open: &mut usize, now_ms: u64) {
        for at in 0..self.living.len() {
            if *open > 0 && self.living[at].is_ending(&self.spent, now_ms) {
                *open -= usize::from(self.renew_one(at, now_ms));
            }
        }
    }

    fn renew_one(&mut self, at: usize, now_ms: u64) -> bool {
        let rule = &self.living[at].rule;
        let lessons = self.lessons(Some(rule));
        let ready = learned(&lessons, &self.known_but(Some(&rule.name)));
        let times = RenewalTimes {
            since_ms: self.living[at].since_ms,
            now_ms,
            expires_ms: now_ms + TERM_DAYS * DAY_MS,
        };
        let renewed = renewal(rule, candidate_of(rule, &ready), times, &lessons);
        let Ok(Some(renewed)) = renewed else {
            return false;
        };
        let next = renewed.offer.rule;
        let used = self
            .used_up
            .iter_mut()
            .find(|used| used.rule.name.id == next.name.id);
        if let Some(used) = used {
            *used = UsedUpBy {
                rule: next.clone(),
                at_ms: now_ms,
            };
        }
        self.renewed += 1;
        self.living[at] = LivingRule {
            rule: next,
            since_ms: now_ms,
            cause: None,
        };
        true
    }

    fn accept_learned(&mut self, open: &mut usize, now_ms: u64) {
        if *open == 0 {
            return;
        }
        let lessons = self.lessons(None);
        for candidate in learned(&lessons, &self.known_but(None)) {
            if *open > 0 {
                *open -= usize::from(self.accept(&candidate, &lessons, now_ms));
            }
        }
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
        if self.known_but(None).with(rule.clone()).is_err() {
            return false;
        }
        self.accepted.push(rule.clone());
        self.used_up.push(UsedUpBy {
            rule: rule.clone(),
            at_ms,
        });
        self.living.push(LivingRule {
            rule,
            since_ms: at_ms,
            cause: None,
        });
        true
    }

    /// The rule that approves a call, whether or not it leaves the call to its author.
    fn rule_for(&self, call: &TracedCall, at: usize) -> Option<&CallRule> {
        let rule = approving(&self.in_force, &self.spent, call, at)?;
        let mut living = self.living.iter();
        let living = living.find(|one| one.rule.name == rule.name)?;
        living
            .suspended(&self.spent, call.at_ms)
            .is_none()
            .then_some(rule)
    }

    fn take_by_hand(&mut self, call: &TracedCall, at: usize) {
        let decision = redacted(evidence_of(call, at));
        if let Some(rule) = self.rule_for(call, at).map(|rule| rule.name.clone()) {
            let operation = operation_of(at);
            let end = if call.is_approved_by_hand() {
                SpotEnd::Agreed
            } else {
                SpotEnd::Disagreed
            };
            self.spent.apply(SpentEvent::Spotted { rule, operation });
            self.spent.apply(SpentEvent::Checked { operation, end });
        }
        if !call.is_approved_by_hand() {
            for one in &mut self.living {
                if one.rule.covers(&decision) {
                    one.cause = Some(SuspendCause::Contradicted(decision.operation));
                }
            }
            self.put_in_force();
        }
        self.decisions.push(decision);
    }

    fn take_by_rule(&mut self, call: &TracedCall, at: usize) {
        let rule = use_rule(&self.in_force, &mut self.spent, call, at);
        self.decisions.push(RuleEvidence {
            rule,
            weight: EvidenceWeight::None,
            ..redacted(evidence_of(call, at))
        });
    }
}

impl Approver for LearnedInLife {
    fn name(&self) -> String {
        "our rules as the gateway runs them".to_owned()
    }

    fn approves(&self, call: &TracedCall, at: usize) -> bool {
        let rule = self.rule_for(call, at);
        rule.is_some_and(|rule| !self.spent.leaves_next(&SEED, &rule.name.id))
    }

    fn take(&mut self, call: &TracedCall, at: usize, by_itself: bool) {
        if by_itself {
            self.take_by_rule(call, at);
        } else {
            self.take_by_hand(call, at);
        }
        let now_ms = call.at_ms;
        if now_ms / self.every_ms != self.looks {
            self.looks = now_ms / self.every_ms;
            self.look(now_ms);
        }
    }

    fn rules(&self) -> usize {
        self.living.len()
    }

    fn questions(&self) -> usize {
        self.accepted.len() + self.renewed
    }

    fn accepted(&self) -> &[CallRule] {
        &self.accepted
    }
}
