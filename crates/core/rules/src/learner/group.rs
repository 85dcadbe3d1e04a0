//! One group: its approvals, and the candidates that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::arguments::Arguments;
use crate::candidate::{CandidateSort, GroupKey, RuleCandidate};
use crate::conditions::Conditions;
use crate::constant::Constant;
use crate::evidence::RuleEvidence;
use crate::fit::Fit;
use crate::lattice::{is_of_one_type, steps};
use crate::licence::{is_executed, licensed};
use crate::pointer::Pointer;
use crate::value_test::{CONSTANTS_MAX, ValueTest};

use super::thresholds::{GROUP_CANDIDATES_MAX, LearnerThresholds};

/// The part of the approvals that a candidate must keep when a field is narrowed to exclude
/// rejections: 80 of 100.
const KEPT_PERCENT: usize = 80;

/// After a try the next one waits for a tenth more approvals: a group that makes no rule, such as one
/// with free texts, is not tried again at each of thousands.
const RETRY_ONE_IN: usize = 10;

/// The approvals of one group, and its candidates.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    approved: Vec<Arc<RuleEvidence>>,
    candidates: Vec<RuleCandidate>,
    /// The approvals at which a generalisation is tried next.
    next_try: usize,
}

/// Whether a candidate has reached what an offer needs.
pub(super) fn is_ready(candidate: &RuleCandidate, thresholds: &LearnerThresholds) -> bool {
    match candidate.sort {
        CandidateSort::Exact => true,
        CandidateSort::General => {
            candidate.shadow >= thresholds.shadow
                && candidate.shadow_days.len() >= thresholds.shadow_days
        }
    }
}

/// The knowledge beside its approvals that a group needs to make candidates.
#[derive(Clone, Copy)]
pub(super) struct TriedBeside<'l> {
    /// The rejections of its tool.
    pub(super) warnings: &'l [Arc<RuleEvidence>],
    /// The conditions that a person does not want of it.
    pub(super) declined: &'l [&'l Conditions],
    /// The conditions of known rules about it.
    pub(super) known: &'l [&'l Conditions],
    pub(super) thresholds: &'l LearnerThresholds,
}

impl TriedBeside<'_> {
    fn is_declined(&self, arguments: &Arguments) -> bool {
        let mut declined = self.declined.iter();
        declined.any(|when| when.fit_closed(arguments) == Fit::Held)
    }
}

impl Group {
    pub(super) fn take(&mut self, decision: &Arc<RuleEvidence>) {
        self.approved.push(Arc::clone(decision));
    }

    pub(super) fn forget(&mut self, decision: &Arc<RuleEvidence>) {
        self.approved.retain(|one| !Arc::ptr_eq(one, decision));
        self.next_try = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.approved.is_empty()
    }

    /// When the latest approval came, in milliseconds since 1970.
    pub(super) fn used_ms(&self) -> u64 {
        self.approved.last().map_or(0, |one| one.at_ms)
    }

    pub(super) fn has(&self, arguments: &Arguments) -> bool {
        self.approved.iter().any(|one| one.arguments == *arguments)
    }

    pub(super) fn candidates(&self) -> &[RuleCandidate] {
        &self.candidates
    }

    /// Drops the candidates that these conditions include.
    pub(super) fn drop_inside(&mut self, when: &Conditions) {
        self.candidates.retain(|one| !when.includes(&one.when));
    }

    /// Counts an approval for the candidates that cover it. Returns those that reach with it what
    /// an offer needs.
    pub(super) fn shadow(
        &mut self,
        decision: &RuleEvidence,
        thresholds: &LearnerThresholds,
    ) -> Vec<RuleCandidate> {
        let mut ready = Vec::new();
        for candidate in &mut self.candidates {
            if candidate.when.fit_closed(&decision.arguments) != Fit::Held {
                continue;
            }
            let was_ready = is_ready(candidate, thresholds);
            candidate.shadow = candidate.shadow.saturating_add(1);
            candidate.count_day(decision.at_ms);
            if !was_ready && is_ready(candidate, thresholds) {
                ready.push(candidate.clone());
            }
        }
        ready
    }

    /// Takes a candidate, unless there is one as wide. It replaces those that it includes, also
    /// repetitions that cover as much.
    pub(super) fn freeze(&mut self, candidate: RuleCandidate) -> bool {
        let is_there =
            |one: &RuleCandidate| one.sort <= candidate.sort && one.when.includes(&candidate.when);
        if self.candidates.iter().any(is_there) {
            return false;
        }
        self.candidates
            .retain(|one| !candidate.when.includes(&one.when));
        if self.candidates.len() == GROUP_CANDIDATES_MAX {
            self.candidates.remove(0);
        }
        self.candidates.push(candidate);
        true
    }

    /// The candidates that the latest approval may have made, if no candidate covers it yet.
    pub(super) fn candidates_of(
        &mut self,
        key: &GroupKey,
        beside: &TriedBeside<'_>,
        now_ms: u64,
    ) -> Vec<RuleCandidate> {
        let TriedBeside {
            warnings,
            thresholds,
            ..
        } = *beside;
        let Some(latest) = self.approved.last().map(Arc::clone) else {
            return Vec::new();
        };
        let mut covering = self.candidates.iter();
        let covers = |one: &RuleCandidate| one.when.fit_closed(&latest.arguments) == Fit::Held;
        if covering.any(|one| one.sort == CandidateSort::General && covers(one)) {
            return Vec::new();
        }
        let approvals = self.approved.len();
        let is_due = approvals >= thresholds.approvals.max(self.next_try);
        if is_due {
            self.next_try = approvals + (approvals / RETRY_ONE_IN).max(1);
        }
        let candidate = |sort, when: Conditions| {
            let covered = self.approved.iter();
            let covered = covered.filter(|one| when.fit_closed(&one.arguments) == Fit::Held);
            RuleCandidate {
                group: key.clone(),
                sort,
                frozen: u32::try_from(covered.count()).unwrap_or(u32::MAX),
                when,
                born_at_ms: now_ms,
                shadow: 0,
                shadow_days: Vec::new(),
            }
        };
        let mut found = Vec::new();
        if let Some(when) = self.repetition(key, &latest, beside) {
            found.push(candidate(CandidateSort::Exact, when));
        }
        if is_due {
            let general = self.generalised(key, warnings, thresholds);
            found.extend(
                general
                    .into_iter()
                    .map(|when| candidate(CandidateSort::General, when)),
            );
        }
        found
    }

    /// The repetition of the latest call, if it was approved often enough, with others that were and
    /// that differ from it in one member: as many rules in one, which cover not a call more.
    fn repetition(
        &self,
        key: &GroupKey,
        latest: &RuleEvidence,
        beside: &TriedBeside<'_>,
    ) -> Option<Conditions> {
        let own = &latest.arguments;
        let covered = || self.approved.iter().filter(|one| one.arguments == *own);
        let of_candidates = self.candidates.iter().map(|one| &one.when);
        let taken: Vec<&Conditions> = beside.known.iter().copied().chain(of_candidates).collect();
        let mut covering = taken.iter();
        if covered().count() < beside.thresholds.repeats
            || covering.any(|when| when.fit_closed(own) == Fit::Held)
        {
            return None;
        }
        let alone = Conditions::exactly(own)?;
        let is_allowed = |when: &Conditions| excludes_all(when, beside.warnings);
        if !is_allowed(&alone) {
            return None;
        }
        let repeated = self.repeated(beside);
        let lists = key.members.iter().filter_map(|member| {
            let values = listed(member, own, &repeated, &taken)?;
            let tests = alone.iter().map(|(pointer, test)| {
                let list = || ValueTest::one_of(values.iter().cloned());
                let test = if pointer == member {
                    list()
                } else {
                    test.clone()
                };
                (pointer.clone(), test)
            });
            Some((values.len(), Conditions::new(tests)?))
        });
        let allowed = lists.filter(|(_, when)| is_allowed(when));
        let longest = allowed.max_by_key(|(count, _)| *count);
        Some(longest.map_or(alone, |(_, when)| when))
    }

    /// The calls that were approved often enough and that no person has declined, the latest first.
    fn repeated(&self, beside: &TriedBeside<'_>) -> Vec<&Arguments> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut repeated = Vec::new();
        for one in self.approved.iter().rev() {
            let count = counts.entry(one.arguments.text()).or_default();
            *count += 1;
            if *count == beside.thresholds.repeats && !beside.is_declined(&one.arguments) {
                repeated.push(&one.arguments);
            }
        }
        repeated
    }

    /// The least general generalisation of the approvals, or of the parts into which one member
    /// splits them.
    fn generalised(
        &self,
        key: &GroupKey,
        warnings: &[Arc<RuleEvidence>],
        thresholds: &LearnerThresholds,
    ) -> Vec<Conditions> {
        let all: Vec<&RuleEvidence> = self.approved.iter().map(AsRef::as_ref).collect();
        if let Some(when) = fitting(key, &all, warnings) {
            return vec![when];
        }
        let splits = key
            .members
            .iter()
            .map(|member| split(key, member, &all, warnings, thresholds));
        let kept = |conditions: &[Conditions]| {
            let is_kept = |one: &&&RuleEvidence| {
                let mut conditions = conditions.iter();
                conditions.any(|when| when.fit_closed(&one.arguments) == Fit::Held)
            };
            all.iter().filter(is_kept).count()
        };
        splits
            .max_by_key(|conditions| kept(conditions))
            .unwrap_or_default()
    }
}

/// The values of a member for which a call and other repeated ones, equal to it in all else, make one
/// list; at most as many as a list has. What other conditions cover is taken with all that they
/// cover or not at all, so that the list stands in their place. `None` if there is no other value.
fn listed(
    member: &Pointer,
    of: &Arguments,
    repeated: &[&Arguments],
    taken: &[&Conditions],
) -> Option<Vec<Constant>> {
    if is_executed(member) {
        return None;
    }
    let differs_here_alone = |one: &&&Arguments| {
        let mut others = of.leaves().filter(|(pointer, _)| *pointer != member);
        *one != &of && others.all(|(pointer, raw)| one.get(pointer) == Some(raw))
    };
    let alike: Vec<&Arguments> = repeated
        .iter()
        .filter(differs_here_alone)
        .copied()
        .collect();
    let covers = |when: &Conditions, one: &Arguments| when.fit_closed(one) == Fit::Held;
    let mut listed = vec![of];
    for when in taken {
        let inside = || alike.iter().filter(|one| covers(when, one)).copied();
        let is_whole = calls_of(when) == Some(inside().count());
        if is_whole && listed.len() + inside().count() <= CONSTANTS_MAX {
            listed.extend(inside());
        }
    }
    let is_free = |one: &&&Arguments| !taken.iter().any(|when| covers(when, one));
    let room = CONSTANTS_MAX - listed.len();
    listed.extend(alike.iter().filter(is_free).take(room).copied());
    let value = |one: &&Arguments| Constant::of_canonical(one.get(member)?);
    let values: Vec<Constant> = listed.iter().map(value).collect::<Option<_>>()?;
    (values.len() > 1 && is_of_one_type(&values)).then_some(values)
}

/// The number of calls that conditions cover, if all of them are lists.
fn calls_of(when: &Conditions) -> Option<usize> {
    let values = |test: &ValueTest| match test {
        ValueTest::OneOf(constants) => Some(constants.len()),
        ValueTest::Integer(..)
        | ValueTest::Fraction(..)
        | ValueTest::Under(_)
        | ValueTest::Url(_)
        | ValueTest::Chars(..)
        | ValueTest::Shape(..)
        | ValueTest::Each(..)
        | ValueTest::Absent
        | ValueTest::Type(_)
        | ValueTest::Length(_)
        | ValueTest::Some(_) => None,
    };
    let mut counts = when.iter().map(|(_, test)| values(test));
    counts.try_fold(1_usize, |all, one| all.checked_mul(one?))
}

fn values(member: &Pointer, approved: &[&RuleEvidence]) -> Option<Vec<Constant>> {
    let value = |one: &&RuleEvidence| Constant::of_canonical(one.arguments.get(member)?);
    approved.iter().map(value).collect()
}

fn excludes_all(when: &Conditions, warnings: &[Arc<RuleEvidence>]) -> bool {
    let mut warnings = warnings.iter();
    warnings.all(|one| !one.may_lie_in(when))
}

/// Conditions that cover the approvals, or most of them, and no rejection.
fn fitting(
    key: &GroupKey,
    approved: &[&RuleEvidence],
    warnings: &[Arc<RuleEvidence>],
) -> Option<Conditions> {
    let tests: Option<BTreeMap<Pointer, ValueTest>> = key
        .members
        .iter()
        .map(|member| {
            Some((
                member.clone(),
                licensed(member, &values(member, approved)?)?,
            ))
        })
        .collect();
    let tests = tests?;
    let when = Conditions::new(tests.clone())?;
    if excludes_all(&when, warnings) {
        return Some(when);
    }
    narrowed(&tests, approved, warnings)
}

/// The conditions with one member narrowed by a step, so that they cover no rejection and keep most
/// of the approvals.
fn narrowed(
    tests: &BTreeMap<Pointer, ValueTest>,
    approved: &[&RuleEvidence],
    warnings: &[Arc<RuleEvidence>],
) -> Option<Conditions> {
    let mut best: Option<(usize, Conditions)> = None;
    for (member, test) in tests {
        for narrower in narrower(test, &values(member, approved)?) {
            let mut tests = tests.clone();
            tests.insert(member.clone(), narrower);
            let when = Conditions::new(tests)?;
            let is_kept = |one: &&&RuleEvidence| when.fit_closed(&one.arguments) == Fit::Held;
            let kept = approved.iter().filter(is_kept).count();
            let is_enough = kept * 100 >= approved.len() * KEPT_PERCENT;
            let is_better = best.as_ref().is_none_or(|(most, _)| kept > *most);
            if is_enough && is_better && excludes_all(&when, warnings) {
                best = Some((kept, when));
            }
        }
    }
    best.map(|(_, when)| when)
}

/// Steps below a test: the tighter ones that cover all values, and the list of the most frequent
/// values.
fn narrower(test: &ValueTest, values: &[Constant]) -> Vec<ValueTest> {
    let tighter = steps(values)
        .into_iter()
        .filter(|step| test.is_wider_than(step));
    let mut counts: BTreeMap<&Constant, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut frequent: Vec<(&Constant, usize)> = counts.into_iter().collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    // A value that was seen once closes no list.
    let frequent = frequent.into_iter().filter(|(_, count)| *count > 1);
    let frequent: Vec<Constant> = frequent
        .take(CONSTANTS_MAX)
        .map(|(one, _)| one.clone())
        .collect();
    let list = (!frequent.is_empty()).then(|| ValueTest::one_of(frequent));
    tighter
        .chain(list.filter(|list| test.is_wider_than(list)))
        .collect()
}

/// The conditions of the parts into which the values of one member split the approvals, those parts
/// that are large enough and fit.
fn split(
    key: &GroupKey,
    member: &Pointer,
    approved: &[&RuleEvidence],
    warnings: &[Arc<RuleEvidence>],
    thresholds: &LearnerThresholds,
) -> Vec<Conditions> {
    let Some(all) = values(member, approved) else {
        return Vec::new();
    };
    let distinct: BTreeSet<&Constant> = all.iter().collect();
    if distinct.len() > CONSTANTS_MAX || distinct.len() < 2 {
        return Vec::new();
    }
    distinct
        .into_iter()
        .filter_map(|value| {
            let raw = value.as_str().as_bytes();
            let has_value = |one: &&&RuleEvidence| one.arguments.get(member) == Some(raw);
            let part: Vec<&RuleEvidence> = approved.iter().filter(has_value).copied().collect();
            if part.len() < thresholds.approvals {
                return None;
            }
            fitting(key, &part, warnings)
        })
        .collect()
}
