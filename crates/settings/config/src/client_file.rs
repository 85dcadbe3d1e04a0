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
        let hint = file.entries().iter().find_map(hint_at_list);
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

/// The hint at a key that is, or could be meant as, the list of servers.
fn hint_at_list(entry: &TreeEntry) -> Option<String> {
    let key = &entry.key;
    if LISTS.contains(&key.as_str()) {
        return Some(format!("`{key}` must be a table of servers by their names"));
    }
    let suggestion = suggestion(key, LISTS)?;
    Some(format!("`{key}`: {suggestion}"))
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

/// Converts the keys of a server to those of `[servers.NAME]`.
fn adapt_server(mut server: TreeEntry, notices: &mut Vec<String>) -> TreeEntry {
    let Value::Table(entries) = &mut server.node.value else {
        return server;
    };
    let written_keys: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let mut kept: Vec<TreeEntry> = Vec::with_capacity(entries.len());
    let mut ignored = Vec::new();
    for mut entry in std::mem::take(entries) {
        let meant = match entry.key.as_str() {
            "disabled" => Some(adapt_disabled(&mut entry.node)),
            "enabled" => {
                if let Some(enabled) = flag(&entry.node.value) {
                    entry.node.value = Value::Flag(enabled);
                }
                Some("enabled")
            }
            "type" | "transport" if entry.node.text().is_some() => {
                adapt_type(&mut entry.node);
                // Of both, `type` counts.
                let is_type = entry.key == "type" || !written_keys.iter().any(|key| key == "type");
                is_type.then_some("type")
            }
            key => known_key(key).filter(|meant| {
                // Another spelling counts if the key itself is not there, and once.
                let is_written = written_keys.iter().any(|written| written == meant);
                let is_kept = kept.iter().any(|earlier| earlier.key == *meant);
                *meant == key || (!is_written && !is_kept)
            }),
        };
        match meant {
            Some(meant) => {
                entry.key = meant.to_owned();
                kept.push(entry);
            }
            // The check reports it, with the key that is meant.
            None if is_mistyped(&entry.key) => kept.push(entry),
            None => ignored.push(format!("`{}`", entry.key)),
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

/// The key of `[servers.NAME]` that a key of a client is, or is another spelling of.
fn known_key(key: &str) -> Option<&'static str> {
    if let Some(known) = SHARED.iter().chain(&OWN).find(|known| **known == key) {
        return Some(*known);
    }
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == key)
        .map(|(_, meant)| *meant)
}

/// Makes `disabled` to `enabled`, and returns the key that it is then. A value that is no flag
/// stays: it is a problem of the server, which does not start then.
fn adapt_disabled(node: &mut Node) -> &'static str {
    match flag(&node.value) {
        Some(disabled) => {
            node.value = Value::Flag(!disabled);
            "enabled"
        }
        None => "disabled",
    }
}

/// Makes the spelling of a type that of the gateway.
fn adapt_type(node: &mut Node) {
    let Some(written) = node.text() else { return };
    let lower = written.to_lowercase();
    if let Some((_, meant)) = TYPES.iter().find(|(other, _)| *other == lower) {
        node.value = Value::Text((*meant).to_owned());
    } else if lower != "streamablehttp" {
        // The gateway takes `streamableHttp`, which is spelled so.
        node.value = Value::Text(lower);
    }
}
