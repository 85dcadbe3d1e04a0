//! The end of an attempt to send a batch.

use std::time::Duration;

/// The end of an attempt to send a batch.
pub(super) enum Sent {
    /// It has arrived, but for so many entries that were not taken.
    Arrived { rejected: u64 },
    /// It has more bytes than are taken.
    TooLarge,
    /// It has not arrived; the next attempt has to wait for so long at least.
    Failed { pause: Option<Duration> },
}
