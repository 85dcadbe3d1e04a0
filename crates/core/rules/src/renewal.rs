//! Renewals: the next version of a learned rule, with what differs from the present one.

use model::{OperationId, ParticipantId};

use crate::acceptance::RuleRenewal;
use crate::arguments::Arguments;
use crate::candidate::{Acceptance, CandidateSort, GroupKey, RuleCandidate};
use crate::evidence::{PastVerdict, RuleEvidence, RuledTool};
use crate::fit::Fit;
use crate::name::RuleName;
use crate::offer::{RuleOffer, offer, unlike_first};
use crate::pointer::Pointer;
use crate::rule::CallRule;
use crate::rule_set::RuleSetError;
use crate::value_test::ValueTest;
use crate::window::DAY_MS;

/// A rule is offered again when it has so many days left, or fewer.
pub const RENEWAL_DAYS: u64 = 3;
/// A rule is offered again when one part in so many of its budget is left, or less.
pub const RENEWAL_PART: u32 = 3;

/// The conditions of a next version beside those of the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RenewalBreadth {
    /// They are the same.
    Same,
    /// It covers more.
    Wider,
    /// It covers less.
    Narrower,
}

impl RenewalBreadth {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Wider => "wider",
            Self::Narrower => "narrower",
        }
    }
}

/// The test of a member before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTest {
    /// The member.
    pub member: Pointer,
    /// The present test.
    pub before: ValueTest,
    /// The test of the next version.
    pub after: ValueTest,
}

/// Calls with the same arguments that a rule has approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleUse {
    /// The latest of them.
    pub operation: OperationId,
    /// Their number.
    pub times: u32,
    /// The arguments.
    pub arguments: Arguments,
}

/// The differences of a next version, and what the present one did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewalChanges {
    /// Its conditions beside the present ones.
    pub breadth: RenewalBreadth,
    /// The tests that differ.
    pub tests: Vec<ChangedTest>,
    /// The calls that the present version has approved and that are kept, those that are least like the
    /// approvals first; at most [`TABLE_ROWS_MAX`](crate::TABLE_ROWS_MAX).
    pub uses: Vec<RuleUse>,
    /// The number of different ones.
    pub different: usize,
    /// Rejections of calls of the tool since the present version came into force. None is covered: that
    /// would have suspended it.
    pub rejections: u32,
}

/// The next version of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewalOffer {
    /// It, and what it rests on.
    pub offer: RuleOffer,
    /// Its differences.
    pub changes: RenewalChanges,
}

/// The times of a renewal, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalTimes {
    /// When the present version came into force.
    pub since_ms: u64,
    /// The present time.
    pub now_ms: u64,
    /// The end of the next version.
    pub expires_ms: u64,
}

impl CallRule {
    /// Whether the rule is so near to its end or to that of its budget that it is offered again.
    #[must_use]
    pub fn nears_its_end(&self, used: u32, now_ms: u64) -> bool {
        let nears_budget = self.uses.is_some_and(|most| {
            let left = most.saturating_sub(used);
            used > 0 && left.saturating_mul(RENEWAL_PART) <= most
        });
        let days_ms = RENEWAL_DAYS * DAY_MS;
        let nears_end = self
            .expires_ms
            .is_some_and(|end| end.saturating_sub(now_ms) <= days_ms);
        nears_budget || nears_end
    }

    /// The decisions from which a learned rule was learned, as a group; `None` of any other rule.
    #[must_use]
    pub fn group(&self) -> Option<GroupKey> {
        let scope = &self.scope;
        let [proposer] = scope.proposers.as_slice() else {
            return None;
        };
        Some(GroupKey {
            tool: RuledTool {
                to: scope.to.clone()?,
                method: scope.method.clone(),
                target: scope.target.clone()?,
            },
            definition: scope.definition?,
            server: scope.server?,
            proposer: ParticipantId::new(proposer.as_str()).ok()?,
            members: self.when.present().cloned().collect(),
        })
    }
}

/// The candidate that a renewal of a rule takes: the widest one of its group that covers more than the
/// rule, the same, or less. One that only repeats a call does not narrow a rule for several.
#[must_use]
pub fn candidate_of<'c>(
    rule: &CallRule,
    ready: impl IntoIterator<Item = &'c RuleCandidate>,
) -> Option<&'c RuleCandidate> {
    let group = rule.group()?;
    let comparable = ready.into_iter().filter(|one| {
        let covers = one.when.includes(&rule.when);
        let narrows = one.sort == CandidateSort::General && rule.when.includes(&one.when);
        one.group == group && (covers || narrows)
    });
    comparable.max_by_key(|one| (one.when.includes(&rule.when), one.approvals()))
}

/// The renewal of a learned rule, out of the decisions that are kept: with the conditions of this
/// candidate, or the present ones. `None` if none of the approvals of its author is kept any more.
///
/// # Errors
/// The next version cannot stand in a set.
pub fn renewal(
    rule: &CallRule,
    candidate: Option<&RuleCandidate>,
    times: RenewalTimes,
    evidence: &[RuleEvidence],
) -> Result<Option<RenewalOffer>, RuleSetError> {
    let Some(group) = rule.group() else {
        return Ok(None);
    };
    let same = candidate
        .is_none()
        .then(|| same_again(rule, group, times, evidence));
    let Some(candidate) = candidate.or(same.as_ref()) else {
        return Ok(None);
    };
    let acceptance = Acceptance {
        name: RuleName {
            version: rule.name.version.saturating_add(1),
            ..rule.name.clone()
        },
        author: rule.author.clone(),
        at_ms: times.now_ms,
        expires_ms: Some(times.expires_ms),
        destructive: rule.destructive,
    };
    let Some(mut offer) = offer(candidate, &acceptance, evidence)? else {
        return Ok(None);
    };
    let used: Vec<&RuleEvidence> = evidence.iter().filter(|one| is_use_of(rule, one)).collect();
    let confirmed = used
        .iter()
        .filter(|one| candidate.when.fit_closed(&one.arguments) == Fit::Held);
    let approvals = offer.approvals.len() + confirmed.count();
    let mut next = rule.renewed(&RuleRenewal {
        approvals: u32::try_from(approvals).unwrap_or(u32::MAX),
        expires_ms: times.expires_ms,
        definition: candidate.group.definition,
        server: candidate.group.server,
        destructive: rule.destructive,
    });
    if next.when != offer.rule.when {
        next.when = offer.rule.when.clone();
        next.guards = offer.rule.guards.clone();
    }
    let changes = RenewalChanges::of(rule, &next, &used, times, evidence);
    offer.digest = next.digest();
    offer.rule = next;
    Ok(Some(RenewalOffer { offer, changes }))
}

/// A candidate with the present conditions. The approvals since it came into force are its shadow.
fn same_again(
    rule: &CallRule,
    group: GroupKey,
    times: RenewalTimes,
    evidence: &[RuleEvidence],
) -> RuleCandidate {
    let is_later = |one: &&RuleEvidence| {
        one.at_ms > times.since_ms
            && one.teaches()
            && one.tool == group.tool
            && one.proposer == group.proposer
            && rule.when.fit_closed(&one.arguments) == Fit::Held
    };
    let later = evidence.iter().filter(is_later).count();
    RuleCandidate {
        group,
        sort: CandidateSort::General,
        when: rule.when.clone(),
        born_at_ms: times.since_ms,
        frozen: 0,
        shadow: u32::try_from(later).unwrap_or(u32::MAX),
        shadow_days: Vec::new(),
    }
}

/// Whether a decision is one of this rule, of whatever version.
fn is_use_of(rule: &CallRule, decision: &RuleEvidence) -> bool {
    let by = decision.rule.as_ref();
    by.is_some_and(|by| by.id == rule.name.id) && decision.verdict == PastVerdict::Approved
}

impl RenewalChanges {
    fn of(
        rule: &CallRule,
        next: &CallRule,
        used: &[&RuleEvidence],
        times: RenewalTimes,
        evidence: &[RuleEvidence],
    ) -> Self {
        let of_version = used
            .iter()
            .filter(|one| one.rule.as_ref() == Some(&rule.name));
        let uses = uses_of(of_version.copied());
        let tool = rule.group().map(|group| group.tool);
        let rejected = evidence.iter().filter(|one| {
            one.warns() && one.at_ms > times.since_ms && tool.as_ref() == Some(&one.tool)
        });
        let approved = evidence
            .iter()
            .filter(|one| one.teaches() && rule.when.fit_closed(&one.arguments) == Fit::Held);
        let all: Vec<Arguments> = uses.iter().map(|one| one.arguments.clone()).collect();
        let sorted = unlike_first(&all, approved.map(|one| &one.arguments));
        let shown = sorted
            .into_iter()
            .filter_map(|arguments| uses.iter().find(|one| one.arguments == *arguments));
        Self {
            breadth: breadth_of(rule, next),
            tests: changed_tests(rule, next),
            uses: shown.cloned().collect(),
            different: uses.len(),
            rejections: u32::try_from(rejected.count()).unwrap_or(u32::MAX),
        }
    }
}

/// Decisions, those with the same arguments as one.
fn uses_of<'e>(decisions: impl Iterator<Item = &'e RuleEvidence>) -> Vec<RuleUse> {
    let mut uses: Vec<RuleUse> = Vec::new();
    for one in decisions {
        match uses
            .iter_mut()
            .find(|known| known.arguments == one.arguments)
        {
            Some(known) => {
                known.times = known.times.saturating_add(1);
                known.operation = one.operation;
            }
            None => uses.push(RuleUse {
                operation: one.operation,
                times: 1,
                arguments: one.arguments.clone(),
            }),
        }
    }
    uses
}

fn breadth_of(rule: &CallRule, next: &CallRule) -> RenewalBreadth {
    match (
        next.when.includes(&rule.when),
        rule.when.includes(&next.when),
    ) {
        (true, true) => RenewalBreadth::Same,
        (true, false) => RenewalBreadth::Wider,
        (false, _) => RenewalBreadth::Narrower,
    }
}

fn changed_tests(rule: &CallRule, next: &CallRule) -> Vec<ChangedTest> {
    let changed = rule.when.iter().filter_map(|(member, before)| {
        let after = next.when.get(member).filter(|after| *after != before)?;
        Some(ChangedTest {
            member: member.clone(),
            before: before.clone(),
            after: after.clone(),
        })
    });
    changed.collect()
}

#[cfg(test)]
mod tests;
