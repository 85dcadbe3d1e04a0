//! Histogram of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A histogram of durations. Threads enter durations at the same time, and none waits for another.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [Duration],
    /// One for each bound, and one for longer durations.
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

impl Histogram {
    /// An empty histogram. Each bound, from the shortest to the longest, is the longest duration of
    /// its bucket; longer ones than the last have a bucket of their own.
    #[must_use]
    pub fn new(bounds: &'static [Duration]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
        }
    }

    /// Enters a duration.
    pub fn enter(&self, duration: Duration) {
        let bucket = self.bounds.partition_point(|bound| *bound < duration);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Its counts now.
    #[must_use]
    pub fn read(&self) -> HistogramCounts {
        let count = |one: &AtomicU64| one.load(Ordering::Relaxed);
        HistogramCounts {
            bounds: self.bounds,
            counts: self.counts.iter().map(count).collect(),
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

/// The counts of a histogram at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramCounts {
    /// The longest duration of each bucket but the last, which has all longer ones.
    pub bounds: &'static [Duration],
    /// The number of durations in each bucket.
    pub counts: Vec<u64>,
    /// The sum of all durations.
    pub sum: Duration,
}

impl HistogramCounts {
    /// The number of durations.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the counts of a histogram with the same bounds.
    pub fn add(&mut self, other: &Self) {
        debug_assert_eq!(self.bounds, other.bounds, "of two kinds of durations");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    /// The bound at or below which this part of the durations lies, such as 0.5 for the median;
    /// the last bound for longer ones, and `None` without durations.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            #[expect(
                clippy::cast_precision_loss,
                reason = "a part of a count needs no more precision"
            )]
            if below as f64 >= part * total as f64 {
                return self.bounds.get(bucket).or(self.bounds.last()).copied();
            }
        }
        self.bounds.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::new(&BOUNDS);
        for us in [0, 1_000, 1_001, 10_000, 10_001, 5_000_000] {
            histogram.enter(Duration::from_micros(us));
        }
        let counts = histogram.read();
        assert_eq!(counts.counts, [2, 2, 2]);
        assert_eq!(counts.sum, Duration::from_micros(5_022_002));
        assert_eq!(counts.total(), 6);
    }

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let histogram = Histogram::new(&BOUNDS);
        assert_eq!(histogram.read().quantile(0.5), None);
        for _ in 0..9 {
            histogram.enter(Duration::from_micros(1));
        }
        histogram.enter(Duration::from_millis(9));
        let counts = histogram.read();
        let found = [0.0, 0.5, 0.9, 0.91, 1.0].map(|part| counts.quantile(part).unwrap());
        assert_eq!(
            found,
            [BOUNDS[0], BOUNDS[0], BOUNDS[0], BOUNDS[1], BOUNDS[1]]
        );
        histogram.enter(Duration::from_secs(9));
        assert_eq!(histogram.read().quantile(1.0), Some(BOUNDS[1]));
    }
}
