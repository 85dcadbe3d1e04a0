//! Names, URIs and grants of the simulation.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};
use topic::UpstreamNames;

/// Callers; the last serves as well.
pub(crate) const CALLERS: [&str; 4] = ["ann", "bob", "cid", "dee"];
/// The caller that serves.
pub(crate) const SERVING: &str = "dee";
/// Servers with their prefixes.
pub(crate) const SERVERS: [(&str, &str); 4] = [
    ("one", "one"),
    ("two", "two"),
    ("bare", ""),
    ("long", "a-long-prefix"),
];
pub(crate) const GRANTS: [&[&str]; 10] = [
    &["mcp/*", "chat", "portmoot/*"],
    &["mcp/proposal:*", "mcp/response:*", "chat"],
    &[
        "mcp/proposal:tools/*",
        "mcp/request:tools/call:*a",
        "notes/*",
    ],
    &[
        "mcp/request:tools/call:*",
        "mcp/proposal:prompts/*",
        "chat",
        "mcp/response:*",
    ],
    &[],
    &[
        "mcp/request:tools/call:one_*",
        "mcp/request:resources/read:file:///*",
    ],
    &["mcp/request:tools/*", "mcp/request:prompts/get:two_a"],
    &["mcp/request:resources/*", "mcp/request:completion/complete"],
    &[
        "mcp/request:*/call:*a*",
        "mcp/request:resources/read:portmoot:*",
    ],
    &["mcp/request:*", "mcp/proposal:*", "mcp/response:*"],
];
pub(crate) const NAMES: [&str; 9] = [
    // Proposed by envelope: no server has another name that is the same in public.
    "data",
    "b",
    "deploy",
    // The same in public at the server `one`.
    "a",
    "one_a",
    "proxy",
    "very_long_name_that_goes_on_and_on_until_it_is_cut_somewhere_1",
    "",
    // A built-in tool's.
    "wait_for_proposal",
];
pub(crate) const URIS: [&str; 5] = [
    "file:///a",
    "file:///b",
    "demo://x",
    "demo://y/1",
    "portmoot:one/file:///a",
];
pub(crate) const TEMPLATES: [&str; 5] = [
    "demo://y/{id}",
    "file:///{+path}",
    "file:///dir/{name}",
    "{broken",
    "x://{a}{b}",
];
/// Built-in tools that the gateway lists.
pub(crate) const BUILT_IN: [&str; 4] = [
    "wait_for_proposal",
    "withdraw_proposal",
    "list_participants",
    "proxy",
];

pub(crate) fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

pub(crate) fn parse(texts: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(texts.iter().copied()).unwrap())
}

/// The gateway, all servers, and the caller that serves.
pub(crate) fn configured() -> Vec<UpstreamNames> {
    let mut all = vec![UpstreamNames::gateway()];
    all.extend(SERVERS.map(|(name, prefix)| UpstreamNames::new(id(name), prefix)));
    all.push(UpstreamNames::serving(id(SERVING), SERVING));
    all
}
