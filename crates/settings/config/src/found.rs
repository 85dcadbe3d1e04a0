//! Configuration file that was found in the working directory: what it says, and what is taken of
//! it.

use crate::node::{Location, Node, TreeEntry, Value};
use crate::servers::name::server_name;
use crate::show::to_toml_in_full;

/// The only table that is taken of a found file beside client files that the operator named.
const TAKEN: &str = "servers";

/// A file that the operator did not name. It changes nothing without the operator's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its name in messages.
    pub name: String,
    /// Everything that it sets, as TOML, each value as it is written.
    pub text: String,
    /// The servers that it defines or changes, by their names.
    pub servers: Vec<String>,
    /// Whether it names the data directory.
    pub names_data_dir: bool,
}

impl FoundFile {
    /// Settings of this tree; `None` if it sets nothing.
    pub(crate) fn of(tree: &Node) -> Option<FoundFile> {
        let servers = tree.get(TAKEN).map(Node::entries).unwrap_or_default();
        let found = FoundFile {
            name: tree.location.layer.name.clone(),
            text: to_toml_in_full(tree),
            servers: servers
                .iter()
                .map(|entry| server_name(&entry.key))
                .collect(),
            names_data_dir: tree
                .get("server")
                .is_some_and(|server| server.get("data_dir").is_some()),
        };
        (!tree.entries().is_empty()).then_some(found)
    }
}

/// Keeps only the servers of a found file that these client files do not define. Returns messages
/// about the rest.
pub(crate) fn keep_servers(tree: &mut Node, clients: &Node) -> Vec<String> {
    let Value::Table(entries) = &mut tree.value else {
        return Vec::new();
    };
    let defined: Vec<String> = clients
        .get(TAKEN)
        .map(Node::entries)
        .unwrap_or_default()
        .iter()
        .map(name)
        .collect();
    let mut notices = Vec::new();

    entries.retain_mut(|entry| match &mut entry.node.value {
        Value::Table(servers) if entry.key == TAKEN => {
            servers.retain(|server| {
                let is_new = !defined.contains(&name(server));
                if !is_new {
                    notices.push(ignored(
                        &server.location,
                        &format!("server `{}`", server.key),
                    ));
                }
                is_new
            });
            !servers.is_empty()
        }
        _ => {
            notices.push(ignored(&entry.location, &format!("`{}`", entry.key)));
            false
        }
    });
    notices
}

fn ignored(location: &Location, what: &str) -> String {
    format!(
        "{location}: {what} ignored beside --mcp-config: to use the whole file, name it with --config"
    )
}

fn name(server: &TreeEntry) -> String {
    server_name(&server.key)
}
