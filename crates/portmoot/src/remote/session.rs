//! A legacy MCP session over Streamable HTTP, from the client's side: enough to make one request, and to answer what the
//! server asks meanwhile. Must not know who answers, nor what a result is shown as.

use std::borrow::Cow;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use model::RefusalCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::sse::Decoder;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::http;
use crate::gate::source::Source;

const REVISION: &str = "2025-11-25";
const EVENT_BYTES_MAX: usize = 64 << 20;
const METHOD_NOT_FOUND: i64 = -32601;

/// Who answers what the server asks, and hears what it tells.
pub(crate) trait Answers {
    /// The answer to a request of the server: a result, or an error's code and message.
    fn answer(&mut self, question: &Question) -> Result<Value, (i64, String)>;
    /// A notification.
    fn notice(&mut self, method: &str, params: &Value);
}

/// A request of the server to this client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) method: String,
    /// As it was written: members keep their order.
    pub(crate) params: String,
}

/// An open session. It is ended by [`Session::close`]; one that is dropped ends when it has been idle.
pub(crate) struct Session<'a> {
    source: &'a dyn Source,
    path: String,
    id: Option<String>,
    last_request: u64,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
    #[serde(default)]
    data: Value,
}

impl<'a> Session<'a> {
    /// Opens a session in a topic, with these client capabilities.
    ///
    /// # Errors
    /// When the gateway cannot be reached or refuses.
    pub(crate) async fn open(
        source: &'a dyn Source,
        topic: &str,
        capabilities: &Value,
        answers: &mut dyn Answers,
    ) -> Result<Session<'a>, Failure> {
        let path = if topic == "main" { "/mcp".to_owned() } else { format!("/mcp/{topic}") };
        let mut session = Session { source, path, id: None, last_request: 0 };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": capabilities,
            "clientInfo": { "name": "portmoot-cli", "version": env!("CARGO_PKG_VERSION") },
        });
        session.request("initialize", &params.to_string(), answers).await?;
        session.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await?;
        Ok(session)
    }

    /// Makes one request and gives its result as it came.
    ///
    /// # Errors
    /// The server's or the gateway's refusal, or that the connection broke.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: &str,
        answers: &mut dyn Answers,
    ) -> Result<String, Failure> {
        self.last_request += 1;
        let id = self.last_request;
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let response = self.post(frame).await?;
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok())
        {
            self.id = Some(session.to_owned());
        }
        let kind =
            response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.read_stream(response, id, answers).await;
        }
        let (_, body) = http::read(response).await?;
        self.take(&body, id, answers).await?.ok_or_else(no_answer)
    }

    /// Ends the session.
    pub(crate) async fn close(self) {
        let Some(id) = &self.id else { return };
        let headers = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", REVISION)];
        // It ends by itself too, only later.
        let _ = http::send(self.source, Method::DELETE, &self.path, &headers, Bytes::new()).await;
    }

    async fn post(&self, frame: String) -> Result<Response<Incoming>, Failure> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", REVISION),
        ];
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id));
        }
        let response = http::send(self.source, Method::POST, &self.path, &headers, frame.into()).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, body) = http::read(response).await?;
        Err(refused(status, &body))
    }

    async fn read_stream(
        &self,
        response: Response<Incoming>,
        id: u64,
        answers: &mut dyn Answers,
    ) -> Result<String, Failure> {
        let mut body = response.into_body();
        let mut decoder = Decoder::new(EVENT_BYTES_MAX);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| http::broken(&error))?;
            decoder.push(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
            while let Some(event) = decoder.next_event() {
                let event = event.map_err(|error| http::broken(&error))?;
                if event.data.is_empty() {
                    continue;
                }
                if let Some(result) = self.take(&event.data, id, answers).await? {
                    return Ok(result);
                }
            }
        }
        Err(no_answer())
    }

    /// Takes one message; the result if it is the one that is waited for.
    async fn take(
        &self,
        message: &[u8],
        wanted: u64,
        answers: &mut dyn Answers,
    ) -> Result<Option<String>, Failure> {
        let frame: Frame<'_> = serde_json::from_slice(message).map_err(|error| http::broken(&error))?;
        let Some(method) = &frame.method else {
            let ours = frame.id.is_some_and(|id| id.get() == wanted.to_string());
            return match (frame.result, frame.error) {
                (Some(result), None) if ours => Ok(Some(result.get().to_owned())),
                (None, Some(error)) if ours || frame.id.is_none() => Err(rpc_failure(&error)),
                _ => Ok(None),
            };
        };
        let params = frame.params.map_or("{}", RawValue::get);
        match frame.id {
            None => {
                let params = serde_json::from_str(params).unwrap_or_default();
                answers.notice(method, &params);
            }
            Some(id) => {
                let question = Question { method: method.clone().into_owned(), params: params.to_owned() };
                let answer = tokio::task::block_in_place(|| answers.answer(&question));
                let answer = match answer {
                    Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get()),
                    Err((code, message)) => {
                        let error = json!({ "code": code, "message": message });
                        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())
                    }
                };
                self.post(answer).await?;
            }
        }
        Ok(None)
    }
}

/// The error for a question of a kind that this client never offered to answer.
pub(crate) fn not_offered(method: &str) -> (i64, String) {
    (METHOD_NOT_FOUND, format!("{method} is not offered"))
}

fn no_answer() -> Failure {
    Failure::new(Exit::Failed, "gateway_broken", "the gateway ended the stream without an answer")
}

fn refused(status: StatusCode, body: &[u8]) -> Failure {
    match serde_json::from_slice::<Frame<'_>>(body) {
        Ok(Frame { error: Some(error), .. }) if status != StatusCode::UNAUTHORIZED => rpc_failure(&error),
        _ => http::failure(status, body),
    }
}

/// The gateway's refusals carry their stable code in the error's data.
fn rpc_failure(error: &RpcError) -> Failure {
    let text = |name: &str| error.data.get(name).and_then(Value::as_str);
    let known =
        text("code").and_then(|code| RefusalCode::ALL.into_iter().find(|known| known.as_str() == code));
    let hint = text("hint");
    // For clients that show nothing but the message, the hint stands at its end too.
    let twice = hint.and_then(|hint| error.message.strip_suffix(&format!(" ({hint})")));
    let message = twice.unwrap_or(&error.message).to_owned();
    let failure = match known {
        Some(code) => Failure::from(model::Refusal::new(code, message)),
        None => Failure::new(Exit::Failed, &format!("rpc{}", error.code), message),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
