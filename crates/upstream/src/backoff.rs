//! Back-off between start attempts: none after the first failure, then doubled up to a minute, with jitter.
//!
//! Time is an argument.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The wait after the second failure in a row; doubled with each further failure.
const BASE: Duration = Duration::from_millis(250);
/// The longest wait, before jitter.
const MAX: Duration = Duration::from_secs(60);

/// Failures in a row and the wait after them: the circuit breaker of a server. No attempt runs during the wait.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    /// All failures so far; a waiting task compares it to see a new one.
    pub(crate) total: u64,
    until: Option<Instant>,
    /// Why the last attempt failed, in words for callers; `None` after a successful start.
    pub(crate) reason: Option<String>,
}

impl Backoff {
    /// Records a failure and starts the wait.
    pub(crate) fn failed(&mut self, now: Instant, reason: String) {
        let wait = match self.failures {
            0 => Duration::ZERO,
            more => jittered((BASE * 2_u32.saturating_pow((more - 1).min(16))).min(MAX)),
        };
        self.failures = self.failures.saturating_add(1);
        self.total += 1;
        self.until = Some(now + wait);
        self.reason = Some(reason);
    }

    /// Records a successful start. The count of failures stays until the session lasts.
    pub(crate) fn started(&mut self) {
        self.until = None;
        self.reason = None;
    }

    /// Records that a session lasted: the next failure counts as the first.
    pub(crate) fn lasted(&mut self) {
        self.failures = 0;
    }

    /// The rest of the wait.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }
}

/// Between 80 % and 120 % of the wait, so that servers that failed together do not restart together.
fn jittered(wait: Duration) -> Duration {
    let dice = u32::try_from(RandomState::new().hash_one(0_u8) % 401).unwrap_or(200);
    wait * (800 + dice) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            backoff.failed(now, "why".to_owned());
            waits.push(backoff.remaining(now).unwrap_or_default());
        }
        assert_eq!(waits[0], Duration::ZERO);
        assert!(waits[1] >= BASE * 4 / 5 && waits[1] <= BASE * 6 / 5);
        assert!(waits[11] >= MAX * 4 / 5 && waits[11] <= MAX * 6 / 5);
        backoff.started();
        assert!(backoff.remaining(now).is_none() && backoff.reason.is_none());
    }
}
