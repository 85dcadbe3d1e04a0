//! Messages in an `Any`: those that both sides know, and those of the tool's schema.

use prost::Message;
use prost_types::{Any, ListValue, Struct, Value};
use schema::{ToolSchema, UnsaidParts};
use serde_json::{Value as Json, json};
use wire::proto::contract::{Resource, ResourceContent};

use super::value::{of_list, of_struct, of_value};

/// The media type of a `Struct` that is a whole block of content, with its annotations and `_meta`.
const WHOLE_BLOCK: &str = "application/vnd.mcp.content+json";

/// Kind of an `Any` in a result.
pub(super) enum Data {
    /// A block of content.
    Block(Json),
    /// A structured result.
    Structured(Json),
    /// A message that is not known here.
    Unknown,
}

/// Reads an `Any` of a result of this tool; the marks are those of its structured result. Only the
/// name after the last `/` counts; no URL is ever fetched.
pub(super) fn read(any: &Any, media: &str, tool: Option<(&ToolSchema, &UnsaidParts)>) -> Data {
    let value = &*any.value;
    let name = any.type_url.rsplit('/').next().unwrap_or_default();
    let own = tool.filter(|(tool, _)| {
        tool.output()
            .is_some_and(|output| output.full_name() == name)
    });
    if let Some(read) = own.and_then(|(tool, marks)| structured(any, tool, marks)) {
        return Data::Structured(read);
    }
    let read = match name {
        "buf.mcp.v1.ResourceContent" => ResourceContent::decode(value).map(|content| {
            Data::Block(
                json!({ "type": "resource", "resource": super::resources::content(content) }),
            )
        }),
        "buf.mcp.v1.Resource" => Resource::decode(value).map(|resource| {
            let mut link = super::resources::resource(resource);
            link.insert("type".to_owned(), "resource_link".into());
            Data::Block(Json::Object(link))
        }),
        "google.protobuf.Struct" => Struct::decode(value).map(|object| {
            let object = Json::Object(of_struct(object));
            if media == WHOLE_BLOCK {
                Data::Block(object)
            } else {
                Data::Structured(object)
            }
        }),
        "google.protobuf.Value" => {
            Value::decode(value).map(|value| Data::Structured(of_value(value)))
        }
        "google.protobuf.ListValue" => {
            ListValue::decode(value).map(|list| Data::Structured(of_list(list)))
        }
        "google.protobuf.StringValue" => {
            String::decode(value).map(|text| Data::Structured(text.into()))
        }
        "google.protobuf.BoolValue" => bool::decode(value).map(|is| Data::Structured(is.into())),
        _ => Ok(Data::Unknown),
    };
    read.unwrap_or(Data::Unknown)
}

/// A message of the tool's own; `None` if it is not one, or JSON cannot say it.
fn structured(any: &Any, tool: &ToolSchema, marks: &UnsaidParts) -> Option<Json> {
    let typed = tool
        .result_from_message(&any.type_url, &any.value, marks.clone())
        .ok()?;
    serde_json::from_slice(&tool.json(&typed).ok()?).ok()
}
