//! Failures of calls.

use super::channel::Closed;
use super::frame::Reset;
#[cfg(doc)]
use super::limits::MESSAGE_BYTES_MAX;

/// A call that has not come to its end. It is never made again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerCallError {
    /// Too many calls to the node are open, here or there. It was not carried out.
    #[error("too many calls to the node are open")]
    Busy,
    /// A message has more than [`MESSAGE_BYTES_MAX`] bytes. A request that has was not carried out.
    #[error("a message of the call is too large")]
    TooLarge,
    /// The node has not acknowledged the call. It may have been carried out.
    #[error("the node does not answer")]
    Unacknowledged,
    /// The node has ended, or forgotten the call. It may have been carried out.
    #[error("the node has ended")]
    NodeEnded,
    /// The other side does not go on with it. It may have been carried out in part.
    #[error("the other node has left the call")]
    Left,
}

impl From<Closed> for PeerCallError {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::ByPeer(Reset::Busy) => Self::Busy,
            Closed::ByPeer(Reset::Cancelled | Reset::Overrun) => Self::Left,
            Closed::ByPeer(Reset::Unknown) | Closed::PeerEnded => Self::NodeEnded,
            Closed::ByUs(Reset::Overrun) => Self::TooLarge,
            Closed::ByUs(_) => Self::Left,
        }
    }
}
