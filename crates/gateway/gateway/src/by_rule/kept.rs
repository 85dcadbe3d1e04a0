//! Rules in the journal: versions that came into force, suspensions, and spending; and decisions,
//! on which rules are tried.

mod answered;
mod decided;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Digest;
use rules::{
    EvidenceLog, RuleEvidence, RuleId, RuleName, RulePhase, Spent, SpentEvent, SuspendCause,
};
use store::Fold;

pub(crate) use decided::DecidedCall;
pub(crate) use record::{AcceptedRule, EndedUse, ReturnedUse, RuleRecord, SuspendedRule};

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
    /// Active or suspended: nothing else is recorded yet.
    phase: RulePhase,
    /// When it was suspended, in Unix milliseconds.
    suspended_ms: Option<u64>,
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
                at_ms: self.suspended_ms.unwrap_or_default(),
            }),
            RulePhase::Offered | RulePhase::Shadow | RulePhase::Active | RulePhase::Ended(_) => {
                None
            }
        }
    }

    fn suspend(&mut self, cause: &SuspendCause, at_ms: u64) {
        let next = self.phase.suspended(cause);
        if next != self.phase {
            self.phase = next;
            self.suspended_ms = Some(at_ms);
        }
    }
}

/// The rules of one topic, as the journal has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuleBook {
    /// Uses and counted calls.
    pub(crate) spent: Spent,
    lives: BTreeMap<RuleId, RuleLife>,
}

impl RuleBook {
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
            phase: RulePhase::Active,
            suspended_ms: None,
        };
        self.lives.insert(accepted.rule.id.clone(), life);
    }

    fn live(&self) -> usize {
        let suspended = self.lives.values().filter_map(RuleLife::suspension);
        self.lives.len() + suspended.count() + self.spent.carried_len()
    }

    fn records(&self, topic: &str) -> Vec<RuleRecord> {
        let mut records = Vec::new();
        for life in self.lives.values() {
            records.push(RuleRecord::Accepted(AcceptedRule {
                topic: topic.to_owned(),
                rule: life.name.clone(),
                digest: life.digest,
                at_ms: life.since_ms,
                bearers: life.bearers.clone(),
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
        let carried = self.spent.carried().into_iter();
        records.extend(carried.filter_map(|event| RuleRecord::of_spent(topic, event)));
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
            book.spent.drop_old(now_ms);
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
