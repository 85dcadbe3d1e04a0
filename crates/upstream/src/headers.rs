//! The HTTP headers that mirror a modern request (2026-07-28, Streamable HTTP).
//!
//! It must not know links or sessions.

use http::{HeaderMap, HeaderName, HeaderValue};
use wire::mcp::header;
use wire::mcp::{Params, Version};

use super::manifest::Manifest;

/// The headers for a request; `target` is what it will aim at, where that differs from its params.
pub(super) fn mirror(
    params: &Params<'_>,
    target: Option<&str>,
    version: Version,
    manifest: &Manifest,
) -> HeaderMap {
    let version = params.protocol_version().and_then(|said| Version::parse(&said)).unwrap_or(version);
    let tool = target.filter(|_| params.message().method() == "tools/call");
    let annotations = tool.and_then(|tool| manifest.annotations.get(tool)).map_or(&[][..], Vec::as_slice);
    let mirrored = header::standard(version, params, target, annotations).unwrap_or_default();
    let readable = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    mirrored.into_iter().filter_map(readable).collect()
}
