//! MCP client session of revision 2025-11-25 on a pipe to a gateway: one request at a time, answers
//! to server requests.

use bytes::Bytes;
use model::RefusalCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use wire::rpc::{self, Message, MessageKind};

use crate::remote::endpoint::{Endpoint, PIPE_BYTES};
use crate::responder::TerminalResponder;
use terminal::exit::Exit;
use terminal::failure::Failure;

/// A server's error for a resource that it does not have (2025-11-25, "Resources").
const RESOURCE_NOT_FOUND: i64 = -32002;

const REVISION: &str = "2025-11-25";

/// An open session. [`ClientSession::close`] ends it; the gateway ends a dropped session when it is
/// idle.
pub(crate) struct ClientSession<'a> {
    pipe: BufReader<DuplexStream>,
    /// Task that serves the other end of the pipe.
    serving: JoinHandle<Result<(), Failure>>,
    responder: TerminalResponder<'a>,
    last_request: u64,
}

impl<'a> ClientSession<'a> {
    /// Opens a session in a topic. `responder` answers requests of the server and receives its
    /// notifications.
    ///
    /// # Errors
    /// When the gateway cannot be reached or refuses.
    pub(crate) async fn open(
        endpoint: &dyn Endpoint,
        topic: &str,
        responder: TerminalResponder<'a>,
    ) -> Result<ClientSession<'a>, Failure> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": responder.capabilities(),
            "clientInfo": { "name": "portmoot-cli", "version": env!("CARGO_PKG_VERSION") },
        });
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let serving = tokio::spawn(endpoint.serve(topic, far));
        let mut session = ClientSession {
            pipe: BufReader::new(near),
            serving,
            responder,
            last_request: 0,
        };
        session.request("initialize", &params.to_string()).await?;
        session
            .send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await?;
        Ok(session)
    }

    /// Sends one request and returns its result as JSON text, unchanged.
    ///
    /// # Errors
    /// When the server or the gateway refuses the request, or the connection breaks.
    pub(crate) async fn request(&mut self, method: &str, params: &str) -> Result<String, Failure> {
        self.last_request += 1;
        let id = self.last_request;
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.send(frame.as_bytes()).await?;
        loop {
            let mut line = Vec::new();
            if self
                .pipe
                .read_until(b'\n', &mut line)
                .await
                .unwrap_or_default()
                == 0
            {
                return Err(self.ended().await);
            }
            let Ok(message) = Message::read(Bytes::from(line)) else {
                return Err(no_answer());
            };
            if let Some(result) = self.take(&message, id).await? {
                return Ok(result);
            }
        }
    }

    /// Cancels the last request, whose answer is not awaited any more.
    pub(crate) async fn cancel(&mut self) {
        let id = self.last_request;
        let cancelled = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        // A session that has ended has nothing to cancel.
        let _ = self.send(cancelled.as_bytes()).await;
    }

    /// Ends the session.
    pub(crate) async fn close(self) {
        drop(self.pipe);
        if !self.serving.is_finished() {
            // Without the end of this task the session ends later, when it is idle.
            let _ = self.serving.await;
        }
    }

    async fn send(&mut self, frame: &[u8]) -> Result<(), Failure> {
        match self.pipe.write_all(&[frame, b"\n"].concat()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// Why the other end has closed the pipe.
    async fn ended(&mut self) -> Failure {
        match (&mut self.serving).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) | Err(_) => no_answer(),
        }
    }

    /// Processes one message; returns the result if it answers request `wanted`.
    async fn take(&mut self, message: &Message, wanted: u64) -> Result<Option<String>, Failure> {
        let params = message
            .params()
            .map_or("{}".into(), String::from_utf8_lossy);
        let is_own = message.id().is_none_or(|id| id.as_number() == Some(wanted));
        match (message.shape(), message.id()) {
            (MessageKind::Result, _) if is_own => {
                return Ok(message
                    .result()
                    .map(|raw| String::from_utf8_lossy(raw).into_owned()));
            }
            (MessageKind::Error, _) if is_own => return Err(rpc_failure(message)),
            (MessageKind::Result | MessageKind::Error, _) => {}
            (MessageKind::Notification | MessageKind::Request, None) => {
                self.responder.notice(
                    message.method(),
                    &serde_json::from_str(&params).unwrap_or_default(),
                );
            }
            (MessageKind::Notification | MessageKind::Request, Some(id)) => {
                let responder = &mut self.responder;
                let answer =
                    tokio::task::block_in_place(|| responder.answer(message.method(), &params));
                let answer = match answer {
                    Ok(result) => rpc::result(id, result.to_string().as_bytes()),
                    Err((code, why)) => rpc::error(Some(id), code, &why, None),
                };
                self.send(&answer).await?;
            }
        }
        Ok(None)
    }
}

fn no_answer() -> Failure {
    Failure::new(
        Exit::Failed,
        "gateway_broken",
        "the gateway closed the stream without an answer",
    )
}

/// Maps a JSON-RPC error to a failure. Refusals of the gateway have their stable code in `data`.
fn rpc_failure(message: &Message) -> Failure {
    let Some(error) = message.error_object() else {
        return no_answer();
    };
    let data: Value = error
        .data
        .and_then(|data| serde_json::from_slice(data).ok())
        .unwrap_or_default();
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let known: Option<RefusalCode> = text("code").and_then(|code| code.parse().ok());
    let hint = text("hint");
    // The gateway also appends the hint to the message, for clients that show only the message.
    let stripped = hint.and_then(|hint| error.message.strip_suffix(&format!(" ({hint})")));
    let message = stripped.unwrap_or(&error.message).to_owned();
    let failure = match known {
        Some(code) => Failure::from(model::Refusal::new(code, message)),
        None => {
            let code = text("code").map_or_else(|| format!("rpc{}", error.code), str::to_owned);
            let exit = if error.code == RESOURCE_NOT_FOUND {
                Exit::NotFound
            } else {
                Exit::Failed
            };
            Failure::new(exit, &code, message)
        }
    };
    match hint {
        _ if failure.exit == Exit::Unauthenticated => failure.needs_token(),
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
