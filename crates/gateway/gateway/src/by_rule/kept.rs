//! Rules in the journal: versions that came into force, suspensions, and spending; and decisions,
//! on which rules are tried.

mod answered;
mod decided;
mod record;
mod shadow;
mod spot;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Digest, ParticipantId};
use rules::{
    CallRule, EVIDENCE_MS, EvidenceLog, RuleEnd, RuleEvidence, RuleId, RuleName, RulePhase, Spent,
    SpentEvent, SuspendCause,
};
use store::Fold;

pub(crate) use decided::DecidedCall;
pub(crate) use record::{
    AcceptedRule, DismissedOffer, EndedRule, EndedUse, LearnedText, ReturnedUse, RuleRecord,
    SuspendedRule,
};
pub(crate) use shadow::ShadowEnded;
pub(crate) use spot::{CheckedSpot, SpotSeed, SpottedCall};

/// The latest version of a rule that was in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleLife {
    pub(crate) name: RuleName,
    /// Digest of its text.
    pub(crate) digest: Digest,
    /// When it was taken into force, in Unix milliseconds.
    pub(crate) since_ms: u64,
    /// Incarnations of the names of its author and its proposers then, of those that had one.
    pub(crate) bearers: BTreeMap<String, String>,
    /// The rule itself, if it was learned or added by hand.
    pub(crate) learned: Option<LearnedText>,
    /// Whether its author has added it by hand: no decisions taught it.
    pub(crate) by_hand: bool,
    /// Active, suspended, or ended: nothing else is recorded yet. That a rule is in shadow its text says.
    phase: RulePhase,
    /// When it was suspended, or ended, in Unix milliseconds.
    changed_ms: Option<u64>,
}

/// A suspension of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension<'l> {
    pub(crate) cause: &'l SuspendCause,
    /// Its time in Unix milliseconds.
    pub(crate) at_ms: u64,
}

impl RuleLife {
    /// Its suspension, if it is suspended.
    pub(crate) fn suspension(&self) -> Option<Suspension<'_>> {
        match &self.phase {
            RulePhase::Suspended { cause, .. } => Some(Suspension {
                cause,
                at_ms: self.changed_ms.unwrap_or_default(),
            }),
            RulePhase::Offered | RulePhase::Shadow | RulePhase::Active | RulePhase::Ended(_) => {
                None
            }
        }
    }

    /// Whether it will never decide again.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, RulePhase::Ended(_))
    }

    /// Whether this is its version, which was learned and has not ended.
    pub(crate) fn is_now(&self, name: &RuleName) -> bool {
        self.name == *name && self.learned.is_some() && !self.has_ended()
    }

    /// Whether this cause changes something.
    pub(crate) fn is_suspended_by(&self, cause: &SuspendCause) -> bool {
        self.phase.suspended(cause) != self.phase
    }

    /// The participant that ended it, if it has ended.
    fn ended_by(&self) -> Option<&ParticipantId> {
        match &self.phase {
            RulePhase::Ended(RuleEnd::Revoked(by)) => Some(by),
            RulePhase::Ended(_)
            | RulePhase::Offered
            | RulePhase::Shadow
            | RulePhase::Active
            | RulePhase::Suspended { .. } => None,
        }
    }

    /// The rule itself, if it was learned from decisions.
    pub(crate) fn taught(&self) -> Option<&Arc<CallRule>> {
        let learned = self.learned.as_ref().filter(|_| !self.by_hand);
        learned.map(|text| &text.0)
    }

    /// Whether it was added by hand, and is over at this time: then no trace of it is needed.
    fn is_gone(&self, now_ms: u64) -> bool {
        let text = self.learned.as_ref().filter(|_| self.by_hand);
        text.is_some_and(|text| self.has_ended() || text.0.is_over(now_ms))
    }

    fn suspend(&mut self, cause: &SuspendCause, at_ms: u64) {
        self.pass_to(self.phase.suspended(cause), at_ms);
    }

    fn end(&mut self, by: &str, at_ms: u64) {
        let by = ParticipantId::new(by).unwrap_or_else(|_| ParticipantId::gateway());
        if !self.has_ended() {
            self.pass_to(RulePhase::Ended(RuleEnd::Revoked(by)), at_ms);
        }
    }

    fn pass_to(&mut self, next: RulePhase, at_ms: u64) {
        if next != self.phase {
            self.phase = next;
            self.changed_ms = Some(at_ms);
        }
    }
}

/// The rules of one topic, as the journal has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuleBook {
    /// Uses and counted calls.
    pub(crate) spent: Spent,
    lives: BTreeMap<RuleId, RuleLife>,
    /// Offers that their authors do not want, in the order of their dismissals.
    dismissed: Vec<DismissedOffer>,
    /// The secret by which spot checks are drawn, once a rule was learned.
    seed: Option<SpotSeed>,
}

/// Approvals that make no rule any more: those of a rule's author which the rule covers.
#[derive(Debug, Clone)]
pub(crate) struct UsedUp {
    /// The rule, which was accepted or dismissed.
    pub(crate) rule: Arc<CallRule>,
    /// When that was, in Unix milliseconds.
    pub(crate) at_ms: u64,
}

impl RuleBook {
    /// The rules that were learned or added by hand and have not ended, in the order in which they came
    /// into force.
    pub(crate) fn learned(&self) -> Vec<Arc<CallRule>> {
        let mut lives: Vec<&RuleLife> = self.lives.values().collect();
        lives.sort_by_key(|life| (life.since_ms, &life.name));
        let learned = lives.into_iter().filter(|life| !life.has_ended());
        learned
            .filter_map(|life| Some(Arc::clone(&life.learned.as_ref()?.0)))
            .collect()
    }

    /// The approvals that became rules, or were not to become some.
    pub(crate) fn used_up(&self) -> Vec<UsedUp> {
        let accepted = self.lives.values().filter_map(|life| {
            Some(UsedUp {
                rule: Arc::clone(life.taught()?),
                at_ms: life.since_ms,
            })
        });
        let dismissed = self.dismissed.iter().map(|offer| UsedUp {
            rule: Arc::clone(&offer.rule.0),
            at_ms: offer.at_ms,
        });
        accepted.chain(dismissed).collect()
    }

    /// The authors of the rules that were added by hand, one for each.
    pub(crate) fn authors_by_hand(&self) -> impl Iterator<Item = &ParticipantId> {
        let by_hand = self.lives.values().filter(|life| life.by_hand);
        by_hand.filter_map(|life| Some(&life.learned.as_ref()?.0.author))
    }

    /// When the next version of a rule was dismissed last, in Unix milliseconds.
    pub(crate) fn renewal_dismissed_ms(&self, rule: &RuleName) -> Option<u64> {
        let is_next = |offer: &&DismissedOffer| {
            let name = &offer.rule.0.name;
            name.id == rule.id && name.version > rule.version
        };
        let dismissed = self.dismissed.iter().filter(is_next);
        dismissed.map(|offer| offer.at_ms).max()
    }

    /// Whether a rule that was learned leaves its next use to people.
    pub(crate) fn leaves_next(&self, rule: &RuleId) -> bool {
        let is_learned = self.life(rule).is_some_and(|life| life.taught().is_some());
        let seed = self.seed.as_ref().filter(|_| is_learned);
        seed.is_some_and(|seed| self.spent.leaves_next(&seed.seed.0, rule))
    }

    /// Whether spot checks can be drawn.
    pub(crate) fn has_seed(&self) -> bool {
        self.seed.is_some()
    }

    /// Drops what is no use any more: charges, rules that were added by hand and are over, and rules that
    /// ended and offers that were dismissed before the decisions that are kept.
    pub(crate) fn drop_old(&mut self, now_ms: u64) {
        self.spent.drop_old(now_ms);
        let is_old = |at_ms: u64| now_ms.saturating_sub(at_ms) > EVIDENCE_MS;
        self.dismissed.retain(|offer| !is_old(offer.at_ms));
        let spent = &mut self.spent;
        self.lives.retain(|id, life| {
            let is_gone =
                life.has_ended() && life.changed_ms.is_some_and(is_old) || life.is_gone(now_ms);
            if is_gone {
                spent.forget(id);
            }
            !is_gone
        });
    }

    /// The latest version of a rule that was in force.
    pub(crate) fn life(&self, id: &RuleId) -> Option<&RuleLife> {
        self.lives.get(id)
    }

    /// Takes a record about this topic.
    pub(crate) fn apply(&mut self, record: &RuleRecord) {
        match record {
            RuleRecord::Accepted(accepted) => self.accept(accepted),
            RuleRecord::Suspended(suspended) => {
                if let Some(life) = self.lives.get_mut(&suspended.rule.id)
                    && life.name == suspended.rule
                {
                    life.suspend(&suspended.cause, suspended.at_ms);
                }
            }
            RuleRecord::Ended(ended) => {
                if let Some(life) = self.lives.get_mut(&ended.rule.id)
                    && life.name == ended.rule
                {
                    life.end(&ended.by, ended.at_ms);
                }
            }
            RuleRecord::Dismissed(dismissed) => self.dismissed.push(dismissed.clone()),
            RuleRecord::Charged(charged) => {
                let charge = charged.charge.clone();
                self.spent.apply(SpentEvent::Charged(charge));
            }
            RuleRecord::Returned(returned) => {
                self.spent.apply(SpentEvent::Returned(returned.operation));
            }
            RuleRecord::UseEnded(ended) => self.spent.apply(SpentEvent::Ended {
                operation: ended.operation,
                failed: ended.failed,
            }),
            RuleRecord::Carried(carried) => {
                let totals = carried.totals.clone();
                self.spent.apply(SpentEvent::Carried(totals));
            }
            RuleRecord::Answered(answered) => {
                let call = answered.call.clone();
                self.spent.apply(SpentEvent::Answered(call));
            }
            RuleRecord::Seeded(seed) => _ = self.seed.get_or_insert_with(|| seed.clone()),
            RuleRecord::Spotted(spotted) => self.spent.apply(SpentEvent::Spotted {
                rule: spotted.rule.clone(),
                operation: spotted.operation,
            }),
            RuleRecord::Checked(checked) => self.spent.apply(SpentEvent::Checked {
                operation: checked.operation,
                end: checked.end,
            }),
            RuleRecord::Shadowed(shadowed) => {
                let call = shadowed.call.clone();
                self.spent.apply(SpentEvent::Shadowed(call));
            }
            RuleRecord::ShadowEnded(ended) => self.spent.apply(SpentEvent::ShadowEnded {
                operation: ended.operation,
                end: ended.end,
            }),
            // Decisions belong to no rule: the ledger alone has them.
            RuleRecord::Decided(_) => {}
        }
    }

    /// Takes a version into force, unless it, or a later one, was before.
    fn accept(&mut self, accepted: &AcceptedRule) {
        let known = self.lives.get(&accepted.rule.id);
        if known.is_some_and(|life| life.name.version >= accepted.rule.version) {
            return;
        }
        let life = RuleLife {
            name: accepted.rule.clone(),
            digest: accepted.digest,
            since_ms: accepted.at_ms,
            bearers: accepted.bearers.clone(),
            learned: accepted.learned.clone(),
            by_hand: accepted.by_hand,
            phase: RulePhase::Active,
            changed_ms: None,
        };
        self.lives.insert(accepted.rule.id.clone(), life);
    }

    fn live(&self) -> usize {
        let lives = self.lives.values();
        let changed = lives.filter(|life| life.changed_ms.is_some());
        let own = self.lives.len() + changed.count() + self.dismissed.len();
        own + usize::from(self.seed.is_some()) + self.spent.carried_len()
    }

    fn records(&self, topic: &str) -> Vec<RuleRecord> {
        let seed = self.seed.iter().cloned();
        let mut records: Vec<RuleRecord> = seed.map(RuleRecord::Seeded).collect();
        for life in self.lives.values() {
            records.push(RuleRecord::Accepted(AcceptedRule {
                topic: topic.to_owned(),
                rule: life.name.clone(),
                digest: life.digest,
                at_ms: life.since_ms,
                bearers: life.bearers.clone(),
                learned: life.learned.clone(),
                by_hand: life.by_hand,
            }));
            records.extend(life.ended_by().map(|by| {
                RuleRecord::Ended(EndedRule {
                    topic: topic.to_owned(),
                    rule: life.name.clone(),
                    by: by.to_string(),
                    at_ms: life.changed_ms.unwrap_or_default(),
                })
            }));
            let suspension = life.suspension();
            records.extend(suspension.map(|suspension| {
                RuleRecord::Suspended(SuspendedRule {
                    topic: topic.to_owned(),
                    rule: life.name.clone(),
                    cause: suspension.cause.clone(),
                    at_ms: suspension.at_ms,
                })
            }));
        }
        let dismissed = self.dismissed.iter().cloned();
        records.extend(dismissed.map(RuleRecord::Dismissed));
        let carried = self.spent.carried().into_iter();
        records.extend(carried.map(|event| RuleRecord::of_spent(topic, event)));
        records
    }
}

/// The rules of all topics, as the journal has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptRules {
    topics: BTreeMap<String, RuleBook>,
    /// Decisions about proposals, by topic.
    decisions: BTreeMap<String, EvidenceLog>,
}

impl KeptRules {
    /// The rules of one topic.
    pub(crate) fn of_topic(&self, topic: &str) -> RuleBook {
        self.topics.get(topic).cloned().unwrap_or_default()
    }

    /// The decisions about proposals of one topic, in their order.
    pub(crate) fn decisions_of(&self, topic: &str) -> Vec<Arc<RuleEvidence>> {
        let decisions = self.decisions.get(topic).into_iter();
        decisions.flat_map(EvidenceLog::iter).cloned().collect()
    }
}

impl Fold for KeptRules {
    const OWNER: &'static str = "rules";
    type Record = RuleRecord;

    /// Which rules are in force; what they have spent and learned is the home's alone.
    fn is_for_all(record: &RuleRecord) -> bool {
        matches!(
            record,
            RuleRecord::Accepted(_) | RuleRecord::Suspended(_) | RuleRecord::Ended(_)
        )
    }

    fn apply(&mut self, record: &RuleRecord) {
        let topic = record.topic().to_owned();
        if let RuleRecord::Decided(decided) = record {
            let decisions = self.decisions.entry(topic).or_default();
            decisions.take(Arc::clone(&decided.decision));
        } else {
            self.topics.entry(topic).or_default().apply(record);
        }
    }

    fn live(&self) -> usize {
        let of_rules: usize = self.topics.values().map(RuleBook::live).sum();
        let decisions: usize = self.decisions.values().map(EvidenceLog::len).sum();
        of_rules + decisions
    }

    fn records(&mut self, now_ms: u64) -> Vec<RuleRecord> {
        let mut records = Vec::new();
        for (topic, book) in &mut self.topics {
            book.drop_old(now_ms);
            records.extend(book.records(topic));
        }
        for (topic, decisions) in &mut self.decisions {
            decisions.drop_old(now_ms);
            records.extend(decisions.iter().map(|decision| {
                RuleRecord::Decided(DecidedCall {
                    topic: topic.clone(),
                    decision: Arc::clone(decision),
                })
            }));
        }
        self.decisions.retain(|_, decisions| !decisions.is_empty());
        records
    }
}

#[cfg(test)]
mod tests;
