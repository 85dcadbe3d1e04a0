//! Calls of tools: the params that a JSON server reads.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use schema::{FieldNumbering, ListedTool, Module, STRUCT, ToolSchema, Typed, UnsaidParts};
use serde_json::{Map, Value as Json};
use wire::proto::contract::CallToolRequest;

use crate::arguments::{invalid, wrong};
use crate::key;

/// The name of the tool that takes any object.
const OPEN_TOOL: &str = "open";

/// The params of `tools/call` for a `CallToolRequest`: name, arguments checked by the tool's
/// schema, `_meta`.
///
/// # Errors
/// [`RefusalCode::Malformed`] if the bytes are no such message, or its arguments are neither the
/// tool's input message nor a `google.protobuf.Struct` with its members;
/// [`RefusalCode::SchemaViolation`] if they break rules of the schema. Both name the fields.
pub fn call_params(call: &Bytes, tool: &ToolSchema) -> Result<Vec<u8>, Refusal> {
    let call = decode(call)?;
    let arguments = tool.json(&arguments(&call, tool)?).map_err(wrong)?;
    let meta = meta(&call.metadata);
    Ok(json::object(|params| {
        params.text("name", &call.name).raw("arguments", &arguments);
        if let Some(meta) = &meta {
            params.raw("_meta", meta.to_string().as_bytes());
        }
    }))
}

/// Params of a call of a tool of which no schema is known: its arguments are a
/// `google.protobuf.Struct`.
///
/// # Errors
/// As [`call_params`].
pub fn open_params(call: &Bytes) -> Result<Vec<u8>, Refusal> {
    static OPEN: LazyLock<Module> = LazyLock::new(|| {
        let tool = ListedTool {
            name: OPEN_TOOL,
            description: None,
            input: br#"{"type":"object"}"#,
            output: None,
        };
        Module::new("open.v1", &[tool], &FieldNumbering::default())
    });
    match OPEN.tool(OPEN_TOOL) {
        Some(tool) => call_params(call, tool),
        None => Err(Refusal::new(
            RefusalCode::SchemaUnresolved,
            "no schema is known",
        )),
    }
}

/// Whether a server of proto-mcp can have a `CallToolRequest` for its tool as it is: the arguments
/// are the tool's own message, or there are none. They are checked by the schema, and the bytes
/// stay.
///
/// # Errors
/// As [`call_params`].
pub fn is_own(call: &Bytes, tool: &ToolSchema) -> Result<bool, Refusal> {
    let call = decode(call)?;
    let name = message_name(&call);
    if !name.is_empty() && name != tool.input().full_name() {
        return Ok(false);
    }
    arguments(&call, tool)?;
    Ok(true)
}

/// Whether the arguments of a call are a message that is neither the tool's own nor a
/// `google.protobuf.Struct`.
#[must_use]
pub fn is_foreign(call: &Bytes, tool: &ToolSchema) -> bool {
    let Ok(call) = decode(call) else {
        return false;
    };
    let name = message_name(&call);
    !name.is_empty() && name != STRUCT && name != tool.input().full_name()
}

/// The full name of the message of a call's arguments; empty if it has none.
fn message_name(call: &CallToolRequest) -> &str {
    match &call.arguments {
        Some(sent) => sent.type_url.rsplit('/').next().unwrap_or_default(),
        None => "",
    }
}

fn decode(call: &Bytes) -> Result<CallToolRequest, Refusal> {
    CallToolRequest::decode(call.clone())
        .map_err(|_| Refusal::new(RefusalCode::Malformed, "the request is no CallToolRequest"))
}

/// The arguments of a call, checked. A call without arguments has the empty message.
fn arguments(call: &CallToolRequest, tool: &ToolSchema) -> Result<Typed, Refusal> {
    let (type_url, value) = call
        .arguments
        .as_ref()
        .map_or(("", &[][..]), |sent| (sent.type_url.as_str(), &*sent.value));
    let marks = UnsaidParts {
        empty: pointers_in(&call.metadata, key::EMPTY),
        null: pointers_in(&call.metadata, key::NULL),
    };
    let typed = tool
        .arguments_from_message(type_url, value, marks)
        .map_err(wrong)?;
    tool.validate(&typed).map_err(invalid)?;
    Ok(typed)
}

/// The list of JSON pointers under a key of metadata; empty if there is none.
fn pointers_in(metadata: &HashMap<String, String>, key: &str) -> Vec<String> {
    match metadata.get(key) {
        Some(text) => UnsaidParts::pointers(text),
        None => Vec::new(),
    }
}

/// `_meta` of a call's metadata: texts as they are, all else from the JSON under one key.
fn meta(metadata: &HashMap<String, String>) -> Option<Json> {
    let mut meta = match metadata
        .get(key::META)
        .and_then(|raw| serde_json::from_str(raw).ok())
    {
        Some(Json::Object(meta)) => meta,
        _ => Map::new(),
    };
    let texts = metadata
        .iter()
        .filter(|(name, _)| !name.starts_with("mcp."));
    let mut texts: Vec<_> = texts
        .map(|(name, text)| (name.clone(), Json::from(text.as_str())))
        .collect();
    texts.sort_by(|one, other| one.0.cmp(&other.0));
    meta.extend(texts);
    (!meta.is_empty()).then_some(Json::Object(meta))
}

#[cfg(test)]
mod tests {
    use prost_types::Any;

    use super::*;
    use crate::value;

    const INPUT: &str = r#"{"type":"object","properties":{"q":{"type":"string","minLength":2},"n":{"type":"integer"}},
        "required":["q"]}"#;

    fn params(arguments: Option<Any>, metadata: &[(&str, &str)]) -> Result<String, Refusal> {
        let tool = ListedTool {
            name: "t",
            description: None,
            input: INPUT.as_bytes(),
            output: None,
        };
        let module = Module::new("a.v1", &[tool], &FieldNumbering::default());
        let metadata = metadata
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let call = CallToolRequest {
            name: "t".to_owned(),
            arguments,
            metadata,
        };
        let params = call_params(&call.encode_to_vec().into(), module.tool("t").unwrap())?;
        Ok(String::from_utf8(params).unwrap())
    }

    fn plain(text: &str) -> Option<Any> {
        Some(value::pack_json(&serde_json::from_str(text).unwrap()))
    }

    #[test]
    fn a_message_and_a_struct_give_the_same_arguments() {
        let typed = Any {
            type_url: "type.googleapis.com/a.v1.TRequest".into(),
            value: vec![10, 2, b'a', b'b', 16, 5],
        };
        for sent in [Some(typed), plain(r#"{"q":"ab","n":5}"#)] {
            assert_eq!(
                params(sent, &[]).unwrap(),
                r#"{"name":"t","arguments":{"q":"ab","n":5}}"#
            );
        }
    }

    #[test]
    fn metadata_becomes_meta() {
        let metadata = [
            ("trace", "x"),
            ("mcp._meta", r#"{"n":1}"#),
            ("mcp.other", "y"),
        ];
        let expected = r#"{"name":"t","arguments":{"q":"ab"},"_meta":{"n":1,"trace":"x"}}"#;
        assert_eq!(params(plain(r#"{"q":"ab"}"#), &metadata).unwrap(), expected);
    }

    #[test]
    fn arguments_are_checked() {
        let other = Some(Any {
            type_url: "type.googleapis.com/a.B".to_owned(),
            value: vec![],
        });
        let refused = |sent| {
            let refusal = params(sent, &[]).unwrap_err();
            let violations = refusal
                .violations
                .iter()
                .map(|one| format!("{} {}", one.field, one.rule));
            (refusal.code, violations.collect::<Vec<_>>().join(", "))
        };
        assert_eq!(refused(other), (RefusalCode::Malformed, " ".to_owned()));
        assert_eq!(
            refused(plain(r#"{"q":5}"#)),
            (RefusalCode::Malformed, "q ".to_owned())
        );
        assert_eq!(
            refused(plain(r#"{"q":"a"}"#)),
            (RefusalCode::SchemaViolation, "q string.min_len".to_owned())
        );
        assert_eq!(
            refused(None),
            (RefusalCode::SchemaViolation, "q required".to_owned())
        );
    }
}
