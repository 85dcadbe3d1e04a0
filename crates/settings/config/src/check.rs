//! Checks of the whole configuration: unique names, references to topics, distinct prefixes.

use std::collections::HashMap;
use std::sync::Arc;

use access::config::{Access, Config, ParticipantConfig, TopicConfig};
use auth::TokenHash;
use model::ParticipantId;
use topic::{PrefixError, UpstreamNames, check_prefixes};
use upstream::config::ServerConfig;

use crate::node::Node;
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::secrets::Outside;
use crate::{
    issuers, login, own_address, participants, profiles, servers, settings, tls_files, topics,
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
    let (issuers, scopes) = (
        issuers::read(&root, outside, &profiles),
        issuers::scopes(&root, &profiles.sets),
    );
    let topics = topics::read(&root, &servers, &profiles);
    check_unique_names(tree, &servers, &participants, &problems);
    check_tokens_differ(tree, &participants, &problems);
    tls_files::check_certificates(tree, &participants, &problems);
    check_topics_exist(tree, &participants, &topics, &problems);
    check_prefixes_distinct(tree, &servers, &participants, &topics, &problems);
    root.finish();
    let sets = Arc::new(profiles.sets);
    let whole = |settings| Config {
        servers,
        auth,
        participants,
        topics,
        issuers,
        scopes,
        sets,
        ..settings
    };
    let mut config = settings.map(whole);
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
    let name = |problem: &Problem| {
        problem
            .location
            .as_ref()
            .map(|location| location.layer.name.clone())
    };
    let place = |problem: &Problem| problem.location.as_ref().and_then(|location| location.span);
    let mut files = Vec::new();
    for file in problems.iter().map(name) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    problems.sort_by_key(|problem| {
        let file = files.iter().position(|file| *file == name(problem));
        (
            file,
            problem.location.as_ref().and_then(|location| location.line),
            place(problem),
        )
    });
    problems
}

/// Checks that no two servers or participants share a name, or have names that look alike: all are
/// participants of topics.
fn check_unique_names(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &[ParticipantConfig],
    problems: &Problems,
) {
    let mut seen: HashMap<String, Vec<(&str, &ParticipantId)>> = HashMap::new();
    let all = servers.iter().map(|server| ("servers", &server.name));
    for (table, name) in all.chain(
        participants
            .iter()
            .map(|one| ("participants", &one.participant.id)),
    ) {
        let earlier = seen.entry(name.skeleton()).or_default();
        let other = earlier
            .iter()
            .copied()
            .find(|(_, other)| *other == name || name.looks_like(other));
        earlier.push((table, name));
        let Some((first, other)) = other else {
            continue;
        };
        let problem = if other == name {
            let message =
                format!("the name `{name}` is used twice: in `[{first}]` and in `[{table}]`");
            Problem::new("config_twice", message)
                .hint("servers and participants need different names: rename one of them")
        } else {
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
    let mut seen: HashMap<u64, Vec<(TokenHash, &ParticipantId)>> = HashMap::new();
    for one in participants {
        for hash in one.credentials.iter().map(|credential| credential.hash) {
            let id = &one.participant.id;
            let earlier = seen.entry(hash.prefix()).or_default();
            let other = earlier
                .iter()
                .find(|(other, _)| *other == hash)
                .map(|(_, other)| *other);
            earlier.push((hash, id));
            if let Some(other) = other.filter(|other| *other != id) {
                let message = format!("`{other}` and `{id}` have the same token");
                let problem = Problem::new("config_token_twice", message).hint(
                    "a token names one participant: give each its own (portmoot token new NAME makes one)",
                );
                problems.note(problem.at(tree.place(&["participants", id.as_str()])));
            }
        }
    }
}

fn check_topics_exist(
    tree: &Node,
    participants: &[ParticipantConfig],
    topics: &[TopicConfig],
    problems: &Problems,
) {
    let known = |name: &str| topics.iter().any(|topic| topic.name.as_str() == name);
    for one in participants.iter().map(|one| &one.participant) {
        for topic in one.topics.iter().filter(|topic| !known(topic.as_str())) {
            let message = format!(
                "`{}` may join `{topic}`, but there is no such topic",
                one.id
            );
            let place = tree.place(&["participants", one.id.as_str(), "topics"]);
            let problem = Problem::new("config_unknown_topic", message).at(place);
            let names = topics.iter().map(|topic| topic.name.as_str());
            problems.note(problem.suggest(topic.as_str(), names, format!("add [topics.{topic}]")));
        }
    }
}

/// Checks that in every topic, no public name of one server can be mistaken for one of another.
fn check_prefixes_distinct(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &[ParticipantConfig],
    topics: &[TopicConfig],
    problems: &Problems,
) {
    let mut reported = Vec::new();
    for topic in topics {
        let members = servers
            .iter()
            .filter(|server| server.enabled && topic.servers.contains(&server.name));
        let names = members.map(|server| UpstreamNames::new(server.name.clone(), &*server.prefix));
        let open = topic.access == Access::Public;
        let serving = participants
            .iter()
            .filter(|one| open || one.participant.may_enter(&topic.name));
        let serving = serving.filter_map(ParticipantConfig::server);
        let serving = serving.map(|one| UpstreamNames::serving(one.name, &*one.prefix));
        let Err(error) = check_prefixes(&names.chain(serving).collect::<Vec<_>>()) else {
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
    reported
        .into_iter()
        .for_each(|problem| problems.note(problem));
}
