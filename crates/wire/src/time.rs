//! RFC 3339 timestamps in UTC. The calendar only: nothing here reads a clock.

/// Milliseconds since 1970 in UTC as an RFC 3339 timestamp with milliseconds: `2025-08-26T14:00:00.000Z`.
///
/// Times after the year 9999 are written as its end.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let unix_ms = unix_ms.min(LAST_MS);
    let (days, ms) = (unix_ms / DAY_MS, unix_ms % DAY_MS);
    let (year, month, day) = date(days);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Reads an RFC 3339 timestamp, with `Z` or an offset, as milliseconds since 1970. `None` for anything else, and for times
/// before 1970.
#[must_use]
pub fn read_rfc3339(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let stands = |at: usize, among: &[u8]| text.as_bytes().get(at).is_some_and(|byte| among.contains(byte));
    if !(stands(4, b"-") && stands(7, b"-") && stands(10, b"Tt ") && stands(13, b":") && stands(16, b":")) {
        return None;
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let zone =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let fraction = rest.strip_suffix(zone)?;
    if hour > 23 || minute > 59 || second > 60 || fraction == "." {
        return None;
    }
    let digits = fraction.bytes().skip(1).chain(std::iter::repeat(b'0')).take(3);
    let ms = digits.fold(0, |ms, digit| ms * 10 + u64::from(digit.saturating_sub(b'0')));
    let day = day_of(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let at = day * DAY_MS + (hour * 3600 + minute * 60 + second) * 1000 + ms;
    if zone == "Z" || zone == "z" {
        return Some(at);
    }
    let from =
        text.len().checked_sub(6).filter(|_| zone.len() == 6 && zone.as_bytes().get(3) == Some(&b':'))?;
    let (hours, minutes) = (number(from + 1, from + 3)?, number(from + 4, from + 6)?);
    let offset = (hours * 60 + minutes) * 60_000;
    match zone.as_bytes().first()? {
        b'+' if hours < 24 && minutes < 60 => at.checked_sub(offset),
        b'-' if hours < 24 && minutes < 60 => at.checked_add(offset),
        _ => None,
    }
}

const DAY_MS: u64 = 86_400_000;
/// The end of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;

/// Year, month and day of a day, counted from 1970-01-01 in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day is a year's last; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The day of a date that exists, counted from 1970-01-01.
fn day_of(year: u64, month: u64, of_month: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&of_month) {
        return None;
    }
    let (from_year, from_march) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let leap_days = from_year / 4 - from_year / 100 + from_year / 400;
    let of_year = (153 * from_march + 2) / 5 + of_month - 1;
    let day = (from_year * 365 + leap_days + of_year).checked_sub(719_468)?;
    (date(day) == (year, month, of_month)).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_timestamps() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_756_216_800_001, "2025-08-26T14:00:00.001Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
            if ms < LAST_MS {
                assert_eq!(read_rfc3339(text), Some(ms), "{text}");
            }
        }
    }

    #[test]
    fn timestamps_in_other_spellings() {
        for (text, ms) in [
            ("2025-08-26T14:00:00Z", Some(1_756_216_800_000)),
            ("2025-08-26t14:00:00.5z", Some(1_756_216_800_500)),
            ("2025-08-26T16:00:00.001999+02:00", Some(1_756_216_800_001)),
            ("2025-08-26T09:30:00-04:30", Some(1_756_216_800_000)),
            ("2025-02-29T00:00:00Z", None),
            ("2025-13-01T00:00:00Z", None),
            ("2025-08-26T24:00:00Z", None),
            ("2025-08-26T14:00:00", None),
            ("2025-08-26T14:00:00.Z", None),
            ("2025-08-26T14:00:00+0200", None),
            ("2025-08-26", None),
            ("+025-08-26T14:00:00Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("2025-08-26T14:00:00Z\u{e9}", None),
            ("", None),
        ] {
            assert_eq!(read_rfc3339(text), ms, "{text}");
        }
    }
}
