//! Requests to an HTTP API that is no MCP server: any method, one origin, with the headers, certificates and accounts of a server.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::peer::{HttpSpec, Peer};
use crate::error::LinkError;

/// A client of one API.
#[derive(Debug)]
pub struct ApiClient(Peer);

/// A request to an API.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The path and query; it begins with `/`.
    pub target: String,
    /// Headers beside those of [`HttpSpec::headers`], of which it has no name.
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

impl ApiClient {
    /// Connects to nothing yet. Of the URL only the origin counts.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] when the URL cannot be used.
    pub fn new(spec: &HttpSpec) -> Result<Self, LinkError> {
        Peer::new(spec).map(Self)
    }

    /// Sends a request, and reads its answer of at most this many bytes.
    ///
    /// # Errors
    /// Why there is no answer; [`LinkError::TooLarge`] if it is longer than allowed.
    pub async fn ask(&self, request: &ApiRequest, bytes_max: usize) -> Result<ApiAnswer, LinkError> {
        self.0.ask(request, bytes_max).await
    }

    /// Whether the sign-in in whose name it sends has ended or was replaced.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.0.is_void()
    }
}
