//! Client of proto-mcp on a framed connection: a pipe or a socket (proto-mcp v1.0, "Stdio Transport").

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use model::{Refusal, RefusalCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use wire::proto::frame::{Frame, Frames};
use wire::proto::{Content, Envelope, Kind, frame};

use super::client::{Client, Taken};
use super::outlet::FrameOutlet;
use super::reply::{self, FrameReply};
use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::reply::OnStream;
use crate::stream::{Lifetime, Stream};
use crate::writer::{Framing, drain, write};

/// Serves one client until it closes its side. `read` are bytes of it that were read before.
///
/// # Errors
/// Those of the connection.
pub(crate) async fn serve(
    links: &ClientLinks,
    visitor: Visitor,
    read: BytesMut,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let out = Stream::new(0, Lifetime::Reader, 0, &links.registry.bounds(&visitor.participant.id));
    let Some(reader) = out.read(None) else { return Ok(()) };
    let mut writer = tokio::spawn(write(reader, output, Framing::Prefixed));
    let dispatch = Arc::clone(&visitor.dispatch);
    let outlet = Arc::new(FrameOutlet::new(&out));
    let client = match Client::join(links, visitor, Arc::<FrameOutlet>::clone(&outlet)) {
        Ok(client) => client,
        Err(refusal) => {
            refuse(&out, 0, &refusal);
            out.end();
            return writer.await.unwrap_or(Ok(()));
        }
    };
    let link = Arc::clone(&client.link);
    let mut door = Framed { client, out: Arc::clone(&out), outlet };
    let mut frames = Frames::new(links.registry.limits().body_bytes_max, read);
    let mut written = None;
    let ended = 'connection: loop {
        while let Some(frame) = frames.next_frame() {
            if !door.take(frame).await {
                break 'connection Ok(());
            }
        }
        if out.has_ended() {
            break Ok(());
        }
        let read = tokio::select! {
            read = input.read_buf(frames.buffer()) => read,
            // The client gets nothing any more: it was revoked, is too slow, or has closed its side of the output.
            end = &mut writer => {
                written = Some(end);
                break Ok(());
            }
        };
        match read {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    drain(&dispatch, &[&link], &out).await;
    dispatch.leave(&link);
    out.end();
    let written = match written {
        Some(written) => written,
        None => writer.await,
    };
    match written {
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

struct Framed {
    client: Client,
    out: Arc<Stream>,
    outlet: Arc<FrameOutlet>,
}

impl Framed {
    /// Takes a frame; false if nothing after it can be trusted.
    async fn take(&mut self, frame: Frame) -> bool {
        match frame {
            Frame::KeepAlive => {}
            Frame::Message(message) => self.message(&message).await,
            Frame::TooLong(bytes) => {
                let why = format!("the frame has {bytes} bytes, which is beyond the limit");
                refuse(&self.out, 0, &Refusal::new(RefusalCode::TooLarge, why));
                return false;
            }
        }
        true
    }

    async fn message(&mut self, message: &Bytes) {
        let Ok(Envelope { id, content }) = Envelope::read(message) else {
            let field = reply::unreadable();
            return self.out.answer(frame::of_field(0, &field).unwrap_or_default());
        };
        match content {
            Content::Ping => self.out.answer(frame::of_field(id, b"").unwrap_or_default()),
            Content::Unknown => {
                refuse(
                    &self.out,
                    id,
                    &Refusal::new(RefusalCode::Unsupported, "the gateway does not know this payload"),
                );
            }
            Content::Payload(kind, field) => self.payload(id, kind, field).await,
        }
    }

    async fn payload(&mut self, id: u64, kind: Kind, field: Bytes) {
        let taken = self.client.take(Some(id), kind, field).await;
        self.outlet.list_changed.store(self.client.declared.list_changed, Ordering::Relaxed);
        match taken {
            Ok(Taken::Answered(field)) => self.out.answer(frame::of_field(id, &field).unwrap_or_default()),
            Ok(Taken::Request(incoming, wanted)) => {
                let dispatch = Arc::clone(&self.client.visitor.dispatch);
                let reply = FrameReply { sink: OnStream::new(&self.out), id, dispatch, wanted };
                self.client.visitor.dispatch.request(&self.client.link, *incoming, Arc::new(reply));
            }
            Err(refusal) => {
                let method = if kind == Kind::CallToolRequest { "tools/call" } else { "initialize" };
                reply::refuse(&self.out, id, &refusal, method);
            }
        }
    }
}

/// Refuses what is no request of a method.
fn refuse(out: &Arc<Stream>, id: u64, refusal: &Refusal) {
    reply::refuse(out, id, refusal, "");
}
