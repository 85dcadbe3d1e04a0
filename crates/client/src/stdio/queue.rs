//! Bounded queue to a child's stdin. A sender never waits; one task joins the waiting messages into one write.

use std::io;

use bytes::{Bytes, BytesMut};
use platform::Mutex;
use tokio::{io::AsyncWriteExt, process::ChildStdin, sync::Notify};
use wire::rpc::one_line;

use crate::error::SendError;

/// A buffer that grew beyond this is freed after the write.
const KEEP_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct StdinQueue {
    state: Mutex<QueueState>,
    wake: Notify,
    bytes_max: usize,
    len_max: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Whole lines, one after the other.
    lines: BytesMut,
    len: usize,
    /// Bytes and messages that the writer has taken but not yet written. They count towards the limits.
    writing: (usize, usize),
    closed: bool,
}

impl StdinQueue {
    pub(super) fn new(bytes_max: usize, len_max: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), bytes_max, len_max }
    }

    /// Adds one line. Raw line breaks, legal only between JSON tokens, become spaces, so that a frame cannot hide a
    /// second message.
    pub(super) fn push(&self, frame: Bytes) -> Result<(), SendError> {
        let line = one_line(frame);
        let mut state = self.state.lock();
        if state.closed {
            return Err(SendError::Closed);
        }
        if line.len() >= self.bytes_max {
            return Err(SendError::TooLarge);
        }
        let (bytes, len) = (state.lines.len() + state.writing.0, state.len + state.writing.1);
        if len >= self.len_max || bytes + line.len() >= self.bytes_max {
            return Err(SendError::Busy);
        }
        state.lines.extend_from_slice(&line);
        state.lines.extend_from_slice(b"\n");
        state.len += 1;
        let first = state.len == 1;
        drop(state);
        if first {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Rejects further messages. Those that wait are still written, then stdin is closed.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Swaps the empty `spare` for the waiting lines: false when there are none, `None` when the queue is also closed.
    fn take(&self, spare: &mut BytesMut) -> Option<bool> {
        let mut state = self.state.lock();
        state.writing = (0, 0);
        if state.lines.is_empty() {
            return if state.closed { None } else { Some(false) };
        }
        std::mem::swap(&mut state.lines, spare);
        state.writing = (spare.len(), state.len);
        state.len = 0;
        Some(true)
    }
}

/// Writes until the queue is closed and empty, or the pipe breaks; then closes stdin.
pub(super) async fn write(queue: std::sync::Arc<StdinQueue>, mut stdin: ChildStdin) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        // Senders that are ready run first, so that their lines join this write.
        tokio::task::yield_now().await;
        match queue.take(&mut buffer) {
            Some(true) => {
                if let Err(error) = stdin.write_all(&buffer).await {
                    queue.close();
                    return Err(error);
                }
                buffer.clear();
                if buffer.capacity() > KEEP_BYTES_MAX {
                    buffer = BytesMut::new();
                }
            }
            Some(false) => queue.wake.notified().await,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_and_lines_being_written_count_towards_the_limits() {
        let queue = StdinQueue::new(30, 3);
        queue.push(Bytes::from_static(b"{\"a\":\r\n1}")).unwrap();
        queue.push(Bytes::from_static(b"{}")).unwrap();
        let mut taken = BytesMut::new();
        assert_eq!(queue.take(&mut taken), Some(true));
        assert_eq!(&*taken, b"{\"a\":  1}\n{}\n");
        queue.push(Bytes::from_static(b"{}")).unwrap();
        assert_eq!(queue.push(Bytes::from_static(b"{}")), Err(SendError::Busy));
        assert_eq!(queue.push(Bytes::from_static(&[b'1'; 30])), Err(SendError::TooLarge));
        taken.clear();
        assert_eq!(queue.take(&mut taken), Some(true));
        taken.clear();
        assert_eq!(queue.take(&mut taken), Some(false));
        queue.close();
        assert_eq!(queue.push(Bytes::from_static(b"{}")), Err(SendError::Closed));
        assert_eq!(queue.take(&mut taken), None);
    }
}
