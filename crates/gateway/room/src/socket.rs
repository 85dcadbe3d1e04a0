//! Write side of one member's socket: direct writes, bounded backlog, closing.
//!
//! The caller writes as much as the kernel accepts. The rest waits in a backlog, and a task drains
//! it.

use std::io::{self, ErrorKind, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::{collections::VecDeque, future::poll_fn, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use platform::{Mutex, MutexGuard};
use tokio::{net::TcpStream, time::timeout};

use crate::frame::Close;

/// Longest backlog of one socket, in bytes. A longer one closes the socket ([`Close::TooSlow`]).
pub const SOCKET_BACKLOG_BYTES_MAX: usize = 1 << 20;
/// Slices per system call.
const SLICES_MAX: usize = 64;
/// Longest wait for a client to read the last frame and close.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Backlog {
    parts: VecDeque<Bytes>,
    bytes: usize,
    /// The first part is partly written: it must be completed before any other frame.
    begun: bool,
    /// A task drains the backlog.
    draining: bool,
    /// This side writes no further frame.
    closed: bool,
    /// Why this side closed the socket, if it did.
    reason: Option<Close>,
    /// The connection's task, which waits until the socket is closed or the backlog is empty.
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
    last_activity_ms: AtomicU64,
    wants_places: bool,
}

impl Socket {
    /// A socket after its WebSocket handshake, and whether its envelopes have their places.
    pub fn new(stream: TcpStream, now_ms: u64, wants_places: bool) -> Arc<Self> {
        let last_activity_ms = AtomicU64::new(now_ms);
        Arc::new(Self {
            stream,
            backlog: Mutex::default(),
            last_activity_ms,
            wants_places,
        })
    }

    /// Whether its envelopes have their places.
    pub(crate) fn wants_places(&self) -> bool {
        self.wants_places
    }

    /// The stream, to read from.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Records that data arrived.
    pub fn record_activity(&self, now_ms: u64) {
        self.last_activity_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When data arrived last, in milliseconds on the clock of [`Socket::record_activity`].
    pub fn last_activity_ms(&self) -> u64 {
        self.last_activity_ms.load(Ordering::Relaxed)
    }

    /// Waits until this side has closed the socket. Only one task may wait at a time.
    pub async fn closed(&self) {
        self.wait_for(|backlog| backlog.closed).await;
    }

    /// Why this side closed the socket, if it did.
    pub fn close_reason(&self) -> Option<Close> {
        self.backlog().reason
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

    /// Writes frames after all earlier ones. Closes the socket when its backlog is too long.
    pub fn write(self: &Arc<Self>, parts: &[Bytes]) {
        let mut backlog = self.backlog();
        if backlog.closed {
            return;
        }
        let mut rest = 0;
        // Else these frames would overtake those that wait.
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

    /// Sends a close frame as the last frame, and drops the backlog.
    pub fn close(self: &Arc<Self>, close: Close) {
        let mut backlog = self.backlog();
        if backlog.closed {
            return;
        }
        backlog.closed = true;
        backlog.reason = Some(close);
        // A frame that is partly written must be completed, or the client cannot read the next.
        let keep = usize::from(backlog.begun);
        backlog.parts.truncate(keep);
        backlog.parts.push_back(close.frame());
        backlog.bytes = backlog.parts.iter().map(Bytes::len).sum();
        backlog.wake();
        self.drain_later(backlog);
    }

    /// Stops writing because the client has closed or lost the connection; `last` answers its close
    /// frame.
    pub fn end(self: &Arc<Self>, last: Bytes) {
        let mut backlog = self.backlog();
        if !backlog.closed {
            // In one step, so that no frame follows the last one.
            backlog.closed = true;
            if !last.is_empty() {
                backlog.bytes += last.len();
                backlog.parts.push_back(last);
            }
            backlog.wake();
            self.drain_later(backlog);
        }
    }

    /// Waits until the last frame is written, closes the write side, and waits a bounded time for
    /// the client to close, so that it can read the close frame.
    pub async fn linger(&self) {
        let out = async {
            // The room may not have sent the close frame yet.
            self.wait_for(|backlog| backlog.closed && !backlog.draining)
                .await;
            let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write);
            let mut discarded = [0; 1024];
            while self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut discarded) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(LINGER, out).await;
        // Also ends the task that drains a backlog.
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock()
    }

    /// Gives the connection up: the kernel accepts nothing more, not even a close frame.
    fn fail(&self, mut backlog: MutexGuard<'_, Backlog>) {
        backlog.wake();
        *backlog = Backlog {
            closed: true,
            ..Backlog::default()
        };
    }

    /// Writes as much as the kernel accepts. Returns the number of parts that are done; the rest of
    /// a partly written one goes to the backlog.
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

    /// One system call with as many slices as it takes.
    fn try_write(&self, parts: &[Bytes]) -> io::Result<usize> {
        if let [only] = parts {
            return self.stream.try_write(only);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = parts.len().min(SLICES_MAX);
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        self.stream
            .try_write_vectored(slices.get(..count).unwrap_or_default())
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
