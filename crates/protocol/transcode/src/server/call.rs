//! Calls in JSON, written for a server that reads protobuf.

use std::collections::HashMap;

use bytes::Bytes;
use prost_types::Any;
use schema::{ValueError, struct_from_json};
use serde_json::{Map, Value as Json};
use wire::proto::PayloadKind;
use wire::proto::contract::CallToolRequest;

use super::schemas::SentTool;
use crate::{key, value};

/// Why params cannot be written for the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    /// They are no params of `tools/call`.
    #[error("a call needs a `name`, and its `arguments` must be an object")]
    Params,
    /// No `Struct` carries the arguments.
    #[error("the arguments do not fit protobuf: {0}")]
    Struct(ValueError),
    /// The arguments are not of the tool's message.
    #[error("the arguments do not fit the tool's schema: {0}")]
    Arguments(ValueError),
}

/// The params of `tools/call` as the payload field of a `CallToolRequest`. The arguments are the
/// tool's own message if it is known, else a `google.protobuf.Struct`. Texts in `_meta` become
/// metadata, and all else as JSON under one key; what the protocol itself writes there does not.
///
/// # Errors
/// [`BadCall`], which is the caller's fault.
pub fn request(params: &[u8], tool: Option<&SentTool>) -> Result<Bytes, BadCall> {
    let read: Map<String, Json> = serde_json::from_slice(params).map_err(|_| BadCall::Params)?;
    let Some(Json::String(name)) = read.get("name") else {
        return Err(BadCall::Params);
    };
    let given = read.get("arguments").filter(|given| !given.is_null());
    if given.is_some_and(|given| !given.is_object()) {
        return Err(BadCall::Params);
    }
    let mut metadata = read
        .get("_meta")
        .and_then(Json::as_object)
        .map(metadata_of)
        .unwrap_or_default();
    // From the text, not from what was read of it: large integers keep all their digits.
    let written = if given.is_some() {
        json::at(params, &["arguments"])
    } else {
        None
    };
    let raw = written.unwrap_or(b"{}");
    let typed = tool.map(|tool| tool.schema.arguments_from_json(raw));
    let takes_struct = tool.is_none_or(|tool| tool.takes_struct);
    let arguments = match typed {
        Some(Ok(typed)) => Some(value::pack_typed(&typed, &mut metadata)),
        Some(Err(why)) if !takes_struct => return Err(BadCall::Arguments(why)),
        Some(Err(_)) | None if given.is_some() => Some(plain(raw)?),
        Some(Err(_)) | None => None,
    };
    Ok(PayloadKind::CallToolRequest.field_of(&CallToolRequest {
        name: name.clone(),
        arguments,
        metadata,
    }))
}

/// Arguments as a `Struct`.
fn plain(arguments: &[u8]) -> Result<Any, BadCall> {
    let typed = struct_from_json(arguments).map_err(BadCall::Struct)?;
    Ok(Any {
        type_url: typed.type_url(),
        value: typed.bytes(),
    })
}

/// The members that are not the protocol's own.
fn metadata_of(meta: &Map<String, Json>) -> HashMap<String, String> {
    let mut metadata = HashMap::new();
    let mut rest = Map::new();
    for (key, value) in meta {
        if key == "progressToken" || key.starts_with("io.modelcontextprotocol/") {
            continue;
        }
        match value {
            Json::String(text) => {
                metadata.insert(key.clone(), text.clone());
            }
            value => {
                rest.insert(key.clone(), value.clone());
            }
        }
    }
    if !rest.is_empty() {
        metadata.insert(key::META.to_owned(), Json::Object(rest).to_string());
    }
    metadata
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use schema::{Descriptors, ToolReference, ToolSchema, compile};

    use super::*;

    #[test]
    fn arguments_are_a_struct() {
        let written = request(
            br#"{"name":"x","arguments":{"q":1},"_meta":{"progressToken":7}}"#,
            None,
        )
        .unwrap();
        // The message of the golden frame with id 5, without that id.
        let golden = b"2C\n\x01x\x12>\n*type.googleapis.com/google.protobuf.Struct\x12\x10\n\x0e\n\x01q\x12\t\x11\0\0\0\0\0\0\xf0?";
        assert_eq!(&*written, golden);
    }

    #[test]
    fn params_that_are_none_are_refused() {
        for params in [
            "{}",
            r#"{"name":1}"#,
            r#"{"name":"x","arguments":[]}"#,
            "[]",
        ] {
            assert_eq!(
                request(params.as_bytes(), None),
                Err(BadCall::Params),
                "{params}"
            );
        }
        for id in ["18446744073709551615", "20000000000000000001"] {
            let long = request(
                format!(r#"{{"name":"x","arguments":{{"id":{id}}}}}"#).as_bytes(),
                None,
            );
            assert!(
                matches!(&long, Err(BadCall::Struct(why)) if why.field == "[\"id\"]"),
                "{long:?}"
            );
        }
    }

    #[test]
    fn arguments_are_the_message_of_the_tool() {
        let text = "syntax = \"proto3\"; package a; message XRequest { optional string q = 1; repeated string tags = 2; }";
        let set = compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
        let schema = ToolSchema::find(
            &Descriptors::read(&set).unwrap(),
            &ToolReference {
                tool: "x",
                ..ToolReference::default()
            },
        );
        let tool = |takes_struct| SentTool {
            schema: schema.clone().unwrap(),
            reference: None,
            takes_struct,
            names_output: false,
        };
        let sent = |params: &str, takes_struct| {
            let field = request(params.as_bytes(), Some(&tool(takes_struct)))?;
            let (_, message) = PayloadKind::split(&field).unwrap();
            let sent = CallToolRequest::decode(message).unwrap();
            let arguments = sent.arguments.unwrap();
            Ok((arguments.type_url, arguments.value, sent.metadata))
        };
        let typed = "type.googleapis.com/a.XRequest".to_owned();
        let (url, value, metadata) = sent(
            r#"{"name":"x","arguments":{"q":"ab","tags":[]},"_meta":{"n":1,"t":"u"}}"#,
            false,
        )
        .unwrap();
        assert_eq!((url, value), (typed.clone(), vec![10, 2, b'a', b'b']));
        let pairs = [
            (key::EMPTY, r#"["/tags"]"#),
            (key::META, r#"{"n":1}"#),
            ("t", "u"),
        ];
        assert_eq!(
            metadata,
            pairs
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .into()
        );
        assert_eq!(
            sent(r#"{"name":"x"}"#, false).unwrap(),
            (typed, vec![], HashMap::new())
        );
        let other = r#"{"name":"x","arguments":{"other":1}}"#;
        assert!(matches!(sent(other, false), Err(BadCall::Arguments(why)) if why.field == "other"));
        assert!(
            sent(other, true)
                .unwrap()
                .0
                .ends_with("/google.protobuf.Struct")
        );
    }
}
