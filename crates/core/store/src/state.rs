//! State of the journal after all records: tokens, sealing keys, the key of the audit log,
//! proposals with the digests of old ones, grants, ended sessions, tasks of servers, accounts at
//! servers, sign-ins of clients.

mod closed;
mod grants;
mod logins;
mod proposals;
mod upstream;

use std::collections::BTreeMap;

use model::{Latest, account};

use crate::record::{
    Consent, CreatedTask, EndedSessions, Family, IssuedToken, PinnedDefinition, Record, SealingKey,
    UpstreamAccount, UpstreamClient,
};

use grants::Grants;
use logins::Logins;
use proposals::Proposals;
use upstream::Upstream;

pub use closed::{CLOSED_PROPOSALS_KEPT_MS, CLOSED_PROPOSALS_MAX, closed_digest};
pub use grants::Grant;
pub use logins::{PARTICIPANT_CONSENTS_MAX, PARTICIPANT_FAMILIES_MAX};
pub use proposals::{ENDED_BYTES_MAX, ENDED_KEPT, Proposal};

/// State after a replay of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    tokens: Vec<IssuedToken>,
    keys: Vec<SealingKey>,
    audit_key: Option<SealingKey>,
    proposals: Proposals,
    grants: Grants,
    sessions: Sessions,
    tasks: Tasks,
    upstream: Upstream,
    pins: Pins,
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

/// Pinned definitions by server, part and name.
type Pins = BTreeMap<(String, String, String), PinnedDefinition>;

/// Sealing keys in the state: the current one and the one before it.
const SEALING_KEYS_KEPT: usize = 2;

impl State {
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

    /// Sealing keys, newest first, at most two.
    pub fn sealing_keys(&self) -> impl Iterator<Item = &SealingKey> {
        self.keys.iter().rev()
    }

    /// Key of the audit log's chain; `None` before the first audit log.
    #[must_use]
    pub fn audit_key(&self) -> Option<&SealingKey> {
        self.audit_key.as_ref()
    }

    /// Proposals without a decision, and approved ones without an outcome; by id.
    pub fn open_proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.open.values()
    }

    /// The last ended proposals, at most [`ENDED_KEPT`], in the order of their ends.
    pub fn ended_proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.ended.iter()
    }

    /// The open or ended proposal with this id.
    #[must_use]
    pub fn proposal(&self, id: &str) -> Option<&Proposal> {
        self.proposals.get(id)
    }

    /// Unexpired digests ([`closed_digest`]) of ended proposals of one topic that the journal no
    /// longer keeps in full. It keeps at most [`CLOSED_PROPOSALS_MAX`]. Each has its expiry in Unix
    /// milliseconds, [`CLOSED_PROPOSALS_KEPT_MS`] after the end of the proposal. The first to
    /// expire comes first. Rarely a digest of another topic is among them; no envelope of this
    /// topic matches it.
    pub fn closed_proposals_in(
        &self,
        topic: &str,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, u128)> + use<> {
        self.proposals.closed.unexpired_in(topic, now_ms)
    }

    /// All grants and revocations, expired ones included; by participant, topic and capability.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.all()
    }

    /// Marks ([`crate::EndedSessions::marks`]) of ended sessions whose ids have not expired, oldest
    /// first, each after its participant, which is empty if it is not known.
    pub fn ended_sessions(&self, now_ms: u64) -> impl Iterator<Item = (&str, &str)> {
        self.sessions.marks(now_ms)
    }

    /// Tasks of this topic that outlive the gateway and can still be asked for, oldest first.
    pub fn tasks_in(&self, topic: &str, now_ms: u64) -> impl Iterator<Item = &CreatedTask> {
        self.tasks
            .created
            .iter()
            .filter(move |task| task.topic == topic && now_ms < task.until_ms)
    }

    /// Accounts at this server.
    pub fn upstream_accounts(&self, server: &str) -> impl Iterator<Item = &UpstreamAccount> {
        self.upstream
            .accounts
            .values()
            .filter(move |account| account.server == server)
    }

    /// The accounts at all servers.
    pub fn accounts(&self) -> impl Iterator<Item = &UpstreamAccount> {
        self.upstream.accounts.values()
    }

    /// The clients that the gateway is at the authorization servers of this server.
    pub fn upstream_clients(&self, server: &str) -> impl Iterator<Item = &UpstreamClient> {
        self.upstream
            .clients
            .values()
            .filter(move |client| client.server == server)
    }

    /// Definitions of servers that are trusted.
    pub fn pins(&self) -> impl Iterator<Item = &PinnedDefinition> {
        self.pins.values()
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

    /// Applies one record.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::TokenIssued(token) => self.tokens.push(token.clone()),
            Record::TokenRevoked { name, .. } => {
                self.tokens.retain(|token| token.name != *name);
                self.revocations.note(name);
            }
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
            Record::ProposalsClosed(closed) => self.proposals.closed.add_all(closed),
            Record::GrantChanged(change) => self.grants.changed(change),
            Record::GrantsCleared {
                participant, topic, ..
            } => {
                self.grants.cleared(participant, topic.as_deref());
            }
            Record::Expired { at_ms } => self.expire(*at_ms),
            Record::SessionsEnded(ended) => self.sessions.ended(ended),
            Record::TaskCreated(task) => self.tasks.created(task),
            Record::UpstreamAccount(account) => self.upstream.account(account),
            Record::UpstreamAccountEnded {
                server,
                participant,
                ..
            } => {
                self.upstream.account_ended(server, participant.as_deref());
            }
            Record::UpstreamClient(client) => self.upstream.client(client),
            Record::Pin(pin) => self.pin(pin),
            Record::PinsReset { server, .. } => self.pins.retain(|_, pin| pin.server != *server),
            Record::LoginKey(key) => _ = self.logins.key.get_or_insert_with(|| key.clone()),
            Record::FamilyBegun(family) => self.logins.begun(family),
            Record::FamilyRenewed(renewed) => self.logins.renewed(renewed),
            Record::FamilyEnded { id, .. } => {
                if let Some(participant) = self.logins.ended(id) {
                    self.revocations.note(&participant);
                }
            }
            Record::ConsentGiven(consent) => self.logins.consented(consent),
            Record::ConsentWithdrawn {
                participant,
                client,
                ..
            } => {
                self.logins.withdrawn(participant, client);
                self.revocations.note(participant);
            }
        }
    }

    /// Takes a pin. Those of another server of the name are of no use any more.
    fn pin(&mut self, pin: &PinnedDefinition) {
        let key = |name: &str| (pin.server.clone(), pin.part.clone(), name.to_owned());
        let is_others = |(_, other): (&(String, String, String), &PinnedDefinition)| {
            other.server == pin.server && other.identity != pin.identity
        };
        let first = (pin.server.clone(), String::new(), String::new());
        // The first of the server tells for all.
        if self.pins.range(first..).next().is_some_and(is_others) {
            self.pins.retain(|_, other| other.server != pin.server);
        }
        self.pins.insert(key(&pin.name), pin.clone());
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

    /// Drops expired digests of closed proposals, and families that have expired.
    pub(crate) fn drop_expired(&mut self, now_ms: u64) {
        self.proposals.closed.drop_expired(now_ms);
        self.logins.drop_expired(now_ms);
    }

    /// The shortest list of records that rebuilds this state; compaction writes it.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let keys = self.keys.iter().cloned().map(Record::SealingKey);
        keys.chain(self.audit_key.iter().cloned().map(Record::AuditKey))
            .chain(self.tokens.iter().cloned().map(Record::TokenIssued))
            .chain(self.grants.records())
            .chain(self.proposals.records())
            .chain(self.sessions.records())
            .chain(self.tasks.created.iter().cloned().map(Record::TaskCreated))
            .chain(self.upstream.records())
            .chain(self.pins.values().cloned().map(Record::Pin))
            .chain(self.logins.records())
    }

    /// Number of records that [`State::records`] returns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
            + usize::from(self.audit_key.is_some())
            + self.tokens.len()
            + self.grants.count
            + self.proposals.len()
            + self.sessions.ended.len()
            + self.tasks.created.len()
            + self.upstream.len()
            + self.pins.len()
            + self.logins.len()
    }

    /// Whether the state has no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn has_ended(token: &IssuedToken, now_ms: u64) -> bool {
    token.expires_ms.is_some_and(|end| end <= now_ms)
}

/// Ended sessions in the state at most. Beyond it the participant that has most loses its oldest
/// record, with all of its sessions.
pub const ENDED_SESSIONS_KEPT: usize = 65_536;

/// All ended sessions of the state, oldest record first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sessions {
    ended: Latest<EndedSessions>,
}

impl Sessions {
    fn ended(&mut self, ended: &EndedSessions) {
        self.ended.push(
            ended.by.as_deref().unwrap_or_default(),
            ended.marks.len(),
            ended.clone(),
        );
        let has_expired = |oldest: &EndedSessions| oldest.until_ms <= ended.at_ms;
        while self.ended.pop_if(has_expired).is_some() {}
        self.ended.shrink(usize::MAX, ENDED_SESSIONS_KEPT);
        // What comes first now may have expired too.
        while self.ended.pop_if(has_expired).is_some() {}
    }

    fn marks(&self, now_ms: u64) -> impl Iterator<Item = (&str, &str)> {
        let unexpired = self
            .ended
            .iter()
            .filter(move |ended| now_ms < ended.until_ms);
        unexpired.flat_map(|ended| {
            let by = ended.by.as_deref().unwrap_or_default();
            ended.marks.iter().map(move |mark| (by, mark.as_str()))
        })
    }

    fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.ended.iter().cloned().map(Record::SessionsEnded)
    }
}

/// Tasks in the state at most. Beyond it the participant that has most loses its oldest from lists
/// after a restart; all guests together count as one.
pub const TASKS_KEPT: usize = 10_000;

/// All tasks of the state, oldest record first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tasks {
    created: Latest<CreatedTask>,
}

impl Tasks {
    fn created(&mut self, task: &CreatedTask) {
        let has_expired = |oldest: &CreatedTask| oldest.until_ms <= task.created_ms;
        while self.created.pop_if(has_expired).is_some() {}
        self.created.push(account(&task.by), 1, task.clone());
        self.created.shrink(TASKS_KEPT, usize::MAX);
    }
}

#[cfg(test)]
mod tests;
