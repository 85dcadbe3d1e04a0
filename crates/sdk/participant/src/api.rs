//! Requests to the gateway's REST API: for what no envelope and no tool of the gateway may do.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use wire::mcpx::system::SystemError;

use crate::dial;
use crate::error::{CallError, RpcError};
use crate::spec::{FRAME_BYTES_MAX, ParticipantSpec};

/// A refusal of the API.
#[derive(Deserialize)]
struct Problem {
    code: String,
    message: String,
    hint: Option<String>,
}

/// An answer of the API.
struct ApiAnswer {
    status: StatusCode,
    body: Bytes,
}

/// Posts to a path below `/api/v1`, and reads the answer.
///
/// # Errors
/// [`CallError::Refused`] when the gateway refuses it; [`CallError::NotConnected`] when it cannot be
/// reached, [`CallError::Lost`] and [`CallError::Timeout`] when no answer came.
pub(crate) async fn post<T: DeserializeOwned>(
    spec: &ParticipantSpec,
    path: &[&str],
    body: &Value,
) -> Result<T, CallError> {
    let answer = timeout(spec.request_timeout, exchange(spec, path, body));
    let ApiAnswer { status, body } = answer.await.unwrap_or(Err(CallError::Timeout))?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| unreadable());
    }
    let problem: Problem = serde_json::from_slice(&body).map_err(|_| {
        let why = format!("the gateway answered with status {}", status.as_u16());
        CallError::Answered(RpcError::new(-32603, why))
    })?;
    let message = match problem.hint {
        Some(hint) => format!("{} ({hint})", problem.message),
        None => problem.message,
    };
    Err(CallError::Refused(SystemError {
        error: problem.code,
        message,
        attempted_kind: None,
        your_capabilities: None,
        retry_after_ms: None,
    }))
}

async fn exchange(
    spec: &ParticipantSpec,
    path: &[&str],
    body: &Value,
) -> Result<ApiAnswer, CallError> {
    let invalid = |why: String| CallError::Invalid(why);
    let address = spec.api(path).map_err(|why| invalid(why.to_string()))?;
    let bearer = spec.bearer().map_err(|why| invalid(why.to_string()))?;
    let host = address.authority().map_or("", |host| host.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(address.path())
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json");
    if let Some(bearer) = bearer {
        request = request.header(AUTHORIZATION, bearer);
    }
    let request = request
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|why| invalid(why.to_string()))?;
    let dialed = dial::connect(&address, &spec.tls).await;
    let socket = TokioIo::new(dialed.map_err(|_| CallError::NotConnected)?);
    let (mut sender, connection) = http1::handshake(socket)
        .await
        .map_err(|_| CallError::Lost)?;
    // It ends with the sender.
    tokio::spawn(connection);
    let response = sender.send_request(request).await;
    let (head, body) = response.map_err(|_| CallError::Lost)?.into_parts();
    let body = Limited::new(body, FRAME_BYTES_MAX).collect().await;
    Ok(ApiAnswer {
        status: head.status,
        body: body.map_err(|_| CallError::Lost)?.to_bytes(),
    })
}

fn unreadable() -> CallError {
    CallError::Answered(RpcError::new(-32603, "the answer cannot be read"))
}
