//! Progress of what is written: a client that reads nothing for long loses its connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// Time for which a client may read nothing of what waits to be written to it.
pub(crate) const WRITE_STALLED_MAX: Duration = Duration::from_secs(60);

/// Watch of one output. It has a timer only while the output takes nothing.
#[derive(Default)]
struct Progress(Option<Pin<Box<Sleep>>>);

impl Progress {
    /// The result of a write; an error once the output has taken nothing for too long.
    fn of<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.0 = None;
            return written;
        }
        let stalled = self
            .0
            .get_or_insert_with(|| Box::pin(sleep(WRITE_STALLED_MAX)));
        ready!(stalled.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client reads nothing",
        )))
    }
}

/// An output that ends once its reader reads nothing for too long.
pub(super) struct Progressing<W> {
    inner: W,
    progress: Progress,
}

impl<W> Progressing<W> {
    /// This output, watched.
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            progress: Progress::default(),
        }
    }

    /// The output, to be read from if it is a socket.
    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// The output alone.
    pub(super) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Progressing<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.progress.of(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.progress.of(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.progress.of(cx, closed)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.progress.of(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_output_ends_only_if_nothing_of_it_is_read_for_long() {
        let began = Instant::now();
        let (near, mut far) = duplex(10);
        let writer = tokio::spawn(async move {
            let mut output = Progressing::new(near);
            let end = output.write_all(&[b'x'; 40]).await;
            (end.unwrap_err().kind(), Instant::now())
        });
        // Slow, but never for too long.
        for _ in 0..2 {
            sleep(WRITE_STALLED_MAX - Duration::from_secs(1)).await;
            far.read_exact(&mut [0; 10]).await.unwrap();
        }
        let (end, at) = writer.await.unwrap();
        assert_eq!(end, io::ErrorKind::TimedOut);
        let expected = (WRITE_STALLED_MAX - Duration::from_secs(1)) * 2 + WRITE_STALLED_MAX;
        assert_eq!((at - began).as_secs(), expected.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_output_goes_on() {
        let (near, mut far) = duplex(10);
        let mut output = Progressing::new(near);
        for _ in 0..2 {
            output.write_all(b"hello").await.unwrap();
            far.read_exact(&mut [0; 5]).await.unwrap();
            sleep(WRITE_STALLED_MAX * 2).await;
        }
        assert!(output.progress.0.is_none());
    }
}
