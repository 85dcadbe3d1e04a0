//! State in force: one value, read whole and swapped whole.
//!
//! Configuration, identities, sign-ins and grants depend on one another, so nothing reads one of
//! them of this state and one of the next. Only the registry swaps the value, and each swap has its
//! consequences carried out (`registry::swaps`).

use std::sync::Arc;

use auth::{Identities, Participant, Wires};
use config::Config;
use identity::Standing;
use identity::grants::Grants;
use identity::sign_ins::SignIns;
use model::{Capabilities, ParticipantId, TopicName};
use platform::unix_ms;
use topic::section::{Access, TopicSection};

/// Everything that decides who may come in, and what participants may do.
#[derive(Debug)]
pub struct InForce {
    /// The configuration.
    pub config: Arc<Config>,
    /// Known participants and their tokens.
    pub identities: Identities,
    /// Sign-ins of clients.
    pub sign_ins: SignIns,
    /// Changes of capabilities.
    pub grants: Arc<Grants>,
    /// Whether the configuration closes wires to some participant: if not, no link is looked at.
    pub(crate) limits_wires: bool,
}

/// The participants that a change concerns: they get what they may do now, present or not.
#[derive(Debug, Clone, Copy)]
pub enum Concerned<'a> {
    /// All of them.
    Everybody,
    /// This one.
    One(&'a ParticipantId),
    /// This one, one of whose sign-ins has ended before its time: all that it has open ends, as
    /// requests of several sign-ins share links. Clients that are still good come back at once.
    SignedOut(&'a ParticipantId),
}

/// A change of the value whose consequences are not carried out yet.
#[must_use = "members of topics still may what they might before: give it to `follow`"]
pub(crate) struct Swapped {
    /// Whether callers need a token now who needed none before.
    pub(crate) closes: bool,
}

impl InForce {
    pub(crate) fn new(config: Arc<Config>, standing: Standing) -> Self {
        let limits_wires = config
            .identity
            .participants
            .iter()
            .any(|one| one.participant.wires != Wires::ALL);
        let Standing {
            identities,
            sign_ins,
            grants,
        } = standing;
        Self {
            config,
            identities,
            sign_ins,
            grants: Arc::new(grants),
            limits_wires,
        }
    }

    /// A topic of the configuration.
    pub(crate) fn topic(&self, name: &TopicName) -> Option<&TopicSection> {
        self.config
            .identity
            .topics
            .iter()
            .find(|topic| topic.name == *name)
    }

    /// Whether a known participant may enter a topic.
    pub fn may_enter(&self, participant: &Participant, topic: &TopicName) -> bool {
        if participant.may_enter(topic) {
            return true;
        }
        let is_public = match self.topic(topic) {
            Some(section) => section.access == Access::Public,
            None => false,
        };
        is_public && participant.is_for(topic)
    }

    /// Capabilities of a participant: in a topic, or outside of topics. With an access token for
    /// other topics, nothing.
    pub fn capabilities(
        &self,
        participant: &Participant,
        topic: Option<&TopicName>,
    ) -> Arc<Capabilities> {
        if topic.is_some_and(|topic| !participant.is_for(topic)) {
            return Arc::default();
        }
        participant.narrow(self.grants.over(
            &participant.id,
            &participant.capabilities,
            topic,
            unix_ms(),
        ))
    }

    /// When the next token, grant or sign-in expires after this time, in milliseconds since 1970.
    pub(crate) fn next_expiry(&self, since_ms: u64) -> Option<u64> {
        [
            self.identities.next_expiry(since_ms),
            self.grants.next_expiry(since_ms),
            self.sign_ins.next_expiry(since_ms),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
