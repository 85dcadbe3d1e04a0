//! Client on a pipe: one JSON-RPC message a line, in the era that each request names (MCP,
//! "stdio").

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gateway::Link;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::line::{Line, Lines};
use wire::mcp::{Era, Params, refusal};
use wire::rpc::{self, Id, Message, MessageKind, code};

use crate::duplex::{self, Framing};
use crate::links::{self, ClientLinks};
use crate::listening::ListenReply;
use crate::outlet::Visitor;
use crate::reply::{Owed, SinkReply};
use crate::stream::{Lifetime, Stream};
use crate::{legacy, modern};

/// Serves one client until it closes its side of the pipe. `read` are bytes of it that were read
/// before.
///
/// # Errors
/// Errors of the pipe.
pub(crate) async fn serve(
    links: &ClientLinks,
    visitor: Visitor,
    read: BytesMut,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let out = Stream::new(
        0,
        Lifetime::Reader,
        0,
        &links.registry.bounds(&visitor.participant.id),
    );
    let Some(writer) = duplex::writes(&out, output, Framing::Lines) else {
        return Ok(());
    };
    let mut lines = Lines::new(links.registry.limits().line_bytes_max());
    lines.buffer().extend_from_slice(&read);
    let legacy = None;
    let modern = None;
    let client = Client {
        links,
        visitor,
        out: Arc::clone(&out),
        lines,
        legacy,
        modern,
    };
    duplex::serve(client, &out, input, writer).await
}

struct Client<'c> {
    links: &'c ClientLinks,
    visitor: Visitor,
    out: Arc<Stream>,
    lines: Lines,
    legacy: Option<Arc<Link>>,
    modern: Option<Arc<Link>>,
}

impl duplex::Client for Client<'_> {
    fn buffer(&mut self) -> &mut BytesMut {
        self.lines.buffer()
    }

    async fn take(&mut self) -> bool {
        while let Some(line) = self.lines.next_line() {
            self.line(line).await;
        }
        true
    }

    async fn end(mut self) {
        if let Some(line) = self.lines.finish() {
            self.line(line).await;
        }
        let open: Vec<_> = [&self.legacy, &self.modern].into_iter().flatten().collect();
        duplex::drain(&self.visitor.dispatch, &open, &self.out).await;
        open.into_iter()
            .for_each(|link| self.visitor.dispatch.leave(link));
    }
}

impl Client<'_> {
    async fn line(&mut self, line: Line) {
        let Line::Whole(line) = line else {
            let bytes_max = self.links.registry.limits().line_bytes_max();
            let why = format!("the line is longer than {bytes_max} bytes");
            return self
                .out
                .answer(rpc::error(None, code::INVALID_REQUEST, &why, None));
        };
        if line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
            && let Some(link) = self
                .legacy
                .as_ref()
                .filter(|link| link.client.version.batches())
        {
            return self.batch(link, &line);
        }
        match Message::read(line) {
            Ok(message) => self.message(message).await,
            Err(malformed) => self.out.answer(malformed.answer()),
        }
    }

    /// On a pipe the answers of a batch may come one by one: JSON-RPC leaves that to the server.
    fn batch(&self, link: &Arc<Link>, line: &Bytes) {
        match rpc::read_batch(line, self.links.registry.limits().batch_len_max) {
            Ok(messages) => {
                for message in messages {
                    match message {
                        Ok(message) => {
                            let by = link.opener();
                            legacy::receive(&self.visitor.dispatch, by, &message, None, &self.out)
                        }
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
            Err(malformed) if message.shape() == MessageKind::Request => {
                return self.out.answer(malformed.answer());
            }
            Err(_) => return,
        };
        let is_request = message.shape() == MessageKind::Request;
        if is_request && params.is_modern() {
            return self.modern(&params).await;
        }
        if let Some(link) = self.modern.as_ref().filter(|_| !is_request) {
            modern::take(&self.visitor.dispatch, link, &params);
        }
        match (&self.legacy, message.id()) {
            (Some(link), _) => {
                let by = link.opener();
                legacy::receive_params(&self.visitor.dispatch, by, &params, None, &self.out)
            }
            (None, Some(id)) if is_request => self.begin(id, &message).await,
            // A client waits for no answer to the rest.
            (None, _) => {}
        }
    }

    /// A legacy request before `initialize`, or that itself.
    async fn begin(&mut self, id: &Id, message: &Message) {
        let otherwise = "initialize first, or send the 2026-07-28 `_meta` with each request";
        let Some(client) = legacy::first(message, &self.out, otherwise) else {
            return;
        };
        self.legacy = legacy::join(self.links, &self.visitor, client, id, &self.out).await;
        if let Some(link) = &self.legacy {
            self.out
                .answer(legacy::welcome(&self.visitor.dispatch, link, id));
        }
    }

    async fn modern(&mut self, params: &Params<'_>) {
        let id = params.message().id();
        if let Err(error) = modern::check(params) {
            return self.out.answer(error.answer(id));
        }
        let link = match &self.modern {
            Some(link) => Arc::clone(link),
            None => {
                let client = links::modern_client();
                match self.links.join_on(&self.out, &self.visitor, client) {
                    Ok(link) => Arc::clone(self.modern.insert(link)),
                    Err(refusal) => {
                        let refused = refusal::encode(&refusal, Era::Modern, "", None);
                        return self.out.answer(refused.answer(id));
                    }
                }
            }
        };
        let incoming = match modern::request(params) {
            Ok(incoming) => incoming,
            Err(answer) => return self.out.answer(answer.answer(id)),
        };
        let by = link.opener();
        self.visitor
            .dispatch
            .wait_for_target(by, &incoming.request)
            .await;
        // On a pipe a request is cancelled by its name, not by closing a stream.
        let out = Arc::clone(&self.out);
        match params.method() {
            modern::LISTEN => {
                self.visitor
                    .dispatch
                    .request(by, incoming, Arc::new(ListenReply::new(out)))
            }
            _ => {
                let reply = SinkReply(Owed::by(&out));
                self.visitor.dispatch.request(by, incoming, Arc::new(reply))
            }
        };
    }
}
