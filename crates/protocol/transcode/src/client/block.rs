//! Blocks of a tool's content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use wire::proto::contract::{ToolContent, tool_content::Content};

use super::lists::resource;
use super::read::Contents;
use crate::{CONTENT_TYPE, value};

/// One block. What has no field of its own, annotations and `_meta` among it, travels as the whole
/// block.
pub(super) fn block(json: &Json) -> ToolContent {
    json.as_object()
        .and_then(plain)
        .unwrap_or_else(|| ToolContent {
            content: Some(Content::Data(value::pack_json(json))),
            mime_type: CONTENT_TYPE.to_owned(),
        })
}

/// A block whose members all have fields; `None` for any other.
fn plain(block: &Map<String, Json>) -> Option<ToolContent> {
    let mut mime_type = "";
    let content = match text(block, "type")? {
        "text" if has_only(block, &["type", "text"]) => {
            Content::Text(text(block, "text")?.to_owned())
        }
        "image" if has_only(block, &["type", "data", "mimeType"]) => {
            mime_type = text(block, "mimeType")?;
            Content::Image(STANDARD.decode(text(block, "data")?).ok()?.into())
        }
        "resource" if has_only(block, &["type", "resource"]) => {
            let inner = block.get("resource")?;
            if !has_only(inner.as_object()?, &["uri", "mimeType", "text", "blob"]) {
                return None;
            }
            let raw = inner.to_string();
            let contents: Contents<'_> = serde_json::from_str(&raw).ok()?;
            let message = contents.message()?;
            Content::Data(value::pack("buf.mcp.v1.ResourceContent", &message))
        }
        "resource_link" if has_only(block, &["type", "uri", "name", "description", "mimeType"]) => {
            let raw = Json::Object(block.clone()).to_string();
            Content::Data(value::pack("buf.mcp.v1.Resource", &resource(&raw)?))
        }
        _ => return None,
    };
    Some(ToolContent {
        content: Some(content),
        mime_type: mime_type.to_owned(),
    })
}

/// Whether an object has no members but these.
fn has_only(object: &Map<String, Json>, known: &[&str]) -> bool {
    object.keys().all(|key| known.contains(&key.as_str()))
}

/// A member of a block that is a text.
fn text<'b>(block: &'b Map<String, Json>, key: &str) -> Option<&'b str> {
    block.get(key).and_then(Json::as_str)
}
