//! Spending of rules: uses, counted calls and answered calls, folded from events.
//!
//! A value without a clock: the owner of the journal keeps the events, and folds them again after a
//! restart. Calls that are still open count like those that are over, and an event that comes twice
//! counts once. A journal that drops old events begins with [`Spent::carried`], which folds to the
//! same value.

mod of_rule;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{Latest, OperationId, ParticipantId};

use crate::charge::{RuleCharge, RuleTotals, ShadowedCall};
use crate::constant::Constant;
use crate::guards::AfterGuard;
use crate::name::{RuleId, RuleName};
use crate::pointer::Pointer;
use crate::shadow::{ShadowDecision, ShadowEnd, ShadowMark, ShadowTally};
use crate::spot::{SpotEnd, SpotTally, is_spot_check};
use crate::window::RuleWindow;
use of_rule::RuleSpent;

/// The most answered calls that are kept for guards that ask for an earlier call. The proposer that has
/// most of them loses its oldest, so that none drives out those of others.
pub const ANSWERED_CALLS_MAX: usize = 10_000;
/// The least time that an answered call is kept.
const ANSWERED_MS: u64 = crate::window::WINDOW_MS_MAX;

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
    /// A rule in shadow has looked at a proposal, or at a call that ran without an approval.
    Shadowed(ShadowedCall),
    /// A proposal at which rules in shadow have looked is decided, or over.
    ShadowEnded {
        /// The proposal.
        operation: OperationId,
        /// Its end.
        end: ShadowEnd,
    },
    /// A rule's totals, after its charges, in a journal that dropped older events.
    Carried(RuleTotals),
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
            SpentEvent::Shadowed(looked) => {
                let spent = self.rules.entry(looked.rule.id.clone()).or_default();
                spent.look(&looked);
            }
            SpentEvent::ShadowEnded { operation, end } => {
                for spent in self.rules.values_mut() {
                    spent.shadow.end(operation, end, spent.version);
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
                shadow: spent.shadow.totals(),
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

    /// The look of a version of a rule in shadow at a proposal or call: of one that waits, or of one of
    /// the last that are over.
    #[must_use]
    pub fn shadow_mark(&self, rule: &RuleName, operation: OperationId) -> Option<ShadowMark> {
        let mark = self.rules.get(&rule.id)?.shadow.mark(operation);
        mark.filter(|mark| mark.version == rule.version)
    }

    /// Whether a rule in shadow has looked at this proposal, and it is not over.
    #[must_use]
    pub fn is_shadowed(&self, operation: OperationId) -> bool {
        let mut rules = self.rules.values();
        rules.any(|spent| spent.shadow.is_open(operation))
    }

    /// Whether a rule in shadow has looked at a proposal that is not over.
    #[must_use]
    pub fn has_open_shadows(&self) -> bool {
        let mut rules = self.rules.values();
        rules.any(|spent| spent.shadow.has_open())
    }

    /// The decisions that rules in shadow would have made about a proposal or call.
    #[must_use]
    pub fn shadows_of(&self, operation: OperationId) -> Vec<ShadowDecision> {
        let looks = self.rules.iter().filter_map(|(id, spent)| {
            let mark = spent.shadow.mark(operation)?;
            let rule = RuleName {
                id: id.clone(),
                version: mark.version,
            };
            Some(ShadowDecision {
                rule,
                decision: mark.decision?,
            })
        });
        looks.collect()
    }

    /// The tally of one version of a rule in shadow; empty of one that has not looked at anything yet,
    /// or is not the latest.
    #[must_use]
    pub fn shadow_tally(&self, rule: &RuleName) -> ShadowTally {
        let spent = self.rules.get(&rule.id);
        let spent = spent.filter(|spent| spent.version == rule.version);
        spent.map_or_else(ShadowTally::default, |spent| {
            spent.shadow.tally(spent.version)
        })
    }

    /// When a rule was last used, in milliseconds since 1970.
    #[must_use]
    pub fn last_use_ms(&self, rule: &RuleId) -> Option<u64> {
        self.rules.get(rule)?.last_use_ms
    }

    /// The failures among the last [`OUTCOMES_KEPT`](crate::OUTCOMES_KEPT) uses of one version of a
    /// rule: its latest.
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

#[cfg(test)]
mod tests;
