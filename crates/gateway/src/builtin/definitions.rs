//! Definitions of the built-in tools, as lists show them.

use std::sync::LazyLock;

use serde_json::value::RawValue;
use topic::BuiltinTool;
use upstream::Manifest;
use wire::{mcp::ListKind, mcp::list::Item};

use access::config::BuiltIn;

const DEFINITIONS: &str = include_str!("tools.json");

static ITEMS: LazyLock<Vec<(BuiltinTool, Item)>> = LazyLock::new(|| {
    let all: Vec<Box<RawValue>> = serde_json::from_str(DEFINITIONS).unwrap_or_default();
    let read = |raw: Box<RawValue>| {
        let one_line: String = raw.get().lines().map(str::trim_start).collect();
        let item = Item::read(ListKind::Tools, one_line.into()).ok()?;
        Some((BuiltinTool::of(&item.key)?, item))
    };
    all.into_iter().filter_map(read).collect()
});

/// The group by which a tool is configured.
pub(super) fn group(tool: BuiltinTool) -> BuiltIn {
    match tool {
        BuiltinTool::ListProposals
        | BuiltinTool::ShowProposal
        | BuiltinTool::ApproveProposal
        | BuiltinTool::RejectProposal
        | BuiltinTool::WithdrawProposal
        | BuiltinTool::WaitForProposal => BuiltIn::Proposals,
        BuiltinTool::Say | BuiltinTool::ReadMessages | BuiltinTool::ListParticipants => BuiltIn::Room,
    }
}

/// All tools with their definitions.
pub(super) fn all() -> impl Iterator<Item = (BuiltinTool, &'static Item)> {
    ITEMS.iter().map(|(tool, item)| (*tool, item))
}

/// What the gateway's own participant lists with these groups.
pub(crate) fn manifest(groups: &[BuiltIn]) -> Manifest {
    let mut manifest = Manifest::default();
    let chosen = all().filter(|(tool, _)| groups.contains(&group(*tool)));
    manifest.tools.items = chosen.map(|(_, item)| item.clone()).collect();
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_definition() {
        let defined: Vec<BuiltinTool> = all().map(|(tool, _)| tool).collect();
        assert_eq!(defined, BuiltinTool::ALL);
        for (_, item) in all() {
            assert!(!item.raw.contains(&b'\n'));
            let tool: serde_json::Value = serde_json::from_slice(&item.raw).unwrap();
            for part in ["inputSchema", "outputSchema"] {
                let schema = &tool[part];
                if part == "inputSchema" || !schema.is_null() {
                    assert_eq!(schema["type"], "object", "{}", item.key);
                    jsonschema::validator_for(schema).unwrap();
                }
            }
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(tool["annotations"][hint].is_boolean(), "{} {hint}", item.key);
            }
        }
    }

    #[test]
    fn only_configured_groups_are_listed() {
        let names = |groups: &[BuiltIn]| -> Vec<String> {
            manifest(groups).tools.items.into_iter().map(|item| item.key).collect()
        };
        assert!(names(&[]).is_empty());
        assert!(names(&[BuiltIn::Proxy, BuiltIn::SearchTools]).is_empty());
        assert_eq!(names(&[BuiltIn::Room]), ["say", "read_messages", "list_participants"]);
        assert_eq!(names(&[BuiltIn::Room, BuiltIn::Proposals]).len(), BuiltinTool::ALL.len());
    }
}
