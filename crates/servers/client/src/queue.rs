//! Bounded queue to a peer that reads a pipe or a socket. A sender never waits; one task joins the
//! waiting messages into one write.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use platform::{Mutex, Share, Taken};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use wire::{proto::frame::framed, rpc::one_line};

use crate::error::SendError;

/// A buffer that grew beyond this is freed after the write.
const KEEP_BYTES_MAX: usize = 64 << 10;

/// Framing of messages on a pipe or a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// One JSON text on each line.
    #[default]
    Lines,
    /// Each protobuf message after its length in four bytes (proto-mcp v1.0, "Stdio Transport").
    Frames,
}

#[derive(Debug)]
pub(crate) struct SendQueue {
    framing: Framing,
    state: Mutex<QueueState>,
    wake: Notify,
    bytes_max: usize,
    len_max: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Whole lines or frames, one after the other.
    written: BytesMut,
    len: usize,
    /// Bytes and messages that the writer has taken but not yet written. They count towards the
    /// limits.
    writing: (usize, usize),
    closed: bool,
    /// Parts of their participants' shares that the queued messages take.
    taken: Vec<Taken>,
    taken_writing: Vec<Taken>,
}

impl SendQueue {
    pub(crate) fn new(framing: Framing, bytes_max: usize, len_max: usize) -> Self {
        Self {
            framing,
            state: Mutex::default(),
            wake: Notify::new(),
            bytes_max,
            len_max,
        }
    }

    /// Adds one message, on an account if it has one: the share of a participant is of bytes and of
    /// messages, each of which counts as much more as makes that many. In a line, raw line breaks,
    /// legal only between JSON tokens, become spaces, so that a frame cannot hide a second message.
    pub(crate) fn push(&self, frame: Bytes, share: Option<&Arc<Share>>) -> Result<(), SendError> {
        let bytes = match self.framing {
            Framing::Lines => one_line(frame),
            Framing::Frames => framed(&frame).ok_or(SendError::TooLarge)?,
        };
        let mut state = self.state.lock();
        if state.closed {
            return Err(SendError::Closed);
        }
        if bytes.len() >= self.bytes_max {
            return Err(SendError::TooLarge);
        }
        let waiting = state.written.len() + state.writing.0;
        let len = state.len + state.writing.1;
        if len >= self.len_max || waiting + bytes.len() >= self.bytes_max {
            return Err(SendError::Busy);
        }
        if let Some(share) = share {
            let taken = take(share, bytes.len() + self.bytes_max / self.len_max.max(1))?;
            state.taken.push(taken);
        }
        state.written.extend_from_slice(&bytes);
        if self.framing == Framing::Lines {
            state.written.extend_from_slice(b"\n");
        }
        state.len += 1;
        let first = state.len == 1;
        drop(state);
        // The writer takes all that wait, so that one wake is enough.
        if first {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Rejects further messages. Those that wait are still written, then the way out is closed.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Swaps the empty `spare` for what waits: false when there are none, `None` when the queue is
    /// also closed.
    fn take(&self, spare: &mut BytesMut) -> Option<bool> {
        let mut state = self.state.lock();
        let QueueState {
            writing,
            taken,
            taken_writing,
            ..
        } = &mut *state;
        *writing = (0, 0);
        taken_writing.clear();
        std::mem::swap(taken, taken_writing);
        if state.written.is_empty() {
            return if state.closed { None } else { Some(false) };
        }
        std::mem::swap(&mut state.written, spare);
        state.writing = (spare.len(), state.len);
        state.len = 0;
        Some(true)
    }
}

/// Takes from a share, beyond it if nothing else is taken: a message may be longer than the share.
pub(crate) fn take(share: &Arc<Share>, amount: usize) -> Result<Taken, SendError> {
    let is_first = share.taken() == 0;
    let mut taken = share.take(0).map_err(|_| SendError::Share)?;
    if is_first {
        taken.add(amount)
    } else {
        taken.grow(amount).map_err(|_| SendError::Share)?
    }
    Ok(taken)
}

/// Waits for messages and swaps the empty `spare` for them; false when the queue is closed and
/// empty.
pub(crate) async fn next(queue: &SendQueue, spare: &mut BytesMut) -> bool {
    loop {
        // Senders that are ready run first, so that their messages join this write.
        tokio::task::yield_now().await;
        match queue.take(spare) {
            Some(true) => return true,
            Some(false) => queue.wake.notified().await,
            None => return false,
        }
    }
}

/// Writes until the queue is closed and empty, or the pipe breaks; then closes it.
pub(crate) async fn write(
    queue: Arc<SendQueue>,
    mut pipe: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    while next(&queue, &mut buffer).await {
        if let Err(error) = pipe.write_all(&buffer).await {
            queue.close();
            return Err(error);
        }
        buffer.clear();
        if buffer.capacity() > KEEP_BYTES_MAX {
            buffer = BytesMut::new();
        }
    }
    pipe.shutdown().await
}

/// Waits until the link is closed or dropped.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_fills_its_share_and_no_other() {
        let queue = SendQueue::new(Framing::Lines, 1000, 10);
        let shares = platform::Shares::new(usize::MAX, 250);
        let greedy = shares.of("greedy");
        let other = shares.of("other");
        let line = || Bytes::from(vec![b'1'; 100]);
        queue.push(line(), Some(&greedy)).unwrap();
        assert_eq!(
            queue.push(line(), Some(&greedy)),
            Err(SendError::Share),
            "each counts 100 more"
        );
        queue
            .push(Bytes::from(vec![b'1'; 300]), Some(&other))
            .unwrap();
        let mut taken = BytesMut::new();
        assert_eq!(queue.take(&mut taken), Some(true));
        assert_eq!(
            queue.push(line(), Some(&greedy)),
            Err(SendError::Share),
            "it is being written"
        );
        taken.clear();
        assert_eq!(queue.take(&mut taken), Some(false));
        assert_eq!(shares.taken(), 0);
        queue.push(line(), Some(&greedy)).unwrap();
    }

    #[test]
    fn a_message_is_one_line_and_lines_being_written_count_towards_the_limits() {
        let queue = SendQueue::new(Framing::Lines, 30, 3);
        queue
            .push(Bytes::from_static(b"{\"a\":\r\n1}"), None)
            .unwrap();
        queue.push(Bytes::from_static(b"{}"), None).unwrap();
        let mut taken = BytesMut::new();
        assert_eq!(queue.take(&mut taken), Some(true));
        assert_eq!(&*taken, b"{\"a\":  1}\n{}\n");
        queue.push(Bytes::from_static(b"{}"), None).unwrap();
        assert_eq!(
            queue.push(Bytes::from_static(b"{}"), None),
            Err(SendError::Busy)
        );
        assert_eq!(
            queue.push(Bytes::from_static(&[b'1'; 30]), None),
            Err(SendError::TooLarge)
        );
        taken.clear();
        assert_eq!(queue.take(&mut taken), Some(true));
        taken.clear();
        assert_eq!(queue.take(&mut taken), Some(false));
        queue.close();
        assert_eq!(
            queue.push(Bytes::from_static(b"{}"), None),
            Err(SendError::Closed)
        );
        assert_eq!(queue.take(&mut taken), None);
    }

    #[test]
    fn frames_have_their_length_before_them() {
        let queue = SendQueue::new(Framing::Frames, 30, 3);
        queue.push(Bytes::from_static(b"a\nb"), None).unwrap();
        queue.push(Bytes::from_static(&[8, 3]), None).unwrap();
        let mut taken = BytesMut::new();
        assert_eq!(queue.take(&mut taken), Some(true));
        assert_eq!(&*taken, b"\0\0\0\x03a\nb\0\0\0\x02\x08\x03");
    }
}
