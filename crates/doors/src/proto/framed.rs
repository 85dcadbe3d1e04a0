//! Client of proto-mcp on a pipe (proto-mcp v1.0, "Stdio Transport").

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use wire::proto::frame::{Frame, Frames};

use super::session::Session;
use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::stream::{Lifetime, Stream};
use crate::writer::{Framing, write};

/// Serves one client until it closes its side. `read` are bytes of it that were read before.
///
/// # Errors
/// Those of the pipe.
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
    let Some(mut session) = Session::begin(links, visitor, &out).await else {
        return writer.await.unwrap_or(Ok(()));
    };
    let mut frames = Frames::new(links.registry.limits().body_bytes_max, read);
    let mut written = None;
    let ended = loop {
        if !take_all(&mut session, &mut frames).await || out.has_ended() {
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
    session.end().await;
    let written = match written {
        Some(written) => written,
        None => writer.await,
    };
    match written {
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

/// Takes the frames that are there; false if nothing after them can be trusted.
async fn take_all(session: &mut Session, frames: &mut Frames) -> bool {
    while let Some(frame) = frames.next_frame() {
        match frame {
            Frame::KeepAlive => {}
            Frame::Message(message) => session.take(&message).await,
            Frame::TooLong(bytes) => {
                session.refuse_long(u64::from(bytes));
                return false;
            }
        }
    }
    true
}
