//! Configuration files of MCP clients (`mcpServers`, VS Code's `servers`), converted to `[servers]` tables.

use crate::config::node::{Node, TreeEntry, Value};
use crate::config::problem::Problem;

/// Keys with the same meaning in a `[servers.NAME]` table. `timeout` is not one: clients differ in its unit.
const SHARED: [&str; 8] = ["type", "command", "args", "env", "cwd", "url", "headers", "protocolEra"];

/// Keys of `[servers.NAME]` that users may add to such a file.
const OWN: [&str; 10] = [
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

/// A converted client file.
#[derive(Debug)]
pub(crate) struct ClientFile {
    /// A tree with `servers` in it.
    pub(crate) tree: Node,
    /// Messages about ignored keys.
    pub(crate) notices: Vec<String>,
}

/// Converts a client file.
///
/// # Errors
/// When the file has no server list.
pub(crate) fn adapt(file: Node) -> Result<ClientFile, Problem> {
    let location = file.location.clone();
    let found = ["mcpServers", "servers"].iter().find_map(|key| file.get(key)).cloned();
    let Some(Node { value: Value::Table(servers), location: list_location }) = found else {
        let problem = Problem::new("config_no_servers", "this file has neither `mcpServers` nor `servers`");
        return Err(problem.at(&location).hint("expected: {\"mcpServers\": {\"NAME\": {\"command\": ...}}}"));
    };
    let mut notices = Vec::new();
    let entry = |entry: TreeEntry| adapt_server(entry, &mut notices);
    let servers =
        Node { value: Value::Table(servers.into_iter().map(entry).collect()), location: list_location };
    let entry = TreeEntry { key: "servers".into(), location: location.clone(), node: servers };
    Ok(ClientFile { tree: Node { value: Value::Table(vec![entry]), location }, notices })
}

fn adapt_server(mut server: TreeEntry, notices: &mut Vec<String>) -> TreeEntry {
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
            (key, _) if SHARED.contains(&key) || OWN.contains(&key) => kept.push(entry),
            _ => ignored.push(format!("`{}`", entry.key)),
        }
    }
    *entries = kept;
    if !ignored.is_empty() {
        notices.push(format!("{}: server `{}`: {} ignored", server.location, server.key, ignored.join(", ")));
    }
    server
}
