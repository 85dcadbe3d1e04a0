//! Counter of entries that the log could not take, reported now and then: one line for each would be a second flood.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Shortest time between two lines about it in the gateway's own log.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How often an entry could not be recorded.
#[derive(Debug, Default)]
pub(super) struct Missed {
    count: AtomicU64,
    /// When it was reported last, in Unix milliseconds.
    reported_ms: AtomicU64,
}

impl Missed {
    /// Counts one more; returns the count when it is time to report it.
    pub(super) fn one(&self, now_ms: u64) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let reported = self.reported_ms.load(Ordering::Relaxed);
        let is_due = u128::from(now_ms.saturating_sub(reported)) >= REPORT_EVERY.as_millis();
        let claims = || {
            self.reported_ms.compare_exchange(reported, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        (is_due && claims()).then_some(count)
    }

    /// The count.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_reported_once_a_minute() {
        let (missed, start) = (Missed::default(), 1_700_000_000_000);
        let minute = u64::try_from(REPORT_EVERY.as_millis()).unwrap();
        let reported: Vec<_> = [0, 1, minute - 1, minute, minute + 1, 3 * minute]
            .map(|after| missed.one(start + after))
            .into_iter()
            .collect();
        assert_eq!(reported, [Some(1), None, None, Some(4), None, Some(6)]);
        assert_eq!(missed.count(), 6);
    }
}
