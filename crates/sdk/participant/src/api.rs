//! Requests to the gateway's REST API: for what no envelope and no tool of the gateway may do.

use http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use wire::mcpx::system::SystemError;

use crate::dial;
use crate::error::{CallError, ConnectError, RpcError};
use crate::spec::{FRAME_BYTES_MAX, ParticipantSpec};

/// Headers of an answer that are read.
const HEADERS_MAX: usize = 64;

/// A refusal of the API.
#[derive(Deserialize)]
struct Problem {
    code: String,
    message: String,
    hint: Option<String>,
}

/// An answer of the API.
struct ApiAnswer {
    status: u16,
    body: Vec<u8>,
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
    if (200..300).contains(&status) {
        return serde_json::from_slice(&body).map_err(|_| unreadable());
    }
    let problem: Problem = serde_json::from_slice(&body).map_err(|_| {
        let why = format!("the gateway answered with status {status}");
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

/// Writes a request on a connection of its own, and reads the answer to its end.
async fn exchange(
    spec: &ParticipantSpec,
    path: &[&str],
    body: &Value,
) -> Result<ApiAnswer, CallError> {
    let address = spec.api(path).map_err(invalid)?;
    let request = request(spec, &address, &body.to_string()).map_err(invalid)?;
    let dialed = dial::connect(&address, &spec.tls).await;
    let mut socket = dialed.map_err(|_| CallError::NotConnected)?;
    let written = socket.write_all(&request).await;
    written.map_err(|_| CallError::Lost)?;
    socket.flush().await.map_err(|_| CallError::Lost)?;
    let mut answer = Vec::new();
    let mut limited = socket.take(FRAME_BYTES_MAX as u64);
    // Some peers end a TLS connection without saying so: an answer is whole by its length.
    let ended = limited.read_to_end(&mut answer).await.is_ok();
    ApiAnswer::read(&answer, ended).ok_or(CallError::Lost)
}

/// A request as it is written. Of HTTP/1.0, so that the connection ends with the answer, and that is in
/// one piece.
fn request(spec: &ParticipantSpec, address: &Uri, body: &str) -> Result<Vec<u8>, ConnectError> {
    let host = address.authority().map_or("", |host| host.as_str());
    let mut request = format!(
        "POST {} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        address.path(),
        body.len()
    )
    .into_bytes();
    if let Some(bearer) = spec.bearer()? {
        request.extend(b"Authorization: ");
        request.extend(bearer.as_bytes());
        request.extend(b"\r\n");
    }
    request.extend(b"\r\n");
    request.extend(body.as_bytes());
    Ok(request)
}

impl ApiAnswer {
    /// Reads the bytes of a connection; `None` if they are no whole answer. `ended` says that its peer
    /// has closed it.
    fn read(bytes: &[u8], ended: bool) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(bytes).ok()? else {
            return None;
        };
        let body = bytes.get(length..)?;
        let mut headers = head.headers.iter();
        let announced = headers.find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let body = match announced {
            Some(header) => {
                let length: usize = std::str::from_utf8(header.value)
                    .ok()?
                    .trim()
                    .parse()
                    .ok()?;
                body.get(..length)?
            }
            None if ended => body,
            None => return None,
        };
        Some(Self {
            status: head.code?,
            body: body.to_vec(),
        })
    }
}

fn invalid(why: ConnectError) -> CallError {
    CallError::Invalid(why.to_string())
}

fn unreadable() -> CallError {
    CallError::Answered(RpcError::new(-32603, "the answer cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_by_its_length_or_by_the_end_of_its_connection() {
        let read = |text: &str, ended| {
            let answer = ApiAnswer::read(text.as_bytes(), ended);
            answer.map(|answer| (answer.status, String::from_utf8(answer.body).unwrap()))
        };
        let ok = "HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\n";
        let found = Some((200, "{}".to_owned()));
        for (text, ended, found) in [
            (format!("{ok}{{}}"), false, found.clone()),
            (format!("{ok}{{}} and more"), false, found.clone()),
            (format!("{ok}{{"), true, None),
            ("HTTP/1.0 200 OK\r\n\r\n{}".to_owned(), true, found),
            ("HTTP/1.0 200 OK\r\n\r\n{}".to_owned(), false, None),
            ("HTTP/1.0 200 OK\r\n".to_owned(), true, None),
            ("none".to_owned(), true, None),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(),
                true,
                None,
            ),
        ] {
            assert_eq!(read(&text, ended), found, "{text}");
        }
    }

    #[test]
    fn a_request_names_the_gateway_and_the_token() {
        let spec = ParticipantSpec::new("http://gate.example:70/base/mcp", Some("secret"), "main");
        let address = spec.api(&["topics", "a/b", "rules"]).unwrap();
        let request = String::from_utf8(request(&spec, &address, "{}").unwrap()).unwrap();
        assert_eq!(
            request,
            "POST /base/api/v1/topics/a%2Fb/rules HTTP/1.0\r\nHost: gate.example:70\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\nAuthorization: Bearer secret\r\n\r\n{}"
        );
    }
}
