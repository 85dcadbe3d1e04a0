//! Token bucket of a participant: a burst, then a rate.

use model::RateLimit;

/// The parts of one token, so that whole numbers suffice: one per millisecond of a minute.
const UNITS: u64 = 60_000;

/// A participant's bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    limit: RateLimit,
    units: u64,
    at_ms: u64,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(limit: RateLimit, now_ms: u64) -> Self {
        let limit = RateLimit {
            burst: limit.burst.max(1),
            per_minute: limit.per_minute.max(1),
        };
        Self {
            limit,
            units: u64::from(limit.burst) * UNITS,
            at_ms: now_ms,
        }
    }

    /// The limit of the bucket (at least 1 of each).
    pub(crate) fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Whether no token is missing.
    pub(crate) fn is_full(&self, now_ms: u64) -> bool {
        self.refilled(now_ms) == self.full()
    }

    fn full(&self) -> u64 {
        u64::from(self.limit.burst) * UNITS
    }

    fn refilled(&self, now_ms: u64) -> u64 {
        let passed_ms = now_ms.saturating_sub(self.at_ms);
        let refill = passed_ms.saturating_mul(u64::from(self.limit.per_minute));
        self.units.saturating_add(refill).min(self.full())
    }

    /// Takes one token, or returns the milliseconds until there is one.
    pub(crate) fn take(&mut self, now_ms: u64) -> Result<(), u64> {
        self.units = self.refilled(now_ms);
        self.at_ms = self.at_ms.max(now_ms);
        match self.units.checked_sub(UNITS) {
            Some(rest) => {
                self.units = rest;
                Ok(())
            }
            None => Err((UNITS - self.units).div_ceil(u64::from(self.limit.per_minute))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_long_run() {
        let mut bucket = Bucket::new(
            RateLimit {
                burst: 2,
                per_minute: 60,
            },
            5_000,
        );
        assert_eq!(bucket.take(5_000), Ok(()));
        assert_eq!(bucket.take(5_000), Ok(()));
        assert_eq!(bucket.take(5_000), Err(1_000));
        assert_eq!(bucket.take(5_999), Err(1));
        assert_eq!(bucket.take(6_000), Ok(()));
        assert_eq!(
            bucket.take(4_000),
            Err(1_000),
            "time that goes back gives nothing"
        );
        assert_eq!(bucket.take(u64::MAX), Ok(()));
        assert_eq!(bucket.take(u64::MAX), Ok(()));
        assert_eq!(bucket.take(u64::MAX), Err(1_000));
    }

    #[test]
    fn nothing_is_read_as_one() {
        let mut bucket = Bucket::new(
            RateLimit {
                burst: 0,
                per_minute: 0,
            },
            0,
        );
        assert_eq!(bucket.take(0), Ok(()));
        assert_eq!(bucket.take(0), Err(60_000));
        assert_eq!(bucket.take(60_000), Ok(()));
    }
}
