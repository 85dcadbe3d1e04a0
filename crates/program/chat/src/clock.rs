//! Times as people read them: of day in their zone, ages, what is left.

use chrono::{Local, Offset, TimeZone};
use wire::time::rfc3339;

/// The zone in which times are shown.
#[derive(Debug, Clone, Copy)]
pub struct Zone(fn(u64) -> i32);

impl Zone {
    /// The machine's zone (`TZ`, else its setting).
    #[must_use]
    pub fn local() -> Self {
        Self(|at_ms| {
            let at = i64::try_from(at_ms)
                .ok()
                .and_then(|at| Local.timestamp_millis_opt(at).single());
            at.map_or(0, |at| at.offset().fix().local_minus_utc())
        })
    }

    /// Universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(|_| 0)
    }

    fn shown(self, at_ms: u64) -> String {
        let east_ms = i64::from((self.0)(at_ms)) * 1_000;
        rfc3339(at_ms.saturating_add_signed(east_ms))
    }

    /// The time of day to the minute: `14:05`.
    #[must_use]
    pub fn minute(self, at_ms: u64) -> String {
        self.shown(at_ms).get(11..16).unwrap_or_default().to_owned()
    }

    /// The time of day to the second: `14:05:09`.
    #[must_use]
    pub fn second(self, at_ms: u64) -> String {
        self.shown(at_ms).get(11..19).unwrap_or_default().to_owned()
    }

    /// The day: `2026-07-28`.
    #[must_use]
    pub fn day(self, at_ms: u64) -> String {
        self.shown(at_ms).get(..10).unwrap_or_default().to_owned()
    }

    /// A time near `now_ms`: of day, with the day if it is another one.
    #[must_use]
    pub fn near(self, at_ms: u64, now_ms: u64) -> String {
        let day = self.day(at_ms);
        if day == self.day(now_ms) {
            self.minute(at_ms)
        } else {
            format!("{day} {}", self.minute(at_ms))
        }
    }
}

/// A span of time in its largest unit: `8s`, `3m`, `2h`, `4d`.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time relative to `now_ms`: `3m ago`, `in 2h`, `now`.
#[must_use]
pub fn relative(at_ms: u64, now_ms: u64) -> String {
    match (now_ms.checked_sub(at_ms), at_ms.checked_sub(now_ms)) {
        (Some(0..1_000), _) | (_, Some(0..1_000)) => "now".to_owned(),
        (Some(ago), _) => format!("{} ago", span(ago)),
        (None, Some(left)) => format!("in {}", span(left)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_and_of_day() {
        let now_ms = 1_785_241_800_000;
        for (at_ms, expect) in [
            (now_ms, "now"),
            (now_ms - 999, "now"),
            (now_ms + 900, "now"),
            (now_ms - 8_400, "8s ago"),
            (now_ms - 59_999, "59s ago"),
            (now_ms - 60_000, "1m ago"),
            (now_ms - 3 * 3_600_000, "3h ago"),
            (now_ms - 50 * 3_600_000, "2d ago"),
            (now_ms + 300_000, "in 5m"),
        ] {
            assert_eq!(relative(at_ms, now_ms), expect);
        }
        assert_eq!(Zone::utc().minute(now_ms), "12:30");
        assert_eq!(
            Zone::utc().near(now_ms - 86_400_000, now_ms),
            "2026-07-27 12:30"
        );
        let zone = Zone(|_| 5 * 3_600 + 1_800);
        assert_eq!(
            (zone.near(now_ms, now_ms), zone.day(now_ms)),
            ("18:00".to_owned(), "2026-07-28".to_owned())
        );
        assert_eq!(Zone(|_| -13 * 3_600).day(now_ms), "2026-07-27");
    }
}
