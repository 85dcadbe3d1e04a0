//! The HTTP headers that mirror a modern request (2026-07-28, Streamable HTTP).
//!
//! It must not know links or sessions.

use http::{HeaderMap, HeaderName, HeaderValue};
use wire::mcp::{Params, Target, Version};

use super::manifest::Manifest;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers for a request; `target` is what it will aim at, where that differs from its params.
pub(super) fn mirror(params: &Params<'_>, target: Option<&str>, version: Version, manifest: &Manifest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let said = params.protocol_version();
    let version = said.as_deref().unwrap_or(version.as_str());
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(VERSION, version);
    put(METHOD, params.message().method());
    let own = params.target().map(Target::text);
    if let Some(target) = own.map(|own| target.unwrap_or(own)) {
        put(NAME, target);
    }
    let _ = manifest;
    headers
}
