//! Tunnels: bytes both ways between two nodes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::channel::Closed;
use super::frame::{CHUNK_BYTES_MAX, Piece};
use super::handle::Handle;
use crate::seal::Incarnation;

/// A pipe of bytes to another node. Dropping it before both sides were shut down resets it.
#[derive(Debug)]
pub struct Tunnel {
    handle: Handle,
    /// Bytes that came and were not read.
    left: Bytes,
    has_read_all: bool,
    is_shut: bool,
}

impl Tunnel {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            handle,
            left: Bytes::new(),
            has_read_all: false,
            is_shut: false,
        }
    }

    /// The other node.
    #[must_use]
    pub fn peer(&self) -> Incarnation {
        self.handle.peer
    }
}

fn broken(closed: Closed) -> io::Error {
    let kind = match closed {
        Closed::PeerEnded => io::ErrorKind::NotConnected,
        Closed::ByPeer(_) | Closed::ByUs(_) => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, "the tunnel to the other node was closed")
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.left.is_empty() && !self.has_read_all {
            let piece = ready!(self.handle.poll_take(context)).map_err(broken)?;
            self.left = piece.bytes;
            self.has_read_all = piece.ends_stream;
        }
        let length = self.left.len().min(into.remaining());
        into.put_slice(&self.left.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let length = bytes.len().min(CHUNK_BYTES_MAX);
        let first = bytes.get(..length).unwrap_or_default();
        let piece = Piece {
            bytes: Bytes::copy_from_slice(first),
            ends_message: false,
            ends_stream: false,
        };
        self.handle.poll_put(context, &piece).map_err(broken)
    }

    /// Bytes are under way as soon as they are written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.handle.closed() {
            Some(closed) => Poll::Ready(Err(broken(closed))),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Waits until the other node has received all: a tunnel that is dropped then loses nothing.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            let end = Piece {
                bytes: Bytes::new(),
                ends_message: false,
                ends_stream: true,
            };
            ready!(self.handle.poll_put(context, &end)).map_err(broken)?;
            self.is_shut = true;
        }
        self.handle.poll_flushed(context).map_err(broken)
    }
}
