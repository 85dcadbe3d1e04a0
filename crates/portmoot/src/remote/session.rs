//! MCP client session of revision 2025-11-25 over Streamable HTTP: one request at a time, answers to server requests.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use model::RefusalCode;
use serde_json::{Value, json};
use wire::rpc::{self, Message, Shape};
use wire::sse::Decoder;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::endpoint::Endpoint;
use crate::remote::http;

const REVISION: &str = "2025-11-25";
const EVENT_BYTES_MAX: usize = 64 << 20;
const METHOD_NOT_FOUND: i64 = -32601;

/// Answers requests of the server and receives its notifications.
pub(crate) trait Responder {
    /// Answers a request of the server: a result, or code and message of an error.
    fn answer(&mut self, request: &ServerRequest) -> Result<Value, (i64, String)>;
    /// Receives a notification.
    fn notice(&mut self, method: &str, params: &Value);
}

/// A request of the server to this client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerRequest {
    pub(crate) method: String,
    /// JSON text as the server wrote it: members keep their order.
    pub(crate) params: String,
}

/// An open session. [`ClientSession::close`] ends it; the gateway ends a dropped session when it is idle.
pub(crate) struct ClientSession<'a> {
    endpoint: &'a dyn Endpoint,
    path: String,
    id: Option<String>,
    last_request: u64,
}

impl<'a> ClientSession<'a> {
    /// Opens a session in a topic, with these client capabilities.
    ///
    /// # Errors
    /// When the gateway cannot be reached or refuses.
    pub(crate) async fn open(
        endpoint: &'a dyn Endpoint,
        topic: &str,
        capabilities: &Value,
        responder: &mut dyn Responder,
    ) -> Result<ClientSession<'a>, Failure> {
        let path = if topic == "main" { "/mcp".to_owned() } else { format!("/mcp/{topic}") };
        let mut session = ClientSession { endpoint, path, id: None, last_request: 0 };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": capabilities,
            "clientInfo": { "name": "portmoot-cli", "version": env!("CARGO_PKG_VERSION") },
        });
        session.request("initialize", &params.to_string(), responder).await?;
        session.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await?;
        Ok(session)
    }

    /// Sends one request and returns its result as JSON text, unchanged.
    ///
    /// # Errors
    /// When the server or the gateway refuses the request, or the connection breaks.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: &str,
        responder: &mut dyn Responder,
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
            return self.read_stream(response, id, responder).await;
        }
        let (_, body) = http::read(response).await?;
        self.take(&body, id, responder).await?.ok_or_else(no_answer)
    }

    /// Ends the session.
    pub(crate) async fn close(self) {
        let Some(id) = &self.id else { return };
        let headers = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", REVISION)];
        // Without this request the session ends later, when it is idle.
        let _ = http::send(self.endpoint, Method::DELETE, &self.path, &headers, Bytes::new()).await;
    }
    async fn post(&self, frame: impl Into<Bytes>) -> Result<Response<Incoming>, Failure> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", REVISION),
        ];
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id));
        }
        let response = http::send(self.endpoint, Method::POST, &self.path, &headers, frame.into()).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, body) = http::read(response).await?;
        Err(refused(status, body))
    }

    async fn read_stream(
        &self,
        response: Response<Incoming>,
        id: u64,
        responder: &mut dyn Responder,
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
                if let Some(result) = self.take(&event.data, id, responder).await? {
                    return Ok(result);
                }
            }
        }
        Err(no_answer())
    }

    /// Processes one message; returns the result if it answers request `wanted`.
    async fn take(
        &self,
        message: &[u8],
        wanted: u64,
        responder: &mut dyn Responder,
    ) -> Result<Option<String>, Failure> {
        let message = Message::read(Bytes::copy_from_slice(message)).map_err(|error| http::broken(&error))?;
        let params = message.params().map_or("{}".into(), String::from_utf8_lossy);
        match (message.shape(), message.id()) {
            (Shape::Result, id) => {
                let own = id.is_some_and(|id| id.as_number() == Some(wanted));
                return Ok(message
                    .result()
                    .filter(|_| own)
                    .map(|raw| String::from_utf8_lossy(raw).into_owned()));
            }
            (Shape::Error, id) if id.is_none_or(|id| id.as_number() == Some(wanted)) => {
                return Err(rpc_failure(&message));
            }
            (Shape::Error, _) => {}
            (Shape::Notification | Shape::Request, None) => {
                let params = serde_json::from_str(&params).unwrap_or_default();
                responder.notice(message.method(), &params);
            }
            (Shape::Notification | Shape::Request, Some(id)) => {
                let request =
                    ServerRequest { method: message.method().to_owned(), params: params.into_owned() };
                let answer = match tokio::task::block_in_place(|| responder.answer(&request)) {
                    Ok(result) => rpc::result(id, result.to_string().as_bytes()),
                    Err((code, why)) => rpc::error(Some(id), code, &why, None),
                };
                self.post(answer).await?;
            }
        }
        Ok(None)
    }
}

/// The error for a request whose capability this client did not declare.
pub(crate) fn unsupported(method: &str) -> (i64, String) {
    (METHOD_NOT_FOUND, format!("this client does not support {method}"))
}

fn no_answer() -> Failure {
    Failure::new(Exit::Failed, "gateway_broken", "the gateway closed the stream without an answer")
}

fn refused(status: StatusCode, body: Bytes) -> Failure {
    match Message::read(body.clone()) {
        Ok(message) if message.error().is_some() && status != StatusCode::UNAUTHORIZED => {
            rpc_failure(&message)
        }
        Ok(_) | Err(_) => http::failure(status, &body),
    }
}

/// Maps a JSON-RPC error to a failure. Refusals of the gateway have their stable code in `data`.
fn rpc_failure(message: &Message) -> Failure {
    let Some(error) = message.error_object() else { return no_answer() };
    let data: Value = error.data.and_then(|data| serde_json::from_slice(data).ok()).unwrap_or_default();
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let known: Option<RefusalCode> = text("code").and_then(|code| code.parse().ok());
    let hint = text("hint");
    // The gateway also appends the hint to the message, for clients that show only the message.
    let stripped = hint.and_then(|hint| error.message.strip_suffix(&format!(" ({hint})")));
    let message = stripped.unwrap_or(&error.message).to_owned();
    let failure = match known {
        Some(code) => Failure::from(model::Refusal::new(code, message)),
        None => Failure::new(Exit::Failed, &format!("rpc{}", error.code), message),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
