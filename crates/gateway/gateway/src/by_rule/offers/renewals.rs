//! Offers of the next versions of learned rules that are near their ends, to their authors.

use std::sync::Arc;

use model::{Refusal, RefusalCode};
use rules::{
    CallRule, RenewalOffer, RenewalTimes, RuleEvidence, SpotTally, SuspendCause, candidate_of,
    renewal,
};

use super::super::desk::{DeskState, RuleStanding};
use super::super::tried::{PastReader, TriedRule, tallied};
use super::{Learned, Lessons, OfferedRule, RenewedRule, WithheldOffer, end_of_term, in_time};
use crate::dispatch::Dispatch;

/// A learned rule that is near its end, or that of its budget, or over.
pub(super) struct EndingRule {
    pub(super) rule: Arc<CallRule>,
    since_ms: u64,
    used: u32,
    cause: Option<SuspendCause>,
    spots: SpotTally,
    /// When its author dismissed the next version last, in Unix milliseconds.
    dismissed_ms: Option<u64>,
}

impl Dispatch {
    /// The learned rules of a participant that are near their ends.
    pub(super) fn ending_rules(&self, reader: PastReader<'_>, now_ms: u64) -> Vec<EndingRule> {
        let state = self.rules.lock();
        let own = state.learned_of(reader.id);
        own.filter_map(|rule| EndingRule::of(&state, rule, now_ms))
            .collect()
    }

    /// The offer of the next version of a rule, by what its author has approved before and since; or
    /// why there is none.
    pub(super) fn renewal_of(
        &self,
        lessons: &Lessons<'_>,
        learned: &Learned,
        ending: &EndingRule,
    ) -> Result<Result<Option<OfferedRule>, WithheldOffer>, Refusal> {
        in_time(lessons.deadline)?;
        let Some(group) = ending.rule.group() else {
            return Ok(Ok(None));
        };
        let tool = Some(group.tool.clone());
        if learned.quarantined.iter().any(|one| one.tool == tool) {
            return Ok(Ok(None));
        }
        let listed = self.listed(lessons.reader, &group.tool, &group.proposer);
        if !listed.is_that_of(&group) {
            return Ok(Ok(None));
        }
        if let Some(why) = listed.why_withheld() {
            let why = why.to_owned();
            return Ok(Err(WithheldOffer { tool, why }));
        }
        let candidate = candidate_of(&ending.rule, &learned.ready);
        let times = RenewalTimes {
            since_ms: ending.since_ms,
            now_ms: lessons.now_ms,
            expires_ms: end_of_term(lessons.now_ms),
        };
        let renewed = renewal(&ending.rule, candidate, times, &lessons.decisions)
            .map_err(|error| Refusal::new(RefusalCode::Conflict, error.to_string()))?;
        let is_wanted = |renewed: &RenewalOffer| ending.is_wanted(&renewed.offer.rule, lessons);
        let offered = renewed.filter(is_wanted);
        Ok(Ok(
            offered.and_then(|offered| ending.offer(lessons, offered))
        ))
    }
}

impl EndingRule {
    fn of(state: &DeskState, rule: &Arc<CallRule>, now_ms: u64) -> Option<Self> {
        let life = state.book.life(&rule.name.id)?;
        let used = state.book.spent.uses(&rule.name);
        let cause = match state.standing(rule) {
            RuleStanding::InForce if rule.nears_its_end(used, now_ms) => None,
            RuleStanding::Suspended { cause, .. } if is_renewable(&cause) => Some(cause),
            RuleStanding::InForce | RuleStanding::Suspended { .. } | RuleStanding::Refused(_) => {
                return None;
            }
        };
        Some(Self {
            rule: Arc::clone(rule),
            since_ms: life.since_ms,
            used,
            cause,
            spots: state.book.spent.spot_tally(&rule.name),
            dismissed_ms: state.book.renewal_dismissed_ms(&rule.name),
        })
    }

    /// Whether its author has not dismissed the next version, or has approved such a call since.
    fn is_wanted(&self, next: &CallRule, lessons: &Lessons<'_>) -> bool {
        let is_later = |one: &RuleEvidence, dismissed_ms: u64| {
            one.teaches() && one.at_ms > dismissed_ms && next.covers(one)
        };
        self.dismissed_ms.is_none_or(|dismissed_ms| {
            let mut decisions = lessons.decisions.iter();
            decisions.any(|one| is_later(one, dismissed_ms))
        })
    }

    fn offer(&self, lessons: &Lessons<'_>, offered: RenewalOffer) -> Option<OfferedRule> {
        let RenewalOffer { offer, changes } = offered;
        let past: Vec<&RuleEvidence> = lessons.decisions.iter().collect();
        let rules = std::slice::from_ref(&offer.rule);
        let tried = tallied(rules, &offer.replay, &past, lessons.reader.id);
        let [mut tried] = <[TriedRule; 1]>::try_from(tried).ok()?;
        tried.rule = offer.rule.clone();
        let renews = RenewedRule {
            name: self.rule.name.clone(),
            why: self.cause.as_ref().map(SuspendCause::words),
            used: self.used,
            left: self.rule.uses.map(|most| most.saturating_sub(self.used)),
            expires_ms: self.rule.expires_ms,
            spots: self.spots,
            changes,
        };
        Some(OfferedRule {
            offer,
            tried,
            renews: Some(renews),
        })
    }
}

/// Whether a suspension says nothing against a rule: it only came to an end.
fn is_renewable(cause: &SuspendCause) -> bool {
    matches!(
        cause,
        SuspendCause::BudgetSpent | SuspendCause::Expired | SuspendCause::Dormant
    )
}
