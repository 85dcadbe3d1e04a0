//! Learner: groups of decisions, candidates that freeze, shadows, and what is ready to be offered.
//!
//! It has no model in it and enacts nothing. Only values that were approved shape a candidate, and
//! only decisions after that count for it. Rejections are hard constraints, of whichever proposer.

mod group;
mod thresholds;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::candidate::{CandidateSort, GroupKey, RuleCandidate};
use crate::conditions::Conditions;
use crate::evidence::{PastVerdict, RejectReason, RuleEvidence, RuledTool};
use crate::evidence_log::EvidenceLog;
use crate::name::RuleName;
use crate::rule::{CallRule, RuleDecision};
use crate::rule_set::RuleSet;
use crate::window::DAY_MS;
use group::{Group, TriedBeside};
pub use thresholds::{
    APPROVALS_MIN, GROUP_CANDIDATES_MAX, LearnerThresholds, PROVEN_REPEATS_MIN, REPEATS_MIN,
    SHADOW_DAYS_MIN, SHADOW_MIN,
};

/// The most groups; those that were not used for longest make way.
pub const GROUPS_MAX: usize = 1_000;
/// The time for which nothing is learned of a tool whose decisions are not a matter of its
/// arguments: 30 days, in milliseconds.
pub const QUARANTINE_MS: u64 = 30 * DAY_MS;

/// Why nothing is learned of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuarantineCause {
    /// One call was approved and rejected: the reason is not in the arguments.
    DecidedBothWays,
    /// A reviewer said that time or context was the reason.
    Context,
    /// A rejection that a candidate covers.
    CandidateRefuted,
}

impl QuarantineCause {
    /// The cause that a rejection is: of itself, or beside an approval of the same call before it.
    #[must_use]
    pub fn of_rejection(rejection: &RuleEvidence, was_approved: bool) -> Option<Self> {
        if rejection.verdict == PastVerdict::Rejected(RejectReason::Context) {
            Some(Self::Context)
        } else {
            was_approved.then_some(Self::DecidedBothWays)
        }
    }
}

/// A consequence of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearnerNews {
    /// A known rule covers a rejection: it is to be suspended before its next use, and an offer of it
    /// ends.
    Suspends(RuleName),
    /// Nothing is learned of a tool for [`QUARANTINE_MS`].
    Quarantined(RuledTool, QuarantineCause),
    /// A candidate took its form.
    Frozen(RuleCandidate),
    /// A candidate has reached what an offer needs.
    Ready(RuleCandidate),
}

/// The knowledge that decisions have given.
#[derive(Debug, Clone, Default)]
pub struct Learner {
    thresholds: LearnerThresholds,
    evidence: EvidenceLog,
    groups: BTreeMap<GroupKey, Group>,
    /// Rejections by tool.
    warnings: BTreeMap<RuledTool, Vec<Arc<RuleEvidence>>>,
    /// Until when nothing is learned of a tool, in milliseconds since 1970.
    quarantined: BTreeMap<RuledTool, u64>,
}

impl Learner {
    /// A learner with other thresholds.
    #[must_use]
    pub fn with(thresholds: LearnerThresholds) -> Self {
        Self {
            thresholds,
            ..Self::default()
        }
    }

    /// Takes a decision, after it is durable. `known` are all rules that have not ended, offered and
    /// suspended ones among them: what one of them covers is not learned again, a candidate inside of one
    /// is dropped, and one that covers a rejection is named.
    pub fn take(&mut self, decision: RuleEvidence, known: &RuleSet) -> Vec<LearnerNews> {
        let now_ms = decision.at_ms;
        let decision = Arc::new(decision);
        for old in self.evidence.take(Arc::clone(&decision)) {
            self.forget(&old);
        }
        self.drop_empty(now_ms);
        if decision.warns() {
            return self.take_rejection(&decision, known);
        }
        if !decision.teaches() || self.is_quarantined(&decision.tool, now_ms) {
            return Vec::new();
        }
        let mut news = Vec::new();
        let contradicts = |warning: &Arc<RuleEvidence>| warning.is_same_call(&decision);
        let warnings = self.warnings.get(&decision.tool);
        if warnings.is_some_and(|warnings| warnings.iter().any(contradicts)) {
            return self.quarantine(&decision.tool, now_ms, QuarantineCause::DecidedBothWays);
        }
        let Some(key) = key_of(&decision) else {
            return Vec::new();
        };
        self.make_room(&key);
        let no_warnings = Vec::new();
        let warnings = self.warnings.get(&decision.tool).unwrap_or(&no_warnings);
        let group = self.groups.entry(key.clone()).or_default();
        group.take(&decision);
        for ready in group.shadow(&decision, &self.thresholds) {
            news.push(LearnerNews::Ready(ready));
        }
        let known = known_of(&key, known);
        for when in &known {
            group.drop_inside(when);
        }
        let beside = TriedBeside {
            warnings,
            known: &known,
            thresholds: &self.thresholds,
        };
        let is_known = |candidate: &RuleCandidate| {
            let mut covering = known.iter();
            covering.any(|when| when.includes(&candidate.when))
        };
        for candidate in group.candidates_of(&key, &beside, now_ms) {
            if !is_known(&candidate) && group.freeze(candidate.clone()) {
                let is_ready = candidate.sort == CandidateSort::Exact;
                news.push(LearnerNews::Frozen(candidate.clone()));
                news.extend(is_ready.then_some(LearnerNews::Ready(candidate)));
            }
        }
        news
    }

    fn take_rejection(
        &mut self,
        decision: &Arc<RuleEvidence>,
        known: &RuleSet,
    ) -> Vec<LearnerNews> {
        let tool = &decision.tool;
        let is_covering =
            |rule: &&CallRule| rule.decision == RuleDecision::Approve && rule.covers(decision);
        let covering = known.rules().iter().filter(is_covering);
        let mut news: Vec<LearnerNews> = covering
            .map(|rule| LearnerNews::Suspends(rule.name.clone()))
            .collect();
        let warnings = self.warnings.entry(tool.clone()).or_default();
        warnings.push(Arc::clone(decision));
        let was_approved = self.groups.iter().any(|(key, group)| {
            key.tool == *tool && key.proposer == decision.proposer && group.has(&decision.arguments)
        });
        let refuted = self
            .groups
            .iter()
            .filter(|(key, _)| key.tool == *tool)
            .flat_map(|(_, group)| group.candidates())
            .any(|one| decision.may_lie_in(&one.when));
        let of_itself = QuarantineCause::of_rejection(decision, was_approved);
        let cause = of_itself.or(refuted.then_some(QuarantineCause::CandidateRefuted));
        if let Some(cause) = cause {
            news.extend(self.quarantine(tool, decision.at_ms, cause));
        }
        news
    }

    /// Ends all that was learned of a tool, and learns nothing of it for a while.
    fn quarantine(
        &mut self,
        tool: &RuledTool,
        now_ms: u64,
        cause: QuarantineCause,
    ) -> Vec<LearnerNews> {
        self.quarantined
            .insert(tool.clone(), now_ms.saturating_add(QUARANTINE_MS));
        self.groups.retain(|key, _| key.tool != *tool);
        vec![LearnerNews::Quarantined(tool.clone(), cause)]
    }

    /// Whether nothing is learned of a tool now.
    #[must_use]
    pub fn is_quarantined(&self, tool: &RuledTool, now_ms: u64) -> bool {
        self.quarantined
            .get(tool)
            .is_some_and(|until_ms| now_ms < *until_ms)
    }

    /// The candidates that have reached what an offer needs.
    pub fn ready(&self) -> impl Iterator<Item = &RuleCandidate> {
        let all = self.groups.values().flat_map(Group::candidates);
        all.filter(|one| group::is_ready(one, &self.thresholds))
    }

    /// All candidates.
    pub fn candidates(&self) -> impl Iterator<Item = &RuleCandidate> {
        self.groups.values().flat_map(Group::candidates)
    }

    /// All decisions that are kept, the oldest first.
    pub fn evidence(&self) -> impl Iterator<Item = &RuleEvidence> {
        self.evidence.iter().map(AsRef::as_ref)
    }

    fn drop_empty(&mut self, now_ms: u64) {
        self.quarantined.retain(|_, until_ms| now_ms < *until_ms);
        self.warnings.retain(|_, warnings| !warnings.is_empty());
        self.groups.retain(|_, group| !group.is_empty());
    }

    /// Forgets a decision that is not kept any more.
    fn forget(&mut self, old: &Arc<RuleEvidence>) {
        if let Some(warnings) = self.warnings.get_mut(&old.tool) {
            warnings.retain(|one| !Arc::ptr_eq(one, old));
        }
        let group = key_of(old).and_then(|key| self.groups.get_mut(&key));
        if let Some(group) = group {
            group.forget(old);
        }
    }

    /// Makes room for one more group.
    fn make_room(&mut self, key: &GroupKey) {
        if self.groups.len() < GROUPS_MAX || self.groups.contains_key(key) {
            return;
        }
        let oldest = self.groups.iter().min_by_key(|(_, group)| group.used_ms());
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            self.groups.remove(&oldest);
        }
    }
}

/// The group of a decision, if its tool and server were known.
fn key_of(decision: &RuleEvidence) -> Option<GroupKey> {
    Some(GroupKey {
        tool: decision.tool.clone(),
        definition: decision.definition?,
        server: decision.server?,
        proposer: decision.proposer.clone(),
        members: decision.members(),
    })
}

/// The conditions of the known approving rules about the calls of a group.
fn known_of<'k>(key: &GroupKey, known: &'k RuleSet) -> Vec<&'k Conditions> {
    let is_about = |rule: &&CallRule| {
        let scope = &rule.scope;
        rule.decision == RuleDecision::Approve
            && scope.is_of_tool(&key.tool)
            && scope.definition == Some(key.definition)
            && scope.server == Some(key.server)
            && scope.has_proposer(&key.proposer)
    };
    let about = known.rules().iter().filter(is_about);
    about.map(|rule| &rule.when).collect()
}

#[cfg(test)]
mod tests;
