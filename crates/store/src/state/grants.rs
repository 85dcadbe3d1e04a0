//! What the changes of capabilities add up to. Pure: must not know files, nor what a capability means.

use std::collections::BTreeMap;

use crate::record::{GrantChange, Record};

/// One capability that was given to a participant or taken from it, beside what is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub participant: String,
    /// In which topic; `None` is in all.
    pub topic: Option<String>,
    /// The capability as it was written.
    pub capability: String,
    /// Given, or taken.
    pub given: bool,
    /// Who changed it.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// When it ends and the change before it holds again, in Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
}

impl Grant {
    /// Whether it still holds.
    #[must_use]
    pub fn holds(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|end| now_ms < end)
    }

    fn record(&self) -> Record {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        if self.given { &mut added } else { &mut removed }.push(self.capability.clone());
        Record::GrantChanged(GrantChange {
            participant: self.participant.clone(),
            topic: self.topic.clone(),
            added,
            removed,
            by: self.by.clone(),
            reason: self.reason.clone(),
            at_ms: self.at_ms,
            expires_ms: self.expires_ms,
        })
    }
}

/// What is known of one capability of one participant: a change for good, and one for a time over it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Standing {
    lasting: Option<Grant>,
    passing: Option<Grant>,
}

/// Capabilities by participant, then by topic (`None` first) and capability.
type Held = BTreeMap<(Option<String>, String), Standing>;

/// All changes that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants {
    by_participant: BTreeMap<String, Held>,
    /// Counted when they change: the journal asks at each append.
    count: usize,
}

impl Grants {
    /// A change for good replaces all before it; one for a time replaces only the one for a time.
    /// What had ended when this change was made is dropped, so that passing grants do not pile up.
    pub(super) fn changed(&mut self, change: &GrantChange) {
        let held = self.by_participant.entry(change.participant.clone()).or_default();
        for standing in held.values_mut() {
            standing.passing = standing.passing.take().filter(|grant| grant.holds(change.at_ms));
        }
        let given = change.added.iter().map(|capability| (capability, true));
        for (capability, given) in given.chain(change.removed.iter().map(|capability| (capability, false))) {
            let grant = Grant {
                participant: change.participant.clone(),
                topic: change.topic.clone(),
                capability: capability.clone(),
                given,
                by: change.by.clone(),
                reason: change.reason.clone(),
                at_ms: change.at_ms,
                expires_ms: change.expires_ms,
            };
            let standing = held.entry((change.topic.clone(), capability.clone())).or_default();
            match grant.expires_ms {
                None => *standing = Standing { lasting: Some(grant), passing: None },
                Some(_) => standing.passing = Some(grant),
            }
        }
        held.retain(|_, standing| standing.lasting.is_some() || standing.passing.is_some());
        self.tidy(&change.participant);
    }

    pub(super) fn cleared(&mut self, participant: &str, topic: Option<&str>) {
        match (topic, self.by_participant.get_mut(participant)) {
            (Some(topic), Some(held)) => held.retain(|(of, _), _| of.as_deref() != Some(topic)),
            (None, _) => drop(self.by_participant.remove(participant)),
            (Some(_), None) => {}
        }
        self.tidy(participant);
    }

    fn tidy(&mut self, participant: &str) {
        if self.by_participant.get(participant).is_some_and(BTreeMap::is_empty) {
            self.by_participant.remove(participant);
        }
        self.count = self.all().count();
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Grant> {
        self.by_participant.values().flat_map(BTreeMap::values).flat_map(both)
    }

    pub(super) fn of<'a>(
        &'a self,
        participant: &str,
        topic: &'a str,
        now_ms: u64,
    ) -> impl Iterator<Item = &'a Grant> {
        let held = self.by_participant.get(participant).into_iter().flatten();
        held.filter(move |((of, _), _)| of.as_deref().is_none_or(|of| of == topic)).filter_map(
            move |(_, standing)| {
                let passing = standing.passing.as_ref().filter(|grant| grant.holds(now_ms));
                passing.or(standing.lasting.as_ref())
            },
        )
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        // Those for a time are dropped by the time of the changes after them: the earliest change goes first.
        let mut all: Vec<&Grant> = self.all().collect();
        all.sort_by_key(|grant| (grant.expires_ms.is_some(), grant.at_ms));
        all.into_iter().map(Grant::record)
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }
}

fn both(standing: &Standing) -> impl Iterator<Item = &Grant> {
    standing.lasting.iter().chain(&standing.passing)
}
