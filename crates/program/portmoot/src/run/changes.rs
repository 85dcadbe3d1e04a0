//! Changes of a reloaded configuration, by the names of what changed.

use access::config::{Config, TopicConfig};
use model::ParticipantId;

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
        &before.participants,
        &after.participants,
        |one| one.participant.id.to_string(),
    );
    changes.compare(
        "topic",
        &topics(before, after),
        &topics(after, before),
        |one| one.name.to_string(),
    );
    let settings = |config: &Config| Config {
        servers: Vec::new(),
        participants: Vec::new(),
        topics: Vec::new(),
        auth: Vec::new(),
        ..config.clone()
    };
    if settings(before) != settings(after) {
        changes.changed.push("settings of [server]".to_owned());
    }
    changes
}

/// The topics of a configuration, with only those of their servers that the other one has too: `*`
/// means all servers, so an added server alone is no change of a topic.
fn topics(of: &Config, other: &Config) -> Vec<TopicConfig> {
    let kept = |topic: &TopicConfig| {
        let stays =
            |name: &&ParticipantId| other.servers.iter().any(|server| server.name == **name);
        let mut servers: Vec<ParticipantId> = topic.servers.iter().filter(stays).cloned().collect();
        servers.sort_unstable();
        TopicConfig {
            servers,
            ..topic.clone()
        }
    };
    of.topics.iter().map(kept).collect()
}

impl Changes {
    fn compare<T: PartialEq>(
        &mut self,
        what: &str,
        before: &[T],
        after: &[T],
        name: impl Fn(&T) -> String,
    ) {
        let find = |all: &[T], wanted: &T| all.iter().position(|one| name(one) == name(wanted));
        let text = |one: &T| format!("{what} {}", name(one));
        for one in after {
            match find(before, one).and_then(|at| before.get(at)) {
                None => self.added.push(text(one)),
                Some(old) if old != one => self.changed.push(text(one)),
                Some(_) => {}
            }
        }
        self.removed.extend(
            before
                .iter()
                .filter(|one| find(after, one).is_none())
                .map(text),
        );
        let kept = |all: &[T], other: &[T]| -> Vec<String> {
            all.iter()
                .filter(|one| find(other, one).is_some())
                .map(&name)
                .collect()
        };
        if kept(before, after) != kept(after, before) {
            self.changed.push(format!("order of {what}s"));
        }
    }
}
