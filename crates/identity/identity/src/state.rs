//! State of access after all records: tokens, grants, sign-ins of clients.

mod grants;
mod logins;

use std::collections::BTreeMap;
use std::path::Path;

use store::{Fold, PeekedJournal, SealingKey, StoreError};

use crate::record::{AccessRecord, Consent, Family, IssuedToken};

use grants::GrantChanges;
use logins::Logins;

pub use grants::Grant;
pub use logins::{PARTICIPANT_CONSENTS_MAX, PARTICIPANT_FAMILIES_MAX};

/// State of access in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessState {
    tokens: Vec<IssuedToken>,
    grants: GrantChanges,
    logins: Logins,
    revocations: Revocations,
}

/// Number of revocations of each participant since this process has read the journal. No part of
/// what a journal says.
#[derive(Debug, Clone, Default)]
struct Revocations(BTreeMap<String, u64>);

impl PartialEq for Revocations {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Revocations {}

impl Revocations {
    fn note(&mut self, participant: &str) {
        *self.0.entry(participant.to_owned()).or_default() += 1;
    }
}

impl AccessState {
    /// The state in the journal of a data directory, which another process may own.
    ///
    /// # Errors
    /// As [`PeekedJournal::read`] and [`PeekedJournal::fold`].
    pub fn peek(dir: &Path) -> Result<Self, StoreError> {
        PeekedJournal::read(dir)?.fold()
    }

    /// Tokens that are not revoked, oldest first, expired ones included.
    #[must_use]
    pub fn tokens(&self) -> &[IssuedToken] {
        &self.tokens
    }

    /// Number of tokens, sign-ins and consents of a participant that were revoked since this
    /// process has read the journal. It distinguishes states of before a revocation from later
    /// ones, within the process.
    #[must_use]
    pub fn revocations(&self, participant: &str) -> u64 {
        self.revocations
            .0
            .get(participant)
            .copied()
            .unwrap_or_default()
    }

    /// All grants and revocations, expired ones included; by participant, topic and capability.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.all()
    }

    /// The key of the gateway's own authorization server; `None` before it was first enabled.
    #[must_use]
    pub fn login_key(&self) -> Option<&SealingKey> {
        self.logins.key.as_ref()
    }

    /// Families of refresh tokens, by id; some may have expired.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.logins.families.values()
    }

    /// The family with this id.
    #[must_use]
    pub fn family(&self, id: &str) -> Option<&Family> {
        self.logins.families.get(id)
    }

    /// Consents of participants, by participant and client.
    pub fn consents(&self) -> impl Iterator<Item = &Consent> {
        self.logins.consents.values()
    }

    /// Whether something has expired by this time of which no record says so.
    #[must_use]
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.tokens
            .iter()
            .any(|token| !token.expired && has_ended(token, now_ms))
            || self.grants.all().any(|grant| !grant.applies(now_ms))
            || self.logins.has_expired(now_ms)
    }

    fn expire(&mut self, at_ms: u64) {
        for token in &mut self.tokens {
            token.expired |= has_ended(token, at_ms);
        }
        self.grants.expire(at_ms);
        self.logins.drop_expired(at_ms);
    }
}

impl Fold for AccessState {
    const OWNER: &'static str = "access";
    type Record = AccessRecord;

    fn is_for_all(_: &AccessRecord) -> bool {
        true
    }

    fn apply(&mut self, record: &AccessRecord) {
        match record {
            AccessRecord::TokenIssued(token) => self.tokens.push(token.clone()),
            AccessRecord::TokenRevoked { name, .. } => {
                self.tokens.retain(|token| token.name != *name);
                self.revocations.note(name);
            }
            AccessRecord::GrantChanged(change) => self.grants.changed(change),
            AccessRecord::GrantsCleared {
                participant, topic, ..
            } => {
                self.grants.cleared(participant, topic.as_deref());
            }
            AccessRecord::Expired { at_ms } => self.expire(*at_ms),
            AccessRecord::LoginKey(key) => {
                self.logins.key.get_or_insert_with(|| key.clone());
            }
            AccessRecord::FamilyBegun(family) => self.logins.begun(family),
            AccessRecord::FamilyRenewed(renewed) => self.logins.renewed(renewed),
            AccessRecord::FamilyEnded { id, .. } => {
                if let Some(participant) = self.logins.ended(id) {
                    self.revocations.note(&participant);
                }
            }
            AccessRecord::ConsentGiven(consent) => self.logins.consented(consent),
            AccessRecord::ConsentWithdrawn {
                participant,
                client,
                ..
            } => {
                self.logins.withdrawn(participant, client);
                self.revocations.note(participant);
            }
        }
    }

    fn live(&self) -> usize {
        self.tokens.len() + self.grants.count + self.logins.len()
    }

    fn records(&mut self, now_ms: u64) -> Vec<AccessRecord> {
        self.logins.drop_expired(now_ms);
        let tokens = self.tokens.iter().cloned().map(AccessRecord::TokenIssued);
        tokens
            .chain(self.grants.records())
            .chain(self.logins.records())
            .collect()
    }
}

fn has_ended(token: &IssuedToken, now_ms: u64) -> bool {
    token.expires_ms.is_some_and(|end| end <= now_ms)
}

#[cfg(test)]
mod tests;
