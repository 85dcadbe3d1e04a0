//! HTTP requests to a gateway, each on a new connection.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::endpoint::Endpoint;

/// Largest response body, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Sends a request and returns the response head; the body is still unread.
///
/// # Errors
/// When the gateway cannot be reached or the connection breaks.
pub(crate) async fn send(
    endpoint: &dyn Endpoint,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response<Incoming>, Failure> {
    let io = TokioIo::new(endpoint.connect().await?);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(io).await.map_err(|error| broken(&error))?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", endpoint.authority());
    if let Some(token) = endpoint.token() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body)).map_err(|_| {
        let message = "the token or an argument has characters that an HTTP request cannot carry";
        Failure::bad_argument(message).hint("a token has no spaces and no line breaks")
    })?;
    sender.send_request(request).await.map_err(|error| broken(&error))
}

/// Reads a whole body.
///
/// # Errors
/// When the connection breaks or the body exceeds the limit.
pub(crate) async fn read(response: Response<Incoming>) -> Result<(StatusCode, Bytes), Failure> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| broken(&error))?;
    Ok((head.status, body.to_bytes()))
}

/// Maps an error status to a failure, with the gateway's own message and hint if the body has them.
pub(crate) fn failure(status: StatusCode, body: &[u8]) -> Failure {
    let exit = match status.as_u16() {
        401 => Exit::Unauthenticated,
        403 | 409 | 429 => Exit::Refused,
        404 => Exit::NotFound,
        _ => Exit::Failed,
    };
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = |name: &str| Some(body.as_ref()?.get(name)?.as_str()?.to_owned());
    let message = text("message").unwrap_or_else(|| format!("the gateway answered with status {status}"));
    let failure = Failure::new(exit, &text("code").unwrap_or_else(|| "gateway_status".into()), message);
    match text("hint") {
        _ if exit == Exit::Unauthenticated => failure.needs_token(),
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The connection to the gateway broke.
pub(crate) fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, "gateway_broken", format!("the connection to the gateway broke: {error}"))
}
