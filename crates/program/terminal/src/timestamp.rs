//! Timestamps and durations of options: formatting and parsing, in UTC.

use std::time::Duration;

use wire::time::{read_rfc3339, rfc3339};

use crate::failure::Failure;
use config::{DURATION, duration};

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
    parse(text, platform::unix_ms())
        .ok_or_else(|| Failure::bad_argument(format!("{option} must be {FORMATS}, not \"{text}\"")))
}

/// The accepted formats, for messages.
const FORMATS: &str =
    "a time ago such as 2h or 7d, a date such as 2026-07-28, or 2026-07-28T12:30:00Z";

/// Parses a timestamp to Unix milliseconds; `2h` means two hours before `now_ms`.
fn parse(text: &str, now_ms: u64) -> Option<u64> {
    if let Some(ago) = duration(text) {
        return Some(now_ms.saturating_sub(u64::try_from(ago.as_millis()).ok()?));
    }
    read_rfc3339(text).or_else(|| read_rfc3339(&format!("{text}T00:00:00Z")))
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

    #[test]
    fn timestamps_are_parsed() {
        let now_ms = 1_785_241_800_250;
        let check =
            |text: &str, expect: Option<u64>| assert_eq!(parse(text, now_ms), expect, "{text}");
        check("2026-07-28T12:30:00.250Z", Some(now_ms));
        check("2026-07-28T14:30:00.250+02:00", Some(now_ms));
        check("2026-07-28T12:30:00.2504Z", Some(now_ms));
        check("2026-07-28 12:30:00Z", Some(1_785_241_800_000));
        check("1970-01-01", Some(0));
        check("2000-02-29", Some(951_782_400_000));
        check("2h", Some(now_ms - 7_200_000));
        for wrong in [
            "",
            "yesterday",
            "2026-02-29",
            "2026-7-28",
            "1969-12-31",
            "2026-07-28T12:30Z",
            "2026-07-28T12:30:00",
            "2026-07-28T24:00:00Z",
            "2026-07-28T12:30:00.x0Z",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "-1-2-3",
        ] {
            check(wrong, None);
        }
    }
}
