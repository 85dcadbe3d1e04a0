//! Fetches that fail: the time until the next one.

use std::time::Duration;

use tokio::time::Instant;

/// Time until the fetch after one that failed. It doubles with each that fails, up to [`RETRY`].
pub(crate) const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest time between two fetches that fail.
pub(crate) const RETRY: Duration = Duration::from_secs(15);

/// Fetches from one place.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    attempted: Option<Instant>,
    /// The number of those that failed since the last one that did not.
    failures: u32,
}

impl Retries {
    /// Notes a fetch that has ended now.
    pub(crate) fn note(&mut self, is_good: bool) {
        self.attempted = Some(Instant::now());
        self.failures = if is_good {
            0
        } else {
            self.failures.saturating_add(1)
        };
    }

    /// Time between the last fetch and the next one.
    fn pause(&self) -> Duration {
        let doubled = 1_u32
            .checked_shl(self.failures.saturating_sub(1))
            .filter(|factor| *factor > 0);
        doubled.map_or(RETRY, |factor| {
            RETRY_FIRST.saturating_mul(factor).min(RETRY)
        })
    }

    /// Time until the next fetch.
    pub(crate) fn left(&self) -> Duration {
        let since = self.attempted.map(|at| at.elapsed());
        since.map_or(Duration::ZERO, |since| self.pause().saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_until_the_next_fetch_doubles_to_a_bound() {
        let mut retries = Retries::default();
        assert!(retries.left().is_zero(), "the first one is due");
        for secs in [1, 2, 4, 8, 15, 15] {
            retries.note(false);
            assert_eq!(retries.left(), Duration::from_secs(secs));
        }
        tokio::time::advance(Duration::from_secs(14)).await;
        assert_eq!(retries.left(), Duration::from_secs(1));
        retries.failures = u32::MAX;
        retries.note(false);
        assert_eq!(retries.left(), RETRY);
        retries.note(true);
        assert_eq!(retries.left(), RETRY_FIRST);
    }
}
