//! Changes of a reloaded configuration, by the names of what changed.

use std::sync::Arc;

use config::Config;
use identity::config::{IdentityConfig, ParticipantConfig};
use topic::section::TopicSection;
use upstream::config::ServerConfig;

use terminal::output::LOG_TARGET;

/// Names of what a reload adds, changes and removes. No values: they may be secrets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

/// Logs what differs between two configurations.
pub(super) fn log(before: &Config, after: &Config) {
    let Changes {
        added,
        changed,
        removed,
    } = changes(before, after);
    let [added, changed, removed] = [added, changed, removed].map(|names| names.join(", "));
    tracing::info!(target: LOG_TARGET, added, changed, removed, "the configuration has changed: reloaded");
}

fn changes(before: &Config, after: &Config) -> Changes {
    let mut changes = Changes::default();
    changes.compare("server", &before.servers, &after.servers, |one| {
        one.name.to_string()
    });
    // How the gateway authorizes its requests to a server is set in the server's table.
    for (name, auth) in &after.auth {
        let text = format!("server {name}");
        let differs = before
            .auth
            .iter()
            .any(|(known, old)| known == name && old != auth);
        if differs && !changes.changed.contains(&text) {
            changes.changed.push(text);
        }
    }
    changes.compare(
        "participant",
        &participants(before),
        &participants(after),
        |one| one.known.participant.id.to_string(),
    );
    changes.compare(
        "topic",
        &topics(before, after),
        &topics(after, before),
        |one| one.name.to_string(),
    );
    changes.compare(
        "notifications",
        &before.notifications,
        &after.notifications,
        |one| one.name.to_string(),
    );
    changes.compare("rules of topic", &before.rules, &after.rules, |one| {
        one.topic.to_string()
    });
    if settings(before) != settings(after) {
        changes.changed.push("settings of [server]".to_owned());
    }
    changes
}

/// A configuration without the parts whose changes are named one by one.
fn settings(config: &Config) -> Config {
    let identity = IdentityConfig {
        participants: Vec::new(),
        topics: Vec::new(),
        servers: Vec::new(),
        ..IdentityConfig::clone(&config.identity)
    };
    Config {
        servers: Vec::new(),
        auth: Vec::new(),
        serving: Vec::new(),
        result_limits: Vec::new(),
        rules: Vec::new(),
        identity: Arc::new(identity),
        ..config.clone()
    }
}

/// A participant with all that is configured of it.
#[derive(PartialEq)]
struct WholeParticipant<'c> {
    known: &'c ParticipantConfig,
    serving: Option<&'c ServerConfig>,
    result_limit: Option<usize>,
}

fn participants(of: &Config) -> Vec<WholeParticipant<'_>> {
    let mut all = Vec::new();
    for known in &of.identity.participants {
        let id = &known.participant.id;
        let limited = of.result_limits.iter().find(|one| one.0 == *id);
        all.push(WholeParticipant {
            known,
            serving: of.serving.iter().find(|server| server.name == *id),
            result_limit: limited.map(|one| one.1),
        });
    }
    all
}

/// The topics of a configuration, with only those of their servers that the other one has too: `*`
/// means all servers, so an added server alone is no change of a topic.
fn topics(of: &Config, other: &Config) -> Vec<TopicSection> {
    let mut topics = of.identity.topics.clone();
    for topic in &mut topics {
        topic
            .servers
            .retain(|name| other.servers.iter().any(|server| server.name == *name));
        // Their order is that of the configuration, whose changes are named on their own.
        topic.servers.sort_unstable();
    }
    topics
}

impl Changes {
    /// Compares the parts of one kind, by their names.
    fn compare<T: PartialEq>(
        &mut self,
        kind: &str,
        before: &[T],
        after: &[T],
        name: impl Fn(&T) -> String,
    ) {
        let names_before: Vec<String> = before.iter().map(&name).collect();
        let names_after: Vec<String> = after.iter().map(&name).collect();
        for (one, name) in after.iter().zip(&names_after) {
            let old = names_before.iter().position(|known| known == name);
            match old.and_then(|index| before.get(index)) {
                None => self.added.push(format!("{kind} {name}")),
                Some(old) if old != one => self.changed.push(format!("{kind} {name}")),
                Some(_) => {}
            }
        }
        for name in &names_before {
            if !names_after.contains(name) {
                self.removed.push(format!("{kind} {name}"));
            }
        }
        let stayed_before = names_before
            .iter()
            .filter(|name| names_after.contains(name));
        let stayed_after = names_after
            .iter()
            .filter(|name| names_before.contains(name));
        if !stayed_before.eq(stayed_after) {
            self.changed.push(format!("order of {kind}s"));
        }
    }
}
