//! Moments as people write them: a time ago, a date, a timestamp. Commands and the API read them here.

use wire::time::read_rfc3339;

use crate::reader::duration;

/// The accepted formats, for messages.
pub const MOMENT: &str =
    "a time ago such as 2h or 7d, a date such as 2026-07-28, or 2026-07-28T12:30:00Z";

/// Reads a moment as Unix milliseconds; `2h` means two hours before `now_ms`.
#[must_use]
pub fn moment(text: &str, now_ms: u64) -> Option<u64> {
    if let Some(ago) = duration(text) {
        return Some(now_ms.saturating_sub(u64::try_from(ago.as_millis()).ok()?));
    }
    read_rfc3339(text).or_else(|| read_rfc3339(&format!("{text}T00:00:00Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_ago_dates_and_timestamps() {
        let now_ms = 1_785_241_800_250;
        let check =
            |text: &str, expect: Option<u64>| assert_eq!(moment(text, now_ms), expect, "{text}");
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
