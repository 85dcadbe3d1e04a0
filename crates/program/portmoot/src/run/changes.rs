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
    changes.compare(
        "approver of topic",
        &before.approvers,
        &after.approvers,
        |one| one.topic.to_string(),
    );
    if before.telemetry != after.telemetry {
        changes.changed.push("telemetry".to_owned());
    }
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
        approvers: Vec::new(),
        notifications: Vec::new(),
        telemetry: None,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use authzen::config::{AuthzenService, OutsideApprover, SentArguments, TakenDecisions};
    use config::{TelemetryConfig, TopicApprover};
    use model::{ParticipantId, TopicName};
    use notify::config::{NotifyRoute, NotifyWay};
    use url::Url;

    use super::*;

    fn route(after_s: u64) -> NotifyRoute {
        NotifyRoute {
            name: "desk".into(),
            topics: Vec::new(),
            reviewers: Vec::new(),
            after: Duration::from_secs(after_s),
            quiet: None,
            link: None,
            way: NotifyWay::Exec(vec!["true".to_owned()]),
        }
    }

    fn approver(window_s: u64) -> TopicApprover {
        let service = AuthzenService {
            evaluation_url: Url::parse("https://pdp.example/").unwrap(),
            request_url: None,
            token: None,
            allowed: Vec::new(),
        };
        TopicApprover {
            topic: TopicName::new("main").unwrap(),
            approver: OutsideApprover {
                service,
                acts_as: ParticipantId::new("ann").unwrap(),
                tools: Vec::new(),
                arguments: SentArguments::All,
                decides: TakenDecisions::Both,
                window: Duration::from_secs(window_s),
            },
        }
    }

    fn telemetry(interval_s: u64) -> TelemetryConfig {
        TelemetryConfig {
            endpoint: Url::parse("http://127.0.0.1:4318").unwrap(),
            headers: Vec::new(),
            allowed: Vec::new(),
            interval: Duration::from_secs(interval_s),
            traces: None,
            resource: Default::default(),
            audit: false,
        }
    }

    #[test]
    fn parts_that_are_named_are_no_settings_of_the_server() {
        let route_of = |after_s| Config {
            notifications: vec![route(after_s)],
            ..Config::default()
        };
        let approver_of = |window_s| Config {
            approvers: vec![approver(window_s)],
            ..Config::default()
        };
        let telemetry_of = |interval_s| Config {
            telemetry: Some(telemetry(interval_s)),
            ..Config::default()
        };
        let cases = [
            (route_of(1), route_of(2), "notifications desk"),
            (approver_of(1), approver_of(2), "approver of topic main"),
            (telemetry_of(1), telemetry_of(2), "telemetry"),
        ];
        for (before, after, name) in cases {
            let expected = Changes {
                changed: vec![name.to_owned()],
                ..Changes::default()
            };
            assert_eq!(changes(&before, &after), expected);
            assert_eq!(changes(&before, &before), Changes::default());
        }
    }
}
