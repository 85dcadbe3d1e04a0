//! The same load over proto-mcp: frames on a socket or a pipe, and gRPC.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use portmoot_bench::call;
use portmoot_bench::proto::{ProtoCall, answered, initialize, is_answer, list, message_of};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::proto::contract::ListToolsResponse;
use wire::proto::frame::{FRAME_BYTES_MAX, Frame, Frames, of_field};
use wire::proto::{Content, PayloadKind, ProtoEnvelope};

use super::Shared;

/// How calls lie on the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// JSON-RPC: HTTP, or lines on a pipe.
    Json,
    /// Frames of proto-mcp.
    Frames,
    /// gRPC with prior knowledge.
    Grpc,
}

impl Wire {
    /// Reads the flag's word.
    pub(super) fn read(word: &str) -> Self {
        match word {
            "json" => Self::Json,
            "frames" => Self::Frames,
            "grpc" => Self::Grpc,
            other => panic!("no wire {other}"),
        }
    }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn proto_call(shared: &Shared, message: &str) -> ProtoCall {
    let json = call::body(shared.era, &shared.tool, &shared.arguments, shared.size);
    ProtoCall::new(&shared.tool, message, &json)
}

/// Frames, read from anything.
struct Reader<R> {
    from: R,
    frames: Frames,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            frames: Frames::new(FRAME_BYTES_MAX, BytesMut::with_capacity(64 << 10)),
        }
    }

    /// The next message. None if there is none without reading.
    fn ready(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.frames.next_frame() {
                Some(Frame::Message(message)) => return Ok(Some(message)),
                Some(Frame::KeepAlive) => {}
                Some(_) => return Err(other("a frame that is too long")),
                None => return Ok(None),
            }
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.from.read_buf(self.frames.buffer()).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn next(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(message) = self.ready()? {
                return Ok(message);
            }
            self.more().await?;
        }
    }
}

/// Says hello, and finds the message of the tool's arguments.
async fn begin<R: AsyncRead + Unpin>(
    shared: &Shared,
    reader: &mut Reader<R>,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<ProtoCall> {
    writer
        .write_all(&of_field(1, &initialize()).ok_or_else(|| other("too long"))?)
        .await?;
    reader.next().await?;
    let mut cursor = String::new();
    loop {
        let field = PayloadKind::ListToolsRequest.field_of(&list(&cursor));
        writer
            .write_all(&of_field(2, &field).ok_or_else(|| other("too long"))?)
            .await?;
        let answer = reader.next().await?;
        let Ok(ProtoEnvelope {
            content: Content::Payload(_, field),
            ..
        }) = ProtoEnvelope::read(&answer)
        else {
            return Err(other("the answer is no message"));
        };
        let body = PayloadKind::split(&field)
            .ok_or_else(|| other("the answer is empty"))?
            .1;
        let page = ListToolsResponse::decode(body).map_err(other)?;
        if let Some(message) = message_of(&page, &shared.tool) {
            return Ok(proto_call(shared, &message));
        }
        cursor = page.next_cursor;
        if cursor.is_empty() {
            return Err(other(format!("no tool {}", shared.tool)));
        }
    }
}

fn done(shared: &Shared, since: Instant, right: bool, answer: &[u8]) {
    shared.seen.borrow_mut().done(since, right, || {
        String::from_utf8_lossy(answer).into_owned()
    });
}

/// One connection of frames, one call at a time.
pub(super) async fn frames(shared: &Shared) -> io::Result<()> {
    let socket = TcpStream::connect(&shared.to).await?;
    socket.set_nodelay(true)?;
    let (read, mut writer) = socket.into_split();
    let mut reader = Reader::new(read);
    let mut call = begin(shared, &mut reader, &mut writer).await?;
    while !shared.is_over() {
        let sent = (shared.next(), Instant::now());
        writer.write_all(&call.frame(sent.0)).await?;
        let answer = reader.next().await?;
        let right = answered(&answer) == Some(sent.0)
            && is_answer(&answer, sent.0, shared.answer.as_deref());
        done(shared, sent.1, right, &answer);
    }
    Ok(())
}

/// A server on a pipe: a window of calls, refilled as answers come.
pub(super) async fn pipe(
    shared: &Rc<Shared>,
    mut input: impl AsyncWrite + Unpin,
    output: impl AsyncRead + Unpin,
    depth: usize,
) -> io::Result<()> {
    let mut reader = Reader::new(output);
    let mut call = begin(shared, &mut reader, &mut input).await?;
    let (mut out, mut open) = (Vec::new(), HashMap::new());
    while !shared.seen.borrow().over {
        while open.len() < depth {
            let number = shared.next();
            out.extend_from_slice(&call.frame(number));
            open.insert(number, Instant::now());
        }
        input.write_all(&out).await?;
        out.clear();
        reader.more().await?;
        while let Some(answer) = reader.ready()? {
            let Some((number, since)) = answered(&answer).and_then(|n| Some((n, open.remove(&n)?)))
            else {
                continue;
            };
            done(
                shared,
                since,
                is_answer(&answer, number, shared.answer.as_deref()),
                &answer,
            );
        }
    }
    Ok(())
}

/// One connection of gRPC, one call at a time.
pub(super) async fn grpc(shared: &Shared) -> io::Result<()> {
    let socket = TcpStream::connect(&shared.to).await?;
    socket.set_nodelay(true)?;
    let (mut client, connection) = h2::client::handshake(socket).await.map_err(other)?;
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    let mut cursor = String::new();
    let mut call = loop {
        let (_, body) = unary(
            shared,
            &mut client,
            "ListTools",
            &list(&cursor).encode_to_vec(),
        )
        .await?;
        let page = ListToolsResponse::decode(body).map_err(other)?;
        if let Some(message) = message_of(&page, &shared.tool) {
            break proto_call(shared, &message);
        }
        cursor = page.next_cursor;
        if cursor.is_empty() {
            return Err(other(format!("no tool {}", shared.tool)));
        }
    };
    while !shared.is_over() {
        let sent = (shared.next(), Instant::now());
        let (ok, answer) = unary(shared, &mut client, "CallTool", call.number(sent.0)).await?;
        done(
            shared,
            sent.1,
            ok && is_answer(&answer, sent.0, shared.answer.as_deref()),
            &answer,
        );
    }
    Ok(())
}

/// One unary call: whether its status is 0, and its message.
async fn unary(
    shared: &Shared,
    client: &mut SendRequest<Bytes>,
    method: &str,
    message: &[u8],
) -> io::Result<(bool, Bytes)> {
    std::future::poll_fn(|cx| client.poll_ready(cx))
        .await
        .map_err(other)?;
    let request = http::Request::post(format!(
        "http://{}/buf.mcp.v1.MCPService/{method}",
        shared.to
    ))
    .header("content-type", "application/grpc")
    .header("te", "trailers")
    .body(())
    .map_err(other)?;
    let mut data = BytesMut::with_capacity(5 + message.len());
    data.put_u8(0);
    data.put_u32(u32::try_from(message.len()).map_err(other)?);
    data.put_slice(message);
    let (response, mut stream) = client.send_request(request, false).map_err(other)?;
    stream.send_data(data.freeze(), true).map_err(other)?;
    let response = response.await.map_err(other)?;
    let status = response.headers().get("grpc-status").cloned();
    let (mut body, mut answer) = (response.into_body(), BytesMut::new());
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(other)?;
        body.flow_control()
            .release_capacity(chunk.len())
            .map_err(other)?;
        answer.extend_from_slice(&chunk);
    }
    let trailers = body.trailers().await.map_err(other)?;
    let status = trailers
        .and_then(|trailers| trailers.get("grpc-status").cloned())
        .or(status);
    let ok = status.is_some_and(|status| status == "0");
    let answer = answer.freeze();
    Ok((
        ok,
        if answer.len() > 5 {
            answer.slice(5..)
        } else {
            Bytes::new()
        },
    ))
}
