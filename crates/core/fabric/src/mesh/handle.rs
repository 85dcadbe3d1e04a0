//! The use of a channel by this node; dropping it leaves the channel.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::channel::{Channel, Closed};
use super::error::PeerCallError;
use super::frame::{ChannelId, Piece, Purpose, Reset};
use super::peer::Peer;
use super::shared::Shared;
use crate::seal::Incarnation;

/// The use of a channel by this node.
#[derive(Debug)]
pub(super) struct Handle {
    shared: Arc<Shared>,
    pub(super) peer: Incarnation,
    channel: ChannelId,
}

impl Handle {
    /// Opens a channel, unless too many to this node are open, or it or the bus has ended.
    pub(super) fn open(
        shared: &Arc<Shared>,
        peer: Incarnation,
        purpose: Purpose,
    ) -> Result<Self, PeerCallError> {
        let mut state = shared.state.lock();
        if state.has_ended || state.opener.has_ended(peer) {
            return Err(PeerCallError::NodeEnded);
        }
        let channel = state.peers.entry(peer).or_default().open(purpose);
        drop(state);
        let channel = channel.ok_or(PeerCallError::Busy)?;
        Ok(Self::of(shared, peer, channel))
    }

    pub(super) fn of(shared: &Arc<Shared>, peer: Incarnation, channel: ChannelId) -> Self {
        Self {
            shared: Arc::clone(shared),
            peer,
            channel,
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Channel) -> T) -> Option<T> {
        let on_channel = |peer: &mut Peer, _| peer.get(self.channel).map(act);
        self.shared.with(self.peer, on_channel).flatten()
    }

    /// The next piece of the other side.
    pub(super) fn poll_take(&self, context: &Context<'_>) -> Poll<Result<Piece, Closed>> {
        let taken = self.shared.with(self.peer, |peer, _| {
            if let Some(piece) = peer.take(self.channel) {
                return Poll::Ready(Ok(piece));
            }
            let Some(channel) = peer.get(self.channel) else {
                return Poll::Ready(Err(Closed::PeerEnded));
            };
            if let Some(closed) = channel.closed() {
                return Poll::Ready(Err(closed));
            }
            channel.readers = Some(context.waker().clone());
            Poll::Pending
        });
        taken.unwrap_or(Poll::Ready(Err(Closed::PeerEnded)))
    }

    /// Puts a part of these bytes in, as much as there is room for, and returns how many; the flags
    /// go with the last part.
    pub(super) fn poll_put(
        &self,
        context: &Context<'_>,
        piece: &Piece,
    ) -> Poll<Result<usize, Closed>> {
        let put = self.shared.with(self.peer, |peer, now| {
            let Some(channel) = peer.get(self.channel) else {
                return Poll::Ready(Err(Closed::PeerEnded));
            };
            if let Some(closed) = channel.closed() {
                return Poll::Ready(Err(closed));
            }
            let length = channel.room().min(piece.bytes.len());
            let is_last = length == piece.bytes.len();
            let part = Piece {
                bytes: piece.bytes.slice(..length),
                ends_message: piece.ends_message && is_last,
                ends_stream: piece.ends_stream && is_last,
            };
            let is_something = length > 0 || piece.bytes.is_empty();
            if is_something && peer.put(now, self.channel, part) {
                return Poll::Ready(Ok(length));
            }
            if let Some(channel) = peer.get(self.channel) {
                channel.want_room(now);
                channel.writers = Some(context.waker().clone());
            }
            Poll::Pending
        });
        put.unwrap_or(Poll::Ready(Err(Closed::PeerEnded)))
    }

    /// Puts all of a piece in.
    pub(super) async fn put(&self, mut piece: Piece) -> Result<(), Closed> {
        loop {
            let length = std::future::poll_fn(|context| self.poll_put(context, &piece)).await?;
            if length == piece.bytes.len() {
                return Ok(());
            }
            piece.bytes = piece.bytes.split_off(length);
        }
    }

    /// Returns when the other side has received all.
    pub(super) fn poll_flushed(&self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_until(context, Channel::is_flushed)
    }

    /// Returns when the other side has taken the channel up.
    pub(super) fn poll_accepted(&self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_until(context, Channel::is_accepted)
    }

    fn poll_until(
        &self,
        context: &Context<'_>,
        is_so: impl Fn(&Channel) -> bool,
    ) -> Poll<Result<(), Closed>> {
        let polled = self.with(|channel| {
            if is_so(channel) && channel.closed().is_none() {
                return Poll::Ready(Ok(()));
            }
            if let Some(closed) = channel.closed() {
                return Poll::Ready(Err(closed));
            }
            channel.writers = Some(context.waker().clone());
            Poll::Pending
        });
        polled.unwrap_or(Poll::Ready(Err(Closed::PeerEnded)))
    }

    /// The reason for which the channel was closed, if it was.
    pub(super) fn closed(&self) -> Option<Closed> {
        self.with(|channel| channel.closed())
            .unwrap_or(Some(Closed::PeerEnded))
    }

    /// Returns when the channel is closed before its end.
    pub(super) fn poll_closed(&self, context: &Context<'_>) -> Poll<Closed> {
        let closed = self.with(|channel| {
            let closed = channel.closed();
            if closed.is_none() {
                channel.wake_when_closed(context.waker());
            }
            closed
        });
        match closed.unwrap_or(Some(Closed::PeerEnded)) {
            Some(closed) => Poll::Ready(closed),
            None => Poll::Pending,
        }
    }

    /// Closes the channel for a reason.
    pub(super) fn reset(&self, why: Reset) {
        let reset = |peer: &mut Peer, now| peer.reset(now, self.channel, why);
        self.shared.with(self.peer, reset);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let leave = |peer: &mut Peer, now| peer.leave(now, self.channel);
        self.shared.with(self.peer, leave);
    }
}
