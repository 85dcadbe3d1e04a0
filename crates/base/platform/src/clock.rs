//! Wall clock in whole milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by the machine's clock; 0 if it is set before that.
pub fn unix_ms() -> u64 {
    millis(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// A duration in whole milliseconds, `u64::MAX` if it is longer than that.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
