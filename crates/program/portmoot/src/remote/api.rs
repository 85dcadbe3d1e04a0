//! REST API client for `/api/v1`, each request on a new connection.

use bytes::Bytes;
use client::{ApiAnswer, LinkError};
use http::{Method, Request, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use crate::remote::endpoint::Endpoint;
use terminal::exit::Exit;
use terminal::failure::Failure;

const BASE: &str = "/api/v1";

/// Longest refusal in plain words that is shown, bytes.
const PLAIN_BYTES_MAX: usize = 1 << 10;
/// Largest response body, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// An answer, spelled as the gateway wrote it.
pub(crate) struct Answer {
    pub(crate) text: String,
}

impl Answer {
    /// Reads the answer.
    ///
    /// # Errors
    /// When it has another form.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.text).map_err(|_| not_portmoot())
    }
}

/// `GET /api/v1/{segments}?{query}`.
///
/// # Errors
/// When the gateway cannot be reached, refuses, or the connection breaks.
pub(crate) async fn get(
    gateway: &dyn Endpoint,
    segments: &[&str],
    query: &[(&str, &str)],
) -> Result<Answer, Failure> {
    request(gateway, Method::GET, segments, query, None).await
}

/// `POST /api/v1/{segments}?{query}` with this JSON text.
///
/// # Errors
/// As [`get`].
pub(crate) async fn post(
    gateway: &dyn Endpoint,
    segments: &[&str],
    query: &[(&str, &str)],
    body: String,
) -> Result<Answer, Failure> {
    request(gateway, Method::POST, segments, query, Some(body)).await
}

/// `DELETE /api/v1/{segments}`.
///
/// # Errors
/// As [`get`].
pub(crate) async fn delete(gateway: &dyn Endpoint, segments: &[&str]) -> Result<Answer, Failure> {
    request(gateway, Method::DELETE, segments, &[], None).await
}

/// `DELETE /api/v1/{segments}?{query}`.
///
/// # Errors
/// As [`get`].
pub(crate) async fn delete_with(
    gateway: &dyn Endpoint,
    segments: &[&str],
    query: &[(&str, &str)],
) -> Result<Answer, Failure> {
    request(gateway, Method::DELETE, segments, query, None).await
}

/// The JSON body of `GET path`, whatever the status is: health and readiness.
///
/// # Errors
/// When the gateway cannot be reached, or the answer is not JSON.
pub(crate) async fn probe(
    gateway: &dyn Endpoint,
    path: &str,
) -> Result<serde_json::Value, Failure> {
    let answer = exchange(gateway, Method::GET, path.to_owned(), None).await?;
    serde_json::from_slice(&answer.body).map_err(|_| not_portmoot())
}

/// Status and JSON body of `GET path`; `null` for a body that is no JSON.
///
/// # Errors
/// When the host cannot be reached, or the connection breaks.
pub(crate) async fn get_json(
    host: &dyn Endpoint,
    path: &str,
) -> Result<(StatusCode, serde_json::Value), Failure> {
    let answer = exchange(host, Method::GET, path.to_owned(), None).await?;
    let body = serde_json::from_slice(&answer.body).unwrap_or_default();
    Ok((answer.status, body))
}

async fn request(
    gateway: &dyn Endpoint,
    method: Method,
    segments: &[&str],
    query: &[(&str, &str)],
    body: Option<String>,
) -> Result<Answer, Failure> {
    let ApiAnswer { status, body, .. } =
        exchange(gateway, method, path(segments, query), body).await?;
    if !status.is_success() {
        return Err(failure(status, &body, gateway.token().is_some()));
    }
    Ok(Answer {
        text: String::from_utf8(body.into()).map_err(|_| not_portmoot())?,
    })
}

async fn exchange(
    gateway: &dyn Endpoint,
    method: Method,
    uri: String,
    body: Option<String>,
) -> Result<ApiAnswer, Failure> {
    let connection = gateway.connect().await?;
    let mut request = Request::builder().method(method).uri(uri);
    request = request
        .header("host", gateway.authority())
        .header("accept", "application/json");
    if let Some(token) = gateway.token() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = Bytes::from(body.unwrap_or_default());
    let request = request.body(body).map_err(|_| {
        Failure::bad_argument(
            "the token or an argument has characters that an HTTP request cannot carry",
        )
        .hint("a token has no spaces and no line breaks")
    })?;
    client::exchange(connection, request, ANSWER_BYTES_MAX)
        .await
        .map_err(broken)
}

/// Maps an error status to a failure, with the gateway's own message and hint if the body has them.
fn failure(status: StatusCode, body: &[u8], sent: bool) -> Failure {
    let exit = match status.as_u16() {
        401 => Exit::Unauthenticated,
        403 | 409 | 429 => Exit::Refused,
        404 => Exit::NotFound,
        _ => Exit::Failed,
    };
    let plain = body;
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    // A door refuses before the request reaches the API: as JSON-RPC, or in plain words.
    let error = body.as_ref().and_then(|body| body.get("error"));
    let text = |name: &str| {
        let data = || error?.get("data")?.get(name);
        let found = body
            .as_ref()
            .and_then(|body| body.get(name))
            .or_else(|| error?.get(name))
            .filter(|one| one.is_string());
        Some(found.or_else(data)?.as_str()?.to_owned())
    };
    let words = || {
        let plain = std::str::from_utf8(plain).ok()?.trim();
        let is_short = !plain.is_empty() && plain.len() <= PLAIN_BYTES_MAX && !plain.contains('<');
        is_short.then(|| plain.to_owned())
    };
    let message = text("message")
        .or_else(words)
        .unwrap_or_else(|| format!("the gateway answered with status {status}"));
    let failure = Failure::new(
        exit,
        &text("code").unwrap_or_else(|| "gateway_status".into()),
        message,
    );
    match text("hint") {
        // The gateway's own answer says more about a token that was sent.
        Some(hint) if exit == Exit::Unauthenticated && sent => failure.hint(hint),
        _ if exit == Exit::Unauthenticated => failure.needs_token(),
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The connection to the gateway broke.
fn broken(error: LinkError) -> Failure {
    let why = match error {
        LinkError::Broken(why) => why,
        other => other.to_string(),
    };
    Failure::new(
        Exit::Failed,
        "gateway_broken",
        format!("the connection to the gateway broke: {why}"),
    )
}

fn not_portmoot() -> Failure {
    let message =
        "the answer is not from a Portmoot gateway, or its version differs from this program's";
    Failure::new(Exit::Failed, "gateway_foreign", message)
        .hint("check the URL (--url) and the versions (portmoot --version)")
}

/// All but the unreserved characters (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn path(segments: &[&str], query: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, RESERVED);
    let segments: String = segments
        .iter()
        .map(|segment| format!("/{}", encode(segment)))
        .collect();
    let query: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{BASE}{segments}{mark}{}", query.join("&"))
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
