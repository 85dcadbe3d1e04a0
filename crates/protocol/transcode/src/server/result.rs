//! Results of calls as results of MCP.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use prost_types::Any;
use schema::{ToolSchema, UnsaidParts};
use serde_json::{Map, Value as Json, json};
use wire::proto::contract::call_tool_response::Result as Called;
use wire::proto::contract::tool_content::Content as Part;
use wire::proto::contract::{CallToolResponse, ToolContent};

use super::data::{self, Data};
use super::error::{ServerError, of_texts};
use crate::key;

/// The first bytes of images, and their media types.
const IMAGES: [(&[u8], &str); 5] = [
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"<svg", "image/svg+xml"),
];
/// The media type of an image that names none, and begins like none that is known.
const UNKNOWN_IMAGE: &str = "application/octet-stream";
/// The media type of a message that is not known here.
const PROTOBUF: &str = "application/x-protobuf";

/// The answer to a call of this tool as a `CallToolResult`. What went wrong while the tool ran is a
/// result too, whose text says what.
///
/// # Errors
/// An error that a caller's program has to know: the tool did not run.
pub fn called(answer: CallToolResponse, tool: Option<&ToolSchema>) -> Result<Json, ServerError> {
    let mut result = Map::new();
    let mut metadata = answer.metadata;
    // Taken out: what is left becomes `_meta`.
    let marks = UnsaidParts {
        empty: take_pointers(&mut metadata, key::EMPTY),
        null: take_pointers(&mut metadata, key::NULL),
    };
    match answer.result {
        Some(Called::Error(error)) => {
            let error = ServerError::from(error);
            if !error.is_of_tool() {
                return Err(error);
            }
            result.insert(
                "content".to_owned(),
                json!([{ "type": "text", "text": error.message }]),
            );
            result.insert("isError".to_owned(), true.into());
        }
        Some(Called::Success(success)) => {
            let (content, structured) = blocks(success.content, tool.map(|tool| (tool, &marks)));
            result.insert("content".to_owned(), content.into());
            result
                .extend(structured.map(|structured| ("structuredContent".to_owned(), structured)));
            if success.is_error {
                result.insert("isError".to_owned(), true.into());
            }
        }
        None => {
            result.insert("content".to_owned(), json!([]));
        }
    }
    if !metadata.is_empty() {
        result.insert("_meta".to_owned(), meta_of(metadata));
    }
    Ok(Json::Object(result))
}

/// Removes a list of JSON pointers from metadata, and returns it; empty if there is none.
fn take_pointers(metadata: &mut HashMap<String, String>, key: &str) -> Vec<String> {
    match metadata.remove(key) {
        Some(text) => UnsaidParts::pointers(&text),
        None => Vec::new(),
    }
}

/// `_meta` of metadata: texts as they are, and what was no text from the JSON under one key.
fn meta_of(mut metadata: HashMap<String, String>) -> Json {
    let rest = metadata.remove(key::META);
    let rest = rest.and_then(|raw| serde_json::from_str::<Map<String, Json>>(&raw).ok());
    let mut meta = of_texts(metadata);
    if let (Some(members), Some(rest)) = (meta.as_object_mut(), rest) {
        members.extend(rest);
    }
    meta
}

/// The blocks of content, and the structured result among them. Text stands for a structured result
/// without any block, as MCP asks.
fn blocks(
    parts: Vec<ToolContent>,
    tool: Option<(&ToolSchema, &UnsaidParts)>,
) -> (Vec<Json>, Option<Json>) {
    let mut blocks = Vec::new();
    let mut structured = None;
    for ToolContent { content, mime_type } in parts {
        match content {
            Some(Part::Text(text)) => blocks.push(text_block(text)),
            Some(Part::Image(image)) => {
                let media = if mime_type.is_empty() {
                    media_of(&image)
                } else {
                    &mime_type
                };
                let data = STANDARD.encode(&image);
                blocks.push(json!({ "type": "image", "data": data, "mimeType": media }));
            }
            Some(Part::Data(any)) => match data::read(&any, &mime_type, tool) {
                Data::Block(block) => blocks.push(block),
                // MCP has one structured result, which is an object; all others are text.
                Data::Structured(data) if data.is_object() && structured.is_none() => {
                    structured = Some(data);
                }
                Data::Structured(data) => blocks.push(text_block(data.to_string())),
                Data::Unknown => blocks.push(unknown_block(&any)),
            },
            None => {}
        }
    }
    if blocks.is_empty()
        && let Some(structured) = &structured
    {
        blocks.push(text_block(structured.to_string()));
    }
    (blocks, structured)
}

fn text_block(text: String) -> Json {
    json!({ "type": "text", "text": text })
}

/// A message that is not known here, as a resource: a caller that knows it has its bytes.
fn unknown_block(any: &Any) -> Json {
    let blob = STANDARD.encode(any.encode_to_vec());
    json!({
        "type": "resource",
        "resource": { "uri": "urn:protobuf:any", "mimeType": PROTOBUF, "blob": blob },
    })
}

/// The media type of an image, by its first bytes.
fn media_of(image: &[u8]) -> &'static str {
    if image.starts_with(b"RIFF") && image.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    IMAGES
        .iter()
        .find(|(first, _)| image.starts_with(first))
        .map_or(UNKNOWN_IMAGE, |(_, media)| media)
}

#[cfg(test)]
mod tests {
    use prost_types::{Struct, Value, value::Kind};
    use wire::proto::contract::{Error, Resource, ResourceContent, ToolResult, resource_content};

    use super::*;

    fn part(content: Part, mime_type: &str) -> ToolContent {
        ToolContent {
            content: Some(content),
            mime_type: mime_type.to_owned(),
        }
    }

    fn data(name: &str, message: &impl prost::Message) -> Part {
        Part::Data(Any {
            type_url: format!("any.example/{name}"),
            value: message.encode_to_vec(),
        })
    }

    fn success(content: Vec<ToolContent>) -> Json {
        let result = Some(Called::Success(ToolResult {
            content,
            is_error: false,
        }));
        called(
            CallToolResponse {
                result,
                ..CallToolResponse::default()
            },
            None,
        )
        .unwrap()
    }

    fn object(key: &str, text: &str) -> Struct {
        Struct {
            fields: [(
                key.to_owned(),
                Value {
                    kind: Some(Kind::StringValue(text.to_owned())),
                },
            )]
            .into(),
        }
    }

    #[test]
    fn every_part_is_a_block() {
        let text = resource_content::Content::Text("hi".into());
        let embedded = ResourceContent {
            uri: "file:///a".into(),
            content: Some(text),
            ..ResourceContent::default()
        };
        let link = Resource {
            uri: "file:///b".into(),
            name: "b".into(),
            ..Resource::default()
        };
        let result = success(vec![
            part(Part::Text("t".into()), ""),
            part(Part::Image(vec![1, 2].into()), "image/gif"),
            part(data("buf.mcp.v1.ResourceContent", &embedded), ""),
            part(data("buf.mcp.v1.Resource", &link), ""),
            part(
                data("google.protobuf.Struct", &object("type", "audio")),
                "application/vnd.mcp.content+json",
            ),
            part(data("google.protobuf.Struct", &object("a", "b")), ""),
        ]);
        assert_eq!(
            result,
            json!({
                "content": [
                    { "type": "text", "text": "t" },
                    { "type": "image", "data": "AQI=", "mimeType": "image/gif" },
                    { "type": "resource", "resource": { "uri": "file:///a", "text": "hi" } },
                    { "type": "resource_link", "uri": "file:///b", "name": "b" },
                    { "type": "audio" },
                ],
                "structuredContent": { "a": "b" },
            })
        );
        let unknown = success(vec![part(data("acme.X", &object("a", "b")), "")]);
        assert_eq!(unknown["content"][0]["resource"]["mimeType"], PROTOBUF);
        let alone = success(vec![part(
            data("google.protobuf.Struct", &object("a", "b")),
            "",
        )]);
        assert_eq!(alone["content"][0]["text"], r#"{"a":"b"}"#);
    }

    #[test]
    fn a_tool_that_failed_has_a_result_and_one_that_did_not_run_an_error() {
        let failed = |code| {
            let error = Error {
                code,
                message: "m".into(),
                ..Error::default()
            };
            called(
                CallToolResponse {
                    result: Some(Called::Error(error)),
                    ..CallToolResponse::default()
                },
                None,
            )
        };
        let result = json!({ "content": [{ "type": "text", "text": "m" }], "isError": true });
        for code in [0, -32603, -33003] {
            assert_eq!(failed(code).unwrap(), result, "{code}");
        }
        for code in [-32601, -32602, -33000, -33001] {
            assert_eq!(failed(code).unwrap_err().code, i64::from(code));
        }
    }

    #[test]
    fn a_message_of_the_tool_is_its_structured_result() {
        let text = "syntax = \"proto3\"; package a; message XRequest {} message XResponse { int64 n = 1; repeated string tags = 2; }";
        let set = schema::compile(&[("a.proto".to_owned(), text.to_owned())]).unwrap();
        let named = schema::ToolReference {
            tool: "x",
            ..schema::ToolReference::default()
        };
        let tool = ToolSchema::find(&schema::Descriptors::read(&set).unwrap(), &named).unwrap();
        let content = |name: &str| {
            vec![part(
                Part::Data(Any {
                    type_url: format!("any.example/{name}"),
                    value: vec![8, 7],
                }),
                "",
            )]
        };
        let metadata = [
            (key::EMPTY, r#"["/tags"]"#),
            (key::META, r#"{"n":1}"#),
            ("t", "u"),
        ];
        let metadata: HashMap<_, _> = metadata
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
        let of = |name: &str| {
            let result = Some(Called::Success(ToolResult {
                content: content(name),
                is_error: false,
            }));
            called(
                CallToolResponse {
                    result,
                    metadata: metadata.clone(),
                },
                Some(&tool),
            )
            .unwrap()
        };
        let result = of("a.XResponse");
        assert_eq!(result["structuredContent"], json!({ "n": 7, "tags": [] }));
        assert_eq!(result["_meta"], json!({ "n": 1, "t": "u" }));
        assert_eq!(
            of("a.Other")["content"][0]["resource"]["mimeType"],
            PROTOBUF
        );
    }
}
