//! Authority of the author of a change: a participant gives and takes only what it holds itself.

use std::sync::Arc;

use auth::Participant;
use model::{Capabilities, Capability, Refusal, RefusalCode, TopicName};

use crate::config::{Access, Config, TopicConfig};
use crate::{grants::Grants, identities::configured};

/// The capability about servers: their states and logs, and tokens of participants that serve.
pub const SERVERS: &str = "portmoot/servers";

const ASK: &str = "ask a participant that may do all of it, or the operator";

/// By which right tokens and capabilities are given and taken.
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// The owner of the data directory.
    Operator,
    /// A participant, and the changes of capabilities in force.
    Participant(&'a Participant, &'a Grants),
}

impl Authority<'_> {
    /// Refuses a token whose bearer may do something, outside of topics or in one of them, that the participant may not do.
    ///
    /// # Errors
    /// The refusal, which names the capability, but no topic: one that the participant may not enter may be private.
    pub(crate) fn covers(&self, config: &Config, bearer: &Participant, now_ms: u64) -> Result<(), Refusal> {
        let Self::Participant(author, grants) = *self else { return Ok(()) };
        let serves = configured(config, bearer.id.as_str()).is_some_and(|one| one.serves.is_some());
        if serves && author.id != bearer.id {
            let servers = Capability::parse(SERVERS).ok();
            let own = self.in_force(None, now_ms);
            servers.map_or(Ok(()), |servers| held(&servers, &own, "a token of a participant that serves"))?;
        }
        if !author.wires.includes(bearer.wires) {
            let message = format!("`{}` may come in on wires on which you may not", bearer.id);
            let refusal = Refusal::new(RefusalCode::CapabilityViolation, message);
            return Err(refusal.hint("the operator configures `wires` of the participant first"));
        }
        let what = format!("a token of `{}`", bearer.id);
        let mut checked: Vec<[Arc<Capabilities>; 2]> = Vec::new();
        for topic in self.places(config, bearer, None, &what)? {
            let theirs = grants.over(&bearer.id, &bearer.capabilities, topic, now_ms);
            let pair = [theirs, self.in_force(topic, now_ms)];
            // Where no grant differs, the sets are the same in all topics.
            let is_same = |other: &[Arc<Capabilities>; 2]| {
                other.iter().zip(&pair).all(|(one, other)| Arc::ptr_eq(one, other))
            };
            if !checked.iter().any(is_same) {
                let [theirs, own] = &pair;
                theirs.iter().try_for_each(|capability| held(capability, own, &what))?;
                checked.push(pair);
            }
        }
        Ok(())
    }

    /// Refuses a change of a participant's capabilities, in one topic or in all that it may enter, of which the author of the
    /// change does not hold one everywhere.
    ///
    /// # Errors
    /// The refusal that names the first capability which is not held.
    pub fn may_change<'c>(
        &self,
        config: &Config,
        whose: &Participant,
        topic: Option<&TopicName>,
        changed: impl Iterator<Item = &'c Capability> + Clone,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        for topic in self.places(config, whose, topic, "this change")? {
            let own = self.in_force(topic, now_ms);
            changed.clone().try_for_each(|capability| held(capability, &own, "this change"))?;
        }
        Ok(())
    }

    /// Whether the author of the change may know that a topic exists.
    pub(crate) fn may_know(&self, topic: &TopicConfig) -> bool {
        match self {
            Self::Operator => true,
            Self::Participant(author, _) => topic.access != Access::Private || author.may_enter(&topic.name),
        }
    }

    /// Where a participant may act: in this topic, or outside of topics and in each that it may enter.
    fn places<'c>(
        &self,
        config: &'c Config,
        whose: &Participant,
        topic: Option<&'c TopicName>,
        what: &str,
    ) -> Result<Vec<Option<&'c TopicName>>, Refusal> {
        let Self::Participant(author, _) = *self else { return Ok(Vec::new()) };
        if topic.is_some() {
            return Ok(vec![topic]);
        }
        let mut places = vec![None];
        for topic in config.topics.iter().filter(|topic| enters(whose, topic)) {
            if !enters(author, topic) {
                let message = format!("{what} reaches into topics that you may not enter");
                return Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(ASK));
            }
            places.push(Some(&topic.name));
        }
        Ok(places)
    }

    fn in_force(&self, topic: Option<&TopicName>, now_ms: u64) -> Arc<Capabilities> {
        match self {
            Self::Operator => Arc::new(Capabilities::full()),
            Self::Participant(author, grants) => grants.over(&author.id, &author.capabilities, topic, now_ms),
        }
    }
}

fn enters(participant: &Participant, topic: &TopicConfig) -> bool {
    topic.access == Access::Public || participant.may_enter(&topic.name)
}

/// Refuses a capability that the author of a change does not hold.
fn held(capability: &Capability, own: &Capabilities, what: &str) -> Result<(), Refusal> {
    if own.covers(capability) {
        return Ok(());
    }
    let message = format!("you do not hold `{capability}`, which {what} needs");
    Err(Refusal::new(RefusalCode::CapabilityViolation, message).hint(ASK))
}
