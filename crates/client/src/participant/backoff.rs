//! How long to wait before dialling again. Must not know what is dialled.

use std::time::Duration;

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double up to a bound, each shortened by chance to between half and all of it, so that many participants
/// do not come back at once.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    tried: u32,
}

impl Backoff {
    /// The next wait. `chance` is any random number.
    pub(super) fn next(&mut self, chance: u32) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.tried.min(16)).min(LONGEST);
        self.tried = self.tried.saturating_add(1);
        whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }

    /// It worked: the next wait is short again.
    pub(super) fn reset(&mut self) {
        self.tried = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_vary() {
        let mut backoff = Backoff::default();
        for ms in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let tried = backoff.tried;
            assert_eq!(backoff.next(u32::MAX), Duration::from_millis(ms));
            assert_eq!(Backoff { tried }.next(0), Duration::from_millis(ms) / 2);
        }
        backoff.tried = u32::MAX;
        assert_eq!(backoff.next(u32::MAX), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX), FIRST);
    }
}
