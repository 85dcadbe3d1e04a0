//! Grant service: capabilities granted and revoked while the gateway runs.

use std::sync::Arc;

use auth::Participant;
use model::{Capabilities, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::unix_ms;
use store::{JournalWriter, Record};

use crate::audit::GRANTS;
use crate::registry::Registry;
use access::grants::{GrantRequest, Grants};
use access::{AccessJournal, not_written};

/// Changes the capabilities of participants of a running gateway. Every attempt is recorded in the audit log.
pub struct GrantService {
    journal: Arc<AccessJournal>,
    registry: Arc<Registry>,
}

/// The result of a change of capabilities.
pub struct Granted {
    /// What the participant could do before, in the topic of the change or outside of topics.
    pub before: Arc<Capabilities>,
    /// What it can do now.
    pub now: Arc<Capabilities>,
    /// When it was changed, in Unix milliseconds.
    pub at_ms: u64,
}

impl GrantService {
    /// A service whose changes take effect in this registry.
    pub fn new(journal: Arc<AccessJournal>, registry: Arc<Registry>) -> Self {
        Self { journal, registry }
    }

    /// Grants and revokes capabilities. The change is on disk and in force in every topic when this returns, whether the
    /// participant is present or not. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Grants::change`]; if the participant is not known; if the journal cannot be written or the audit log takes no entry.
    pub fn change(&self, request: &GrantRequest, by: &Participant) -> Result<Granted, Refusal> {
        let permit = self.registry.audit().reserve()?;
        let end = self.make(request, by);
        let (to, topic) = (request.participant.as_str(), request.topic.as_ref().map(TopicName::as_str));
        permit.write_change((GRANTS, to, topic), by.id.as_str(), &request.to_string(), &end);
        end
    }

    fn make(&self, request: &GrantRequest, by: &Participant) -> Result<Granted, Refusal> {
        self.journal.change(|journal| {
            let known = self.known(&request.participant)?;
            let (topic, at_ms) = (request.topic.as_ref(), unix_ms());
            let authority = self.registry.in_force(by, topic);
            let before = self.registry.in_force(&known, topic);
            let changes = self.registry.grants().change(request, &before, (&by.id, &authority), at_ms)?;
            let records: Vec<Record> = changes.into_iter().map(Record::GrantChanged).collect();
            self.write(journal, &records, &request.participant)?;
            Ok(Granted { before, now: self.registry.in_force(&known, topic), at_ms })
        })
    }

    /// Removes every change of a participant, or those made for one topic, so that its configured capabilities apply again.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// As [`Grants::may_clear`]; if the participant is not known; if the journal cannot be written or the audit log takes no
    /// entry.
    pub fn clear(
        &self,
        id: &ParticipantId,
        topic: Option<&TopicName>,
        by: &Participant,
    ) -> Result<(), Refusal> {
        let permit = self.registry.audit().reserve()?;
        let end = self.remove(id, topic, by);
        let target = (GRANTS, id.as_str(), topic.map(TopicName::as_str));
        permit.write_change(target, by.id.as_str(), "cleared", &end);
        end
    }

    fn remove(&self, id: &ParticipantId, topic: Option<&TopicName>, by: &Participant) -> Result<(), Refusal> {
        self.journal.change(|journal| {
            self.known(id)?;
            let (at_ms, authority) = (unix_ms(), self.registry.in_force(by, topic));
            self.registry.grants().may_clear(id, topic, &authority, at_ms)?;
            let topic = topic.map(ToString::to_string);
            let record = Record::GrantsCleared { participant: id.to_string(), topic, at_ms };
            self.write(journal, &[record], id)
        })
    }

    /// Writes a change to the journal, then puts it in force.
    fn write(
        &self,
        journal: &JournalWriter,
        records: &[Record],
        changed: &ParticipantId,
    ) -> Result<(), Refusal> {
        journal.append(records).map_err(|error| not_written(&error))?;
        self.registry.set_grants(journal.state(Grants::read), Some(changed));
        Ok(())
    }

    /// A participant whose capabilities can be changed, as it is configured: present or not, with a valid token or not.
    fn known(&self, id: &ParticipantId) -> Result<Arc<Participant>, Refusal> {
        if let Some(known) = self.registry.known(id) {
            return Ok(known);
        }
        let config = self.registry.config();
        if let Some(one) = config.participants.iter().find(|one| one.participant.id == *id) {
            return Ok(Arc::clone(&one.participant));
        }
        let refusal = Refusal::new(RefusalCode::UnknownTarget, format!("there is no participant `{id}`"));
        Err(match config.servers.iter().any(|server| server.name == *id) {
            true => {
                refusal.hint(format!("it is a server: its capabilities are configured in [servers.{id}]"))
            }
            false => refusal.hint("list them: portmoot participants ls"),
        })
    }
}
