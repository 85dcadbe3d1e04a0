//! REST API client for `/api/v1`, each request on a new connection.

use bytes::Bytes;
use client::{ApiAnswer, LinkError};
use http::{Method, Request, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
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
fn failure(status: StatusCode, body: &[u8], sent_token: bool) -> Failure {
    let exit = match status.as_u16() {
        401 => Exit::Unauthenticated,
        403 | 409 | 429 => Exit::Refused,
        404 => Exit::NotFound,
        _ => Exit::Failed,
    };
    let refusal: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let code = member(&refusal, "code").unwrap_or("gateway_status");
    let message = member(&refusal, "message")
        .or_else(|| plain_words(body))
        .map_or_else(
            || format!("the gateway answered with status {status}"),
            str::to_owned,
        );
    let failure = Failure::new(exit, code, message);
    match member(&refusal, "hint") {
        // The gateway's own answer says more about a token that was sent.
        Some(hint) if exit == Exit::Unauthenticated && sent_token => failure.hint(hint),
        _ if exit == Exit::Unauthenticated => failure.needs_token(),
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A text of a refusal. A door refuses before the request reaches the API: then it is in the error
/// of JSON-RPC, or in the data of that, whose own `code` is a number.
fn member<'a>(refusal: &'a serde_json::Value, name: &str) -> Option<&'a str> {
    let error = refusal.get("error");
    let first = match refusal.get(name) {
        Some(found) => Some(found),
        None => error.and_then(|error| error.get(name)),
    };
    if let Some(text) = first.and_then(serde_json::Value::as_str) {
        return Some(text);
    }
    error?.get("data")?.get(name)?.as_str()
}

/// A refusal in plain words, such as a door's, and not a page of a proxy.
pub(super) fn plain_words(body: &[u8]) -> Option<&str> {
    let words = std::str::from_utf8(body).ok()?.trim();
    let is_short = !words.is_empty() && words.len() <= PLAIN_BYTES_MAX && !words.contains('<');
    is_short.then_some(words)
}

/// The connection to the gateway broke.
fn broken(error: LinkError) -> Failure {
    let why = match error {
        LinkError::Broken(why) => why,
        LinkError::Malformed(_) => return not_http(),
        other => other.to_string(),
    };
    Failure::new(
        Exit::Failed,
        "gateway_broken",
        format!("the connection to the gateway broke: {why}"),
    )
}

/// The answer is no HTTP, such as that of a proxy that speaks TLS alone.
fn not_http() -> Failure {
    let message = "the answer is not HTTP";
    Failure::new(Exit::Failed, "gateway_foreign", message)
        .hint("check the URL (--url): it begins with https:// if the port speaks TLS")
}

/// The failure of an answer that has another form than the gateway's.
pub(crate) fn not_portmoot() -> Failure {
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
    let mut path = BASE.to_owned();
    for segment in segments {
        path += &format!("/{}", encoded(segment));
    }
    for (index, (name, value)) in query.iter().enumerate() {
        let mark = if index == 0 { '?' } else { '&' };
        path += &format!("{mark}{}={}", encoded(name), encoded(value));
    }
    path
}

fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
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
