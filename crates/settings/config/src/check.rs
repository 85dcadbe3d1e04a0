//! Checks of the whole configuration: unique names, references to topics, distinct prefixes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::checked::{Config, serves_in};
use auth::TokenHash;
use identity::config::ParticipantConfig;
use model::{ParticipantId, TopicName};
use topic::section::TopicSection;
use topic::{PrefixError, UpstreamNames, check_prefixes};
use upstream::config::ServerConfig;

use crate::node::Node;
use crate::participants::Participants;
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::secrets::Outside;
use crate::topics::ReadTopics;
use crate::{
    approvers, issuers, login, notifications, own_address, participants, profiles, servers,
    settings, telemetry, tls_files, topics,
};

/// Checks a tree and converts it to a configuration; `notices` receives messages about servers that
/// cannot start.
///
/// # Errors
/// All problems, in the order of the lines of each file.
pub(crate) fn check(
    tree: &Node,
    outside: &Outside<'_>,
    notices: &mut Vec<String>,
) -> Result<Config, Vec<Problem>> {
    let env = outside.env;
    let problems = Problems::default();
    let root = Table::root(tree, &problems);
    let settings = settings::read(&root, env);
    let (servers, auth) = servers::read(&root, outside, notices);
    let profiles = profiles::read(&root);
    let participants = participants::read(&root, outside, &profiles);
    let issuers = issuers::read(&root, outside, &profiles);
    let scopes = issuers::scopes(&root, &profiles.sets);
    let ReadTopics {
        sections: topics,
        rules,
        approvers,
    } = topics::read(&root, &servers, &profiles, outside);
    let notifications = notifications::read(&root, outside);
    let telemetry = telemetry::read(&root, outside, notices);
    check_unique_names(tree, &servers, &participants.known, &problems);
    check_tokens_differ(tree, &participants.known, &problems);
    tls_files::check_certificates(tree, &participants.known, &problems);
    check_topics_exist(tree, &participants.known, &topics, &problems);
    approvers::check(tree, &approvers, &participants.known, &problems);
    notifications::check(
        tree,
        &notifications,
        (&participants.known, &topics),
        &problems,
    );
    check_prefixes_distinct(tree, &servers, &participants, &topics, &problems);
    root.finish();
    let mut config = settings.map(|mut settings| {
        let identity = Arc::make_mut(&mut settings.identity);
        identity.participants = participants.known;
        identity.topics = topics;
        identity.servers = servers.iter().map(|server| server.name.clone()).collect();
        identity.issuers = issuers;
        identity.scopes = scopes;
        Config {
            servers,
            auth,
            serving: participants.serving,
            result_limits: participants.result_limits,
            rules,
            approvers,
            notifications,
            telemetry,
            sets: Arc::new(profiles.sets),
            ..settings
        }
    });
    // These compare what several tables say, also with the gateway's own address, which only
    // settings that could be read have.
    if let Some(config) = &mut config {
        own_address::check_servers(tree, config, notices, &problems);
        issuers::check(tree, config, &problems);
        login::check(tree, config, &problems);
    }
    let problems = by_line(problems.into_inner());
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        Some(_) | None => Err(problems),
    }
}

/// Sorts problems by file, in the order of their first problems, then by line.
fn by_line(mut problems: Vec<Problem>) -> Vec<Problem> {
    let mut files = Vec::new();
    for problem in &problems {
        let file = file_of(problem);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    problems.sort_by_key(|problem| {
        let file = files.iter().position(|file| *file == file_of(problem));
        let location = problem.location.as_ref();
        let line = location.and_then(|location| location.line);
        let span = location.and_then(|location| location.span);
        (file, line, span)
    });
    problems
}

/// The name of the source that has a problem.
fn file_of(problem: &Problem) -> Option<String> {
    Some(problem.location.as_ref()?.layer.name.clone())
}

/// A name of a server or participant, and the table of its kind: `servers`, `participants`.
#[derive(Clone, Copy)]
struct UsedName<'a> {
    table: &'static str,
    name: &'a ParticipantId,
}

/// Checks that no two servers or participants share a name, or have names that look alike: all are
/// participants of topics.
fn check_unique_names(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &[ParticipantConfig],
    problems: &Problems,
) {
    let of_servers = servers.iter().map(|server| UsedName {
        table: "servers",
        name: &server.name,
    });
    let of_participants = participants.iter().map(|one| UsedName {
        table: "participants",
        name: &one.participant.id,
    });
    // By skeleton: names that look alike have the same one.
    let mut seen: HashMap<String, Vec<UsedName<'_>>> = HashMap::new();
    for UsedName { table, name } in of_servers.chain(of_participants) {
        let alike = seen.entry(name.skeleton()).or_default();
        let earlier = alike
            .iter()
            .copied()
            .find(|other| other.name == name || name.looks_like(other.name));
        alike.push(UsedName { table, name });
        let Some(earlier) = earlier else {
            continue;
        };
        let first = earlier.table;
        let problem = if earlier.name == name {
            let message =
                format!("the name `{name}` is used twice: in `[{first}]` and in `[{table}]`");
            Problem::new("config_twice", message)
                .hint("servers and participants need different names: rename one of them")
        } else {
            let other = earlier.name;
            let message = format!(
                "the names `{other}` in `[{first}]` and `{name}` in `[{table}]` look alike"
            );
            Problem::new("config_alike", message)
                .hint("people could take one for the other: rename one of them")
        };
        problems.note(problem.at(tree.place(&[table, name.as_str()])));
    }
}

/// Checks that no two participants have the same token: a token names one participant.
fn check_tokens_differ(tree: &Node, participants: &[ParticipantConfig], problems: &Problems) {
    let mut seen: HashMap<u64, Vec<UsedToken<'_>>> = HashMap::new();
    for one in participants {
        let id = &one.participant.id;
        for credential in &one.credentials {
            let hash = credential.hash;
            let alike = seen.entry(hash.prefix()).or_default();
            let earlier = alike.iter().find(|other| other.hash == hash);
            if let Some(UsedToken { id: other, .. }) = earlier
                && *other != id
            {
                let message = format!("`{other}` and `{id}` have the same token");
                let problem = Problem::new("config_token_twice", message).hint(
                    "a token names one participant: give each its own (portmoot token new NAME makes one)",
                );
                problems.note(problem.at(tree.place(&["participants", id.as_str()])));
            }
            alike.push(UsedToken { hash, id });
        }
    }
}

/// A token and the participant that it names.
struct UsedToken<'a> {
    hash: TokenHash,
    id: &'a ParticipantId,
}

fn check_topics_exist(
    tree: &Node,
    participants: &[ParticipantConfig],
    topics: &[TopicSection],
    problems: &Problems,
) {
    let names = topics.iter().map(|topic| topic.name.as_str());
    for one in participants {
        let id = one.participant.id.as_str();
        for topic in one.participant.topics.iter().map(TopicName::as_str) {
            if names.clone().any(|known| known == topic) {
                continue;
            }
            let message = format!("`{id}` may join `{topic}`, but there is no such topic");
            let place = tree.place(&["participants", id, "topics"]);
            let problem = Problem::new("config_unknown_topic", message).at(place);
            let otherwise = format!("add [topics.{topic}]");
            problems.note(problem.suggest(topic, names.clone(), otherwise));
        }
    }
}

/// Checks that in every topic, no public name of one server can be mistaken for one of another.
fn check_prefixes_distinct(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &Participants,
    topics: &[TopicSection],
    problems: &Problems,
) {
    // Two servers meet in several topics, and one problem is enough.
    let mut reported = Vec::new();
    for topic in topics {
        let Err(error) = check_prefixes(&names_in(topic, servers, participants)) else {
            continue;
        };
        let later = match &error {
            // `check_unique_names` reports it.
            PrefixError::SameId(_) => continue,
            PrefixError::TwoEmpty(_, later)
            | PrefixError::Shadows(_, later)
            | PrefixError::TooLong(later) => later,
        };
        let problem = Problem::new("config_prefix", error.to_string());
        let problem = if servers.iter().any(|server| server.name.as_str() == later) {
            problem.at(tree.place(&["servers", later, "prefix"]))
        } else {
            problem
                .at(tree.place(&["participants", later, "serves"]))
                .hint(
                    "the name of a participant is the prefix of its tools: rename the participant",
                )
        };
        if !reported.contains(&problem) {
            reported.push(problem);
        }
    }
    for problem in reported {
        problems.note(problem);
    }
}

/// The servers of a topic, then the participants that may enter it and serve, as the topic names
/// their entries.
fn names_in(
    topic: &TopicSection,
    servers: &[ServerConfig],
    participants: &Participants,
) -> Vec<UpstreamNames> {
    let mut names = Vec::new();
    for server in servers {
        if server.enabled && topic.servers.contains(&server.name) {
            names.push(UpstreamNames::new(server.name.clone(), &*server.prefix));
        }
    }
    for server in &participants.serving {
        if serves_in(server, &participants.known, topic) {
            names.push(UpstreamNames::serving(server.name.clone(), &*server.prefix));
        }
    }
    names
}
