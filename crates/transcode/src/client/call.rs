//! Calls of tools: the params that a JSON server reads.

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use prost_types::{Any, Struct};
use schema::ToolSchema;
use serde_json::{Map, Value as Json};
use wire::proto::contract::CallToolRequest;

use crate::{key, value};

/// The params of `tools/call` for a `CallToolRequest`: name, arguments by the tool's schema, `_meta`.
///
/// # Errors
/// [`RefusalCode::Malformed`] if the bytes are no such message, or its arguments are neither of the tool's input message nor of
/// `google.protobuf.Struct`.
pub fn call_params(call: &Bytes, tool: Option<&ToolSchema>) -> Result<Vec<u8>, Refusal> {
    let call = CallToolRequest::decode(call.clone())
        .map_err(|_| Refusal::new(RefusalCode::Malformed, "the request is no CallToolRequest"))?;
    let arguments = arguments(call.arguments.as_ref(), tool)?;
    let meta = meta(&call.metadata);
    Ok(json::object(|params| {
        params.text("name", &call.name).raw("arguments", &arguments);
        if let Some(meta) = &meta {
            params.raw("_meta", meta.to_string().as_bytes());
        }
    }))
}

/// A call without arguments has the empty message.
fn arguments(sent: Option<&Any>, tool: Option<&ToolSchema>) -> Result<Vec<u8>, Refusal> {
    let Some(sent) = sent.filter(|sent| !sent.type_url.is_empty()) else { return Ok(b"{}".to_vec()) };
    let wrong = |why: String| Refusal::new(RefusalCode::Malformed, why);
    let name = value::name_of(sent);
    match name {
        "google.protobuf.Struct" => {
            let object =
                Struct::decode(&*sent.value).map_err(|_| wrong(format!("the arguments are no {name}")))?;
            Ok(value::object(&object).to_string().into_bytes())
        }
        _ => {
            let input = tool.map_or("google.protobuf.Struct", |tool| tool.input().full_name());
            Err(wrong(format!("the arguments are a {name}, and the tool takes a {input}")))
        }
    }
}

/// `_meta` of a call's metadata: texts as they are, all else from the JSON under one key.
fn meta(metadata: &std::collections::HashMap<String, String>) -> Option<Json> {
    let mut meta = match metadata.get(key::META).and_then(|raw| serde_json::from_str(raw).ok()) {
        Some(Json::Object(meta)) => meta,
        _ => Map::new(),
    };
    let texts = metadata.iter().filter(|(name, _)| !name.starts_with("mcp."));
    let mut texts: Vec<_> = texts.map(|(name, text)| (name.clone(), Json::from(text.as_str()))).collect();
    texts.sort_by(|one, other| one.0.cmp(&other.0));
    meta.extend(texts);
    (!meta.is_empty()).then_some(Json::Object(meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(arguments: Option<Any>, metadata: &[(&str, &str)]) -> Result<String, String> {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let call = CallToolRequest { name: "t".to_owned(), arguments, metadata };
        let params =
            call_params(&call.encode_to_vec().into(), None).map_err(|refusal| refusal.to_string())?;
        Ok(String::from_utf8(params).unwrap())
    }

    #[test]
    fn a_struct_is_always_accepted() {
        let sent: Json = serde_json::from_str(r#"{"q":1}"#).unwrap();
        assert_eq!(
            params(Some(value::pack_json(&sent)), &[]).unwrap(),
            r#"{"name":"t","arguments":{"q":1}}"#
        );
        assert_eq!(params(None, &[]).unwrap(), r#"{"name":"t","arguments":{}}"#);
    }

    #[test]
    fn metadata_becomes_meta() {
        let metadata = [("trace", "x"), ("mcp._meta", r#"{"n":1}"#), ("mcp.other", "y")];
        assert_eq!(
            params(None, &metadata).unwrap(),
            r#"{"name":"t","arguments":{},"_meta":{"n":1,"trace":"x"}}"#
        );
    }

    #[test]
    fn other_messages_are_refused() {
        let other = Any { type_url: "type.googleapis.com/a.B".to_owned(), value: vec![] };
        assert_eq!(
            params(Some(other), &[]).unwrap_err(),
            "the arguments are a a.B, and the tool takes a google.protobuf.Struct"
        );
    }
}
