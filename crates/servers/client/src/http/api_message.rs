//! Requests to HTTP APIs, and their answers.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

/// A request to an API.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The path and query; it begins with `/`.
    pub target: String,
    /// Headers beside those of [`HttpSpec::headers`](crate::HttpSpec::headers), of which it has no
    /// name.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The answer of an API, with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The status. A redirect that leads to another origin is an answer like any other.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}
