//! REST API client for `/api/v1`.

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::endpoint::Endpoint;
use crate::remote::http;

const BASE: &str = "/api/v1";
/// The API of one gateway.
pub(crate) struct ApiClient<'a> {
    endpoint: &'a dyn Endpoint,
}

impl<'a> ApiClient<'a> {
    pub(crate) fn new(endpoint: &'a dyn Endpoint) -> ApiClient<'a> {
        ApiClient { endpoint }
    }

    /// `GET /api/v1/{segments}?{query}`.
    pub(crate) async fn get(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.request(Method::GET, segments, query, None).await
    }

    /// `POST /api/v1/{segments}`.
    pub(crate) async fn post(&self, segments: &[&str], body: &Value) -> Result<Value, Failure> {
        self.request(Method::POST, segments, &[], Some(body)).await
    }

    /// `POST /api/v1/{segments}?{query}`.
    pub(crate) async fn post_at(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, Failure> {
        self.request(Method::POST, segments, query, Some(body)).await
    }

    /// `GET /api/v1/{segments}?{query}`; returns the body as text, spelled as the gateway wrote it.
    pub(crate) async fn get_text(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<String, Failure> {
        text(self.exchange(Method::GET, segments, query, None).await?)
    }

    /// `POST /api/v1/{segments}` with this JSON text; returns the body as text. Both keep their spelling.
    pub(crate) async fn post_text(&self, segments: &[&str], body: String) -> Result<String, Failure> {
        text(self.exchange(Method::POST, segments, &[], Some(body)).await?)
    }

    /// `DELETE /api/v1/{segments}`.
    pub(crate) async fn delete(&self, segments: &[&str]) -> Result<Value, Failure> {
        self.request(Method::DELETE, segments, &[], None).await
    }

    async fn request(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let body = self.exchange(method, segments, query, body.map(Value::to_string)).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|_| not_portmoot())
    }

    async fn exchange(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Bytes, Failure> {
        let path = path(segments, query);
        let headers = [("accept", "application/json"), ("content-type", "application/json")];
        let headers = if body.is_some() { headers.as_slice() } else { &headers[..1] };
        let body = body.map(Bytes::from).unwrap_or_default();
        let (status, body) =
            http::read(http::send(self.endpoint, method, &path, headers, body).await?).await?;
        if !status.is_success() {
            return Err(http::failure(status, &body));
        }
        Ok(if status == StatusCode::NO_CONTENT { Bytes::new() } else { body })
    }
}

fn text(body: Bytes) -> Result<String, Failure> {
    String::from_utf8(body.into()).map_err(|_| not_portmoot())
}

fn not_portmoot() -> Failure {
    let message = "the answer is not from a Portmoot gateway, or its version differs from this program's";
    Failure::new(Exit::Failed, "gateway_foreign", message)
        .hint("check the URL (--url) and the versions (portmoot --version)")
}

fn path(segments: &[&str], query: &[(&str, &str)]) -> String {
    let mut path = BASE.to_owned();
    for segment in segments {
        path.push('/');
        encode(&mut path, segment);
    }
    for (at, (name, value)) in query.iter().enumerate() {
        path.push(if at == 0 { '?' } else { '&' });
        encode(&mut path, name);
        path.push('=');
        encode(&mut path, value);
    }
    path
}

/// Percent-encodes all bytes but the unreserved ones (RFC 3986 section 2.3).
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded() {
        assert_eq!(path(&["servers"], &[]), "/api/v1/servers");
        assert_eq!(
            path(&["tools", "a/b ü?"], &[("topic", "x&y")]),
            "/api/v1/tools/a%2Fb%20%C3%BC%3F?topic=x%26y"
        );
    }
}
