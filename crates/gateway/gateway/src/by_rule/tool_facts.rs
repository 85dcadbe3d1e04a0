//! Facts about a tool at which rules look: of its definition, its server and its operator.

use std::sync::Arc;

use model::{Digest, ParticipantId};
use rules::ToolRules;
use sha2::{Digest as _, Sha256};
use upstream::{Upstream, config::Transport};

use crate::live::Topic;

/// The server of this name in a topic, if it is one that is configured.
pub(crate) fn upstream_of(topic: &Topic, name: &ParticipantId) -> Option<Arc<Upstream>> {
    let server = topic.server(name)?;
    Some(Arc::clone(&server.handle.upstream()?.upstream))
}

/// The digest of a server's configured command or URL. A participant that serves has neither.
pub(crate) fn server_digest(upstream: &Upstream) -> Option<Digest> {
    let config = &upstream.spec().config;
    if matches!(config.transport, Transport::Participant) {
        return None;
    }
    Some(config.identity_digest())
}

/// The operator's setting for rules about a tool.
pub(crate) fn rules_of(upstream: Option<&Upstream>, own: Option<&str>) -> ToolRules {
    let curation = upstream.and_then(|upstream| upstream.spec().config.curation.as_ref());
    let named = curation.zip(own);
    named.map_or_else(ToolRules::default, |(curation, own)| curation.rules_of(own))
}

/// Whether the operator says that a tool reads what others must not see.
pub(crate) fn reads_private(upstream: Option<&Upstream>, own: &str) -> bool {
    let curation = upstream.and_then(|upstream| upstream.spec().config.curation.as_ref());
    curation.is_some_and(|curation| curation.reads_private(own))
}

/// Whether a tool's definition does not say that it reaches nothing outside.
pub(crate) fn is_open_world_tool(tool: &str) -> bool {
    let canonical = canonical_tool(tool);
    let hint = canonical
        .as_deref()
        .and_then(|tool| json::at(tool, &["annotations", "openWorldHint"]));
    hint != Some(b"false")
}

/// Whether the annotations of a tool say that it destroys nothing.
pub(super) fn is_harmless(tool: &[u8]) -> bool {
    let says = |hint: &str, word: &[u8]| json::at(tool, &["annotations", hint]) == Some(word);
    says("readOnlyHint", b"true") || says("destructiveHint", b"false")
}

/// Whether a tool's definition says that it destroys nothing.
pub(crate) fn is_harmless_tool(tool: &str) -> bool {
    canonical_tool(tool).as_deref().is_some_and(is_harmless)
}

/// A tool's definition in canonical form.
pub(super) fn canonical_tool(tool: &str) -> Option<Vec<u8>> {
    json::canonical(tool.as_bytes()).ok()
}

/// The digest of a tool's definition, as rules name it.
pub(crate) fn definition_digest(tool: &str) -> Option<Digest> {
    canonical_tool(tool).as_deref().map(sha256)
}

pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_annotations_make_a_tool_harmless() {
        assert!(is_harmless(br#"{"annotations":{"readOnlyHint":true}}"#));
        assert!(is_harmless(br#"{"annotations":{"destructiveHint":false}}"#));
        for tool in [
            &br#"{"name":"x"}"#[..],
            br#"{"annotations":{"readOnlyHint":"true"}}"#,
            br#"{"annotations":{"destructiveHint":true}}"#,
        ] {
            assert!(!is_harmless(tool));
        }
    }
}
