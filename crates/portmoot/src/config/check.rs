//! From the whole tree to the one checked configuration, with what only the whole can tell: names that meet, topics and
//! servers that refer to each other. Must not know where the layers came from.

use std::collections::HashMap;

use gateway::config::{Access, Config, ParticipantConfig, TopicConfig};
use topic::{PrefixError, UpstreamNames, check_prefixes};
use upstream::config::ServerConfig;

use crate::config::node::Node;
use crate::config::problem::Problem;
use crate::config::reader::{Problems, Table, suggestion};
use crate::config::values::Env;
use crate::config::{participants, profiles, servers, settings, topics};

/// Checks a tree.
///
/// # Errors
/// Everything that is wrong with it, in the order of the tables.
pub(crate) fn check(tree: &Node, env: Env<'_>) -> Result<Config, Vec<Problem>> {
    let problems = Problems::default();
    let root = Table::root(tree, &problems);
    let settings = settings::read(&root);
    let audit = settings::audit(&root);
    let servers = servers::read(&root, env);
    let profiles = profiles::read(&root);
    let participants = participants::read(&root, env, &profiles);
    let topics = topics::read(&root, &servers, &profiles);
    names_meet(tree, &servers, &participants, &problems);
    topics_exist(tree, &participants, &topics, &problems);
    prefixes_fit(tree, &servers, &participants, &topics, &problems);
    root.finish();
    let problems = problems.into_inner();
    match settings {
        Some(settings) if problems.is_empty() => Ok(Config {
            listen: settings.listen,
            data_dir: settings.data_dir,
            hosts: settings.hosts,
            legacy_sse: settings.legacy_sse,
            limits: settings.limits,
            audit,
            servers,
            participants,
            topics,
        }),
        Some(_) | None => Err(problems),
    }
}

/// Servers and participants are all participants of topics: a name is one of them.
fn names_meet(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &[ParticipantConfig],
    problems: &Problems,
) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let all = servers.iter().map(|server| ("servers", server.name.as_str()));
    let all = all.chain(participants.iter().map(|one| ("participants", one.participant.id.as_str())));
    for (table, name) in all {
        if let Some(other) = seen.insert(name, table) {
            let message = format!("`{name}` is the name of two: one in `[{other}]` and one in `[{table}]`");
            let mut problem =
                Problem::new("config_twice", message).hint("servers and participants share their names");
            problem.place = tree.get(table).and_then(|node| node.get(name)).map(|node| node.place.clone());
            problems.note(problem);
        }
    }
}

fn topics_exist(
    tree: &Node,
    participants: &[ParticipantConfig],
    topics: &[TopicConfig],
    problems: &Problems,
) {
    let known = |name: &str| topics.iter().any(|topic| topic.name.as_str() == name);
    for one in participants.iter().map(|one| &one.participant) {
        for topic in one.topics.iter().filter(|topic| !known(topic.as_str())) {
            let message = format!("`{}` may enter `{topic}`, and there is no such topic", one.id);
            let mut problem = Problem::new("config_unknown_topic", message);
            problem.hint = suggestion(topic.as_str(), topics.iter().map(|topic| topic.name.as_str()))
                .or_else(|| Some(format!("add [topics.{topic}]")));
            let table = tree.get("participants").and_then(|node| node.get(one.id.as_str()));
            problem.place = table.map(|table| table.get("topics").unwrap_or(table).place.clone());
            problems.note(problem);
        }
    }
}

/// In no topic may a name of one server be taken for another's.
fn prefixes_fit(
    tree: &Node,
    servers: &[ServerConfig],
    participants: &[ParticipantConfig],
    topics: &[TopicConfig],
    problems: &Problems,
) {
    let mut told = Vec::new();
    for topic in topics {
        let members = servers.iter().filter(|server| server.enabled && topic.servers.contains(&server.name));
        let names = members.map(|server| UpstreamNames::new(server.name.clone(), &*server.prefix));
        let open = topic.access == Access::Public;
        let serving = participants.iter().filter(|one| open || one.participant.may_enter(&topic.name));
        let serving = serving.filter_map(ParticipantConfig::server);
        let serving = serving.map(|one| UpstreamNames::serving(one.name, &*one.prefix));
        let Err(error) = check_prefixes(&names.chain(serving).collect::<Vec<_>>()) else { continue };
        let later = match &error {
            // Told already: names meet.
            PrefixError::SameId(_) => continue,
            PrefixError::TwoEmpty(_, later)
            | PrefixError::Shadows(_, later)
            | PrefixError::TooLong(later) => later,
        };
        let mut problem = Problem::new("config_prefix", error.to_string());
        let find = |table: &str| tree.get(table).and_then(|node| node.get(later));
        let (server, participant) = (find("servers"), find("participants"));
        problem.place = server.map(|table| table.get("prefix").unwrap_or(table).place.clone());
        if let (None, Some(table)) = (server, participant) {
            problem.place = Some(table.get("serves").unwrap_or(table).place.clone());
            problem.hint = Some("its name is the prefix of what it serves: give it another name".into());
        }
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    told.into_iter().for_each(|problem| problems.note(problem));
}
