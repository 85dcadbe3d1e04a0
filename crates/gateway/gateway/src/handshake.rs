//! Handshake results of a topic: what its servers say for themselves.

use lists::handshake::{self, INSTRUCTIONS_BYTES_MAX};
use model::Form;
use wire::mcp::{Version, extensions::Merged};

use crate::dispatch::Dispatch;

/// The result of `initialize`.
pub fn initialize(dispatch: &Dispatch, version: Version) -> Vec<u8> {
    let extensions = extensions(dispatch, version.era());
    handshake::initialize(
        instructions(dispatch).as_deref(),
        &extensions,
        &gateways(dispatch),
        version,
    )
}

/// The result of `server/discover`.
pub fn discover(dispatch: &Dispatch) -> Vec<u8> {
    handshake::discover(
        instructions(dispatch).as_deref(),
        &extensions(dispatch, Form::Modern),
        &gateways(dispatch),
    )
}

/// The ids of the gateways that the topic's lists come through: this one, then those of its servers
/// that are gateways.
pub(crate) fn gateways(dispatch: &Dispatch) -> Vec<String> {
    let mut named = vec![dispatch.context.instance.to_string()];
    for server in dispatch.servers() {
        for manifest in server.upstream.manifests() {
            let new: Vec<&String> = manifest
                .gateways
                .iter()
                .filter(|id| !named.contains(id))
                .collect();
            named.extend(new.into_iter().cloned().collect::<Vec<_>>());
        }
    }
    named
}

/// Extensions that the servers declare to callers of this form, running or not.
fn extensions(dispatch: &Dispatch, form: Form) -> Merged {
    let mut merged = Merged::default();
    for server in dispatch.servers() {
        merged.add(&server.upstream.manifest_in(form).capabilities);
    }
    merged
}

fn instructions(dispatch: &Dispatch) -> Option<String> {
    let servers = dispatch.servers();
    let mut parts = Vec::new();
    for server in &servers {
        let listed = server.upstream.manifest();
        let text = match listed.instructions_instead() {
            None => handshake::instructions(&listed.handshake),
            approved => approved,
        };
        let text =
            text.filter(|text| !text.trim().is_empty() && text.len() <= INSTRUCTIONS_BYTES_MAX);
        parts.extend(text.map(|text| (server.id.as_str(), text)));
    }
    handshake::join(&parts, servers.len())
}
