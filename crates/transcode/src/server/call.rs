//! Calls in JSON, written for a server that reads protobuf.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message as _;
use prost_types::Any;
use serde_json::{Map, Value as Json};
use wire::proto::Kind;
use wire::proto::contract::CallToolRequest;

use super::value::{Inexact, to_struct};

/// The prefix of a message's name in an `Any`.
const TYPE_URL: &str = "type.googleapis.com/";

/// Why params cannot be written for the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    /// They are no params of `tools/call`.
    #[error("a call needs a `name`, and its `arguments` must be an object")]
    Params,
    /// A number is too long.
    #[error(transparent)]
    Number(#[from] Inexact),
}

/// The params of `tools/call` as the payload field of a `CallToolRequest`. Texts in `_meta` become metadata, what the protocol itself
/// writes there does not.
///
/// # Errors
/// [`BadCall`], which is the caller's fault.
pub fn request(params: &[u8]) -> Result<Bytes, BadCall> {
    let params: Map<String, Json> = serde_json::from_slice(params).map_err(|_| BadCall::Params)?;
    let Some(Json::String(name)) = params.get("name") else { return Err(BadCall::Params) };
    let arguments = match params.get("arguments") {
        None | Some(Json::Null) => None,
        Some(Json::Object(arguments)) => Some(Any {
            type_url: format!("{TYPE_URL}google.protobuf.Struct"),
            value: to_struct(arguments)?.encode_to_vec(),
        }),
        Some(_) => return Err(BadCall::Params),
    };
    let metadata = params.get("_meta").and_then(Json::as_object).map(texts).unwrap_or_default();
    Ok(Kind::CallToolRequest.field_of(&CallToolRequest { name: name.clone(), arguments, metadata }))
}

/// The texts among the members that are not the protocol's own.
fn texts(meta: &Map<String, Json>) -> HashMap<String, String> {
    let own = |key: &str| key == "progressToken" || key.starts_with("io.modelcontextprotocol/");
    let texts = meta.iter().filter(|(key, _)| !own(key));
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_struct() {
        let written = request(br#"{"name":"x","arguments":{"q":1},"_meta":{"progressToken":7}}"#).unwrap();
        // The message of the golden frame with id 5, without that id.
        let golden = b"2C\n\x01x\x12>\n*type.googleapis.com/google.protobuf.Struct\x12\x10\n\x0e\n\x01q\x12\t\x11\0\0\0\0\0\0\xf0?";
        assert_eq!(&*written, golden);
    }

    #[test]
    fn params_that_are_none_are_refused() {
        for params in ["{}", r#"{"name":1}"#, r#"{"name":"x","arguments":[]}"#, "[]"] {
            assert_eq!(request(params.as_bytes()), Err(BadCall::Params), "{params}");
        }
        let long = request(br#"{"name":"x","arguments":{"id":18446744073709551615}}"#);
        assert!(matches!(long, Err(BadCall::Number(_))), "{long:?}");
    }
}
