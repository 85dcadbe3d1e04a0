//! Configuration files of MCP clients (`mcpServers`, VS Code's `servers`), converted to `[servers]`
//! tables.

use std::path::Path;

use model::GATEWAY;

use crate::node::{Node, TreeEntry, Value};
use crate::problem::{Problem, suggestion};

/// Keys with the same meaning in a `[servers.NAME]` table. `timeout` is not one: clients differ in
/// its unit.
const SHARED: [&str; 8] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "protocolEra",
];

/// Keys of `[servers.NAME]` that users may add to such a file.
const OWN: [&str; 18] = [
    "prefix",
    "era",
    "sessions",
    "start",
    "idle_stop",
    "capabilities",
    "enabled",
    "validate",
    "sandbox",
    "sandbox_read",
    "sandbox_write",
    "limits",
    "pins",
    "pins_first",
    "request_timeout",
    "start_timeout",
    "max_timeout",
    "tool_timeouts",
];

/// Other spellings of some clients, each with the key that it means.
const ALIASES: [(&str, &str); 3] = [
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("transport", "type"),
];

/// Other spellings of types, each with the type that it means. The case of letters does not count.
const TYPES: [(&str, &str); 4] = [
    ("local", "stdio"),
    ("remote", "http"),
    ("streamable_http", "http"),
    ("http+sse", "sse"),
];

/// Keys of the server list: of most clients, and of VS Code.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// Letters in which a mistyped key differs from the key that is meant.
const TYPOS_MAX: usize = 2;

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
    let found = LISTS.iter().find_map(|key| file.get(key)).cloned();
    let Some(Node {
        value: Value::Table(servers),
        location: list_location,
    }) = found
    else {
        let problem = Problem::new(
            "config_no_servers",
            "this file has neither `mcpServers` nor `servers`",
        );
        let near = |entry: &TreeEntry| {
            if LISTS.contains(&entry.key.as_str()) {
                Some(format!(
                    "`{}` must be a table of servers by their names",
                    entry.key
                ))
            } else {
                Some(format!(
                    "`{}`: {}",
                    entry.key,
                    suggestion(&entry.key, LISTS)?
                ))
            }
        };
        let hint = file.entries().iter().find_map(near);
        let expected = "expected: {\"mcpServers\": {\"NAME\": {\"command\": ...}}}";
        return Err(problem
            .at(&location)
            .hint(hint.unwrap_or_else(|| expected.to_owned())));
    };
    let mut notices = Vec::new();
    let mut kept = Vec::with_capacity(servers.len());
    for entry in servers {
        if is_this_gateway(&entry) {
            notices.push(format!(
                "{}: server `{}`: this gateway itself, ignored",
                entry.location, entry.key
            ));
        } else if !matches!(entry.node.value, Value::Table(_)) {
            notices.push(format!(
                "{}: server `{}`: not a table of keys, ignored",
                entry.location, entry.key
            ));
        } else {
            kept.push(adapt_server(entry, &mut notices));
        }
    }
    let servers = Node {
        value: Value::Table(kept),
        location: list_location,
    };
    let entry = TreeEntry {
        key: "servers".into(),
        location: location.clone(),
        node: servers,
    };
    Ok(ClientFile {
        tree: Node {
            value: Value::Table(vec![entry]),
            location,
        },
        notices,
    })
}

/// Whether a server is what the client connects to Portmoot with: its entry `portmoot`, or a bare
/// `portmoot stdio`, which would join the gateway that starts it.
fn is_this_gateway(server: &TreeEntry) -> bool {
    let command = server
        .node
        .get("command")
        .and_then(Node::text)
        .unwrap_or_default();
    let args = match server.node.get("args").map(|node| &node.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let is_bare = matches!(args, [only] if only.text() == Some("stdio"));
    server.key == GATEWAY
        || (is_bare
            && Path::new(command)
                .file_name()
                .is_some_and(|name| name == "portmoot"))
}

/// Whether an unknown key is a known one with a typing error, and not a key of another program.
fn is_mistyped(key: &str) -> bool {
    let typos =
        |known: &&str| strsim::damerau_levenshtein(&key.to_lowercase(), &known.to_lowercase());
    let known = SHARED.iter().chain(&OWN).min_by_key(|known| typos(known));
    known.is_some_and(|known| typos(known) <= TYPOS_MAX.min(known.len() / 3))
}

/// A flag, also one that is written as a text.
fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Flag(flag) => Some(*flag),
        Value::Text(text) => text.trim().to_lowercase().parse().ok(),
        Value::Integer(_) | Value::Decimal(_) | Value::List(_) | Value::Table(_) => None,
    }
}

fn adapt_server(mut server: TreeEntry, notices: &mut Vec<String>) -> TreeEntry {
    let Value::Table(entries) = &mut server.node.value else {
        return server;
    };
    let mut ignored = Vec::new();
    let mut kept = Vec::with_capacity(entries.len());
    let written_keys: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let meant = |key: &str| {
        ALIASES
            .iter()
            .find(|(alias, _)| *alias == key)
            .map(|(_, meant)| *meant)
    };
    for mut entry in std::mem::take(entries) {
        match (entry.key.as_str(), &entry.node.value) {
            ("disabled", value) => {
                // Anything else than a flag is a problem of the server, which does not start then.
                if let Some(disabled) = flag(value) {
                    entry.node.value = Value::Flag(!disabled);
                    entry.key = "enabled".into();
                }
                kept.push(entry);
            }
            ("enabled", value) => {
                entry.node.value = flag(value).map_or_else(|| value.clone(), Value::Flag);
                kept.push(entry);
            }
            ("type" | "transport", Value::Text(written)) => {
                let lower = written.to_lowercase();
                let known = TYPES.iter().find(|(other, _)| *other == lower);
                // `streamableHttp` is spelled so.
                if let Some(meant) = known
                    .map(|(_, meant)| *meant)
                    .or((lower != "streamablehttp").then_some(&*lower))
                {
                    entry.node.value = Value::Text(meant.to_owned());
                }
                if entry.key == "type" || !written_keys.iter().any(|key| key == "type") {
                    entry.key = "type".into();
                    kept.push(entry);
                } else {
                    ignored.push("`transport`".to_owned());
                }
            }
            (key, _) if SHARED.contains(&key) || OWN.contains(&key) => kept.push(entry),
            // The check reports it, with the key that is meant.
            (key, _) if is_mistyped(key) => kept.push(entry),
            (key, _) => {
                match meant(key).filter(|meant| !written_keys.iter().any(|key| key == meant)) {
                    Some(meant) if !kept.iter().any(|known: &TreeEntry| known.key == meant) => {
                        entry.key = meant.into();
                        kept.push(entry);
                    }
                    _ => ignored.push(format!("`{}`", entry.key)),
                }
            }
        }
    }
    *entries = kept;
    if !ignored.is_empty() {
        notices.push(format!(
            "{}: server `{}`: {} ignored",
            server.location,
            server.key,
            ignored.join(", ")
        ));
    }
    server
}
