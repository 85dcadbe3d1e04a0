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

fn plain(block: &Map<String, Json>) -> Option<ToolContent> {
    let has_only = |known: &[&str]| block.keys().all(|key| known.contains(&key.as_str()));
    let text = |key: &str| block.get(key).and_then(Json::as_str);
    let of = |content, mime_type: &str| {
        Some(ToolContent {
            content: Some(content),
            mime_type: mime_type.to_owned(),
        })
    };
    match text("type")? {
        "text" if has_only(&["type", "text"]) => of(Content::Text(text("text")?.to_owned()), ""),
        "image" if has_only(&["type", "data", "mimeType"]) => of(
            Content::Image(STANDARD.decode(text("data")?).ok()?.into()),
            text("mimeType")?,
        ),
        "resource" if has_only(&["type", "resource"]) => {
            let inner = block.get("resource")?;
            let known = ["uri", "mimeType", "text", "blob"];
            inner
                .as_object()
                .filter(|inner| inner.keys().all(|key| known.contains(&key.as_str())))?;
            let raw = inner.to_string();
            let content: Contents<'_> = serde_json::from_str(&raw).ok()?;
            of(
                Content::Data(value::pack(
                    "buf.mcp.v1.ResourceContent",
                    &content.message()?,
                )),
                "",
            )
        }
        "resource_link" if has_only(&["type", "uri", "name", "description", "mimeType"]) => {
            let raw = Json::Object(block.clone()).to_string();
            of(
                Content::Data(value::pack("buf.mcp.v1.Resource", &resource(&raw)?)),
                "",
            )
        }
        _ => None,
    }
}
