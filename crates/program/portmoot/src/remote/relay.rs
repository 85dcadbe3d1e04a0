//! Relay for clients on a pipe (`portmoot stdio --url`, `portmoot tools call`) to the HTTP endpoint
//! of a running gateway.
//!
//! Messages pass unchanged, ids included. A client's first byte says which protocol it speaks.

mod frames;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use client::{Flow, HttpLimits, HttpSpec, LinkError, LinkInbox, SendMeta, ServerLink};
use http::{HeaderMap, HeaderName, HeaderValue};
use platform::{Mutex, MutexGuard};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use wire::line::{Line, Lines};
use wire::mcp::header::{self, HeaderParam};
use wire::mcp::{ListKind, Params, Version, list, listen};
use wire::proto::sniff::{Sniffed, sniff};
use wire::rpc::{self, Id, Message, MessageKind, code};

use crate::remote::api;
use crate::remote::endpoint::{Endpoint, Remote, broken_pipe};
use terminal::exit::Exit;
use terminal::failure::Failure;

/// Longest message of the gateway, bytes.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// Longest line from the client, bytes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Time that the relay waits for answers after the client has closed its side.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Messages queued for the client.
const QUEUE_LEN_MAX: usize = 4096;

/// A request whose answer the client awaits.
struct PendingRequest {
    id: Id,
    method: String,
    modern: bool,
}

/// A request that the client cancels.
struct CancelledRequest {
    number: u64,
    /// Over HTTP, closing the stream cancels a modern request (2026-07-28, "Cancellation").
    modern: bool,
}

const LISTEN: &str = "subscriptions/listen";

/// For a person who reads a client's log.
const NEEDS_TOKEN: &str = "the gateway needs a token, or another one: set PORTMOOT_TOKEN for this command (\"env\" in an MCP client's file)";

/// Code of an answer that did not come.
pub(crate) const BROKEN: &str = "gateway_broken";

/// Advice about an answer that did not come.
const LOOK: &str = "whether the request was carried out is not known; whether the gateway runs and takes the token: portmoot status";

/// State shared by both directions.
#[derive(Default)]
struct RelayState {
    pending: HashMap<u64, PendingRequest>,
    /// Arguments that tools mirror in headers, by tool name (2026-07-28, `x-mcp-header`).
    mirrored: HashMap<String, Vec<HeaderParam>>,
}

/// The client's side: writes messages of the gateway to output.
struct ClientSide {
    out: mpsc::Sender<Bytes>,
    state: Mutex<RelayState>,
    /// Notified when a pending request is settled.
    settled: Notify,
}

impl ClientSide {
    fn settle(&self, number: u64) -> Option<PendingRequest> {
        let open = self.state().pending.remove(&number)?;
        self.settled.notify_one();
        Some(open)
    }

    /// The request that a `notifications/cancelled` names, if its answer is awaited.
    fn cancelled_request(&self, message: &Message) -> Option<CancelledRequest> {
        let params = Params::read(message).ok()?;
        let id = params.request_id()?;
        let state = self.state();
        let (number, open) = state.pending.iter().find(|(_, open)| open.id == id)?;
        Some(CancelledRequest {
            number: *number,
            modern: open.modern,
        })
    }

    /// Whether the client awaits an answer. A listen request is answered only when it ends.
    fn is_awaited(&self) -> bool {
        self.state()
            .pending
            .values()
            .any(|open| open.method != LISTEN)
    }

    /// Whether a handshake has no answer yet: what the client writes behind it belongs to the
    /// session that the answer names.
    fn is_entering(&self) -> bool {
        self.state()
            .pending
            .values()
            .any(|open| open.method == "initialize" && !open.modern)
    }

    fn state(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock()
    }

    fn send(&self, frame: Bytes) {
        if self.out.try_send(rpc::one_line(frame)).is_err() {
            tracing::warn!("the client does not read its messages: a message was dropped");
        }
    }

    /// Whether this request, whose answer the client awaits, is for tools.
    fn is_list_of_tools(&self, number: u64) -> bool {
        let state = self.state();
        let open = state.pending.get(&number);
        open.is_some_and(|open| open.method == "tools/list")
    }

    fn learn_headers(&self, message: &Message) {
        let Ok(page) = list::split(ListKind::Tools, message) else {
            return;
        };
        let mut state = self.state();
        for item in page.items {
            if let Some(schema) = item.get("inputSchema")
                && let Ok(params) = header::annotations(&schema)
                && !params.is_empty()
            {
                state.mirrored.insert(item.key, params);
            }
        }
    }
}

fn is_answer(message: &Message) -> bool {
    matches!(message.shape(), MessageKind::Result | MessageKind::Error)
}

impl LinkInbox for ClientSide {
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow {
        let answered = match (Message::read(frame.clone()), about) {
            (Ok(message), Some(request)) if is_answer(&message) => Some((message, request)),
            _ => None,
        };
        let Some((message, request)) = answered else {
            self.send(frame);
            return Flow::Open;
        };
        // First: once the client has the list, its calls may come at once.
        if self.is_list_of_tools(request) {
            self.learn_headers(&message);
        }
        self.send(frame);
        self.settle(request);
        Flow::Settled
    }

    fn failed(&self, request: u64, failure: LinkError) {
        let Some(open) = self.settle(request) else {
            return;
        };
        // A JSON-RPC error in an HTTP error body is the gateway's own answer.
        if let LinkError::Http { body, .. } = &failure
            && let Ok(message) = Message::read(body.clone())
            && let Some(error) = message.error_object()
        {
            return self.send(rpc::error(
                Some(&open.id),
                error.code,
                &error.message,
                error.data,
            ));
        }
        let why = match &failure {
            LinkError::Unauthorized => {
                tracing::warn!("{NEEDS_TOKEN}");
                NEEDS_TOKEN.to_owned()
            }
            // Such as that the port speaks TLS.
            LinkError::Http { body, .. } => {
                let words = api::plain_words(body).map(|words| format!(": {words}"));
                format!(
                    "the gateway did not answer: {failure}{}",
                    words.unwrap_or_default()
                )
            }
            _ => format!("the gateway did not answer: {failure} ({LOOK})"),
        };
        let data = match &failure {
            LinkError::Unauthorized => json!({ "code": "unauthenticated" }),
            LinkError::Http { .. } => json!({ "code": BROKEN }),
            _ => json!({ "code": BROKEN, "hint": LOOK }),
        };
        self.send(rpc::error(
            Some(&open.id),
            code::INTERNAL_ERROR,
            &why,
            Some(data.to_string().as_bytes()),
        ));
    }

    fn closed(&self, why: LinkError) {
        tracing::info!(%why, "the connection to the gateway is closed");
    }
}

impl Remote {
    /// Relays between one MCP client on a pipe and this gateway, until the client closes its side.
    ///
    /// # Errors
    /// When the gateway cannot be reached, or the pipe breaks.
    pub(crate) async fn relay(
        &self,
        topic: &str,
        mut input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), Failure> {
        // Fails at once, not with the first request, if the gateway cannot be reached.
        drop(self.connect().await?);
        let mut begun = BytesMut::new();
        match doors::first_byte(&mut input, &mut begun)
            .await
            .map_err(broken_pipe)?
        {
            None => return Ok(()),
            Some(first) if sniff(first) == Sniffed::Proto => {
                return self.relay_frames(topic, begun, input, output).await;
            }
            Some(_) => {}
        }
        let (out, lines) = mpsc::channel(QUEUE_LEN_MAX);
        let writer = tokio::spawn(write(lines, output));
        let client = Arc::new(ClientSide {
            out,
            state: Mutex::default(),
            settled: Notify::new(),
        });
        let inbox: Arc<dyn LinkInbox> = Arc::<ClientSide>::clone(&client);
        let spec = HttpSpec {
            authorize: None,
            name: "portmoot".into(),
            url: format!("{}://{}/mcp/{topic}", self.scheme(), self.authority()),
            headers: authorization(self.token()),
            tls: self.tls(),
            limits: HttpLimits {
                frame_bytes_max: FRAME_BYTES_MAX,
                ..HttpLimits::default()
            },
        };
        let link = ServerLink::http(&spec, inbox).map_err(|error| {
            Failure::new(Exit::Failed, "gateway_unreachable", error.to_string())
        })?;
        let read = read(begun, input, &link, &client).await;
        link.close().await;
        // They have the senders of its queue: the writer ends with the last one.
        drop(link);
        drop(client);
        let written = writer.await;
        read.and(written.unwrap_or(Ok(()))).map_err(broken_pipe)
    }
}

/// The headers of every request: the token, if there is one that a header can have.
fn authorization(token: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(token) = token
        && let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}"))
    {
        headers.insert(http::header::AUTHORIZATION, value);
    }
    headers
}

async fn write(
    mut lines: mpsc::Receiver<Bytes>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
        output.write_all(b"\n").await?;
        if lines.is_empty() {
            output.flush().await?;
        }
    }
    Ok(())
}

/// Sends what the client writes; `begun` was read before.
async fn read(
    begun: BytesMut,
    mut input: impl AsyncRead + Unpin,
    link: &ServerLink,
    client: &Arc<ClientSide>,
) -> std::io::Result<()> {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let mut number = 0;
    let mut is_open = true;
    lines.buffer().extend_from_slice(&begun);
    loop {
        while !client.is_entering()
            && let Some(line) = lines.next_line()
        {
            number += 1;
            take(link, client, line, number);
        }
        let is_entering = client.is_entering();
        if !is_open && !is_entering {
            break;
        }
        let has_room = !is_entering || lines.buffer().len() < LINE_BYTES_MAX;
        tokio::select! {
            read = input.read_buf(lines.buffer()), if is_open && has_room => is_open = read? > 0,
            () = client.settled.notified(), if is_entering => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT), if !is_open => break,
        }
    }
    if let Some(line) = lines.finish() {
        take(link, client, line, number + 1);
    }
    // Pending requests are still answered, for a bounded time.
    let answered = async {
        while client.is_awaited() {
            client.settled.notified().await;
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, answered).await;
    Ok(())
}

/// Sends a line of the client; `number` is its place among them, by which its answer is known.
fn take(link: &ServerLink, client: &Arc<ClientSide>, line: Line, number: u64) {
    let message = match line {
        Line::Whole(line) => match Message::read(line) {
            Ok(message) => message,
            Err(malformed) => return client.send(malformed.answer()),
        },
        Line::Overlong(_) => {
            let why = "the line is too long";
            return client.send(rpc::error(None, code::INVALID_REQUEST, why, None));
        }
    };
    if message.method() == "notifications/cancelled"
        && let Some(cancelled) = client.cancelled_request(&message)
    {
        if cancelled.modern {
            return cancel(link, client, cancelled.number);
        }
        // The client awaits no answer to it any more.
        client.settle(cancelled.number);
    }
    let request = match message.shape() {
        MessageKind::Request => message.id(),
        MessageKind::Notification | MessageKind::Result | MessageKind::Error => None,
    };
    let headers = headers(client, &message);
    // Before it is sent: its answer may come at once.
    if let Some(id) = request {
        let open = PendingRequest {
            id: id.clone(),
            method: message.method().to_owned(),
            modern: headers.is_some(),
        };
        client.state().pending.insert(number, open);
    }
    if message.method() == "notifications/initialized" {
        // Not waited for: the gateway keeps what it sends until the stream is open.
        drop(link.listen());
    }
    let meta = SendMeta {
        request: request.map(|_| number),
        headers,
        ..SendMeta::default()
    };
    if let Err(unsent) = link.send(message.frame().clone(), meta) {
        client.failed(number, LinkError::Broken(unsent.to_string()));
    }
}

/// Cancels a modern request for the client. A listen request is answered with its final result.
fn cancel(link: &ServerLink, client: &Arc<ClientSide>, number: u64) {
    link.cancel(number);
    if let Some(open) = client.settle(number)
        && open.method == LISTEN
    {
        client.send(rpc::result(&open.id, &listen::ended(&open.id)));
    }
}

/// The headers that mirror the body of a modern request; `None` of any other message.
fn headers(client: &ClientSide, message: &Message) -> Option<Box<HeaderMap>> {
    let params = Params::read(message).ok().filter(Params::is_modern)?;
    let target = params.target();
    let mirrored = target
        .and_then(|name| client.state().mirrored.get(name).cloned())
        .unwrap_or_default();
    let version = params
        .protocol_version()
        .and_then(|version| Version::parse(&version))
        .unwrap_or(Version::NEWEST);
    let mut headers = HeaderMap::new();
    let of_arguments = header::compute(&params, &mirrored).unwrap_or_default();
    for (name, value) in header::standard(version, params.method(), target)
        .into_iter()
        .chain(of_arguments)
    {
        // What no header can have is left out: the gateway says what it misses.
        if let Ok(name) = HeaderName::try_from(name)
            && let Ok(value) = HeaderValue::try_from(value)
        {
            headers.append(name, value);
        }
    }
    if headers.is_empty() {
        None
    } else {
        Some(Box::new(headers))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::{Value, json};

    use super::*;

    /// Tools of the list. To read them takes longer than to wake a client.
    const TOOLS: usize = 2_000;

    /// An answer to a list: tools of which each mirrors an argument.
    fn list_of_tools() -> Bytes {
        let tool = |number: usize| {
            json!({ "name": format!("tool{number}"), "inputSchema": { "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } } })
        };
        let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
        let result = json!({ "tools": tools });
        json!({ "jsonrpc": "2.0", "id": 1, "result": result })
            .to_string()
            .into()
    }

    fn read(value: &Value) -> Message {
        Message::read(value.to_string().into()).unwrap()
    }

    #[test]
    fn a_client_that_has_a_list_of_tools_can_call_them_at_once() {
        let (out, mut lines) = mpsc::channel(QUEUE_LEN_MAX);
        let side = Arc::new(ClientSide {
            out,
            state: Mutex::default(),
            settled: Notify::new(),
        });
        let open = PendingRequest {
            id: read(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
                .id()
                .unwrap()
                .clone(),
            method: "tools/list".to_owned(),
            modern: true,
        };
        side.state().pending.insert(1, open);
        let at_once = Arc::clone(&side);
        let client = thread::spawn(move || {
            lines.blocking_recv().unwrap();
            let call = read(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": { "name": format!("tool{}", TOOLS - 1), "arguments": { "region": "eu" },
                    "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } }));
            headers(&at_once, &call).unwrap()
        });
        assert!(matches!(
            side.frame(list_of_tools(), Some(1)),
            Flow::Settled
        ));
        assert!(!side.is_awaited());
        let headers = client.join().unwrap();
        assert_eq!(headers["mcp-param-region"], "eu", "{headers:?}");
    }
}
