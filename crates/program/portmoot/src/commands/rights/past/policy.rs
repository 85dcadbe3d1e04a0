//! A configuration with what the journal grants, as the policy for one participant.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use config::{Config, ConfigSources, TopicRules, checked_rules, is_of_rules, rules_in};
use identity::AccessState;
use identity::grants::Grants;
use identity::identities::identities;
use model::{Capabilities, Capability, ParticipantId, TopicName};
use platform::unix_ms;

use crate::process::env;
use terminal::exit::Exit;
use terminal::failure::Failure;

/// The topic of a file of rules, if none is named.
const MAIN: &str = config::MAIN_TOPIC;

/// A change of what is granted that is tried: as `participants grant` or `revoke` would make it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TriedGrants {
    /// The capabilities that are granted.
    pub(crate) added: Vec<Capability>,
    /// The capabilities that are revoked.
    pub(crate) removed: Vec<Capability>,
}

/// The policy for a participant.
pub(super) struct Policy {
    id: ParticipantId,
    /// The configuration.
    pub(super) config: Config,
    /// The participant's capabilities without grants; `None` if it is not known.
    own: Option<Arc<Capabilities>>,
    grants: Grants,
    tried: TriedGrants,
    now_ms: u64,
}

impl Policy {
    /// The policy of a configuration, with what the journal of the data directory grants.
    pub(super) fn of(id: &ParticipantId, config: Config, state: &AccessState) -> Self {
        let now_ms = unix_ms();
        let known = identities(&config.identity, state, false, None).participant(id, now_ms);
        // One without credentials of its own cannot come in, and has capabilities all the same.
        let mut configured = config.identity.participants.iter();
        let configured = configured.find(|one| one.participant.id == *id);
        let configured = configured.map(|one| Arc::clone(&one.participant));
        Self {
            id: id.clone(),
            own: known
                .or(configured)
                .map(|participant| Arc::clone(&participant.capabilities)),
            grants: Grants::read(state, &config.identity),
            tried: TriedGrants::default(),
            config,
            now_ms,
        }
    }

    /// The same with a change of what is granted.
    pub(super) fn granting(self, tried: TriedGrants) -> Self {
        Self { tried, ..self }
    }

    /// Whether the participant is known.
    pub(super) fn knows(&self) -> bool {
        self.own.is_some()
    }

    /// The capabilities of the participant in a topic, or outside of topics.
    pub(super) fn capabilities(&self, topic: Option<&TopicName>) -> Option<Arc<Capabilities>> {
        let own = self.own.as_ref()?;
        let held = self.grants.over(&self.id, own, topic, self.now_ms);
        let TriedGrants { added, removed } = &self.tried;
        if added.is_empty() && removed.is_empty() {
            return Some(held);
        }
        let is_removed =
            |one: &&Capability| !removed.iter().any(|other| other.as_str() == one.as_str());
        let kept = held.iter().filter(is_removed);
        Some(Arc::new(kept.chain(added).cloned().collect()))
    }

    /// Whether the participant may do the same in each topic of the other policy, and outside of them.
    pub(super) fn has_capabilities_of(&self, other: &Self) -> bool {
        let topics = other.config.identity.topics.iter();
        let topics = topics.map(|topic| Some(&topic.name)).chain([None]);
        let texts = |policy: &Self, topic| {
            let held = policy.capabilities(topic);
            held.map(|held| held.iter().map(text_of).collect::<BTreeSet<_>>())
        };
        let mut topics = topics.map(|topic| texts(self, topic) == texts(other, topic));
        topics.all(|is_same| is_same)
    }
}

/// A capability with its addressees, in one text.
fn text_of(capability: &Capability) -> String {
    let to: Vec<&str> = capability.addressees().into_iter().flatten().collect();
    format!("{} {}", capability.as_str(), to.join(" "))
}

/// The configuration that a file makes of the one in force: a file of rules stands in place of the
/// topic's, any other is laid over it.
pub(super) fn changed(
    sources: &ConfigSources,
    before: &Config,
    file: &Path,
    topic: Option<&str>,
) -> Result<Config, Failure> {
    if is_of_rules(file) {
        return with_rules(before, file, topic.unwrap_or(MAIN));
    }
    let sources = ConfigSources {
        with: Some(file.to_owned()),
        ..sources.clone()
    };
    let loaded = sources.load(&env);
    loaded
        .map(|loaded| loaded.config)
        .map_err(|problems| Failure::configuration(&problems))
}

/// A configuration in which a topic names this file of rules.
fn with_rules(before: &Config, file: &Path, topic: &str) -> Result<Config, Failure> {
    let mut topics = before.identity.topics.iter();
    let Some(section) = topics.find(|section| section.name.as_str() == topic) else {
        let why = format!("there is no topic `{topic}`");
        return Err(Failure::new(Exit::NotFound, "unknown_target", why)
            .hint("name the topic of the rules: --topic TOPIC"));
    };
    let name = file.display().to_string();
    let read = checked_rules(file).and_then(|text| rules_in(&name, text));
    let rules = read.map_err(|problems| Failure::configuration(&problems))?;
    let tried = TopicRules {
        topic: section.name.clone(),
        file: file.to_owned(),
        rules: rules.into(),
    };
    let others = before.rules.iter().filter(|one| one.topic != tried.topic);
    Ok(Config {
        rules: others.cloned().chain([tried.clone()]).collect(),
        ..before.clone()
    })
}
