//! TLS of a connection: its handshake, clients that speak plain HTTP instead, and a WebSocket's way
//! through TLS.

use std::future::poll_fn;
use std::io;
use std::net;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pipe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use auth::ClientCertificate;
use bytes::Bytes;
use platform::{Share, unix_ms};
use tls::ServerTls;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional,
};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use wire::proto::contract::ErrorResponse;
use wire::proto::sniff::{Sniffed, sniff};
use wire::proto::{PayloadKind, frame};
use wire::rpc::code::INVALID_REQUEST;

use super::arrived::Arrived;
use super::connection::ConnectionEnds;
use super::places::Standing;
use super::unfinished::Unfinished;

/// Seconds a client may take to finish its TLS handshake.
const HANDSHAKE_SECS: u64 = 10;
/// The first byte of a TLS connection: a record of the handshake (RFC 8446, section 5.1).
pub(super) const HANDSHAKE_RECORD: u8 = 22;
/// Bytes of a plain request that are read after it was answered, so that its sender reads the
/// answer.
const PLAIN_BYTES_MAX: u64 = 64 * 1024;
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 49\r\nconnection: close\r\n\r\nthis port speaks TLS: use a URL with `https://`\r\n";

/// A connection after its handshake, and what its client showed.
pub(crate) type Secured = (TlsStream<Counted>, ConnectionEnds);

/// A socket below TLS. What arrives during the handshake is on the account of its address.
pub(crate) struct Counted {
    inner: TcpStream,
    handshake: Option<Box<(Unfinished, Arc<Share>)>>,
}

impl Counted {
    fn new(inner: TcpStream, account: Arc<Share>) -> Self {
        Self {
            inner,
            handshake: Some(Box::new((Unfinished::default(), account))),
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        let more = into.filled().len() - before;
        let fits = self
            .handshake
            .as_ref()
            .is_none_or(|shaking| shaking.0.grow(more, || Some(Arc::clone(&shaking.1))));
        if fits {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(io::Error::other("too much of handshakes waits")))
        }
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// Performs the handshake of a connection; `None` if it fails, takes too long, must make way for
/// another connection, or the gateway stops. Until then its bytes are on this account.
pub(crate) async fn accept(
    arrived: Arrived,
    account: Arc<Share>,
    tls: ServerTls,
    standing: &Standing,
    stop: &mut watch::Receiver<bool>,
) -> Option<Secured> {
    let evicted = poll_fn(|cx| standing.poll_evicted(cx));
    tokio::select! {
        shaken = timeout(Duration::from_secs(HANDSHAKE_SECS), handshake(arrived, account, &tls)) => match shaken {
            Ok(Ok(secured)) => Some(secured),
            Ok(Err(error)) => {
                report(&error.to_string());
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        },
        () = evicted => None,
        () = async { drop(stop.wait_for(|stop| *stop).await) } => None,
    }
}

/// Logs why a connection was no use. Anybody may cause it, so the log has one line a second; the
/// others are for debugging.
pub(super) fn report(why: &str) {
    static LATEST_SECOND: AtomicU64 = AtomicU64::new(0);
    let second = unix_ms() / 1000;
    if LATEST_SECOND.swap(second, Ordering::Relaxed) == second {
        tracing::debug!(why, "a connection ended before its first request");
    } else {
        tracing::warn!(why, "a connection ended before its first request");
    }
}

/// The answer to a connection that begins with this byte, in the protocol that the byte begins.
fn answer_to_plain(first: u8) -> Bytes {
    match sniff(first) {
        Sniffed::Proto => {
            let code = i32::try_from(INVALID_REQUEST).unwrap_or_default();
            let error = ErrorResponse {
                code,
                message: "this port speaks TLS".to_owned(),
                data: None,
            };
            frame::of_field(0, &PayloadKind::ErrorResponse.field_of(&error)).unwrap_or_default()
        }
        Sniffed::Json | Sniffed::Tls | Sniffed::Http | Sniffed::Unknown => {
            Bytes::from_static(PLAIN_ANSWER)
        }
    }
}

async fn handshake(arrived: Arrived, account: Arc<Share>, tls: &ServerTls) -> io::Result<Secured> {
    let Arrived {
        mut socket,
        ends,
        relay,
    } = arrived;
    let mut peeked = [0];
    // Before TLS reads it: a client that speaks none gets an answer that it can read.
    let seen = socket.peek(&mut peeked).await?;
    let [first] = peeked;
    if seen > 0 && first != HANDSHAKE_RECORD {
        socket.write_all(&answer_to_plain(first)).await?;
        socket.shutdown().await?;
        tokio::io::copy(&mut socket.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
        return Err(io::Error::other("the client does not speak TLS"));
    }
    let mut stream = tls.acceptor().accept(Counted::new(socket, account)).await?;
    stream.get_mut().0.handshake = None;
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let certificate = shown.map(|shown| {
        Arc::new(ClientCertificate {
            sha256: tls::fingerprint(shown),
            names: tls::names(shown),
        })
    });
    let name = stream.get_ref().1.server_name().map(str::to_owned);
    let at = ends.at.ok_or(io::ErrorKind::NotConnected)?;
    let authority = name.map_or_else(|| at.to_string(), |name| format!("{name}:{}", at.port()));
    Ok((
        stream,
        ConnectionEnds {
            certificate,
            authority: Some(authority.into()),
            relay,
            peer: Some(ends.peer),
        },
    ))
}

/// The task that carries bytes between a stream and its socket. It ends with this value.
pub(super) struct Pump(Option<AbortHandle>);

impl Pump {
    /// Lets the task go on until both sides have ended.
    pub(super) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Gives a stream (behind TLS, or through a tunnel) the form that a room writes to: a socket, whose
/// other end a task pumps. Each side's end is passed on to the other. What waits in between is
/// bounded by the buffers of the pair and the task.
///
/// # Errors
/// Errors of the pair of sockets.
pub(super) fn pump(
    mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> io::Result<(TcpStream, Pump)> {
    let (near, far) = Pipe::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    // A stream of bytes is all that is asked of it, never an address.
    let near = TcpStream::from_std(net::TcpStream::from(OwnedFd::from(near)))?;
    let mut far = UnixStream::from_std(far)?;
    let task = tokio::spawn(async move {
        if let Err(error) = copy_bidirectional(&mut stream, &mut far).await {
            tracing::trace!(%error, "a connection behind a pair of sockets ended");
        }
    });
    Ok((near, Pump(Some(task.abort_handle()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_plain_request_has_its_length() {
        let text = std::str::from_utf8(PLAIN_ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
    }
}
