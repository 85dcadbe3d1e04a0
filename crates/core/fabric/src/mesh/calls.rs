//! Calls: a request, acknowledged at once, and numbered answers.

use bytes::{Bytes, BytesMut};

use super::error::PeerCallError;
use super::frame::{Piece, Reset};
use super::handle::Handle;
use super::limits::{ACCEPT_MAX, MESSAGE_BYTES_MAX};
use crate::seal::Incarnation;

/// A message, put together from its pieces. It keeps what came if its reader is cancelled.
#[derive(Debug, Default)]
struct Assembled {
    bytes: BytesMut,
    has_ended: bool,
}

impl Assembled {
    /// The next message; `None` at the end.
    async fn next(&mut self, handle: &Handle) -> Result<Option<Bytes>, PeerCallError> {
        while !self.has_ended {
            let piece = std::future::poll_fn(|context| handle.poll_take(context)).await?;
            if self.bytes.len() + piece.bytes.len() > MESSAGE_BYTES_MAX {
                handle.reset(Reset::Overrun);
                return Err(PeerCallError::TooLarge);
            }
            self.has_ended = piece.ends_stream;
            if piece.ends_message && self.bytes.is_empty() {
                return Ok(Some(piece.bytes));
            }
            self.bytes.extend_from_slice(&piece.bytes);
            if piece.ends_message {
                return Ok(Some(self.bytes.split().freeze()));
            }
        }
        Ok(None)
    }
}

/// A call to another node. Dropping it cancels the call, unless it has ended.
#[derive(Debug)]
pub struct PeerCall {
    handle: Handle,
    answers: Assembled,
}

impl PeerCall {
    pub(super) async fn begin(handle: Handle, request: Bytes) -> Result<Self, PeerCallError> {
        if request.len() > MESSAGE_BYTES_MAX {
            return Err(PeerCallError::TooLarge);
        }
        let piece = Piece {
            bytes: request,
            ends_message: true,
            ends_stream: true,
        };
        // The first pieces always have room; the rest waits for what acknowledges the call.
        let accepted = std::future::poll_fn(|context| handle.poll_accepted(context));
        let accepted = tokio::time::timeout(ACCEPT_MAX, accepted);
        let (put, accepted) = tokio::join!(handle.put(piece), async {
            let accepted = accepted.await;
            if accepted.is_err() {
                handle.reset(Reset::Cancelled);
            }
            accepted
        });
        match accepted {
            Ok(accepted) => accepted?,
            Err(_) => return Err(PeerCallError::Unacknowledged),
        }
        put?;
        let answers = Assembled::default();
        Ok(Self { handle, answers })
    }

    /// The next answer; `None` when the other side has ended the call.
    ///
    /// # Errors
    /// [`PeerCallError`] when no further answer comes and it did not.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PeerCallError> {
        self.answers.next(&self.handle).await
    }

    /// The node that is called.
    #[must_use]
    pub fn peer(&self) -> Incarnation {
        self.handle.peer
    }
}

/// A call by another node. Dropping it before [`ServedCall::finish`] leaves the call.
#[derive(Debug)]
pub struct ServedCall {
    handle: Handle,
    request: Assembled,
}

impl ServedCall {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            handle,
            request: Assembled::default(),
        }
    }

    /// The node that calls.
    #[must_use]
    pub fn peer(&self) -> Incarnation {
        self.handle.peer
    }

    /// The request. It is there once.
    ///
    /// # Errors
    /// [`PeerCallError`] when the caller has left, or has sent none.
    pub async fn request(&mut self) -> Result<Bytes, PeerCallError> {
        self.request
            .next(&self.handle)
            .await?
            .ok_or(PeerCallError::Left)
    }

    /// Sends an answer, once the caller has read enough of those before it.
    ///
    /// # Errors
    /// [`PeerCallError`] when the caller has left, or the answer is too large.
    pub async fn answer(&mut self, answer: Bytes) -> Result<(), PeerCallError> {
        if answer.len() > MESSAGE_BYTES_MAX {
            return Err(PeerCallError::TooLarge);
        }
        let piece = Piece {
            bytes: answer,
            ends_message: true,
            ends_stream: false,
        };
        Ok(self.handle.put(piece).await?)
    }

    /// Ends the call. Its answers are kept until the caller has received them.
    ///
    /// # Errors
    /// [`PeerCallError`] when the caller has left.
    pub async fn finish(self) -> Result<(), PeerCallError> {
        let piece = Piece {
            bytes: Bytes::new(),
            ends_message: false,
            ends_stream: true,
        };
        Ok(self.handle.put(piece).await?)
    }

    /// Returns when the caller has left: it has cancelled the call, or has ended.
    pub async fn left(&self) {
        std::future::poll_fn(|context| self.handle.poll_closed(context)).await;
    }
}
