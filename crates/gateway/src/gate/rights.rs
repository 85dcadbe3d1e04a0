//! Who may enter where, and what they may do there: what is configured, and over it what was granted.
//!
//! The one place where grants meet the configuration. Must not know how a grant is written down.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use auth::Participant;
use json::quote;
use model::{Capabilities, ParticipantId, Refusal, RefusalCode, TopicName};
use store::audit::Verdict;

use super::Gate;
use crate::audit::NOBODY;
use crate::caller::Caller;
use crate::config::{Access, Config, TopicConfig};
use crate::grants::Grants;
use crate::guests::{ANONYMOUS_PREFIX, Guests, TOPIC_GUESTS_MAX, is_guest};
use crate::pump::{Hearing, Pump};
use platform::unix_ms;

/// Who comes to a topic, and the topic.
pub type Visitor = (Arc<Pump>, Arc<Participant>);
/// Who is not let in, if that is known, and why.
type Stranger = (Refusal, Option<Arc<Participant>>);

impl Gate {
    /// Who comes to a topic, and the topic. Without a token that is a guest, if the topic takes guests: the one of this
    /// session, or else of this connection.
    ///
    /// # Errors
    /// The refusal to give.
    pub fn visitor(
        &self,
        bearer: Option<&str>,
        topic: &str,
        session: Option<&str>,
        guests: &Guests,
    ) -> Result<Visitor, Refusal> {
        let entered = match self.entered(bearer, topic) {
            Err((refusal, None)) if bearer.is_none() => {
                let guest = self.guest(topic, session, guests);
                guest.unwrap_or(Err(refusal)).map_err(|refusal| (refusal, None))
            }
            entered => entered,
        };
        entered.map_err(|no| self.turned_away(no, &for_topic(topic)))
    }

    /// The same where no guests come.
    ///
    /// # Errors
    /// The refusal to give.
    pub fn member(&self, bearer: Option<&str>, topic: &str) -> Result<Visitor, Refusal> {
        self.entered(bearer, topic).map_err(|no| self.turned_away(no, &for_topic(topic)))
    }

    /// Who asks for something that is in no topic; `what` begins with "for".
    ///
    /// # Errors
    /// The refusal to give.
    pub fn asker(&self, bearer: Option<&str>, what: &str) -> Result<Arc<Participant>, Refusal> {
        self.identify(bearer).map_err(|refusal| self.turned_away((refusal, None), what))
    }

    fn entered(&self, bearer: Option<&str>, topic: &str) -> Result<Visitor, Stranger> {
        let who = self.identify(bearer).map_err(|refusal| (refusal, None))?;
        match self.enter(topic, &who) {
            Ok(pump) => Ok((pump, who)),
            Err(refusal) => Err((refusal, Some(who))),
        }
    }

    /// Records who is not let in, and why.
    fn turned_away(&self, (refusal, who): Stranger, what: &str) -> Refusal {
        let from = who.as_ref().map_or(NOBODY, |who| who.id.as_str());
        let why = format!("{}: {what}", refusal.code.as_str());
        self.audit.write_connection(None, from, Verdict::Refused, &why);
        refusal
    }

    fn guest(&self, topic: &str, session: Option<&str>, guests: &Guests) -> Option<Result<Visitor, Refusal>> {
        let (name, config) = (TopicName::new(topic).ok()?, self.config());
        let topic = of(&config, &name)?;
        let (allowed, rate) = (topic.anonymous.as_ref()?, topic.anonymous_rate);
        let pump = self.topic(&name)?;
        let again = session.and_then(|id| self.sessions.guest(id)).filter(|guest| guest.may_enter(&name));
        if let Some(known) = again.or_else(|| guests.of(&name)) {
            return Some(Ok((pump, known)));
        }
        let here = pump.everyone().iter().filter(|caller| is_guest(&caller.participant().id)).count();
        if here >= TOPIC_GUESTS_MAX {
            return Some(Err(Refusal::new(RefusalCode::Overloaded, "too many are here without a token")));
        }
        let number = self.guests.fetch_add(1, Ordering::Relaxed);
        let id = ParticipantId::new(&format!("{ANONYMOUS_PREFIX}{number}")).ok()?;
        let capabilities = Arc::clone(allowed);
        let guest = Arc::new(Participant { id, capabilities, topics: vec![name], rate: Some(rate) });
        guests.add(&guest);
        Some(Ok((pump, guest)))
    }

    /// The topic of this name, if this participant may enter it. To others a private one does not exist.
    ///
    /// # Errors
    /// The refusal to give.
    pub fn enter(&self, topic: &str, participant: &Participant) -> Result<Arc<Pump>, Refusal> {
        let unknown =
            || Refusal::new(RefusalCode::Forbidden, "there is no topic of this name that you may enter");
        let name = TopicName::new(topic).map_err(|_| unknown())?;
        if !self.may_enter(participant, &name) {
            return Err(unknown());
        }
        self.topic(&name).ok_or_else(unknown)
    }

    /// Whether a known participant may enter a topic.
    pub fn may_enter(&self, participant: &Participant, topic: &TopicName) -> bool {
        participant.may_enter(topic)
            || of(&self.config(), topic).is_some_and(|topic| topic.access == Access::Public)
    }

    /// Whether a known participant may know that there is a topic of this name.
    pub fn may_know(&self, participant: &Participant, topic: &TopicName) -> bool {
        let private = of(&self.config(), topic).is_none_or(|topic| topic.access == Access::Private);
        !private || self.may_enter(participant, topic)
    }

    /// What a participant may do in a topic, or where it is in none, at this moment.
    pub fn in_force(&self, who: &Participant, topic: Option<&TopicName>) -> Arc<Capabilities> {
        let grants = Arc::clone(&self.grants.read());
        grants.over(&who.id, &who.capabilities, topic, unix_ms())
    }

    /// A participant with what it may do in a topic at this moment.
    pub fn there(&self, who: &Participant, topic: &TopicName) -> Arc<Participant> {
        Arc::new(Participant { capabilities: self.in_force(who, Some(topic)), ..who.clone() })
    }

    /// A participant as it is known now, whether it is here or not.
    pub fn known(&self, id: &ParticipantId) -> Option<Arc<Participant>> {
        let identities = Arc::clone(&self.identities.read());
        identities.participant(id, unix_ms())
    }

    /// Everybody who is known now, whether here or not.
    pub fn everybody(&self) -> Vec<Arc<Participant>> {
        let identities = Arc::clone(&self.identities.read());
        identities.everybody(unix_ms())
    }

    /// Every change of capabilities in force.
    pub fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.grants.read())
    }

    /// Lets a caller in with what it may do now. Grants do not change meanwhile.
    pub(super) fn join(
        &self,
        pump: &Arc<Pump>,
        caller: &Arc<Caller>,
        hearing: Option<Hearing>,
    ) -> Result<(), Refusal> {
        let grants = self.grants.read();
        let who = caller.participant();
        let capabilities = grants.over(&who.id, &who.capabilities, Some(pump.name()), unix_ms());
        pump.join(caller, &capabilities, hearing)
    }

    /// What somebody who is here may do here now; `None` when it may not be here any more.
    pub(super) fn standing(&self, caller: &Caller) -> Option<Arc<Capabilities>> {
        let (who, topic) = (caller.participant(), caller.topic());
        if is_guest(&who.id) {
            return of(&self.config(), topic)?.anonymous.clone();
        }
        let known = self.known(&who.id).filter(|known| self.may_enter(known, topic))?;
        Some(self.in_force(&known, Some(topic)))
    }
}

fn for_topic(topic: &str) -> String {
    format!("for topic {}", quote(topic))
}

fn of<'c>(config: &'c Config, name: &TopicName) -> Option<&'c TopicConfig> {
    config.topics.iter().find(|topic| topic.name == *name)
}
