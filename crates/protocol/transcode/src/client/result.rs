//! Results of calls, and errors.

use std::collections::HashMap;

use bytes::Bytes;
use model::Refusal;
use prost_types::{Any, Struct};
use schema::ToolSchema;
use serde_json::{Map, Value as Json};
use wire::proto::PayloadKind;
use wire::proto::contract::{
    CallToolResponse, Error, ErrorResponse, ToolContent, ToolResult, call_tool_response,
    tool_content::Content,
};
use wire::rpc::code::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};

use super::block::block;
use super::unreadable::unreadable;
use crate::{key, value};

/// A result of `tools/call` as the payload field of a `CallToolResponse`.
///
/// # Errors
/// [`UpstreamFailed`](model::RefusalCode::UpstreamFailed) if it is none.
pub fn call_result(result: &[u8], tool: Option<&ToolSchema>) -> Result<Bytes, Refusal> {
    let result: Json = serde_json::from_slice(result).map_err(|_| unreadable())?;
    let result = result.as_object().ok_or_else(unreadable)?;
    let blocks = result
        .get("content")
        .and_then(Json::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut content: Vec<_> = blocks.iter().map(block).collect();
    let mut metadata = result
        .get("_meta")
        .and_then(Json::as_object)
        .map(metadata)
        .unwrap_or_default();
    if let Some(structured) = result.get("structuredContent") {
        let data = structured_data(structured, tool, &mut metadata);
        content.push(ToolContent {
            content: Some(Content::Data(data)),
            mime_type: String::new(),
        });
    }
    let is_error = result
        .get("isError")
        .and_then(Json::as_bool)
        .unwrap_or_default();
    let success = ToolResult { content, is_error };
    let response = CallToolResponse {
        result: Some(call_tool_response::Result::Success(success)),
        metadata,
    };
    Ok(PayloadKind::CallToolResponse.field_of(&response))
}

/// The structured result as the tool's output message. One that does not fit its schema travels as
/// it is.
fn structured_data(
    json: &Json,
    tool: Option<&ToolSchema>,
    metadata: &mut HashMap<String, String>,
) -> Any {
    let with_output = tool.filter(|tool| tool.output().is_some());
    match with_output.map(|tool| tool.result_from_json(json.to_string().as_bytes())) {
        Some(Ok(typed)) => value::pack_typed(&typed, metadata),
        Some(Err(_)) | None => value::pack_json(json),
    }
}

/// `metadata` of `_meta`: texts as they are, all else as JSON under one key.
fn metadata(meta: &Map<String, Json>) -> HashMap<String, String> {
    let mut metadata = HashMap::new();
    let mut rest = Map::new();
    for (key, value) in meta {
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

/// The payload field for a JSON-RPC error of a server. A tool that failed while it ran has its
/// place in the response; whatever came before is an `ErrorResponse`.
#[must_use]
pub fn error(method: &str, code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    let data = data.and_then(|data| serde_json::from_slice::<Json>(data).ok());
    let number = i32::try_from(code).unwrap_or(INTERNAL_ERROR as i32);
    if method == "tools/call" && !matches!(code, INVALID_PARAMS | METHOD_NOT_FOUND) {
        let data = data.map(texts).unwrap_or_default();
        let error = Error {
            code: number,
            message: message.to_owned(),
            data,
        };
        let result = Some(call_tool_response::Result::Error(error));
        return PayloadKind::CallToolResponse.field_of(&CallToolResponse {
            result,
            metadata: HashMap::new(),
        });
    }
    let data = data.map(|data| {
        let object = if data.is_object() {
            data
        } else {
            Json::Object(Map::from_iter([("value".to_owned(), data)]))
        };
        match value::to_value(&object).kind {
            Some(prost_types::value::Kind::StructValue(object)) => object,
            _ => Struct::default(),
        }
    });
    PayloadKind::ErrorResponse.field_of(&ErrorResponse {
        code: number,
        message: message.to_owned(),
        data,
    })
}

/// The data of an error as texts: what is none is JSON.
fn texts(data: Json) -> HashMap<String, String> {
    match data {
        Json::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key, text_of(value)))
            .collect(),
        other => HashMap::from([("value".to_owned(), text_of(other))]),
    }
}

/// A text itself; any other value as JSON.
fn text_of(value: Json) -> String {
    match value {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use wire::proto::contract::call_tool_response::Result as Ran;

    use super::*;

    fn read(field: &Bytes) -> CallToolResponse {
        let (kind, message) = PayloadKind::split(field).unwrap();
        assert_eq!(kind, PayloadKind::CallToolResponse);
        CallToolResponse::decode(message).unwrap()
    }

    #[test]
    fn blocks_have_their_fields_or_travel_whole() {
        let result = br#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAE=","mimeType":"image/png"},
            {"type":"text","text":"b","annotations":{"priority":1}},{"type":"audio","data":"AA==","mimeType":"audio/wav"},
            {"type":"resource_link","uri":"u:1","name":"n"},{"type":"resource","resource":{"uri":"u:2","text":"t"}}],
            "structuredContent":{"x":1},"_meta":{"a":"b","c":2}}"#;
        let response = read(&call_result(result, None).unwrap());
        let Some(Ran::Success(success)) = response.result else {
            panic!("{response:?}")
        };
        let shown: Vec<_> = success
            .content
            .iter()
            .map(|one| match &one.content {
                Some(Content::Text(text)) => format!("text {text}"),
                Some(Content::Image(bytes)) => format!("image {} {}", bytes.len(), one.mime_type),
                Some(Content::Data(any)) => {
                    format!(
                        "{} {}",
                        any.type_url.rsplit('/').next().unwrap(),
                        one.mime_type
                    )
                }
                None => "nothing".to_owned(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "text a",
                "image 2 image/png",
                "google.protobuf.Struct application/vnd.mcp.content+json",
                "google.protobuf.Struct application/vnd.mcp.content+json",
                "buf.mcp.v1.Resource ",
                "buf.mcp.v1.ResourceContent ",
                "google.protobuf.Struct ",
            ]
        );
        assert_eq!(response.metadata["a"], "b");
        assert_eq!(response.metadata[key::META], r#"{"c":2}"#);
    }

    #[test]
    fn an_error_of_a_running_tool_is_in_its_response() {
        let ran = read(&error(
            "tools/call",
            -32603,
            "m",
            Some(br#"{"a":"b","n":1}"#),
        ));
        let Some(Ran::Error(failed)) = ran.result else {
            panic!("{ran:?}")
        };
        assert_eq!(
            (failed.code, &*failed.data["a"], &*failed.data["n"]),
            (-32603, "b", "1")
        );
        let (kind, message) =
            PayloadKind::split(&error("tools/call", -32602, "m", Some(b"3"))).unwrap();
        assert_eq!(kind, PayloadKind::ErrorResponse);
        assert!(
            ErrorResponse::decode(message)
                .unwrap()
                .data
                .unwrap()
                .fields
                .contains_key("value")
        );
    }
}
