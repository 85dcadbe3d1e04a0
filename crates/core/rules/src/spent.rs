//! Spending of rules: uses, counted calls and answered calls, folded from events.
//!
//! A value without a clock: the owner of the journal keeps the events, and folds them again after a
//! restart. Calls that are still open count like those that are over, and an event that comes twice
//! counts once. A journal that drops old events begins with [`Spent::carried`], which folds to the
//! same value.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{Latest, OperationId, ParticipantId};

use crate::constant::Constant;
use crate::decimal::Decimal;
use crate::guards::AfterGuard;
use crate::name::{RuleId, RuleName};
use crate::pointer::Pointer;
use crate::spot::{SpotCause, SpotChecks, SpotEnd, SpotTally, SpotTotals, is_spot_check};
use crate::window::{DAY_MS, RuleWindow};

/// The most calls that are kept for one rule. One that has as many in its windows counts as full:
/// its guards are broken.
pub const RULE_CHARGES_MAX: usize = 10_000;
/// The most answered calls that are kept for guards that ask for an earlier call. The proposer that has
/// most of them loses its oldest, so that none drives out those of others.
pub const ANSWERED_CALLS_MAX: usize = 10_000;
/// The last uses that are looked at for failures.
pub const OUTCOMES_KEPT: usize = 10;
/// The least time that an answered call is kept.
const ANSWERED_MS: u64 = crate::window::WINDOW_MS_MAX;

/// A call that a rule counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCharge {
    /// The rule that counts it.
    pub rule: RuleName,
    /// The call.
    pub operation: OperationId,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether the rule decided it, which takes one use of its budget.
    pub is_use: bool,
    /// The members that the rule sums, each with its value.
    pub amounts: Vec<(Pointer, Decimal)>,
    /// The members by which the rule counts, each with its value as a careless reader takes it:
    /// another case or spelling is no other value.
    pub values: Vec<(Pointer, Box<str>)>,
    /// The time that it must be kept, in milliseconds.
    pub keep_ms: u64,
}

/// A call that was answered without an error, for guards that ask for an earlier call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredCall {
    /// The call.
    pub operation: OperationId,
    /// Its proposer.
    pub proposer: ParticipantId,
    /// The participant that answered it.
    pub to: ParticipantId,
    /// Its method.
    pub method: Box<str>,
    /// Its tool, prompt or URI.
    pub target: Box<str>,
    /// The members that guards compare, each with its value.
    pub values: Vec<(Pointer, Constant)>,
    /// When it was answered, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A change of what rules have spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpentEvent {
    /// A rule counts a call: with the decision, before the call runs.
    Charged(RuleCharge),
    /// A decision by rule did not count, because the call was no longer pending: its charges are
    /// given back.
    Returned(OperationId),
    /// A call that a rule had approved is over.
    Ended {
        /// The call.
        operation: OperationId,
        /// Whether it failed.
        failed: bool,
    },
    /// A call was answered without an error.
    Answered(AnsweredCall),
    /// A rule leaves a proposal to people that it would have approved.
    Spotted {
        /// The rule.
        rule: RuleName,
        /// The proposal.
        operation: OperationId,
    },
    /// Such a proposal is decided, or over without a decision.
    Checked {
        /// The proposal.
        operation: OperationId,
        /// Its end.
        end: SpotEnd,
    },
    /// A rule's totals, after its charges, in a journal that dropped older events.
    Carried(RuleTotals),
}

/// The totals of one rule that its kept charges do not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTotals {
    /// The rule, and its latest version.
    pub rule: RuleName,
    /// The uses of that version.
    pub uses: u32,
    /// As [`Spent::draws`].
    pub draws: u32,
    /// When it was last used, in milliseconds since 1970.
    pub last_use_ms: Option<u64>,
    /// The last uses that are over, the latest last, each with whether it failed.
    pub outcomes: Vec<(OperationId, bool)>,
    /// Its spot checks.
    pub checks: SpotTotals,
    /// As [`Spent::is_full`]: the end of that, in milliseconds since 1970.
    pub full_until_ms: u64,
    /// The latest time that was seen, in milliseconds since 1970.
    pub latest_ms: u64,
}

/// The spending of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct RuleSpent {
    /// The version whose uses are counted.
    version: u32,
    uses: u32,
    /// Uses of all versions, and spot checks.
    draws: u32,
    last_use_ms: Option<u64>,
    /// In the order of their times.
    charges: VecDeque<RuleCharge>,
    /// The operations of the charges.
    charged: BTreeSet<OperationId>,
    /// Outcomes of the last uses, the latest last: true if it failed.
    outcomes: VecDeque<(OperationId, bool)>,
    checks: SpotChecks,
    /// Until when a charge that made way counts, in milliseconds since 1970.
    full_until_ms: u64,
}

/// The spending of all rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spent {
    rules: BTreeMap<RuleId, RuleSpent>,
    answered: Latest<AnsweredCall>,
    /// The latest time of an event, in milliseconds since 1970.
    latest_ms: u64,
}

impl Spent {
    /// Takes an event.
    pub fn apply(&mut self, event: SpentEvent) {
        match event {
            SpentEvent::Charged(charge) => {
                self.latest_ms = self.latest_ms.max(charge.at_ms);
                let spent = self.rules.entry(charge.rule.id.clone()).or_default();
                spent.charge(charge);
            }
            SpentEvent::Returned(operation) => {
                for spent in self.rules.values_mut() {
                    spent.give_back(operation);
                }
            }
            SpentEvent::Ended { operation, failed } => {
                for spent in self.rules.values_mut() {
                    spent.end(operation, failed);
                }
            }
            SpentEvent::Answered(call) => {
                self.latest_ms = self.latest_ms.max(call.at_ms);
                self.remember(call);
            }
            SpentEvent::Spotted { rule, operation } => {
                self.rules
                    .entry(rule.id)
                    .or_default()
                    .spot(rule.version, operation);
            }
            SpentEvent::Checked { operation, end } => {
                for spent in self.rules.values_mut() {
                    spent.checks.end(operation, end, spent.version);
                }
            }
            SpentEvent::Carried(totals) => {
                self.latest_ms = self.latest_ms.max(totals.latest_ms);
                let spent = self.rules.entry(totals.rule.id.clone()).or_default();
                spent.carry(totals);
            }
        }
    }

    /// Events that fold to this value: the beginning of a journal that dropped all earlier ones.
    #[must_use]
    pub fn carried(&self) -> Vec<SpentEvent> {
        let mut events = Vec::new();
        for (id, spent) in &self.rules {
            events.extend(spent.charges.iter().cloned().map(SpentEvent::Charged));
            events.push(SpentEvent::Carried(RuleTotals {
                rule: RuleName {
                    id: id.clone(),
                    version: spent.version,
                },
                uses: spent.uses,
                draws: spent.draws,
                last_use_ms: spent.last_use_ms,
                outcomes: spent.outcomes.iter().copied().collect(),
                checks: spent.checks.totals(),
                full_until_ms: spent.full_until_ms,
                latest_ms: self.latest_ms,
            }));
        }
        events.extend(self.answered.iter().cloned().map(SpentEvent::Answered));
        events
    }

    /// Number of the events that [`Self::carried`] returns.
    #[must_use]
    pub fn carried_len(&self) -> usize {
        let charges = self.rules.values().map(|spent| spent.charges.len());
        charges.sum::<usize>() + self.rules.len() + self.answered.len()
    }

    /// This time, or the latest one that was seen, where a clock was set back.
    #[must_use]
    pub fn not_before(&self, now_ms: u64) -> u64 {
        now_ms.max(self.latest_ms)
    }

    /// Drops the charges that no guard needs any more, also of rules that nothing uses any more.
    pub fn drop_old(&mut self, now_ms: u64) {
        for spent in self.rules.values_mut() {
            if spent.drop_old(now_ms) {
                // A clock that is set back must not ask for them again.
                self.latest_ms = self.latest_ms.max(now_ms);
            }
        }
    }

    /// Forgets a rule that has ended.
    pub fn forget(&mut self, rule: &RuleId) {
        self.rules.remove(rule);
    }

    /// The uses of one version of a rule. A version before the latest one is used up: putting it back
    /// does not bring its budget back.
    #[must_use]
    pub fn uses(&self, rule: &RuleName) -> u32 {
        let Some(spent) = self.rules.get(&rule.id) else {
            return 0;
        };
        match spent.version.cmp(&rule.version) {
            Ordering::Less => 0,
            Ordering::Equal => spent.uses,
            Ordering::Greater => u32::MAX,
        }
    }

    /// The number of a rule's next draw for a spot check: uses of all its versions, and its spot
    /// checks. One in place of another does not count.
    #[must_use]
    pub fn draws(&self, rule: &RuleId) -> u32 {
        self.rules.get(rule).map_or(0, |spent| spent.draws)
    }

    /// Whether a rule leaves its next use to people: by its next draw with this secret seed, or in
    /// place of a spot check that was withdrawn or has expired.
    #[must_use]
    pub fn leaves_next(&self, seed: &[u8; 32], rule: &RuleId) -> bool {
        let is_owed = |spent: &RuleSpent| spent.checks.is_owed();
        self.rules.get(rule).is_some_and(is_owed) || is_spot_check(seed, rule, self.draws(rule))
    }

    /// Whether a rule counts this operation.
    #[must_use]
    pub fn is_charged(&self, operation: OperationId) -> bool {
        let mut rules = self.rules.values();
        rules.any(|spent| spent.charged.contains(&operation))
    }

    /// Whether a rule has left this proposal to people, and it is not over.
    #[must_use]
    pub fn is_left(&self, operation: OperationId) -> bool {
        let mut rules = self.rules.values();
        rules.any(|spent| spent.checks.is_open(operation))
    }

    /// Whether this proposal was one of the last spot checks of a rule, and is over.
    #[must_use]
    pub fn was_checked(&self, rule: &RuleId, operation: OperationId) -> bool {
        let spent = self.rules.get(rule);
        spent.is_some_and(|spent| spent.checks.has_ended(operation))
    }

    /// The spot checks of one version of a rule that were decided: none of one that has not been used
    /// yet, or is not the latest.
    #[must_use]
    pub fn spot_tally(&self, rule: &RuleName) -> SpotTally {
        let spent = self.rules.get(&rule.id);
        let spent = spent.filter(|spent| spent.version == rule.version);
        spent.map_or_else(SpotTally::default, |spent| spent.checks.tally())
    }

    /// When a rule was last used, in milliseconds since 1970.
    #[must_use]
    pub fn last_use_ms(&self, rule: &RuleId) -> Option<u64> {
        self.rules.get(rule)?.last_use_ms
    }

    /// The failures among the last [`OUTCOMES_KEPT`] uses of one version of a rule: its latest.
    #[must_use]
    pub fn failures(&self, rule: &RuleName) -> usize {
        let spent = self.rules.get(&rule.id);
        let spent = spent.filter(|spent| spent.version == rule.version);
        spent.map_or(0, |spent| {
            let outcomes = spent.outcomes.iter();
            outcomes.filter(|(_, failed)| *failed).count()
        })
    }

    /// Whether a rule counts more calls than are kept.
    #[must_use]
    pub fn is_full(&self, rule: &RuleId, now_ms: u64) -> bool {
        let spent = self.rules.get(rule);
        spent.is_some_and(|spent| now_ms < spent.full_until_ms)
    }

    /// The calls that a rule counts in a window, without this one.
    pub(crate) fn in_window(
        &self,
        rule: &RuleId,
        window: RuleWindow,
        now_ms: u64,
        without: OperationId,
    ) -> impl Iterator<Item = &RuleCharge> {
        let charges = self.rules.get(rule).map(|spent| &spent.charges);
        let latest = charges.into_iter().flat_map(|charges| charges.iter().rev());
        latest
            .take_while(move |charge| window.has(charge.at_ms, now_ms))
            .filter(move |charge| charge.operation != without)
    }

    /// Whether a proposer made the call that a guard asks for, and had its answer in time.
    pub(crate) fn has_answered(
        &self,
        guard: &AfterGuard,
        proposer: &ParticipantId,
        same: &[(&Pointer, &[u8])],
        now_ms: u64,
    ) -> bool {
        let has_value = |call: &AnsweredCall, (pointer, value): &(&Pointer, &[u8])| {
            let mut values = call.values.iter();
            values.any(|(known, known_value)| {
                known == *pointer && known_value.as_str().as_bytes() == *value
            })
        };
        self.answered.iter().rev().any(|call| {
            guard.within.has(call.at_ms, now_ms)
                && call.proposer == *proposer
                && call.to == guard.to
                && call.method == guard.method
                && call.target == guard.target
                && same.iter().all(|one| has_value(call, one))
        })
    }

    /// Whether this answer was taken already, as a journal may have it twice.
    fn was_remembered(&self, call: &AnsweredCall) -> bool {
        let latest = self.answered.iter().rev();
        let mut since = latest.take_while(|known| known.at_ms >= call.at_ms);
        since.any(|known| known.operation == call.operation)
    }

    fn remember(&mut self, call: AnsweredCall) {
        if self.was_remembered(&call) {
            return;
        }
        let now_ms = call.at_ms;
        let proposer = call.proposer.clone();
        self.answered.push(proposer.account(), 1, call);
        self.answered.shrink(ANSWERED_CALLS_MAX, usize::MAX);
        let is_old = |first: &AnsweredCall| now_ms.saturating_sub(first.at_ms) > ANSWERED_MS;
        while self.answered.pop_if(is_old).is_some() {}
    }
}

impl RuleSpent {
    fn charge(&mut self, charge: RuleCharge) {
        if !self.charged.insert(charge.operation) {
            return;
        }
        self.begin(charge.rule.version);
        if charge.is_use {
            self.draws = self.draws.saturating_add(1);
            if charge.rule.version == self.version {
                self.uses = self.uses.saturating_add(1);
            }
            self.last_use_ms = self.last_use_ms.max(Some(charge.at_ms));
        }
        let now_ms = charge.at_ms;
        // In the order of their times: windows end at the first charge before them.
        let at = self.charges.partition_point(|one| one.at_ms <= now_ms);
        self.charges.insert(at, charge);
        self.drop_old(now_ms);
        if self.charges.len() > RULE_CHARGES_MAX
            && let Some(first) = self.drop_first()
        {
            let counts_until_ms = first.at_ms.saturating_add(first.keep_ms);
            self.full_until_ms = self.full_until_ms.max(counts_until_ms);
        }
    }

    /// Begins a version, if it is a newer one, with a budget of its own. Windows stay.
    fn begin(&mut self, version: u32) {
        if version > self.version {
            self.version = version;
            self.uses = 0;
            self.outcomes.clear();
            self.checks.begin();
        }
    }

    fn spot(&mut self, version: u32, operation: OperationId) {
        self.begin(version);
        if self.checks.open(operation, version) == Some(SpotCause::Drawn) {
            self.draws = self.draws.saturating_add(1);
        }
    }

    fn carry(&mut self, totals: RuleTotals) {
        if totals.rule.version < self.version {
            return;
        }
        self.begin(totals.rule.version);
        self.uses = self.uses.max(totals.uses);
        self.draws = self.draws.max(totals.draws);
        self.last_use_ms = self.last_use_ms.max(totals.last_use_ms);
        self.full_until_ms = self.full_until_ms.max(totals.full_until_ms);
        self.outcomes = totals.outcomes.into();
        self.checks = SpotChecks::carried(totals.checks);
    }

    /// Drops the first charges that no guard needs any more. Returns whether there were any.
    fn drop_old(&mut self, now_ms: u64) -> bool {
        let before = self.charges.len();
        // An operation that comes twice, as after a crash, comes within a day.
        let is_old =
            |first: &RuleCharge| now_ms.saturating_sub(first.at_ms) > first.keep_ms.max(DAY_MS);
        while self.charges.front().is_some_and(is_old) {
            self.drop_first();
        }
        self.charges.len() < before
    }

    fn drop_first(&mut self) -> Option<RuleCharge> {
        let first = self.charges.pop_front()?;
        self.charged.remove(&first.operation);
        Some(first)
    }

    fn give_back(&mut self, operation: OperationId) {
        if !self.charged.remove(&operation) {
            return;
        }
        let at = self
            .charges
            .iter()
            .position(|one| one.operation == operation);
        let Some(charge) = at.and_then(|at| self.charges.remove(at)) else {
            return;
        };
        if charge.is_use && charge.rule.version == self.version {
            self.uses = self.uses.saturating_sub(1);
        }
    }

    fn end(&mut self, operation: OperationId, failed: bool) {
        let version = self.version;
        let is_use = |one: &RuleCharge| {
            one.operation == operation && one.is_use && one.rule.version == version
        };
        let is_known = self.outcomes.iter().any(|(known, _)| *known == operation);
        if is_known || !self.charges.iter().any(is_use) {
            return;
        }
        self.outcomes.push_back((operation, failed));
        if self.outcomes.len() > OUTCOMES_KEPT {
            self.outcomes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(version: u32, operation: u128, at_ms: u64) -> RuleCharge {
        RuleCharge {
            rule: format!("r1.{version}").parse().unwrap(),
            operation: OperationId(operation),
            at_ms,
            is_use: true,
            amounts: Vec::new(),
            values: Vec::new(),
            keep_ms: 0,
        }
    }

    fn spent(events: impl IntoIterator<Item = SpentEvent>) -> Spent {
        let mut spent = Spent::default();
        events.into_iter().for_each(|event| spent.apply(event));
        spent
    }

    #[test]
    fn a_use_counts_once_however_often_it_is_written() {
        let once = charge(1, 7, 5);
        let spent = spent([
            SpentEvent::Charged(once.clone()),
            SpentEvent::Charged(once.clone()),
        ]);
        assert_eq!(spent.uses(&once.rule), 1);
    }

    #[test]
    fn a_decision_that_did_not_count_gives_its_use_back() {
        let (one, two) = (charge(1, 1, 5), charge(1, 2, 6));
        let name = one.rule.clone();
        let returned = SpentEvent::Returned(two.operation);
        let events = [
            SpentEvent::Charged(one),
            SpentEvent::Charged(two),
            returned.clone(),
            returned,
        ];
        assert_eq!(spent(events).uses(&name), 1);
    }

    #[test]
    fn a_new_version_begins_its_budget_and_keeps_its_windows() {
        let (old, new) = (charge(1, 1, 5), charge(2, 2, 6));
        let (old_name, new_name) = (old.rule.clone(), new.rule.clone());
        let spent = spent([old, new, charge(1, 3, 7)].map(SpentEvent::Charged));
        assert_eq!(spent.uses(&new_name), 1);
        assert_eq!(spent.uses(&old_name), u32::MAX, "it does not come back");
        let hour = RuleWindow::parse("1h").unwrap();
        let counted = |without| {
            spent
                .in_window(&new_name.id, hour, 8, OperationId(without))
                .count()
        };
        // A late call of the old version lies in the windows, too.
        assert_eq!((counted(0), counted(2)), (3, 2));
    }

    #[test]
    fn a_rule_that_counts_too_many_calls_is_full() {
        let most = u64::try_from(RULE_CHARGES_MAX).unwrap();
        let charges = |count: u64| {
            (1..=count).map(|at| RuleCharge {
                keep_ms: DAY_MS,
                ..charge(1, u128::from(at), at)
            })
        };
        let rule = charge(1, 1, 1).rule.id;
        let is_full = |count: u64, now_ms: u64| {
            spent(charges(count).map(SpentEvent::Charged)).is_full(&rule, now_ms)
        };
        assert!(!is_full(most, most));
        assert!(is_full(most + 1, most + 1) && is_full(most + 1, DAY_MS));
        assert!(!is_full(most + 1, DAY_MS + 1));
    }

    fn spotted(version: u32, operation: u128) -> SpentEvent {
        SpentEvent::Spotted {
            rule: charge(version, 1, 1).rule,
            operation: OperationId(operation),
        }
    }

    fn checked(operation: u128, end: SpotEnd) -> SpentEvent {
        SpentEvent::Checked {
            operation: OperationId(operation),
            end,
        }
    }

    #[test]
    fn a_spot_check_takes_a_draw_and_no_use() {
        let name = charge(1, 1, 1).rule;
        let use_of = SpentEvent::Charged(charge(1, 1, 5));
        let mut drawn = spent([use_of, spotted(1, 2), spotted(1, 2)]);
        assert_eq!((drawn.draws(&name.id), drawn.uses(&name)), (2, 1));
        assert!(drawn.is_left(OperationId(2)) && !drawn.is_left(OperationId(1)));
        assert_eq!(drawn.spot_tally(&name), SpotTally::default());
        drawn.apply(checked(2, SpotEnd::Agreed));
        for late in [
            checked(2, SpotEnd::Disagreed),
            spotted(1, 2),
            checked(1, SpotEnd::Agreed),
        ] {
            drawn.apply(late);
        }
        assert!(!drawn.is_left(OperationId(2)) && drawn.was_checked(&name.id, OperationId(2)));
        let one = SpotTally {
            decided: 1,
            agreed: 1,
        };
        assert_eq!(drawn.spot_tally(&name), one);
        // The next version has a tally of its own, and the draws go on.
        drawn.apply(spotted(1, 3));
        drawn.apply(SpentEvent::Charged(charge(2, 4, 6)));
        drawn.apply(checked(3, SpotEnd::Disagreed));
        let next = charge(2, 1, 1).rule;
        assert_eq!(
            (drawn.spot_tally(&next), drawn.draws(&name.id)),
            (SpotTally::default(), 4)
        );
    }

    #[test]
    fn a_spot_check_without_a_decision_is_owed() {
        let name = charge(1, 1, 1).rule;
        let seed = (0..)
            .map(|seed| [seed; 32])
            .find(|seed| !(0..4).any(|draw| is_spot_check(seed, &name.id, draw)))
            .unwrap();
        let mut drawn = spent([spotted(1, 2), checked(2, SpotEnd::Undecided)]);
        for operation in 3..9 {
            assert!(drawn.leaves_next(&seed, &name.id));
            drawn.apply(spotted(1, operation));
            // While it waits, others are used.
            assert!(!drawn.leaves_next(&seed, &name.id));
            assert_eq!(drawn.draws(&name.id), 1);
            drawn.apply(checked(operation, SpotEnd::Undecided));
        }
        assert_eq!(drawn.spot_tally(&name), SpotTally::default());
    }

    #[test]
    fn what_a_journal_carries_folds_to_the_same() {
        let uses = (1..=12)
            .map(|at| SpentEvent::Charged(charge(1, at, 5 + u64::try_from(at).unwrap() * DAY_MS)));
        let ends = (1..=12).map(|at| SpentEvent::Ended {
            operation: OperationId(at),
            failed: at % 3 == 0,
        });
        let more = [
            SpentEvent::Charged(charge(2, 20, 30 * DAY_MS)),
            spotted(2, 21),
            checked(21, SpotEnd::Disagreed),
            spotted(2, 22),
            checked(22, SpotEnd::Undecided),
            spotted(2, 23),
            spotted(2, 24),
            checked(24, SpotEnd::Undecided),
            SpentEvent::Returned(OperationId(20)),
        ];
        let whole = spent(uses.chain(ends).chain(more));
        let carried = spent(whole.carried());
        assert_eq!(carried, whole);
        assert_eq!(carried.uses(&charge(1, 1, 1).rule), u32::MAX);
    }

    #[test]
    fn charges_that_no_guard_needs_make_way_without_another_use() {
        let kept_long = RuleCharge {
            keep_ms: 3 * DAY_MS,
            ..charge(1, 2, 5)
        };
        let other: RuleName = "r2.1".parse().unwrap();
        let of_other = RuleCharge {
            rule: other.clone(),
            ..kept_long
        };
        let mut spent = spent([charge(1, 1, 5), of_other].map(SpentEvent::Charged));
        let mut charges_after = |now_ms| {
            spent.drop_old(now_ms);
            spent.carried_len() - spent.rules.len()
        };
        assert_eq!(charges_after(5 + DAY_MS), 2);
        assert_eq!(charges_after(6 + DAY_MS), 1);
        assert_eq!(charges_after(6 + 3 * DAY_MS), 0);
        assert_eq!(
            (spent.uses(&charge(1, 1, 5).rule), spent.uses(&other)),
            (1, 1)
        );
        // A clock that is set back does not make room in their windows.
        assert_eq!(spent.not_before(7), 6 + 3 * DAY_MS);
    }

    #[test]
    fn the_latest_time_is_a_floor() {
        let spent = spent([SpentEvent::Charged(charge(1, 1, 50))]);
        assert_eq!((spent.not_before(49), spent.not_before(51)), (50, 51));
    }

    #[test]
    fn the_last_outcomes_are_kept() {
        let uses = (1..=12).map(|at| SpentEvent::Charged(charge(1, at, 5)));
        let ends = (1..=12).map(|at| SpentEvent::Ended {
            operation: OperationId(at),
            failed: at < 5,
        });
        let rule = charge(1, 1, 1).rule;
        // The first two of the four failures made way.
        assert_eq!(spent(uses.chain(ends)).failures(&rule), 2);
    }

    #[test]
    fn failures_are_those_of_one_version() {
        let failed = |operation| SpentEvent::Ended {
            operation: OperationId(operation),
            failed: true,
        };
        let [first, next] = [1, 2].map(|version| charge(version, 1, 1).rule);
        let uses = [charge(1, 1, 5), charge(1, 2, 5)].map(SpentEvent::Charged);
        let mut spent = spent(uses.into_iter().chain([failed(1)]));
        // The next version was not used yet.
        assert_eq!((spent.failures(&first), spent.failures(&next)), (1, 0));
        spent.apply(SpentEvent::Charged(charge(2, 3, 6)));
        // The end of a call that the version before has approved.
        spent.apply(failed(2));
        assert_eq!((spent.failures(&first), spent.failures(&next)), (0, 0));
        spent.apply(failed(3));
        assert_eq!(spent.failures(&next), 1);
    }

    #[test]
    fn answered_calls_make_way_at_their_limit_those_of_the_proposer_with_most_first() {
        let answered = |operation: u128, proposer: &str| AnsweredCall {
            operation: OperationId(operation),
            proposer: ParticipantId::new(proposer).unwrap(),
            to: ParticipantId::new("bank").unwrap(),
            method: "tools/call".into(),
            target: "get".into(),
            values: Vec::new(),
            at_ms: 1,
        };
        let one = |operation| SpentEvent::Answered(answered(operation, "scout"));
        assert_eq!(spent([1, 2, 2].map(one)).answered.len(), 2);
        let mut full = spent([SpentEvent::Answered(answered(1, "dave"))]);
        let most = u128::try_from(ANSWERED_CALLS_MAX).unwrap();
        for operation in 2..=most {
            let call = answered(operation, "scout");
            full.answered.push("scout", 1, call);
        }
        full.apply(one(most + 1));
        let kept: Vec<u128> = full.answered.iter().map(|call| call.operation.0).collect();
        assert_eq!(kept.len(), ANSWERED_CALLS_MAX);
        assert_eq!(kept[..2], [1, 3]);
    }
}
