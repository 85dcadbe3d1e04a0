//! Waits between attempts to connect.

use std::time::Duration;

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double up to a limit. Each is shortened at random, to half of it at most, so that many participants do not
/// reconnect at once.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next wait. `random` is any random number.
    pub(super) fn next(&mut self, random: u32) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.attempts.min(16)).min(LONGEST);
        self.attempts = self.attempts.saturating_add(1);
        whole / 2 + (whole / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Makes the next wait short again, after a success.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_vary() {
        let mut backoff = Backoff::default();
        for ms in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let attempts = backoff.attempts;
            assert_eq!(backoff.next(u32::MAX), Duration::from_millis(ms));
            assert_eq!(Backoff { attempts }.next(0), Duration::from_millis(ms) / 2);
        }
        backoff.attempts = u32::MAX;
        assert_eq!(backoff.next(u32::MAX), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX), FIRST);
    }
}
