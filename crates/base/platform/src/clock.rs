//! Wall clock in whole milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by the machine's clock; 0 if it is set before that.
pub fn unix_ms() -> u64 {
    millis(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// A duration in whole milliseconds, `u64::MAX` if it is longer than that.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds of a steady clock that also goes on while the machine sleeps, from an arbitrary
/// time on.
pub fn steady_ms() -> u64 {
    let time = rustix::time::clock_gettime(STEADY);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    millis(Duration::new(seconds, nanos))
}

#[cfg(target_os = "linux")]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// Elsewhere (macOS) this one goes on in sleep.
#[cfg(not(target_os = "linux"))]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_goes_on() {
        let (before, start) = (steady_ms(), std::time::Instant::now());
        while start.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        let (passed, real) = (steady_ms() - before, millis(start.elapsed()));
        assert!((4..=real + 1).contains(&passed), "{passed} of {real}");
    }
}
