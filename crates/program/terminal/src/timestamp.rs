//! Timestamps and durations of options: formatting and parsing, in UTC.

use std::time::Duration;

use wire::time::rfc3339;

use crate::failure::Failure;
use config::{DURATION, MOMENT, duration, moment};

/// Formats Unix milliseconds to the minute: `2026-07-28 12:30 UTC`.
pub fn minute(ms: u64) -> String {
    let stamp = rfc3339(ms);
    format!(
        "{} {} UTC",
        stamp.get(..10).unwrap_or_default(),
        stamp.get(11..16).unwrap_or_default()
    )
}

/// The duration that an option names.
pub fn duration_of(option: &str, text: &str) -> Result<Duration, Failure> {
    duration(text).ok_or_else(|| {
        Failure::bad_argument(format!("{option} must be {DURATION}, not \"{text}\""))
    })
}

/// The time that an option names, in Unix milliseconds; `2h` means two hours ago.
pub fn time_of(option: &str, text: &str) -> Result<u64, Failure> {
    moment(text, platform::unix_ms())
        .ok_or_else(|| Failure::bad_argument(format!("{option} must be {MOMENT}, not \"{text}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_formatted() {
        for (seconds, expect) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_785_241_800, "2026-07-28 12:30 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
        ] {
            assert_eq!(minute(seconds * 1_000), expect);
        }
    }
}
