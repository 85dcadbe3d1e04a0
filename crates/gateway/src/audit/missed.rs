//! Counts what the log could not take, and tells of it now and then: a line for each would make a second flood.
//!
//! Must not know why it could not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The gateway's own log has one line about this in so long, at most.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(60);

/// How often something could not be recorded.
#[derive(Debug, Default)]
pub(super) struct Missed {
    count: AtomicU64,
    /// When it was told last, in Unix milliseconds.
    told_ms: AtomicU64,
}

impl Missed {
    /// Counts one more, and gives the count when it is time to tell it.
    pub(super) fn one(&self, now_ms: u64) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let told = self.told_ms.load(Ordering::Relaxed);
        let is_due = u128::from(now_ms.saturating_sub(told)) >= TELL_EVERY.as_millis();
        let tells =
            || self.told_ms.compare_exchange(told, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_due && tells()).then_some(count)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_in_each_minute_is_told() {
        let (missed, start) = (Missed::default(), 1_700_000_000_000);
        let minute = u64::try_from(TELL_EVERY.as_millis()).unwrap();
        let told: Vec<_> = [0, 1, minute - 1, minute, minute + 1, 3 * minute]
            .map(|after| missed.one(start + after))
            .into_iter()
            .collect();
        assert_eq!(told, [Some(1), None, None, Some(4), None, Some(6)]);
        assert_eq!(missed.count(), 6);
    }
}
