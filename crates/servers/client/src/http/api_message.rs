//! Requests to HTTP APIs, and their answers.

use std::fmt::{self, Debug, Formatter};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

/// A request to an API. Its `Debug` has no query, no value of a header and no body: any of them may
/// be a secret.
#[derive(Clone)]
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

impl Debug for ApiRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiRequest")
            .field("method", &self.method)
            .field("path", &without_query(&self.target))
            .field("headers", &Names(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The answer of an API, with any status. Its `Debug` has no value of a header and no body: either
/// may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The status. A redirect that leads to another origin is an answer like any other.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Debug for ApiAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiAnswer")
            .field("status", &self.status)
            .field("headers", &Names(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A URL or target up to its query.
pub(super) fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}

/// Prints the names of headers.
pub(super) struct Names<'h>(pub(super) &'h HeaderMap);

impl Debug for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;
    use http::header::SET_COOKIE;

    use super::super::Post;
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static("a=sesame"))]);
        let body = Bytes::from_static(b"sesame");
        let answer = ApiAnswer {
            status: StatusCode::OK,
            headers: headers.clone(),
            body: body.clone(),
        };
        let request = ApiRequest {
            method: Method::POST,
            target: "/path?key=sesame".to_owned(),
            headers: headers.clone(),
            body: body.clone(),
        };
        let post = Post {
            url: "https://api.test/path?key=sesame".to_owned(),
            headers,
            body,
            bytes_max: 100,
            limit: Duration::from_secs(1),
        };
        for (printed, parts) in [
            (format!("{answer:?}"), &["200", "set-cookie", "6"][..]),
            (
                format!("{request:?}"),
                &["POST", "/path", "set-cookie", "6"],
            ),
            (
                format!("{post:?}"),
                &["https://api.test/path", "set-cookie", "6", "1s"],
            ),
        ] {
            assert!(!printed.contains("sesame"), "{printed}");
            assert!(parts.iter().all(|part| printed.contains(part)), "{printed}");
        }
    }
}
