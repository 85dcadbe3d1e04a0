//! One HTTP request on a new connection to a gateway. Must not know what a body means.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::source::Source;

/// The longest answer that is read whole, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Sends a request; the answer's body is still to be read.
///
/// # Errors
/// When the gateway cannot be reached or breaks off.
pub(crate) async fn send(
    source: &dyn Source,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response<Incoming>, Failure> {
    let io = TokioIo::new(source.connect().await?);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(io).await.map_err(|error| broken(&error))?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", source.authority());
    if let Some(token) = source.token() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body)).map_err(|_| {
        let message = "the token or an argument cannot stand in an HTTP request";
        Failure::new(Exit::Usage, "bad_argument", message).hint("a token has no spaces and no line ends")
    })?;
    sender.send_request(request).await.map_err(|error| broken(&error))
}

/// Reads a whole body.
///
/// # Errors
/// When the gateway breaks off or the body is larger than any answer.
pub(crate) async fn read(response: Response<Incoming>) -> Result<(StatusCode, Bytes), Failure> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| broken(&error))?;
    Ok((head.status, body.to_bytes()))
}

/// The failure that a status stands for, in the gateway's own words if it gave some.
pub(crate) fn failure(status: StatusCode, body: &[u8]) -> Failure {
    let exit = match status.as_u16() {
        401 => Exit::Unauthenticated,
        403 | 409 | 429 => Exit::Refused,
        404 => Exit::NotFound,
        _ => Exit::Failed,
    };
    let said: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = |name: &str| Some(said.as_ref()?.get(name)?.as_str()?.to_owned());
    let message = text("message").unwrap_or_else(|| format!("the gateway answered with status {status}"));
    let failure = Failure::new(exit, &text("code").unwrap_or_else(|| "gateway_status".into()), message);
    match text("hint") {
        // The gateway's own hint is for those who write headers themselves.
        _ if exit == Exit::Unauthenticated => {
            failure.hint("give a token: --token TOKEN, or PORTMOOT_TOKEN; its operator issues one: portmoot token new NAME")
        }
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The gateway broke off.
pub(crate) fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, "gateway_broken", format!("the connection to the gateway broke: {error}"))
}
