//! The writing side of one member's socket.
//!
//! What the kernel takes is written at once by whoever has it; only what it does not take waits, within a bound, with a task
//! that lives as long as the backlog. Must not know what the bytes mean.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use platform::{Mutex, MutexGuard};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::frame::Close;

/// Bytes that may wait for one socket. Beyond it the socket is closed ([`Close::TooSlow`]).
pub const SOCKET_BACKLOG_BYTES_MAX: usize = 1 << 20;
/// Pieces that are handed to the kernel in one call.
const SLICES_MAX: usize = 64;
/// How long a last frame may take to leave.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Backlog {
    parts: VecDeque<Bytes>,
    bytes: usize,
    /// The first part has been written in part: it must be finished before anything else.
    begun: bool,
    /// A task is writing.
    draining: bool,
    /// This side says nothing more.
    closed: bool,
    /// What it was closed for, if by this side.
    why: Option<Close>,
    /// The task that waits until it is closed, or the backlog is out: the connection's own.
    waker: Option<Waker>,
}

impl Backlog {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// One member's socket.
pub struct Socket {
    stream: TcpStream,
    backlog: Mutex<Backlog>,
    heard_ms: AtomicU64,
}

impl Socket {
    /// A socket after its handshake.
    pub fn new(stream: TcpStream, now_ms: u64) -> Arc<Self> {
        let heard_ms = AtomicU64::new(now_ms);
        Arc::new(Self { stream, backlog: Mutex::default(), heard_ms })
    }

    /// The stream, to read from.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Notes a sign of life.
    pub fn heard(&self, now_ms: u64) {
        self.heard_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When something was heard last.
    pub fn heard_ms(&self) -> u64 {
        self.heard_ms.load(Ordering::Relaxed)
    }

    /// Waits until this side has ended it. One task at a time waits for a socket.
    pub async fn closed(&self) {
        self.wait_for(|backlog| backlog.closed).await;
    }

    /// What this side has closed it for, if it has.
    pub fn why(&self) -> Option<Close> {
        self.backlog().why
    }

    async fn wait_for(&self, done: impl Fn(&Backlog) -> bool) {
        poll_fn(|cx| {
            let mut backlog = self.backlog();
            if done(&backlog) {
                return Poll::Ready(());
            }
            backlog.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Writes these bytes after everything that was written before. A socket that does not keep up is closed.
    pub fn write(self: &Arc<Self>, parts: &[Bytes]) {
        let mut backlog = self.backlog();
        if backlog.closed {
            return;
        }
        let mut rest = 0;
        if backlog.parts.is_empty() {
            rest = match self.push_out(parts, &mut backlog) {
                Ok(done) => done,
                Err(()) => return self.fail(backlog),
            };
        }
        for part in parts.get(rest..).unwrap_or_default() {
            backlog.bytes += part.len();
            backlog.parts.push_back(part.clone());
        }
        if backlog.bytes > SOCKET_BACKLOG_BYTES_MAX {
            drop(backlog);
            return self.close(Close::TooSlow);
        }
        self.drain_later(backlog);
    }

    /// Says a last word and writes nothing after it. What waits is not written any more.
    pub fn close(self: &Arc<Self>, close: Close) {
        let mut backlog = self.backlog();
        if backlog.closed {
            return;
        }
        backlog.closed = true;
        backlog.why = Some(close);
        let keep = usize::from(backlog.begun);
        backlog.parts.truncate(keep);
        backlog.parts.push_back(close.frame());
        backlog.bytes = backlog.parts.iter().map(Bytes::len).sum();
        backlog.wake();
        self.drain_later(backlog);
    }

    /// Writes nothing more: the other side is gone or has said goodbye; `last` is the answer to that.
    pub fn end(self: &Arc<Self>, last: Bytes) {
        let mut backlog = self.backlog();
        if !backlog.closed {
            // In one step: nothing comes between the last word and the end.
            backlog.closed = true;
            if !last.is_empty() {
                backlog.bytes += last.len();
                backlog.parts.push_back(last);
            }
            backlog.wake();
            self.drain_later(backlog);
        }
    }

    /// Lets the last frame out, then closes the writing side and waits a little for the other side to do the same, so that
    /// it can still read why.
    pub async fn linger(&self) {
        let out = async {
            // The room may still have to say the last word.
            self.wait_for(|backlog| backlog.closed && !backlog.draining).await;
            let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write);
            let mut lost = [0; 1024];
            while self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut lost) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(LAST_WORDS, out).await;
        // Ends the task of a backlog that nobody reads, too.
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock()
    }

    fn fail(&self, mut backlog: MutexGuard<'_, Backlog>) {
        backlog.wake();
        *backlog = Backlog { closed: true, ..Backlog::default() };
    }

    /// Gives the kernel what it takes. Tells how many whole parts it took; the rest of a begun one goes to the backlog.
    fn push_out(&self, parts: &[Bytes], backlog: &mut Backlog) -> Result<usize, ()> {
        let mut done = 0;
        while let Some(left) = parts.get(done..).filter(|left| !left.is_empty()) {
            let mut wrote = match self.try_write(left) {
                Ok(wrote) => wrote,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(done),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(()),
            };
            for part in left {
                if wrote < part.len() {
                    break;
                }
                wrote -= part.len();
                done += 1;
            }
            if wrote > 0
                && let Some(part) = parts.get(done)
            {
                let rest = part.slice(wrote..);
                backlog.bytes += rest.len();
                backlog.begun = true;
                backlog.parts.push_back(rest);
                return Ok(done + 1);
            }
        }
        Ok(done)
    }

    /// Offers the kernel as much as it takes in one call.
    fn try_write(&self, parts: &[Bytes]) -> io::Result<usize> {
        if let [only] = parts {
            return self.stream.try_write(only);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = parts.len().min(SLICES_MAX);
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        self.stream.try_write_vectored(slices.get(..count).unwrap_or_default())
    }

    fn drain_later(self: &Arc<Self>, mut backlog: MutexGuard<'_, Backlog>) {
        if !backlog.parts.is_empty() && !backlog.draining {
            backlog.draining = true;
            drop(backlog);
            tokio::spawn(Arc::clone(self).drain());
        }
    }

    async fn drain(self: Arc<Self>) {
        loop {
            let writable = self.stream.writable().await;
            let mut backlog = self.backlog();
            if writable.is_err() || self.drain_some(&mut backlog).is_err() {
                return self.fail(backlog);
            }
            if backlog.parts.is_empty() {
                backlog.draining = false;
                backlog.parts.shrink_to_fit();
                return backlog.wake();
            }
        }
    }

    fn drain_some(&self, backlog: &mut Backlog) -> Result<(), ()> {
        while !backlog.parts.is_empty() {
            let mut wrote = match self.try_write(backlog.parts.as_slices().0) {
                Ok(wrote) => wrote,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(()),
            };
            backlog.bytes = backlog.bytes.saturating_sub(wrote);
            while let Some(part) = backlog.parts.front_mut() {
                if wrote < part.len() {
                    part.advance(wrote);
                    backlog.begun |= wrote > 0;
                    break;
                }
                wrote -= part.len();
                backlog.parts.pop_front();
                backlog.begun = false;
            }
        }
        Ok(())
    }
}
