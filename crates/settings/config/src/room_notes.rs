//! Notes of `config check` about capabilities that mean more in rooms than over MCP.
//!
//! Over MCP the context of a capability is a public name, in rooms a server's own:
//! `tools/call:gh_*`, meant for the server with the prefix `gh`, admits tools that any other server
//! calls `gh_...`.

use access::config::{Access, Config, ParticipantConfig};
use model::{Capabilities, Capability, PROPOSAL, REQUEST, overlap};

use crate::node::Node;

/// A server as a topic lists it: its name and its prefix.
type Named = (String, String);

/// One note for each capability of a participant that covers entries in rooms which it does not
/// cover over MCP.
pub fn room_notes(tree: &Node, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    for one in config
        .participants
        .iter()
        .filter(|one| one.participant.wires.ws)
    {
        let id = &one.participant.id;
        let servers = servers_of(config, one);
        for capability in one.participant.capabilities.iter() {
            let Some(pattern) = named_entries(capability) else {
                continue;
            };
            let has = |server: &&Named| overlap(&pattern, &shape(&server.1));
            let (meant, other): (Vec<&Named>, Vec<&Named>) = servers
                .iter()
                .filter(|(_, prefix)| !prefix.is_empty())
                .partition(has);
            if other.is_empty() {
                continue;
            }
            let names = |servers: &[&Named]| {
                servers
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (over_mcp, to) = match meant.as_slice() {
                [] => ("of no server".to_owned(), "[\"SERVER\"]".to_owned()),
                some => {
                    let to = some
                        .iter()
                        .map(|(name, _)| format!("\"{name}\""))
                        .collect::<Vec<_>>();
                    (
                        format!("of {}", names(some)),
                        format!("[{}]", to.join(", ")),
                    )
                }
            };
            let place = tree.place(&["participants", id.as_str(), "capabilities"]);
            notes.push(format!(
                "{place}: `{capability}` of `{id}` means public names over MCP ({over_mcp}), and in rooms what servers \
                 themselves call so, also of {}: to mean the same on both, write {{ kind = \"{capability}\", to = {to} }}, \
                 or close rooms to it with wires = [\"mcp\"]",
                names(&other)
            ));
        }
    }
    notes
}

/// The pattern of the names that a capability admits, if it admits some tools or prompts and not
/// all, at any server.
fn named_entries(capability: &Capability) -> Option<Vec<Option<char>>> {
    let context = capability
        .as_str()
        .splitn(3, ':')
        .nth(2)
        .filter(|context| *context != "*")?;
    let alone: Capabilities = std::iter::once(capability.clone()).collect();
    let admits = |head: &str, method: &str| alone.admits_some(head, method, &[None], &[]);
    let some = [REQUEST, PROPOSAL].iter().any(|head| {
        ["tools/call", "prompts/get"]
            .iter()
            .any(|method| admits(head, method))
    });
    let pattern = || {
        context
            .chars()
            .map(|c| Some(c).filter(|c| *c != '*'))
            .collect()
    };
    (some && capability.addressees().is_none()).then(pattern)
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
fn servers_of(config: &Config, who: &ParticipantConfig) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    let enters = |one: &ParticipantConfig, topic: &access::config::TopicConfig| {
        topic.access == Access::Public || one.participant.may_enter(&topic.name)
    };
    for topic in config.topics.iter().filter(|topic| enters(who, topic)) {
        let members = config
            .servers
            .iter()
            .filter(|one| one.enabled && topic.servers.contains(&one.name));
        let serving = config.participants.iter().filter(|one| enters(one, topic));
        let serving = serving.filter_map(ParticipantConfig::server);
        for server in members.cloned().chain(serving) {
            let named = (server.name.to_string(), server.prefix.to_string());
            if !all.contains(&named) {
                all.push(named);
            }
        }
    }
    all
}
