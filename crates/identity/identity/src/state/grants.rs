//! Grants of the state: granted and revoked capabilities of participants, lasting and temporary.

use std::collections::BTreeMap;

use crate::record::{AccessRecord, GrantChange};

/// One capability that was granted to a participant or revoked, in addition to the configured ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The participant.
    pub participant: String,
    /// The topic; `None` is all topics.
    pub topic: Option<String>,
    /// The capability, as its author wrote it.
    pub capability: String,
    /// Whether it is granted; otherwise it is revoked.
    pub granted: bool,
    /// The participant that changed it.
    pub by: String,
    /// Reason that this participant gave.
    pub reason: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds, after which the change before applies again; `None` is
    /// never.
    pub expires_ms: Option<u64>,
    /// Whether the participant was a configured one; `None` in records of earlier versions.
    pub configured: Option<bool>,
}

impl Grant {
    /// Whether it has not expired.
    #[must_use]
    pub fn applies(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|end| now_ms < end)
    }

    fn record(&self) -> AccessRecord {
        let mut added = Vec::new();
        let mut removed = Vec::new();
        if self.granted {
            &mut added
        } else {
            &mut removed
        }
        .push(self.capability.clone());
        AccessRecord::GrantChanged(GrantChange {
            participant: self.participant.clone(),
            topic: self.topic.clone(),
            added,
            removed,
            by: self.by.clone(),
            reason: self.reason.clone(),
            at_ms: self.at_ms,
            expires_ms: self.expires_ms,
            configured: self.configured,
        })
    }
}

/// Changes of one capability of one participant: a lasting one, and a temporary one that overrides
/// it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Changes {
    lasting: Option<Grant>,
    temporary: Option<Grant>,
}

/// All grants of the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GrantChanges {
    /// By participant, topic (`None` first) and capability.
    changes: BTreeMap<(String, Option<String>, String), Changes>,
    /// Number of grants, cached because the journal needs it at each append.
    pub(super) count: usize,
}

impl GrantChanges {
    /// Applies a change. A lasting one replaces all earlier ones of its capability, a temporary one
    /// only the temporary one. Drops temporary changes that have expired at the time of this one,
    /// so that they do not accumulate.
    pub(super) fn changed(&mut self, change: &GrantChange) {
        let of_participant = self
            .changes
            .iter_mut()
            .filter(|((of, ..), _)| *of == change.participant);
        for (_, changes) in of_participant {
            changes.temporary = changes
                .temporary
                .take()
                .filter(|grant| grant.applies(change.at_ms));
        }
        let granted = change.added.iter().map(|capability| (capability, true));
        for (capability, granted) in
            granted.chain(change.removed.iter().map(|capability| (capability, false)))
        {
            let grant = Grant {
                participant: change.participant.clone(),
                topic: change.topic.clone(),
                capability: capability.clone(),
                granted,
                by: change.by.clone(),
                reason: change.reason.clone(),
                at_ms: change.at_ms,
                expires_ms: change.expires_ms,
                configured: change.configured,
            };
            let key = (
                change.participant.clone(),
                change.topic.clone(),
                capability.clone(),
            );
            let changes = self.changes.entry(key).or_default();
            match grant.expires_ms {
                None => {
                    *changes = Changes {
                        lasting: Some(grant),
                        temporary: None,
                    }
                }
                Some(_) => changes.temporary = Some(grant),
            }
        }
        self.retain(|_, _, changes| changes.lasting.is_some() || changes.temporary.is_some());
    }

    /// Drops temporary changes that have expired at this time.
    pub(super) fn expire(&mut self, at_ms: u64) {
        for changes in self.changes.values_mut() {
            changes.temporary = changes
                .temporary
                .take()
                .filter(|grant| grant.applies(at_ms));
        }
        self.retain(|_, _, changes| changes.lasting.is_some() || changes.temporary.is_some());
    }

    pub(super) fn cleared(&mut self, participant: &str, topic: Option<&str>) {
        self.retain(|of, within, _| {
            of != participant || topic.is_some_and(|topic| within != Some(topic))
        });
    }

    fn retain(&mut self, keep: impl Fn(&str, Option<&str>, &Changes) -> bool) {
        self.changes
            .retain(|(of, topic, _), changes| keep(of, topic.as_deref(), changes));
        self.count = self.all().count();
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Grant> {
        self.changes
            .values()
            .flat_map(|changes| changes.lasting.iter().chain(&changes.temporary))
    }

    pub(super) fn records(&self) -> impl Iterator<Item = AccessRecord> + '_ {
        // A replay drops temporary grants by the time of later changes: the earliest change comes
        // first.
        let mut all: Vec<&Grant> = self.all().collect();
        all.sort_by_key(|grant| (grant.expires_ms.is_some(), grant.at_ms));
        all.into_iter().map(Grant::record)
    }
}
