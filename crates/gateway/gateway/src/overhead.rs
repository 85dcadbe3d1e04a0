//! The gateway's own share of the durations of calls: the time from a call's admission until its
//! answer is with its door, without the time at its server.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use platform::{Histogram, HistogramCounts};

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// The bounds of the buckets: what a gateway adds is far below what servers need.
const OVERHEAD_BOUNDS: [Duration; 13] = [
    us(5),
    us(10),
    us(20),
    us(50),
    us(100),
    us(200),
    us(500),
    us(1_000),
    us(2_000),
    us(5_000),
    us(10_000),
    us(20_000),
    us(50_000),
];

/// The gateway's own share of the durations of its calls, while that is measured.
#[derive(Debug, Default)]
pub struct OverheadTimes {
    is_on: AtomicBool,
    durations: OnceLock<Histogram>,
}

impl OverheadTimes {
    /// Measures the calls that are admitted from now on, or none of them.
    pub fn put_in_force(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The time of a call that is admitted at this moment; `None` while nothing is measured.
    #[inline]
    pub(crate) fn begin(&self, admitted: Instant) -> Option<CallTime> {
        let is_on = self.is_on.load(Ordering::Relaxed);
        is_on.then(|| CallTime::new(admitted))
    }

    /// Enters what the gateway has added to a call.
    pub(crate) fn enter(&self, overhead: Duration) {
        let durations = self
            .durations
            .get_or_init(|| Histogram::new(&OVERHEAD_BOUNDS));
        durations.enter(overhead);
    }

    /// All durations until now; `None` if nothing was measured.
    pub fn read(&self) -> Option<HistogramCounts> {
        self.durations.get().map(Histogram::read)
    }
}

/// No time at a server yet.
const NOT_KNOWN: u64 = u64::MAX;

/// The time of one call while it is measured.
#[derive(Debug)]
pub(crate) struct CallTime {
    admitted: Instant,
    /// The time at its server in nanoseconds, or [`NOT_KNOWN`].
    at_server_ns: AtomicU64,
    /// Whether it has waited for more than one answer of its server: for a person, for a session that
    /// opened, for a second round.
    has_waited: AtomicBool,
}

impl CallTime {
    fn new(admitted: Instant) -> Self {
        Self {
            admitted,
            at_server_ns: AtomicU64::new(NOT_KNOWN),
            has_waited: AtomicBool::new(false),
        }
    }

    /// Notes for how long it was at its server.
    pub(crate) fn note_server(&self, at_server: Duration) {
        let ns = u64::try_from(at_server.as_nanos()).unwrap_or(NOT_KNOWN - 1);
        if self.at_server_ns.swap(ns, Ordering::Relaxed) != NOT_KNOWN {
            self.note_wait();
        }
    }

    /// Notes that it waits for something that is neither the gateway nor the answer of its server.
    pub(crate) fn note_wait(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
    }

    /// The time until now without that at its server, if it has waited for nothing else.
    pub(crate) fn overhead(&self) -> Option<Duration> {
        let at_server = self.at_server_ns.load(Ordering::Relaxed);
        if at_server == NOT_KNOWN || self.has_waited.load(Ordering::Relaxed) {
            return None;
        }
        let at_server = Duration::from_nanos(at_server);
        Some(self.admitted.elapsed().saturating_sub(at_server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_waits_for_more_than_one_answer_has_no_overhead() {
        let once = CallTime::new(Instant::now());
        assert_eq!(once.overhead(), None);
        once.note_server(Duration::ZERO);
        assert!(once.overhead().is_some());
        once.note_server(us(8));
        assert_eq!(once.overhead(), None);
        let asked = CallTime::new(Instant::now());
        asked.note_wait();
        asked.note_server(us(7));
        assert_eq!(asked.overhead(), None);
    }

    #[test]
    fn the_time_at_the_server_is_none_of_the_gateways() {
        let time = CallTime::new(Instant::now());
        time.note_server(Duration::from_secs(3_600));
        assert_eq!(time.overhead(), Some(Duration::ZERO));
    }

    #[test]
    fn nothing_begins_while_nothing_is_measured() {
        let times = OverheadTimes::default();
        assert!(times.begin(Instant::now()).is_none());
        times.put_in_force(true);
        assert!(times.begin(Instant::now()).is_some());
        assert_eq!(times.read(), None);
        times.enter(us(5));
        times.enter(us(60_000));
        let counts = times.read().unwrap();
        assert_eq!((counts.counts[0], counts.counts[13]), (1, 1));
    }
}
