//! State in force: one value, read whole and swapped whole.
//!
//! Configuration, identities, sign-ins and grants depend on one another, so nothing reads one of
//! them of this state and one of the next. Whoever changes the value also has its consequences
//! carried out: [`Registry::change`], [`Registry::renew`] and [`Registry::reload`] are the only ways
//! to another value, and each ends in [`Registry::follow`].

use std::sync::{Arc, atomic::Ordering};

use access::config::{Access, Config, Limits, TopicConfig};
use access::grants::Grants;
use access::identities::local_user;
use access::sign_ins::SignIns;
use access::{AccessJournal, AccessState, Standing};
use auth::{Identities, Participant, Wires};
use model::{Capabilities, ParticipantId, Refusal, TopicName};
use platform::unix_ms;
use store::Ledger;

use super::Registry;

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
    pub(super) limits_wires: bool,
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
pub(super) struct Swapped {
    /// Whether callers need a token now who needed none before.
    closes: bool,
}

impl InForce {
    pub(super) fn new(config: Arc<Config>, standing: Standing) -> Self {
        let limits_wires = config
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
    pub(super) fn topic(&self, name: &TopicName) -> Option<&TopicConfig> {
        self.config.topics.iter().find(|topic| topic.name == *name)
    }

    /// Whether a known participant may enter a topic.
    pub fn may_enter(&self, participant: &Participant, topic: &TopicName) -> bool {
        let is_public = || {
            self.topic(topic)
                .is_some_and(|topic| topic.access == Access::Public)
        };
        participant.may_enter(topic) || (participant.is_for(topic) && is_public())
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
    pub(super) fn next_expiry(&self, since_ms: u64) -> Option<u64> {
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

impl Registry {
    /// What is in force now. It stays as it is, also if something changes meanwhile.
    pub fn now(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read())
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.read().config)
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.in_force.read().config.limits)
    }

    /// All changes of capabilities in force.
    pub fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.in_force.read().grants)
    }

    /// Makes one change in the journal, puts it in force, and carries out what follows for the
    /// participants that it concerns. `make` gets what is in force before. Changes are made one at
    /// a time; what follows is judged by what is in force then, so another change does not wait for
    /// it.
    ///
    /// # Errors
    /// As [`AccessJournal::change`].
    pub fn change<T>(
        &self,
        access: &AccessJournal,
        concerned: Concerned<'_>,
        make: impl FnOnce(&Ledger<AccessState>, &InForce) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (made, swapped) = access.change(|journal| {
            let made = make(journal, &self.now())?;
            Ok((made, self.take_journal(access)))
        })?;
        self.follow(swapped, concerned);
        Ok(made)
    }

    /// Puts in force what the journal has now, and carries out what follows for the participants
    /// that it concerns.
    pub fn renew(&self, access: &AccessJournal, concerned: Concerned<'_>) {
        let swapped = self.take_journal(access);
        self.follow(swapped, concerned);
    }

    fn take_journal(&self, access: &AccessJournal) -> Swapped {
        self.swap(|now| {
            let config = Arc::clone(&now.config);
            let standing = access.standing(&config);
            InForce::new(config, standing)
        })
    }

    /// Swaps the value, and moves the epoch. `next` makes it from the one before, which no other
    /// change replaces meanwhile: what it reads of the journal is not older than what is in force.
    pub(super) fn swap(&self, next: impl FnOnce(&InForce) -> InForce) -> Swapped {
        let _swapping = self.swapping.lock();
        let before = self.now();
        let next = next(&before);
        self.context
            .sealer
            .incarnations()
            .set(next.identities.incarnations().clone());
        let closes = next.identities.requires_token() && !before.identities.requires_token();
        *self.in_force.write() = Arc::new(next);
        self.moved();
        Swapped { closes }
    }

    /// Carries out what follows from a change, in every topic. What callers without a token have
    /// open ends if they need one now.
    pub(super) fn follow(&self, swapped: Swapped, concerned: Concerned<'_>) {
        // The user of a pipe has started this process, and stays.
        if swapped.closes && !self.serves_pipe.load(Ordering::Relaxed) {
            self.end_links_of(&local_user(&self.config()).id);
        }
        self.refresh(match concerned {
            Concerned::Everybody => None,
            Concerned::One(one) | Concerned::SignedOut(one) => Some(one),
        });
        if let Concerned::SignedOut(one) = concerned {
            self.end_links_of(one);
        }
    }
}

#[cfg(test)]
mod tests;
