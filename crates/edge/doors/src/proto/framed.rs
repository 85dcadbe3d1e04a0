//! Client of proto-mcp on a pipe or socket (proto-mcp v1.0, "Stdio Transport").

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::proto::frame::{Frame, Frames};

use super::session::{ProtoArrival, Session};
use crate::duplex::{self, Framing};
use crate::links::ClientLinks;
use crate::stream::Stream;

/// Serves one client, which reads `out`, until it closes its side. `host` is the gateway as the
/// client names it, `read` are bytes of the client that were read before.
///
/// # Errors
/// Errors of the pipe.
pub(crate) async fn serve(
    links: &ClientLinks,
    arrival: ProtoArrival,
    out: &Arc<Stream>,
    read: BytesMut,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let Some(writer) = duplex::writes(out, output, Framing::Prefixed) else {
        return Ok(());
    };
    let Some(session) = Session::begin(links, arrival, out).await else {
        return writer.await.unwrap_or(Ok(()));
    };
    let frames = Frames::new(links.registry.limits().body_bytes_max, read);
    duplex::serve(Framed { session, frames }, out, input, writer).await
}

/// A client that writes frames.
struct Framed {
    session: Session,
    frames: Frames,
}

impl duplex::Client for Framed {
    fn buffer(&mut self) -> &mut BytesMut {
        self.frames.buffer()
    }

    async fn take(&mut self) -> bool {
        while let Some(frame) = self.frames.next_frame() {
            match frame {
                Frame::KeepAlive => {}
                Frame::Message(message) => self.session.take(&message).await,
                Frame::TooLong(bytes) => {
                    self.session.refuse_long(u64::from(bytes));
                    return false;
                }
            }
        }
        true
    }

    async fn end(self) {
        self.session.end().await;
    }
}
