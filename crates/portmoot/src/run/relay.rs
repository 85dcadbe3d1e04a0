//! `portmoot stdio --url`: a client's pipe on this side, a running gateway's HTTP endpoint on the other.
//!
//! Owns nothing but the way across: messages pass as they are, ids included. Must not know what they mean.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{CloseTimeouts, Flow, HttpLimits, HttpSpec, Inbox, Link, LinkError, SendMeta};
use http::{HeaderMap, HeaderName, HeaderValue};
use platform::{Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use wire::line::{Line, Lines};
use wire::mcp::header::{self, HeaderParam};
use wire::mcp::{ListKind, Params, Version, list, result};
use wire::rpc::{self, Id, Message, Shape, code};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::Source;
use crate::output::Output;

/// Bytes of one line from the client.
const LINE_BYTES_MAX: usize = 16 << 20;
/// How long answers are waited for once the client has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Messages that may wait for the client to read them.
const QUEUE_LEN_MAX: usize = 4096;

/// A request that the client waits for.
struct Open {
    id: Id,
    method: String,
    modern: bool,
}

const LISTEN: &str = "subscriptions/listen";

/// What both directions know.
#[derive(Default)]
struct Known {
    open: HashMap<u64, Open>,
    /// Arguments that tools want mirrored in headers, by the tool's name (2026-07-28, `x-mcp-header`).
    mirrored: HashMap<String, Vec<HeaderParam>>,
}

/// Takes what the gateway says to the client's stdout.
struct Back {
    out: mpsc::Sender<Bytes>,
    known: Mutex<Known>,
    /// Something that was open is no longer.
    settled: Notify,
}

impl Back {
    fn settle(&self, number: u64) -> Option<Open> {
        let open = self.known().open.remove(&number)?;
        self.settled.notify_one();
        Some(open)
    }

    /// A modern request that the client takes back. Over HTTP that is told by closing its stream (2026-07-28,
    /// "Cancellation"); a number of ours is needed for it.
    fn taken_back(&self, message: &Message) -> Option<u64> {
        let params = Params::read(message).ok()?;
        let id = params.request_id()?;
        let known = self.known();
        let taken = known.open.iter().find(|(_, open)| open.modern && open.id == id);
        taken.map(|(number, _)| *number)
    }

    /// Whether the client waits for an answer. A listen request has one only when it ends.
    fn is_waited_for(&self) -> bool {
        self.known().open.values().any(|open| open.method != LISTEN)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    fn say(&self, frame: Bytes) {
        if self.out.try_send(rpc::one_line(frame)).is_err() {
            tracing::warn!("the client does not read: a message was dropped");
        }
    }

    fn learn(&self, message: &Message) {
        let Ok(page) = list::split(ListKind::Tools, message) else { return };
        let mut known = self.known();
        for item in page.items {
            let params = item.get("inputSchema").and_then(|schema| header::annotations(&schema).ok());
            if let Some(params) = params.filter(|params| !params.is_empty()) {
                known.mirrored.insert(item.key, params);
            }
        }
    }
}

impl Inbox for Back {
    fn frame(&self, frame: Bytes, about: Option<u64>) -> Flow {
        let answered =
            Message::read(frame.clone()).ok().filter(|m| matches!(m.shape(), Shape::Result | Shape::Error));
        self.say(frame);
        let (Some(message), Some(about)) = (answered, about) else { return Flow::Open };
        let open = self.settle(about);
        if open.is_some_and(|open| open.method == "tools/list") {
            self.learn(&message);
        }
        Flow::Settled
    }

    fn failed(&self, request: u64, failure: LinkError) {
        let Some(open) = self.settle(request) else { return };
        // An error that HTTP wrapped is the gateway's own answer.
        if let LinkError::Http { body, .. } = &failure
            && let Ok(message) = Message::read(body.clone())
            && let Some(error) = message.error_object()
        {
            return self.say(rpc::error(Some(&open.id), error.code, &error.message, error.data));
        }
        let why = format!("the gateway gave no answer: {failure}");
        self.say(rpc::error(Some(&open.id), code::INTERNAL_ERROR, &why, None));
    }

    fn closed(&self, why: LinkError) {
        tracing::info!(%why, "the gateway is gone");
    }
}

/// Serves one client on stdin and stdout as a door to a running gateway.
///
/// # Errors
/// When the gateway cannot be reached.
pub(crate) async fn stdio_door(
    source: Box<dyn Source>,
    topic: &str,
    _output: Output,
) -> Result<Exit, Failure> {
    // Says at once, and not with the first request, that nobody is there.
    drop(source.connect().await?);
    let (out, lines) = mpsc::channel(QUEUE_LEN_MAX);
    let writer = tokio::spawn(write(lines));
    let back = Arc::new(Back { out, known: Mutex::default(), settled: Notify::new() });
    let inbox: Arc<dyn Inbox> = Arc::<Back>::clone(&back);
    let url = format!("http://{}/mcp/{topic}", source.authority());
    let unreachable = |why: String| Failure::new(Exit::Failed, "gateway_unreachable", why);
    let spec = HttpSpec {
        name: "portmoot".into(),
        url,
        headers: authorization(source.token()),
        limits: HttpLimits::default(),
    };
    let link = Link::http(&spec, inbox).map_err(|error| unreachable(error.to_string()))?;
    let read = read(&link, &back).await;
    link.close(CloseTimeouts::default()).await;
    drop((link, back));
    let written = writer.await;
    read.and(written.unwrap_or(Ok(())))
        .map_err(|error| Failure::new(Exit::Failed, "pipe", format!("the client's pipe: {error}")))?;
    Ok(Exit::Ok)
}

fn authorization(token: Option<&str>) -> HeaderMap {
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    value.map(|value| (http::header::AUTHORIZATION, value)).into_iter().collect()
}

async fn write(mut lines: mpsc::Receiver<Bytes>) -> std::io::Result<()> {
    let mut stdout = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        stdout.write_all(&line).await?;
        stdout.write_all(b"\n").await?;
        if lines.is_empty() {
            stdout.flush().await?;
        }
    }
    Ok(())
}

async fn read(link: &Link, back: &Arc<Back>) -> std::io::Result<()> {
    let (mut stdin, mut lines, mut number) = (tokio::io::stdin(), Lines::new(LINE_BYTES_MAX), 0);
    while stdin.read_buf(lines.buffer()).await? > 0 {
        while let Some(line) = lines.next_line() {
            number += 1;
            take(link, back, line, number);
        }
    }
    // What was asked is still answered, within a bound.
    let answered = async {
        while back.is_waited_for() {
            back.settled.notified().await;
        }
    };
    let _ = tokio::time::timeout(LAST_ANSWERS, answered).await;
    Ok(())
}

fn take(link: &Link, back: &Arc<Back>, line: Line, number: u64) {
    let message = match line {
        Line::Whole(line) => Message::read(line).map_err(|malformed| malformed.answer()),
        Line::Overlong => Err(rpc::error(None, code::INVALID_REQUEST, "the line is too long", None)),
    };
    let message = match message {
        Ok(message) => message,
        Err(error) => return back.say(error),
    };
    if message.method() == "notifications/cancelled"
        && let Some(number) = back.taken_back(&message)
    {
        return cancel(link, back, number);
    }
    let request = message.id().filter(|_| message.shape() == Shape::Request);
    let headers = headers(back, &message);
    let (modern, method) = (headers.is_some(), message.method().to_owned());
    let meta = SendMeta { request: request.map(|_| number), headers, ..SendMeta::default() };
    if let Some(id) = request {
        back.known().open.insert(number, Open { id: id.clone(), method, modern });
    }
    if message.method() == "notifications/initialized" {
        link.listen();
    }
    if let Err(unsent) = link.send(message.frame().clone(), meta) {
        back.failed(number, LinkError::Broken(unsent.to_string()));
    }
}

/// Ends a modern request at the client's wish. A listen request is answered with its end.
fn cancel(link: &Link, back: &Arc<Back>, number: u64) {
    link.cancel(number);
    let Some(open) = back.settle(number).filter(|open| open.method == LISTEN) else { return };
    back.say(rpc::result(&open.id, &result::listened(&open.id)));
}

/// The headers that repeat a modern request's body.
fn headers(back: &Back, message: &Message) -> Option<Box<HeaderMap>> {
    let params = Params::read(message).ok().filter(Params::is_modern)?;
    let target = params.target().map(wire::mcp::Target::text);
    let mirrored = target.and_then(|name| back.known().mirrored.get(name).cloned()).unwrap_or_default();
    let version =
        params.protocol_version().and_then(|version| Version::parse(&version)).unwrap_or(Version::NEWEST);
    let mut headers = HeaderMap::new();
    for (name, value) in header::standard(version, &params, target, &mirrored).unwrap_or_default() {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        headers.extend(header);
    }
    (!headers.is_empty()).then(|| Box::new(headers))
}
