//! Tables `[topics.NAME]`, read as [`TopicSection`].

use std::sync::Arc;
use std::time::Duration;

use crate::approvers::{self, TopicApprover};
use crate::problem::Problem;
use crate::profiles::{Profiles, profile};
use crate::reader::{ListedText, Table, ValueForm};
use crate::rule_files::{self, TopicRules};
use crate::secrets::Outside;
use crate::sets::name_filter;
use crate::values::{approvals, rate, result_bytes_max, topic_name};
use model::{ParticipantId, TopicName};
use topic::section::GUEST_RATE;
use topic::section::{Access, BuiltIn, McpCalls, ToolsList, TopicSection};
use upstream::config::ServerConfig;

const ACCESS: [(&str, Access); 3] = [
    ("public", Access::Public),
    ("restricted", Access::Restricted),
    ("private", Access::Private),
];
const MCP_CALLS: [(&str, McpCalls); 3] = [
    ("none", McpCalls::None),
    ("kinds", McpCalls::Kinds),
    ("full", McpCalls::Full),
];
const TOOLS_LIST: [(&str, ToolsList); 2] =
    [("full", ToolsList::Full), ("search", ToolsList::Search)];
const BUILT_IN: [(&str, BuiltIn); 4] = [
    ("proposals", BuiltIn::Proposals),
    ("room", BuiltIn::Room),
    ("proxy", BuiltIn::Proxy),
    ("search_tools", BuiltIn::SearchTools),
];
const HISTORY_MAX: u64 = 100_000;
const LIST_WAIT: Duration = Duration::from_secs(5);
const PROPOSAL_TTL: Duration = Duration::from_secs(300);

/// The topics, the rules of those that name a file of them, and the approvers of those that have one.
#[derive(Default)]
pub(crate) struct ReadTopics {
    pub(crate) sections: Vec<TopicSection>,
    pub(crate) rules: Vec<TopicRules>,
    pub(crate) approvers: Vec<TopicApprover>,
}

/// Reads every topic. `servers` and `profiles` are the configured ones.
pub(crate) fn read(
    root: &Table<'_>,
    servers: &[ServerConfig],
    profiles: &Profiles,
    outside: &Outside<'_>,
) -> ReadTopics {
    let mut read = ReadTopics::default();
    for (entry, table) in root.tables("topics") {
        let name = topic_name(&entry.key, &entry.location, table.problems());
        if let Some(name) = &name {
            read.rules
                .extend(rule_files::read(&table, name, outside.env));
        }
        let approver = approvers::read(&table, name.as_ref(), outside);
        read.approvers.extend(approver);
        read.sections.extend(topic(name, table, servers, profiles));
    }
    read
}

fn topic(
    name: Option<TopicName>,
    table: Table<'_>,
    servers: &[ServerConfig],
    profiles: &Profiles,
) -> Option<TopicSection> {
    let access = table.choice("access", &ACCESS).unwrap_or_default();
    let anonymous = profile(&table, "anonymous", profiles);
    let anonymous_rate = rate(&table, "anonymous_rate").unwrap_or(GUEST_RATE);
    let history = table.count("history").unwrap_or(0);
    if history > HISTORY_MAX {
        let message = format!("`{}` is more than {HISTORY_MAX}", table.full("history"));
        table.note_value(
            "history",
            message,
            "all envelopes of the history are kept in memory: choose a smaller number",
        );
    }
    let chosen = chosen_servers(&table, servers);
    let mcp_calls = table.choice("mcp_calls", &MCP_CALLS).unwrap_or_default();
    let builtin = builtin(&table);
    let tools = name_filter(&table, Some(&profiles.sets));
    let tools_list = tools_list(&table, &builtin);
    let list_wait = table.duration("list_wait").unwrap_or(LIST_WAIT);
    let proposal_ttl = table.duration("proposal_ttl").unwrap_or(PROPOSAL_TTL);
    let destructive_approvals = approvals(&table, "destructive_approvals").unwrap_or(1);
    let result_bytes_max = result_bytes_max(&table).filter(|limit| *limit > 0);
    table.finish();
    let history = usize::try_from(history).unwrap_or(usize::MAX);
    Some(TopicSection {
        name: name?,
        access,
        anonymous,
        anonymous_rate,
        history,
        servers: chosen,
        mcp_calls,
        builtin,
        tools: (!tools.is_all()).then(|| Arc::new(tools)),
        tools_list,
        list_wait,
        proposal_ttl,
        destructive_approvals,
        result_bytes_max,
    })
}

/// The servers of a topic: all, unless `servers` names some.
fn chosen_servers(table: &Table<'_>, servers: &[ServerConfig]) -> Vec<ParticipantId> {
    let names = servers.iter().map(|server| &server.name);
    let Some(wanted) = table.texts("servers") else {
        return names.cloned().collect();
    };
    for ListedText { text, location } in &wanted {
        if *text != "*" && !names.clone().any(|known| known.as_str() == *text) {
            let message = format!("`{}`: there is no server `{text}`", table.full("servers"));
            let problem = Problem::new("config_unknown_server", message).at(location);
            let otherwise = format!("add [servers.{text}], or write \"*\"");
            let known = names.clone().map(ParticipantId::as_str);
            table
                .problems()
                .note(problem.suggest(text, known, otherwise));
        }
    }
    let wants_all = wanted.iter().any(|one| one.text == "*");
    names
        .filter(|name| wants_all || wanted.iter().any(|one| one.text == name.as_str()))
        .cloned()
        .collect()
}

/// The built-in tools of a topic.
fn builtin(table: &Table<'_>) -> Vec<BuiltIn> {
    let wanted = table.texts("builtin").unwrap_or_default();
    let words = BUILT_IN.map(|(word, _)| word);
    table.form("builtin", ValueForm::Choices(words.to_vec()));
    let mut chosen = Vec::new();
    for ListedText { text, location } in wanted {
        if let Some((_, tool)) = BUILT_IN.iter().find(|(word, _)| *word == text) {
            chosen.push(*tool);
            continue;
        }
        let message = format!(
            "`{}`: there is no built-in tool `{text}`",
            table.full("builtin")
        );
        let problem = Problem::new("config_value", message).at(location);
        let otherwise = "the built-in tools are `proposals`, `room`, `proxy` and `search_tools`";
        table
            .problems()
            .note(problem.suggest(text, words, otherwise));
    }
    chosen
}

/// Content of lists of tools. A list without the tools that find the others would show nothing.
fn tools_list(table: &Table<'_>, builtin: &[BuiltIn]) -> ToolsList {
    let chosen = table.choice("tools_list", &TOOLS_LIST).unwrap_or_default();
    let finds = builtin
        .iter()
        .any(|one| matches!(one, BuiltIn::Proxy | BuiltIn::SearchTools));
    if chosen == ToolsList::Search && !finds {
        let message = format!("`{}`: no tool would be listed", table.full("tools_list"));
        table.note_value(
            "tools_list",
            message,
            "add \"proxy\" and \"search_tools\" to `builtin`",
        );
    }
    chosen
}
