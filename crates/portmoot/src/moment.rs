//! Moments as people write and read them, in UTC. Must not know what happened then.

use crate::config::duration;

const DAY_MS: u64 = 86_400_000;

/// Unix milliseconds as `2026-07-28 12:30 UTC`.
pub(crate) fn date(ms: u64) -> String {
    let (year, month, day) = civil(ms / DAY_MS);
    let minutes = ms / 60_000 % 1_440;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Unix milliseconds as `2026-07-28T12:30:05.250Z`.
pub(crate) fn stamp(ms: u64) -> String {
    let (year, month, day) = civil(ms / DAY_MS);
    let (seconds, rest) = (ms / 1_000 % 86_400, ms % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{rest:03}Z")
}

/// What is accepted as a moment, for messages.
pub(crate) const MOMENT: &str =
    "a time ago such as 2h or 7d, a date such as 2026-07-28, or 2026-07-28T12:30:00Z";

/// Reads a moment, as Unix milliseconds.
pub(crate) fn moment(text: &str, now_ms: u64) -> Option<u64> {
    if let Some(ago) = duration(text) {
        return Some(now_ms.saturating_sub(u64::try_from(ago.as_millis()).ok()?));
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.strip_suffix(['Z', 'z'])?),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hours, minutes, seconds] = numbers(time, ':')?;
    let digits = fraction.bytes().all(|digit| digit.is_ascii_digit());
    let thousandths = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    let days = days(year, month, day).filter(|days| civil(*days) == (year, month, day))?;
    if !digits || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(days * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + thousandths)
}

/// Three numbers of four or two digits, and nothing else.
fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let number = |part: &str| match part.len() {
        2 | 4 if part.bytes().all(|digit| digit.is_ascii_digit()) => part.parse().ok(),
        _ => None,
    };
    let mut parts = text.split(between).map(number);
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Year, month and day of a day since 1970 (H. Hinnant's `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The day since 1970 of a date, which need not exist; `None` before 1970 (H. Hinnant's `days_from_civil`).
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = ((153 * month_from_march + 2) / 5 + day).checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, expect) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_785_241_800, "2026-07-28 12:30 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
        ] {
            assert_eq!(date(seconds * 1_000), expect);
        }
    }

    #[test]
    fn moments() {
        let now_ms = 1_785_241_800_250;
        let check = |text: &str, expect: Option<u64>| assert_eq!(moment(text, now_ms), expect, "{text}");
        assert_eq!(stamp(now_ms), "2026-07-28T12:30:00.250Z");
        check(&stamp(now_ms), Some(now_ms));
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
