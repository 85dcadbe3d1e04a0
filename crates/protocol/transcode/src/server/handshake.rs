//! The handshake with a server: `initialize` in protobuf, its answer in JSON (proto-mcp v1.0,
//! "Initialization").

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};
use wire::proto::contract::{ClientCapabilities, InitializeRequest, InitializeResponse};
use wire::proto::{VERSION, code};

use super::error::ServerError;

/// The extension by which a client asks for announcements of changed lists: a list without a
/// request, under id 0.
const LIST_CHANGED: &str = "mcp.list_changed";
/// The extension by which a client asks for JSON Schemas beside the messages of tools.
const JSON_SCHEMA: &str = "mcp.json_schema";

/// The request of a client with this name and version; `resolves` references to schemas or does
/// not.
#[must_use]
pub fn request(name: &str, version: &str, resolves: bool) -> InitializeRequest {
    InitializeRequest {
        protocol_version: VERSION.to_owned(),
        capabilities: Some(ClientCapabilities {
            supports_bsr_refs: resolves,
            supports_streaming: false,
            encodings: vec!["protobuf".to_owned()],
            experimental: [LIST_CHANGED, JSON_SCHEMA]
                .map(|key| (key.to_owned(), true))
                .into(),
        }),
        metadata: HashMap::from([
            ("name".to_owned(), name.to_owned()),
            ("version".to_owned(), version.to_owned()),
        ]),
    }
}

/// The answer as a result of `initialize` in this revision of MCP. Prompts, subscriptions and what
/// 1.0 has no messages for are not declared.
///
/// # Errors
/// The server chose another major version.
pub fn result(answer: InitializeResponse, revision: &str) -> Result<Json, ServerError> {
    let chosen = &answer.protocol_version;
    if !chosen.is_empty() && major(chosen) != major(VERSION) {
        let message = format!(
            "the server chose proto-mcp `{}`, and {VERSION} is spoken here",
            chosen.escape_debug()
        );
        return Err(ServerError {
            code: code::UNSUPPORTED_VERSION,
            message,
            data: None,
        });
    }
    let mut capabilities = Map::new();
    let declared = answer.capabilities.unwrap_or_default();
    if let Some(tools) = declared.tools {
        let announces = tools.supports_list_changed;
        capabilities.insert("tools".to_owned(), json!({ "listChanged": announces }));
    }
    if let Some(resources) = declared.resources {
        let announces = resources.supports_list_changed;
        capabilities.insert("resources".to_owned(), json!({ "listChanged": announces }));
    }
    let name = answer.metadata.get("name").map_or("", String::as_str);
    let version = answer.metadata.get("version").map_or("", String::as_str);
    let info = json!({ "name": name, "version": version });
    Ok(json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": info }))
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use wire::proto::contract::{ServerCapabilities, ToolCapabilities};

    use super::*;

    fn answer(version: &str) -> InitializeResponse {
        let tools = Some(ToolCapabilities {
            supports_list_changed: true,
        });
        InitializeResponse {
            protocol_version: version.to_owned(),
            capabilities: Some(ServerCapabilities {
                tools,
                ..ServerCapabilities::default()
            }),
            metadata: HashMap::from([("name".to_owned(), "s".to_owned())]),
        }
    }

    #[test]
    fn a_server_of_the_same_major_version_is_a_legacy_server_with_tools() {
        for version in ["", "1.0.0", "1.7.2", "1"] {
            assert_eq!(
                result(answer(version), "2025-11-25").unwrap(),
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "s", "version": "" },
                })
            );
        }
        for version in ["2.0.0", "0.9", "x"] {
            assert_eq!(
                result(answer(version), "2025-11-25").unwrap_err().code,
                code::UNSUPPORTED_VERSION
            );
        }
    }
}
