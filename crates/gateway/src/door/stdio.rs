//! One client on a pipe: a JSON-RPC message a line, both eras told apart by each request.
//!
//! Owns reading lines and writing what waits for the client. Must not know what messages mean (MCP, "stdio").

use std::io;
use std::sync::Arc;

use auth::Participant;
use bytes::Bytes;
use model::Era;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::line::{Line, Lines};
use wire::mcp::{Params, refusal};
use wire::rpc::{self, Malformed, Message, Shape, code};

use crate::caller::Caller;
use crate::gate::Gate;
use crate::pump::Pump;
use crate::stream::{Lifetime, Reader, Stream};
use crate::{greeting, legacy, modern};

/// Bytes that are gathered into one write.
const WRITE_BYTES: usize = 64 * 1024;

/// Serves one client until its side of the pipe ends.
///
/// # Errors
/// What reading or writing the pipe gave.
pub async fn serve(
    gate: &Arc<Gate>,
    pump: &Arc<Pump>,
    participant: &Arc<Participant>,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let out = Stream::new(0, Lifetime::Reader, 0, &gate.bounds());
    let Some(reader) = out.read(None) else { return Ok(()) };
    let writer = tokio::spawn(write(reader, output));
    let mut client = Client { gate, pump, participant, out: Arc::clone(&out), legacy: None, modern: None };
    let mut lines = Lines::new(gate.limits().line_bytes_max);
    let ended = loop {
        match input.read_buf(lines.buffer()).await {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
        while let Some(line) = lines.next_line() {
            client.take(line).await;
        }
        if out.has_ended() {
            break Ok(());
        }
    };
    if let Some(line) = lines.finish() {
        client.take(line).await;
    }
    client.drain().await;
    for caller in [client.legacy.take(), client.modern.take()].into_iter().flatten() {
        gate.leave(&caller);
    }
    out.end();
    match writer.await {
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

async fn write(mut reader: Reader, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut waiting = Vec::new();
    while let Some(item) = reader.next().await {
        line(&mut waiting, &item.frame);
        while waiting.len() < WRITE_BYTES {
            let Some(item) = reader.try_next() else { break };
            line(&mut waiting, &item.frame);
        }
        output.write_all(&waiting).await?;
        output.flush().await?;
        waiting.clear();
        waiting.shrink_to(WRITE_BYTES);
    }
    Ok(())
}

fn line(waiting: &mut Vec<u8>, frame: &Bytes) {
    waiting.extend_from_slice(&rpc::one_line(frame.clone()));
    waiting.push(b'\n');
}

struct Client<'c> {
    gate: &'c Arc<Gate>,
    pump: &'c Arc<Pump>,
    participant: &'c Arc<Participant>,
    out: Arc<Stream>,
    legacy: Option<Arc<Caller>>,
    modern: Option<Arc<Caller>>,
}

impl Client<'_> {
    async fn take(&mut self, line: Line) {
        let Line::Whole(line) = line else {
            let why = format!("the line is longer than {} bytes", self.gate.limits().line_bytes_max);
            return self.out.answer(rpc::error(None, code::INVALID_REQUEST, &why, None));
        };
        if line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') && self.batches() {
            return self.batch(&line);
        }
        match Message::read(line) {
            Ok(message) => self.message(message).await,
            Err(malformed) => self.out.answer(malformed.answer()),
        }
    }

    fn batches(&self) -> bool {
        self.legacy.as_ref().is_some_and(|caller| caller.hello().version.batches())
    }

    /// Over a pipe the answers of a batch may come one by one: JSON-RPC lets the server choose.
    fn batch(&self, line: &Bytes) {
        let Some(caller) = &self.legacy else { return };
        match rpc::read_batch(line, self.gate.limits().batch_len_max) {
            Ok(messages) => {
                for message in messages {
                    match message {
                        Ok(message) => legacy::read(self.pump, caller, &message, &self.out),
                        Err(malformed) => self.out.answer(malformed.answer()),
                    }
                }
            }
            Err(malformed) => self.out.answer(malformed.answer()),
        }
    }

    async fn message(&mut self, message: Message) {
        let params = match Params::read(&message) {
            Ok(params) => params,
            Err(malformed) => return self.malformed(&message, &malformed),
        };
        if message.shape() == Shape::Request && params.is_modern() {
            return self.modern(&params, &message).await;
        }
        match (&self.legacy, message.method()) {
            (Some(caller), _) => legacy::receive(self.pump, caller, &params, &self.out),
            (None, "initialize") => self.initialize(&message).await,
            (None, "notifications/cancelled") => self.cancel(&params),
            (None, "ping") => {
                self.out.answer(message.id().map_or_else(Bytes::new, |id| rpc::result(id, b"{}")))
            }
            (None, _) if message.shape() == Shape::Request => {
                let why = "initialize first, or send the 2026-07-28 `_meta` with each request";
                self.out.answer(rpc::error(message.id(), code::INVALID_REQUEST, why, None));
            }
            // Nobody waits for an answer to the rest.
            (None, _) => {}
        }
    }

    fn malformed(&self, message: &Message, malformed: &Malformed) {
        if message.shape() == Shape::Request {
            self.out.answer(malformed.answer());
        }
    }

    async fn modern(&mut self, params: &Params<'_>, message: &Message) {
        if let Err(error) = modern::check(params) {
            return self.out.answer(error.answer(message.id()));
        }
        let caller = match &self.modern {
            Some(caller) => Arc::clone(caller),
            None => match self.gate.modern_on(self.pump, self.participant, Some(Arc::clone(&self.out))) {
                Ok(caller) => Arc::clone(self.modern.insert(caller)),
                Err(refusal) => {
                    return self
                        .out
                        .answer(refusal::spell(&refusal, Era::Modern, "", None).answer(message.id()));
                }
            },
        };
        self.pump.wait_for_target(&caller, params).await;
        // On a pipe a request is cancelled by name, not by a stream that closes.
        drop(modern::receive(self.pump, &caller, params, modern::hello(params), &self.out));
    }

    fn cancel(&self, params: &Params<'_>) {
        let open = self.modern.as_ref().zip(params.request_id()).and_then(|(caller, id)| caller.find(&id));
        if let Some(open) = open {
            open.cancel();
        }
    }

    async fn initialize(&mut self, message: &Message) {
        let Some(id) = message.id() else { return };
        let welcome = match legacy::welcome(message) {
            Ok(welcome) => welcome,
            Err(error) => return self.out.answer(error),
        };
        self.pump.wait_for_servers().await;
        match self.gate.legacy(self.pump, self.participant, welcome.hello, Some(Arc::clone(&self.out))) {
            Ok(caller) => {
                self.legacy = Some(caller);
                self.out.answer(rpc::result(id, &greeting::initialize(self.pump, welcome.version)));
            }
            Err(refusal) => self.out.answer(refusal::spell(&refusal, Era::Legacy, "", None).answer(Some(id))),
        }
    }

    /// The client has closed its side: what it asked is still answered, within a bound.
    async fn drain(&self) {
        let open =
            || [&self.legacy, &self.modern].into_iter().flatten().any(|caller| caller.has_open_operations());
        let deadline = tokio::time::Instant::now() + DRAIN;
        while open() && !self.out.has_ended() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
    }
}

/// How long answers are waited for when the client has closed its side.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(5);
const POLL: std::time::Duration = std::time::Duration::from_millis(10);
