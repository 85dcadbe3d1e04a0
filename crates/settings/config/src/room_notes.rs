//! Notes of `config check` about capabilities that mean more in rooms than over MCP.
//!
//! Over MCP the context of a capability is a public name, in rooms a server's own:
//! `tools/call:gh_*`, meant for the server with the prefix `gh`, admits tools that any other server
//! calls `gh_...`.

use identity::config::ParticipantConfig;
use model::{APPROVE, Capabilities, Capability, PROPOSAL, REQUEST, overlap};

use crate::checked::{Config, may_enter};
use crate::node::Node;

/// A server as a topic lists it.
#[derive(PartialEq, Eq)]
struct ListedServer {
    name: String,
    prefix: String,
}

/// One note for each capability of a participant that covers entries in rooms which it does not
/// cover over MCP.
pub fn room_notes(tree: &Node, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    for one in &config.identity.participants {
        if !one.participant.wires.ws {
            continue;
        }
        let id = &one.participant.id;
        let servers = servers_of(config, one);
        for capability in one.participant.capabilities.iter() {
            let Some(pattern) = named_entries(capability) else {
                continue;
            };
            // A server without a prefix has the same names in both.
            let (meant, other): (Vec<&ListedServer>, Vec<&ListedServer>) = servers
                .iter()
                .filter(|server| !server.prefix.is_empty())
                .partition(|server| overlap(&pattern, &shape(&server.prefix)));
            if other.is_empty() {
                continue;
            }
            let over_mcp = if meant.is_empty() {
                "of no server".to_owned()
            } else {
                format!("of {}", names(&meant, ""))
            };
            let to = if meant.is_empty() {
                "\"SERVER\"".to_owned()
            } else {
                names(&meant, "\"")
            };
            let place = tree.place(&["participants", id.as_str(), "capabilities"]);
            notes.push(format!(
                "{place}: `{capability}` of `{id}` means public names over MCP ({over_mcp}), and in rooms what servers \
                 themselves call so, also of {}: to mean the same on both, write {{ kind = \"{capability}\", to = [{to}] }}, \
                 or close rooms to it with wires = [\"mcp\"]",
                names(&other, "")
            ));
        }
    }
    notes
}

/// The names of servers in a list, each in these quotes.
fn names(servers: &[&ListedServer], quote: &str) -> String {
    let names: Vec<String> = servers
        .iter()
        .map(|server| format!("{quote}{}{quote}", server.name))
        .collect();
    names.join(", ")
}

/// The pattern of the names that a capability admits, if it admits some tools or prompts and not
/// all, at any server. `None` in it stands for any characters.
fn named_entries(capability: &Capability) -> Option<Vec<Option<char>>> {
    let context = capability.as_str().splitn(3, ':').nth(2)?;
    if context == "*" || capability.addressees().is_some() {
        return None;
    }
    let alone: Capabilities = std::iter::once(capability.clone()).collect();
    let admits_named = [REQUEST, PROPOSAL, APPROVE].iter().any(|head| {
        ["tools/call", "prompts/get"]
            .iter()
            .any(|method| alone.admits_some(head, method, &[None], &[]))
    });
    if !admits_named {
        return None;
    }
    let pattern = context
        .chars()
        .map(|c| if c == '*' { None } else { Some(c) });
    Some(pattern.collect())
}

/// The shape of the public names under a prefix.
fn shape(prefix: &str) -> Vec<Option<char>> {
    prefix
        .chars()
        .chain(['_'])
        .map(Some)
        .chain([None])
        .collect()
}

/// The servers in the topics of a participant, those that dial in too, each once.
fn servers_of(config: &Config, who: &ParticipantConfig) -> Vec<ListedServer> {
    let mut all: Vec<ListedServer> = Vec::new();
    for topic in config
        .identity
        .topics
        .iter()
        .filter(|topic| may_enter(who, topic))
    {
        let members = config
            .servers
            .iter()
            .filter(|one| one.enabled && topic.servers.contains(&one.name))
            .cloned();
        let serving = config.serving_in(topic).cloned();
        for server in members.chain(serving) {
            let listed = ListedServer {
                name: server.name.to_string(),
                prefix: server.prefix.to_string(),
            };
            if !all.contains(&listed) {
                all.push(listed);
            }
        }
    }
    all
}
