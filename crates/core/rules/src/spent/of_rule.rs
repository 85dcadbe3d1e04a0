//! The spending of one rule.

use std::collections::{BTreeSet, VecDeque};

use model::OperationId;

use crate::call::CallStage;
use crate::charge::{OUTCOMES_KEPT, RULE_CHARGES_MAX, RuleCharge, RuleTotals, ShadowedCall};
use crate::shadow::{ShadowLooks, ShadowMark};
use crate::spot::{SpotCause, SpotChecks};
use crate::window::DAY_MS;

/// The spending of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RuleSpent {
    /// The version whose uses are counted.
    pub(super) version: u32,
    pub(super) uses: u32,
    /// Uses of all versions, and spot checks.
    pub(super) draws: u32,
    pub(super) last_use_ms: Option<u64>,
    /// In the order of their times.
    pub(super) charges: VecDeque<RuleCharge>,
    /// The operations of the charges.
    pub(super) charged: BTreeSet<OperationId>,
    /// Outcomes of the last uses, the latest last: true if it failed.
    pub(super) outcomes: VecDeque<(OperationId, bool)>,
    pub(super) checks: SpotChecks,
    pub(super) shadow: ShadowLooks,
    /// Until when a charge that made way counts, in milliseconds since 1970.
    pub(super) full_until_ms: u64,
}

impl RuleSpent {
    pub(super) fn charge(&mut self, charge: RuleCharge) {
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
            self.shadow.begin();
        }
    }

    pub(super) fn spot(&mut self, version: u32, operation: OperationId) {
        self.begin(version);
        if self.checks.open(operation, version) == Some(SpotCause::Drawn) {
            self.draws = self.draws.saturating_add(1);
        }
    }

    /// Takes a look of a version in shadow.
    pub(super) fn look(&mut self, looked: &ShadowedCall) {
        let version = looked.rule.version;
        self.begin(version);
        let mark = ShadowMark {
            version,
            decision: looked.decision,
        };
        match looked.stage {
            CallStage::Proposed => self.shadow.open(looked.operation, mark),
            CallStage::Direct => self.shadow.run(looked.operation, mark, self.version),
        }
    }

    pub(super) fn carry(&mut self, totals: RuleTotals) {
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
        self.shadow = ShadowLooks::carried(totals.shadow);
    }

    /// Drops the first charges that no guard needs any more. Returns whether there were any.
    pub(super) fn drop_old(&mut self, now_ms: u64) -> bool {
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

    pub(super) fn give_back(&mut self, operation: OperationId) {
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

    pub(super) fn end(&mut self, operation: OperationId, failed: bool) {
        let version = self.version;
        let is_use = |one: &RuleCharge| {
            one.operation == operation && one.is_use && one.rule.version == version
        };
        // What became of a call that another one decided says nothing of a rule in shadow.
        let mark = self.shadow.mark(operation);
        if mark.is_some_and(|mark| mark.version == version) {
            return;
        }
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
