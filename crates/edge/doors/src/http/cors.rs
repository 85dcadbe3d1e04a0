//! Clients in browsers (Fetch standard, "CORS protocol"): the origins that may speak to the gateway
//! anyway may read its answers.
//!
//! The endpoints of MCP alone: what operators use has no pages of others. Metadata and sign-in
//! answer every origin themselves.

use std::collections::BTreeSet;

use config::Config;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::body::Body;
use super::head::Head;
use super::origin::Hosts;
use super::paths::topic_of;
use super::response::empty;

/// The headers that clients send, besides those that begin with [`MCP`].
const SENT: [&str; 5] = [
    "accept",
    "authorization",
    "cache-control",
    "content-type",
    "last-event-id",
];
/// The beginning of the protocol's own headers.
const MCP: &str = "mcp-";
/// The headers of answers that clients read.
const READ: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
/// Time that a browser may remember what it was allowed, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The page that sent a request to an endpoint of MCP, from an origin that may.
pub(super) struct Page(HeaderValue);

impl Page {
    /// The page of a request; `None` for what is sent by no page, and for all that answers without
    /// it.
    pub(super) fn of(parts: &Parts, head: &Head<'_>, config: &Config) -> Option<Self> {
        let origin = parts.headers.get(ORIGIN)?;
        let path = parts.uri.path();
        let path = config
            .identity
            .public_url
            .as_ref()
            .map_or(path, |url| url.within(path));
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_pair = config.doors.legacy_sse && (path == "/sse" || path == "/messages");
        let is_mcp = is_pair || topic_of(path, "/mcp").is_some();
        let may = Hosts::new(&config.doors.hosts, config.doors.listen.ip())
            .check(head)
            .is_ok();
        (is_mcp && may).then(|| Self(origin.clone()))
    }

    /// The answer to the question whether the page may send a request. It needs no token: browsers
    /// send none with it.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let headers = request.headers();
        if request.method() != Method::OPTIONS
            || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        let answered = response.headers_mut();
        answered.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        if let Some(allowed) = allowed(headers) {
            answered.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        answered.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        Some(self.shown(response))
    }

    /// An answer that the page may read.
    pub(super) fn shown(&self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        headers.append(VARY, HeaderValue::from_static("Origin"));
        response
    }
}

/// Headers among those asked for that a client of MCP sends.
fn allowed(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let names = asked
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase());
    let known: BTreeSet<String> = names
        .filter(|name| SENT.contains(&name.as_str()) || name.starts_with(MCP))
        .collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&known)
        .ok()
        .filter(|value| !value.is_empty())
}
