//! Handover of idle event streams: they leave HTTP's machinery, which keeps some 15 KiB of buffers
//! for each connection.
//!
//! HTTP has written the head and the first events; the rest are chunks (RFC 9112, section 7.1).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use platform::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::events::Events;
use super::opening::Opening;
use super::progress::Progressing;
use crate::unread::until_written;

/// The chunk that ends a body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Bytes read at once of what is discarded.
const LOST_BYTES: usize = 256;

/// Place where a body leaves its events for the connection that it is sent on.
#[derive(Default)]
pub(crate) struct Handover {
    is_used: AtomicBool,
    left: Mutex<Option<Left>>,
}

/// Events that a body has left.
struct Left {
    events: Box<Events>,
    /// Whether everything before them is written.
    written: bool,
}

impl Handover {
    /// Leaves events of which none is ready.
    pub(crate) fn leave(&self, events: Box<Events>) {
        *self.left.lock() = Some(Left {
            events,
            written: false,
        });
        self.is_used.store(true, Ordering::Release);
    }

    /// The events, once nothing else waits to be written on the connection.
    pub(crate) fn take(&self) -> Option<Box<Events>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let left = self.left.lock().take_if(|left| left.written)?;
        Some(left.events)
    }

    /// Everything before the events is written.
    pub(crate) fn written(&self) {
        if self.is_used.load(Ordering::Acquire)
            && let Some(left) = &mut *self.left.lock()
        {
            left.written = true;
        }
    }
}

/// Receiver of a watched socket's events.
pub(crate) trait Watch: Send + Sync {
    /// Nothing waits to be written any more.
    fn written(&self);

    /// So many bytes were read; false if there is no room for them.
    fn read(&self, bytes: usize) -> bool;
}

/// A connection's socket. It notifies when HTTP has written everything, because HTTP flushes it
/// only then, and of what is read. It notes what the connection begins with, and fails once its
/// client reads nothing for too long.
pub(crate) struct Watched<T> {
    inner: Progressing<T>,
    watch: Arc<dyn Watch>,
    opening: Opening,
}

impl<T> Watched<T> {
    /// A socket that notifies this.
    pub(crate) fn new(inner: T, watch: Arc<dyn Watch>) -> Self {
        Self {
            inner: Progressing::new(inner),
            watch,
            opening: Opening::Unread,
        }
    }

    /// The socket itself.
    pub(crate) fn into_inner(self) -> T {
        self.inner.into_inner()
    }

    /// The socket itself, and what was read of it if that is no HTTP but frames of proto-mcp.
    pub(crate) fn into_parts(self) -> (T, Option<BytesMut>) {
        let frames = if let Opening::Frames(read) = self.opening {
            Some(read)
        } else {
            None
        };
        (self.inner.into_inner(), frames)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        let inner = Pin::new(this.inner.get_mut());
        ready!(this.opening.poll_read(inner, cx, into))?;
        if this.watch.read(into.filled().len() - before) {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(io::Error::other("too much of what is not whole waits")))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.watch.written();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.opening, Opening::Frames(_)) {
            // Only HTTP has ended.
            return Poll::Ready(Ok(()));
        }
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

/// Events that are written as chunks until they end or the client leaves; then the socket is
/// closed. `kept` lives as long.
pub(crate) struct HeldEvents<T, P> {
    socket: Progressing<T>,
    events: Events,
    /// On the account of the stream's participant.
    unsent: Bytes,
    _kept: P,
}

impl<T: AsyncRead + AsyncWrite + Unpin, P> HeldEvents<T, P> {
    /// Goes on with events whose beginning is written.
    pub(crate) fn new(socket: T, events: Events, kept: P) -> Self {
        Self {
            socket: Progressing::new(socket),
            events,
            unsent: Bytes::new(),
            _kept: kept,
        }
    }

    /// Writes as much as it can; ends with whether everything was written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.has_left(cx) {
            return Poll::Ready(false);
        }
        loop {
            if self.unsent.is_empty() {
                // TLS may keep the end of what it took; a plain socket keeps nothing.
                if ready!(Pin::new(&mut self.socket).poll_flush(cx)).is_err() {
                    return Poll::Ready(false);
                }
                if self.events.is_over() {
                    return Poll::Ready(true);
                }
                let event = ready!(self.events.poll(cx));
                let chunks = chunks(event.as_deref(), self.events.is_over());
                self.unsent = until_written(chunks, self.events.account());
            }
            match ready!(Pin::new(&mut self.socket).poll_write(cx, &self.unsent)) {
                Ok(0) | Err(_) => return Poll::Ready(false),
                Ok(wrote) => self.unsent.advance(wrote),
            }
            if self.unsent.is_empty() {
                // A silent stream keeps no memory of what it has written.
                self.unsent = Bytes::new();
            }
        }
    }

    /// Whether the client has left. What it sends is discarded, because the response announced the
    /// end of the connection.
    fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        let mut lost = [0; LOST_BYTES];
        loop {
            let mut lost = ReadBuf::new(&mut lost);
            match Pin::new(self.socket.get_mut()).poll_read(cx, &mut lost) {
                Poll::Ready(Ok(())) if !lost.filled().is_empty() => {}
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin, P: Unpin> Future for HeldEvents<T, P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if ready!(self.poll_write(cx)) {
            // Nothing can be done about a socket that does not close.
            let _ = ready!(Pin::new(&mut self.socket).poll_shutdown(cx));
        }
        Poll::Ready(())
    }
}

/// The chunk of an event, which is never empty, and the last one if nothing follows.
fn chunks(event: Option<&[u8]>, is_over: bool) -> Bytes {
    let mut chunks = Vec::new();
    if let Some(event) = event {
        chunks = [format!("{:x}\r\n", event.len()).as_bytes(), event, b"\r\n"].concat();
    }
    if is_over {
        chunks.extend_from_slice(LAST_CHUNK);
    }
    chunks.into()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::fixture::{registry, user};
    use crate::http::WRITE_STALLED_MAX;
    use crate::keep_alive::KeepAlive;
    use crate::stream::{Lifetime, Stream};
    use config::GatewayLimits;

    fn stream() -> Arc<Stream> {
        let registry = registry(GatewayLimits::default());
        Stream::new(
            0,
            Lifetime::Resumable,
            0,
            &registry.bounds(&user(&registry).id),
        )
    }

    fn events(stream: &Arc<Stream>) -> Box<Events> {
        let keep_alive = KeepAlive::new(&registry(GatewayLimits::default()));
        Box::new(Events::new(
            stream.read(None).unwrap(),
            false,
            None,
            &keep_alive,
        ))
    }

    impl Watch for Handover {
        fn written(&self) {
            Handover::written(self);
        }

        fn read(&self, _: usize) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn events_are_taken_once_everything_before_them_is_written() {
        let handover = Arc::new(Handover::default());
        let (near, _far) = duplex(64);
        let mut socket = Watched::new(near, Arc::<Handover>::clone(&handover));
        let mut flush =
            || Pin::new(&mut socket).poll_flush(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(flush().is_ready() && handover.take().is_none());
        handover.leave(events(&stream()));
        assert!(handover.take().is_none());
        assert!(flush().is_ready() && handover.take().is_some());
        assert!(flush().is_ready() && handover.take().is_none());
    }

    #[tokio::test]
    async fn a_slow_client_gets_every_chunk_and_the_end() {
        let stream = stream();
        // Less room than one event needs.
        let (near, mut far) = duplex(7);
        let writer = tokio::spawn(HeldEvents::new(near, *events(&stream), ()));
        let mut expected = String::new();
        for number in 0..20 {
            stream
                .send(format!("{{\"n\":{number}}}").into(), None)
                .unwrap();
            let event = format!("event: message\ndata: {{\"n\":{number}}}\n\n");
            expected += &format!("{:x}\r\n{event}\r\n", event.len());
        }
        stream.end();
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, expected + "0\r\n\r\n");
        writer.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_does_not_read_is_on_its_account_until_it_is_closed() {
        let registry = registry(GatewayLimits::default());
        let held = registry.held_of(&user(&registry).id);
        let bounds = registry.bounds(&user(&registry).id);
        let stream = Stream::new(0, Lifetime::Reader, 0, &bounds);
        let (near, _far) = duplex(64);
        let keep_alive = KeepAlive::new(&registry);
        let events = Events::new(stream.read(None).unwrap(), false, None, &keep_alive);
        let began = tokio::time::Instant::now();
        let writer = tokio::spawn(HeldEvents::new(near, events, ()));
        stream.send(Bytes::from(vec![b'x'; 100_000]), None).unwrap();
        tokio::time::sleep(WRITE_STALLED_MAX / 2).await;
        assert!(held.taken() >= 100_000, "{}", held.taken());
        writer.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), WRITE_STALLED_MAX.as_secs());
        assert_eq!(held.taken(), 0);
    }

    #[tokio::test]
    async fn a_silent_stream_keeps_nothing_of_what_it_has_written() {
        let stream = stream();
        let (near, _far) = duplex(1024);
        let mut held = HeldEvents::new(near, *events(&stream), ());
        stream.send(Bytes::from_static(b"{}"), None).unwrap();
        assert!(
            Pin::new(&mut held)
                .poll(&mut Context::from_waker(std::task::Waker::noop()))
                .is_pending()
        );
        assert!(!held.unsent.is_unique(), "it has memory of its own");
    }

    #[tokio::test]
    async fn a_client_that_leaves_detaches_from_the_stream() {
        let stream = stream();
        let (near, mut far) = duplex(64);
        let writer = tokio::spawn(HeldEvents::new(near, *events(&stream), ()));
        far.write_all("GET / HTTP/1.1\r\n".repeat(100).as_bytes())
            .await
            .unwrap();
        assert!(stream.is_attached());
        drop(far);
        writer.await.unwrap();
        assert!(!stream.is_attached());
    }
}
