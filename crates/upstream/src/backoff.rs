//! When to try again: at once after the first failure, then later and later, never much later than a minute.
//!
//! Time is an argument.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The wait after the second failure in a row; doubled with each further one.
const BASE: Duration = Duration::from_millis(250);
/// The longest wait, before jitter.
const MAX: Duration = Duration::from_secs(60);

/// Failures in a row, and the wait that they earn. While it lasts nothing is tried: this is the circuit breaker.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    total: u64,
    until: Option<Instant>,
    reason: Option<String>,
}

impl Backoff {
    /// Notes a failure.
    pub(super) fn failed(&mut self, now: Instant, reason: String) {
        let wait = match self.failures {
            0 => Duration::ZERO,
            more => jittered((BASE * 2_u32.saturating_pow((more - 1).min(16))).min(MAX)),
        };
        self.failures = self.failures.saturating_add(1);
        self.total += 1;
        self.until = Some(now + wait);
        self.reason = Some(reason);
    }

    /// A start went well. Failures are forgotten only when it also lasts.
    pub(super) fn started(&mut self) {
        self.until = None;
        self.reason = None;
    }

    /// All failures so far, to see whether there was another.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// A session lasted: the next failure is a first one.
    pub(super) fn lasted(&mut self) {
        self.failures = 0;
    }

    /// The wait that is left.
    pub(super) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Why it failed last, as it may be told outside; nothing while it runs.
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

/// Between four and six fifths, so that servers that fell together do not rise together.
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
        assert!(backoff.remaining(now).is_none() && backoff.reason().is_none());
    }
}
