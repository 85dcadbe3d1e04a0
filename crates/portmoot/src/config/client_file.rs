//! Other clients' server lists (`mcpServers`, VS Code's `servers`) brought into our shape, unchanged files as they are.
//! Must not know what the values mean.

use crate::config::node::{Entry, Node, Value};
use crate::config::problem::Problem;

/// Keys of an entry that mean the same to us. `timeout` is not among them: clients disagree on its unit.
const SHARED: [&str; 8] = ["type", "command", "args", "env", "cwd", "url", "headers", "protocolEra"];

/// Keys of our own that somebody may have added to such a file.
const OURS: [&str; 10] = [
    "prefix",
    "era",
    "sessions",
    "capabilities",
    "enabled",
    "request_timeout",
    "start_timeout",
    "max_timeout",
    "tool_timeouts",
    "transport",
];

/// What such a file gives us.
#[derive(Debug)]
pub(crate) struct ClientFile {
    /// A tree with `servers` in it.
    pub(crate) tree: Node,
    /// What was left out, for the user to know.
    pub(crate) notices: Vec<String>,
}

/// Takes the servers out of a client's file.
///
/// # Errors
/// One problem when the file holds no server list.
pub(crate) fn adapt(file: Node) -> Result<ClientFile, Problem> {
    let place = file.place.clone();
    let found = ["mcpServers", "servers"].iter().find_map(|key| file.get(key)).cloned();
    let Some(Node { value: Value::Table(servers), place: list_place }) = found else {
        let problem = Problem::new("config_no_servers", "this file has no `mcpServers`, and no `servers`");
        return Err(problem.at(&place).hint("expected: {\"mcpServers\": {\"NAME\": {\"command\": ...}}}"));
    };
    let mut notices = Vec::new();
    let entry = |entry: Entry| adapt_server(entry, &mut notices);
    let servers = Node { value: Value::Table(servers.into_iter().map(entry).collect()), place: list_place };
    let entry = Entry { key: "servers".into(), place: place.clone(), node: servers };
    Ok(ClientFile { tree: Node { value: Value::Table(vec![entry]), place }, notices })
}

fn adapt_server(mut server: Entry, notices: &mut Vec<String>) -> Entry {
    let Value::Table(entries) = &mut server.node.value else { return server };
    let mut ignored = Vec::new();
    let mut kept = Vec::with_capacity(entries.len());
    for mut entry in std::mem::take(entries) {
        match (entry.key.as_str(), &entry.node.value) {
            ("disabled", Value::Flag(disabled)) => {
                entry.node.value = Value::Flag(!disabled);
                entry.key = "enabled".into();
                kept.push(entry);
            }
            (key, _) if SHARED.contains(&key) || OURS.contains(&key) => kept.push(entry),
            _ => ignored.push(format!("`{}`", entry.key)),
        }
    }
    *entries = kept;
    if !ignored.is_empty() {
        notices.push(format!("{}: server `{}`: {} ignored", server.place, server.key, ignored.join(", ")));
    }
    server
}
