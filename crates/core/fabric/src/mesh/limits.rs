//! Limits of channels between nodes.

use std::time::Duration;

/// Bytes that one side of a channel may send before the other one has read them.
pub const CREDIT_BYTES: u64 = 256 * 1024;
/// Bytes that a piece costs beside its content.
pub(super) const PIECE_BYTES: u64 = 64;
/// The most channels that one side has open to another node at a time.
pub const CHANNELS_MAX: usize = 4096;
/// The most bytes of one node that wait to be read. Beyond them the channel that has most is
/// closed.
pub const NODE_WAITING_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most bytes of a message of a call.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The time after which a call that the other node has not acknowledged fails.
pub const ACCEPT_MAX: Duration = Duration::from_secs(5);
/// Channels with a node whose end is remembered, so that late frames of them are known.
pub const ENDED_CHANNELS_MAX: usize = 4096;
/// The time between two questions to the caller of a call whose end is waited for: its word may
/// have been lost, and forgotten.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(5);
/// The time after which a frame without an answer is sent again, at first.
pub(super) const RESEND_AFTER: Duration = Duration::from_millis(200);
/// The longest time after which it is.
pub(super) const RESEND_AFTER_MAX: Duration = Duration::from_millis(800);
