//! Contents of resources.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use serde::Deserialize;
use wire::proto::PayloadKind;
use wire::proto::contract::{
    ReadResourceRequest, ReadResourceResponse, ResourceContent, resource_content::Content,
};

use super::unreadable::unreadable;

/// The params of `resources/read` for a `ReadResourceRequest`.
///
/// # Errors
/// [`RefusalCode::Malformed`] if the bytes are no such message.
pub fn read_params(message: &Bytes) -> Result<Vec<u8>, Refusal> {
    let asked = ReadResourceRequest::decode(message.clone()).map_err(|_| {
        Refusal::new(
            RefusalCode::Malformed,
            "the request is no ReadResourceRequest",
        )
    })?;
    Ok(json::object(|params| {
        params.text("uri", &asked.uri);
    }))
}

#[derive(Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    contents: Vec<Contents<'a>>,
}

/// `TextResourceContents` or `BlobResourceContents` of MCP.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contents<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(borrow)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    blob: Option<Cow<'a, str>>,
}

impl Contents<'_> {
    /// The message; `None` if the blob is no base64.
    pub(super) fn message(self) -> Option<ResourceContent> {
        let content = match (self.text, self.blob) {
            (Some(text), _) => Some(Content::Text(text.into_owned())),
            (None, Some(blob)) => Some(Content::Blob(STANDARD.decode(&*blob).ok()?.into())),
            (None, None) => None,
        };
        let uri = self.uri.into_owned();
        let mime_type = self.mime_type.unwrap_or_default().into_owned();
        Some(ResourceContent {
            uri,
            mime_type,
            content,
        })
    }
}

/// A result of `resources/read` as the payload field of a `ReadResourceResponse`.
///
/// # Errors
/// [`RefusalCode::UpstreamFailed`] if it is none.
pub fn read_result(result: &[u8]) -> Result<Bytes, Refusal> {
    let read: Read<'_> = serde_json::from_slice(result).map_err(|_| unreadable())?;
    let mut contents = Vec::with_capacity(read.contents.len());
    for one in read.contents {
        contents.push(one.message().ok_or_else(unreadable)?);
    }
    Ok(PayloadKind::ReadResourceResponse.field_of(&ReadResourceResponse { contents }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_bytes() {
        let result =
            br#"{"contents":[{"uri":"a:b","mimeType":"x/y","blob":"AAEC"},{"uri":"a:c","text":"t"}]}"#;
        let (_, message) = PayloadKind::split(&read_result(result).unwrap()).unwrap();
        let read = ReadResourceResponse::decode(message).unwrap();
        assert_eq!(
            read.contents[0].content,
            Some(Content::Blob(vec![0, 1, 2].into()))
        );
        assert_eq!(
            read.contents[1].content,
            Some(Content::Text("t".to_owned()))
        );
        assert!(read_result(br#"{"contents":[{"uri":"a:b","blob":"!"}]}"#).is_err());
    }
}
