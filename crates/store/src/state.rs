//! What the journal's records add up to. Pure: must not know files.

mod closed;
mod grants;
mod proposals;
mod sessions;

use crate::record::{IssuedToken, Record, SealingKey};
use grants::Grants;
use proposals::Proposals;
use sessions::Sessions;

pub use closed::{CLOSED_PROPOSALS_KEPT_MS, CLOSED_PROPOSALS_MAX, closed_digest};
pub use grants::Grant;
pub use proposals::{ENDED_BYTES_MAX, ENDED_KEPT, Proposal};
pub use sessions::ENDED_SESSIONS_KEPT;

/// Everything that is true after replaying the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    tokens: Vec<IssuedToken>,
    keys: Vec<SealingKey>,
    audit_key: Option<SealingKey>,
    proposals: Proposals,
    grants: Grants,
    sessions: Sessions,
}

/// Sealing keys that are kept: the current one and the one before it.
const SEALING_KEYS_KEPT: usize = 2;

impl State {
    /// Tokens that were issued and not revoked, oldest first. Expired ones are still in it.
    #[must_use]
    pub fn tokens(&self) -> &[IssuedToken] {
        &self.tokens
    }

    /// Sealing keys, newest first, at most two.
    pub fn sealing_keys(&self) -> impl Iterator<Item = &SealingKey> {
        self.keys.iter().rev()
    }

    /// The key of the audit log's chain; `None` until there was an audit log.
    #[must_use]
    pub fn audit_key(&self) -> Option<&SealingKey> {
        self.audit_key.as_ref()
    }

    /// Proposals that wait for a decision, or are approved and have no outcome; by id.
    pub fn open_proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.open()
    }

    /// The last proposals that are over, at most [`ENDED_KEPT`], in the order in which they ended.
    pub fn ended_proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.ended()
    }

    /// The proposal with this id, open or remembered.
    #[must_use]
    pub fn proposal(&self, id: &str) -> Option<&Proposal> {
        self.proposals.get(id)
    }

    /// Digests ([`closed_digest`]) of proposals that ended and are no longer kept in full, at most
    /// [`CLOSED_PROPOSALS_MAX`], each with the time until which it is kept: [`CLOSED_PROPOSALS_KEPT_MS`] after the end.
    /// The first to expire comes first; expired ones are left out.
    pub fn closed_proposals(&self, now_ms: u64) -> impl Iterator<Item = (u64, u128)> + use<> {
        self.proposals.closed(now_ms)
    }

    /// Digests of closed proposals of one topic, selected from [`State::closed_proposals`] and in the same order. Rarely a
    /// digest of another topic is among them; no envelope of this topic matches it.
    pub fn closed_proposals_in(&self, topic: &str, now_ms: u64) -> impl Iterator<Item = (u64, u128)> + use<> {
        self.proposals.closed_in(topic, now_ms)
    }

    /// Every change of capabilities that is on record, ended ones included; by participant, topic and capability.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.all()
    }

    /// The changes that hold now for a participant in a topic, one a capability for all topics and one for this topic.
    /// Those for all topics come first: apply them in this order to what is configured.
    pub fn grants_of<'a>(
        &'a self,
        participant: &str,
        topic: &'a str,
        now_ms: u64,
    ) -> impl Iterator<Item = &'a Grant> {
        self.grants.of(participant, topic, now_ms)
    }

    /// The marks of sessions that were ended and whose ids would still be good, oldest first.
    pub fn ended_sessions(&self, now_ms: u64) -> impl Iterator<Item = &str> {
        self.sessions.marks(now_ms)
    }

    /// Takes one record into account.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::TokenIssued(token) => self.tokens.push(token.clone()),
            Record::TokenRevoked { name, .. } => self.tokens.retain(|token| token.name != *name),
            Record::SealingKey(key) => {
                self.keys.push(key.clone());
                if self.keys.len() > SEALING_KEYS_KEPT {
                    self.keys.remove(0);
                }
            }
            Record::AuditKey(key) => _ = self.audit_key.get_or_insert_with(|| key.clone()),
            Record::ProposalOpened(opened) => self.proposals.opened(opened),
            Record::ProposalDecided(decided) => self.proposals.decided(decided),
            Record::ProposalEnded(ended) => self.proposals.ended_as(ended),
            Record::ProposalsClosed(closed) => self.proposals.add_closed(closed),
            Record::GrantChanged(change) => self.grants.changed(change),
            Record::GrantsCleared { participant, topic, .. } => {
                self.grants.cleared(participant, topic.as_deref());
            }
            Record::SessionsEnded(ended) => self.sessions.ended(ended),
        }
    }

    /// Drops the digests of closed proposals that have expired.
    pub(crate) fn drop_expired(&mut self, now_ms: u64) {
        self.proposals.drop_expired(now_ms);
    }

    /// The shortest list of records that adds up to this state again; what compaction writes.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let keys = self.keys.iter().cloned().map(Record::SealingKey);
        keys.chain(self.audit_key.iter().cloned().map(Record::AuditKey))
            .chain(self.tokens.iter().cloned().map(Record::TokenIssued))
            .chain(self.grants.records())
            .chain(self.proposals.records())
            .chain(self.sessions.records())
    }

    /// How many records [`State::records`] gives.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
            + usize::from(self.audit_key.is_some())
            + self.tokens.len()
            + self.grants.len()
            + self.proposals.len()
            + self.sessions.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
