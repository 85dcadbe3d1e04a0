//! The journal, and who may come in by it: issued tokens made, listed and revoked while the gateway runs.
//!
//! Must not know HTTP or the command line.

use std::sync::Arc;

use auth::{Identities, Participant};
use model::{Capabilities, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::{Mutex, random, unix_ms};
use store::{IssuedToken, Record, State, StoreError, JournalWriter};

use crate::audit::{GRANTS, TOKENS};
use crate::config::Config;
use crate::registry::Registry;
use super::grants::{Change, Grants};
use super::tokens::{self, TokenRequest};

/// The journal, and the identities that follow from it.
pub struct Office {
    journal: Option<JournalWriter>,
    /// Changes look first and write then: one at a time.
    turn: Mutex<()>,
    /// Once tokens were asked for, this process goes on asking.
    asks: bool,
}

impl Office {
    /// An office with this journal, if there is one. `asks` is whether callers need a token.
    pub fn new(journal: Option<JournalWriter>, asks: bool) -> Self {
        Self { journal, turn: Mutex::new(()), asks }
    }

    /// Whether callers need a token.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Writes down where the gateway listens, for commands that look for it.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.announce(address))
    }

    fn state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        match &self.journal {
            Some(journal) => journal.state(look),
            None => look(&State::default()),
        }
    }

    /// All who may come in now.
    pub fn identities(&self, config: &Config) -> Identities {
        self.state(|state| tokens::identities(config, state, self.asks))
    }

    /// Every change of capabilities on record.
    pub fn grants(&self) -> Grants {
        self.state(Grants::read)
    }

    /// The issued tokens, without their secrets.
    pub fn issued(&self) -> Vec<IssuedToken> {
        self.state(|state| state.tokens().to_vec())
    }

    /// Does something with all who may come in now, between two changes: none is lost by what is older.
    pub fn with_identities<T>(&self, config: &Config, take: impl FnOnce(Identities) -> T) -> T {
        let _turn = self.turn.lock();
        take(self.identities(config))
    }

    fn change<T>(&self, change: impl FnOnce(&JournalWriter) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let _turn = self.turn.lock();
        let journal = self.journal.as_ref().ok_or_else(|| {
            Refusal::new(RefusalCode::Unsupported, "this gateway keeps nothing on disk")
                .hint("start it with a data_dir")
        })?;
        change(journal)
    }
}

/// What the API does with tokens.
pub struct Tokens {
    /// The journal.
    pub office: Arc<Office>,
    /// Whose identities follow.
    pub gate: Arc<Registry>,
}

impl Tokens {
    /// Issues a token, and lets its bearer in.
    ///
    /// # Errors
    /// As [`tokens::issue`].
    pub fn issue(&self, by: &ParticipantId, request: TokenRequest) -> Result<(String, IssuedToken), Refusal> {
        let (place, name) = (self.gate.audit().reserve()?, request.name.clone());
        let end = self.make(request);
        place.write_change((TOKENS, &name, None), by.as_str(), "issued", &end);
        end
    }

    fn make(&self, request: TokenRequest) -> Result<(String, IssuedToken), Refusal> {
        let config = self.gate.config();
        if !self.office.asks {
            return Err(Refusal::new(RefusalCode::Forbidden, "this gateway was started without tokens")
                .hint("stop it, issue the token, and start it again: from then on everyone needs one"));
        }
        self.office.change(|journal| {
            let issued = tokens::issue(journal, &config, request, &random(), unix_ms())?;
            self.gate.set_identities(self.office.identities(&self.gate.config()));
            Ok(issued)
        })
    }

    /// Revokes a token; what its bearer has open ends.
    ///
    /// # Errors
    /// As [`tokens::revoke`].
    pub fn revoke(&self, by: &ParticipantId, name: &str) -> Result<(), Refusal> {
        let place = self.gate.audit().reserve()?;
        let end = self.office.change(|journal| {
            tokens::revoke(journal, name, unix_ms())?;
            self.gate.set_identities(self.office.identities(&self.gate.config()));
            Ok(())
        });
        place.write_change((TOKENS, name, None), by.as_str(), "revoked", &end);
        end
    }
}

/// What a change of capabilities made of them.
pub struct Changed {
    /// What was held before, where the change counts.
    pub before: Arc<Capabilities>,
    /// What is held now.
    pub now: Arc<Capabilities>,
    /// When, Unix milliseconds.
    pub at_ms: u64,
}

/// What the API does with grants.
pub struct Granting {
    /// The journal.
    pub office: Arc<Office>,
    /// Where they are in force.
    pub gate: Arc<Registry>,
}

impl Granting {
    /// Gives and takes capabilities: written down first, then in force, then told. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Grants::change`]; when the participant is not known; when the journal cannot be written.
    pub fn change(&self, wish: &Change, by: &Participant) -> Result<Changed, Refusal> {
        let place = self.gate.audit().reserve()?;
        let end = self.make(wish, by);
        let (to, topic) = (wish.participant.as_str(), wish.topic.as_ref().map(TopicName::as_str));
        place.write_change((GRANTS, to, topic), by.id.as_str(), &wish.to_string(), &end);
        end
    }

    fn make(&self, wish: &Change, by: &Participant) -> Result<Changed, Refusal> {
        self.office.change(|journal| {
            let id = &wish.participant;
            let known = self.known(id)?;
            let (topic, at_ms) = (wish.topic.as_ref(), unix_ms());
            let (before, authority) = (self.gate.in_force(&known, topic), self.gate.in_force(by, topic));
            let records = self.gate.grants().change(wish, &before, (&by.id, &authority), at_ms)?;
            let records: Vec<Record> = records.into_iter().map(Record::GrantChanged).collect();
            journal.append(&records).map_err(|error| unwritten(&error))?;
            self.gate.set_grants(journal.state(Grants::read), Some(id));
            Ok(Changed { before, now: self.gate.in_force(&known, topic), at_ms })
        })
    }

    /// Forgets every change of a participant, or those made for one topic: what is configured holds again. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// When the participant is not known, the configuration would give it what `by` does not hold, or the journal cannot
    /// be written.
    pub fn clear(
        &self,
        id: &ParticipantId,
        topic: Option<&TopicName>,
        by: &Participant,
    ) -> Result<(), Refusal> {
        let place = self.gate.audit().reserve()?;
        let end = self.forget(id, topic, by);
        let place_of = (GRANTS, id.as_str(), topic.map(TopicName::as_str));
        place.write_change(place_of, by.id.as_str(), "cleared", &end);
        end
    }

    fn forget(&self, id: &ParticipantId, topic: Option<&TopicName>, by: &Participant) -> Result<(), Refusal> {
        self.office.change(|journal| {
            self.known(id)?;
            let (at_ms, authority) = (unix_ms(), self.gate.in_force(by, topic));
            self.gate.grants().may_clear(id, topic, &authority, at_ms)?;
            let topic = topic.map(ToString::to_string);
            let record = Record::GrantsCleared { participant: id.to_string(), topic, at_ms };
            journal.append(&[record]).map_err(|error| unwritten(&error))?;
            self.gate.set_grants(journal.state(Grants::read), Some(id));
            Ok(())
        })
    }

    /// A participant whose capabilities can be changed, as it is configured: here or not, its token valid or not.
    fn known(&self, id: &ParticipantId) -> Result<Arc<Participant>, Refusal> {
        if let Some(known) = self.gate.known(id) {
            return Ok(known);
        }
        let config = self.gate.config();
        if let Some(one) = config.participants.iter().find(|one| one.participant.id == *id) {
            return Ok(Arc::clone(&one.participant));
        }
        let refusal = Refusal::new(RefusalCode::UnknownTarget, format!("there is no participant `{id}`"));
        Err(match config.servers.iter().any(|server| server.name == *id) {
            true => refusal.hint(format!("it is a server: what it may do is said in [servers.{id}]")),
            false => refusal.hint("list them: portmoot participants ls"),
        })
    }
}

fn unwritten(error: &StoreError) -> Refusal {
    tracing::error!(code = error.code(), %error, "the journal cannot be written");
    let message = "the change could not be written down, so it was not made";
    Refusal::new(RefusalCode::LogUnavailable, message).hint("the gateway's log says why")
}
