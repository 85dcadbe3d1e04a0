//! Lengths of time windows, and hours of a week.

use std::fmt;

/// Milliseconds of a minute.
pub(crate) const MINUTE_MS: u64 = 60_000;
/// Milliseconds of an hour.
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;
/// The longest window in which a rule counts: 31 days, in milliseconds.
pub const WINDOW_MS_MAX: u64 = 31 * DAY_MS;
/// Names of the days, from Monday on.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Minutes of a day.
const DAY_MINUTES: u16 = 24 * 60;
/// The largest offset from UTC, in minutes.
const OFFSET_MINUTES_MAX: i16 = 14 * 60;

/// Why a text is no [`RuleWindow`] or [`WeekHours`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// No number with `m`, `h` or `d`, or more than [`WINDOW_MS_MAX`].
    #[error(
        "a window is a number of minutes, hours or days up to 31 days, as in `30m`, `1h` or `7d`"
    )]
    Window,
    /// No days, hours and offset.
    #[error(
        "hours of a week are days, a span and an offset, as in `Mon-Fri 06:00-18:00 UTC` or `Sat,Sun 10:00-24:00 +02:00`"
    )]
    Hours,
}

/// The length of a window that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleWindow(u64);

impl RuleWindow {
    /// Reads a length, such as `30m`, `1h` or `7d`.
    ///
    /// # Errors
    /// [`WindowError::Window`].
    pub fn parse(text: &str) -> Result<Self, WindowError> {
        let units = [("m", MINUTE_MS), ("h", HOUR_MS), ("d", DAY_MS)];
        let read = units.iter().find_map(|(unit, ms)| {
            let count = plain_count(text.strip_suffix(unit)?)?;
            count.checked_mul(*ms)
        });
        match read {
            Some(ms) if ms <= WINDOW_MS_MAX => Ok(Self(ms)),
            Some(_) | None => Err(WindowError::Window),
        }
    }

    /// A window of one minute, hour or day.
    pub(crate) fn of_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// The length in milliseconds.
    #[must_use]
    pub fn ms(self) -> u64 {
        self.0
    }

    /// Whether a time lies in the window that ends at `now_ms`. Times after it do, too: a clock was
    /// set back.
    #[must_use]
    pub fn has(self, at_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(at_ms) < self.0
    }

    /// The length in words: `an hour`, `7 days`.
    #[must_use]
    pub fn words(self) -> String {
        match self.parts() {
            (1, 'd') => "a day".to_owned(),
            (1, 'h') => "an hour".to_owned(),
            (1, _) => "a minute".to_owned(),
            (count, 'd') => format!("{count} days"),
            (count, 'h') => format!("{count} hours"),
            (count, _) => format!("{count} minutes"),
        }
    }

    fn parts(self) -> (u64, char) {
        match self.0 {
            ms if ms % DAY_MS == 0 => (ms / DAY_MS, 'd'),
            ms if ms % HOUR_MS == 0 => (ms / HOUR_MS, 'h'),
            ms => (ms / MINUTE_MS, 'm'),
        }
    }
}

impl fmt::Display for RuleWindow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = self.parts();
        write!(out, "{count}{unit}")
    }
}

/// Hours of some days of the week, at a fixed offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WeekHours {
    /// One bit for each day, Monday first.
    days: u8,
    /// Minutes from midnight; the first belongs to the span, the last does not.
    from: u16,
    until: u16,
    offset_minutes: i16,
}

impl WeekHours {
    /// Reads hours, such as `Mon-Fri 06:00-18:00 UTC`.
    ///
    /// # Errors
    /// [`WindowError::Hours`].
    pub fn parse(text: &str) -> Result<Self, WindowError> {
        Self::read(text).ok_or(WindowError::Hours)
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (days, span, offset) = (words.next()?, words.next()?, words.next()?);
        let (from, until) = span.split_once('-')?;
        let hours = Self {
            days: days
                .split(',')
                .try_fold(0, |all, part| Some(all | day_bits(part)?))?,
            from: clock_minutes(from)?,
            until: clock_minutes(until)?,
            offset_minutes: offset_minutes(offset)?,
        };
        (words.next().is_none() && hours.from < hours.until).then_some(hours)
    }

    /// Whether a time lies in these hours.
    #[must_use]
    pub fn has(self, at_ms: u64) -> bool {
        let minutes = i64::try_from(at_ms / MINUTE_MS).unwrap_or(i64::MAX / 2);
        let local = minutes + i64::from(self.offset_minutes);
        let minute = local.rem_euclid(i64::from(DAY_MINUTES));
        // The first of January 1970 was a Thursday.
        let day = (local.div_euclid(i64::from(DAY_MINUTES)) + 3).rem_euclid(7);
        self.days & (1 << day) != 0
            && (i64::from(self.from)..i64::from(self.until)).contains(&minute)
    }

    /// Whether it has all hours of `other`. Only hours of the same offset are compared.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self.offset_minutes == other.offset_minutes
            && self.days | other.days == self.days
            && self.from <= other.from
            && other.until <= self.until
    }
}

impl fmt::Display for WeekHours {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = |at: &usize| self.days & (1 << at) != 0;
        let set: Vec<usize> = (0..DAYS.len()).filter(is_set).collect();
        let name = |at: usize| DAYS.get(at).copied().unwrap_or_default();
        let runs = set.chunk_by(|one, next| one + 1 == *next);
        let parts: Vec<String> = runs
            .map(|run| match run {
                [first, _, .., last] => format!("{}-{}", name(*first), name(*last)),
                few => few.iter().map(|at| name(*at)).collect::<Vec<_>>().join(","),
            })
            .collect();
        write!(
            out,
            "{} {}-{} ",
            parts.join(","),
            clock(self.from),
            clock(self.until)
        )?;
        if self.offset_minutes == 0 {
            return out.write_str("UTC");
        }
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        write!(out, "{sign}{}", clock(self.offset_minutes.unsigned_abs()))
    }
}

/// The place of a day in the week.
fn day_of(name: &str) -> Option<usize> {
    DAYS.iter().position(|day| *day == name)
}

/// A time of day as it is written.
fn clock(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// The bits of `Mon` or `Mon-Fri`.
fn day_bits(part: &str) -> Option<u8> {
    let (first, last) = match part.split_once('-') {
        Some((first, last)) => (day_of(first)?, day_of(last)?),
        None => (day_of(part)?, day_of(part)?),
    };
    (first <= last).then(|| {
        (first..=last)
            .map(|at| 1_u8 << at)
            .fold(0, |all, bit| all | bit)
    })
}

/// A number without a sign and without leading zeros.
fn plain_count(digits: &str) -> Option<u64> {
    if digits.starts_with('0') || !are_digits(digits) {
        return None;
    }
    digits.parse().ok()
}

fn two_digits(digits: &str) -> Option<u16> {
    if digits.len() != 2 || !are_digits(digits) {
        return None;
    }
    digits.parse().ok()
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The minutes of `HH:MM`, up to `24:00`.
fn clock_minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let hours = two_digits(hours)?;
    let minutes = two_digits(minutes)?;
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY_MINUTES).then_some(all)
}

fn offset_minutes(text: &str) -> Option<i16> {
    if text == "UTC" {
        return Some(0);
    }
    let (sign, clock) = match text.strip_prefix('+') {
        Some(clock) => (1, clock),
        None => (-1, text.strip_prefix('-')?),
    };
    let minutes = i16::try_from(clock_minutes(clock)?).ok()?;
    (minutes > 0 && minutes <= OFFSET_MINUTES_MAX).then_some(sign * minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_units_and_a_limit() {
        for (text, ms) in [
            ("30m", 30 * MINUTE_MS),
            ("1h", HOUR_MS),
            ("31d", WINDOW_MS_MAX),
        ] {
            let window = RuleWindow::parse(text).unwrap();
            assert_eq!((window.ms(), window.to_string().as_str()), (ms, text));
        }
        for text in [
            "32d",
            "0m",
            "1",
            "h",
            "1s",
            "-1h",
            "01h",
            "1 h",
            "99999999999999999999d",
        ] {
            assert_eq!(RuleWindow::parse(text), Err(WindowError::Window), "{text}");
        }
        assert_eq!(RuleWindow::parse("60m").unwrap().to_string(), "1h");
        let hour = RuleWindow::parse("1h").unwrap();
        assert!(hour.has(1, HOUR_MS) && !hour.has(0, HOUR_MS) && hour.has(9 * HOUR_MS, HOUR_MS));
    }

    #[test]
    fn hours_of_a_week_are_counted_at_their_offset() {
        let check = |text: &str, at: &str, expect: bool| {
            let at_ms = chrono::DateTime::parse_from_rfc3339(at)
                .unwrap()
                .timestamp_millis();
            let hours = WeekHours::parse(text).unwrap();
            assert_eq!(
                hours.has(u64::try_from(at_ms).unwrap()),
                expect,
                "{text} {at}"
            );
            assert_eq!(WeekHours::parse(&hours.to_string()), Ok(hours), "{text}");
        };
        // The 27th of November 2026 is a Friday.
        check("Mon-Fri 06:00-18:00 UTC", "2026-11-27T06:00:00Z", true);
        check("Mon-Fri 06:00-18:00 UTC", "2026-11-27T05:59:59Z", false);
        check("Mon-Fri 06:00-18:00 UTC", "2026-11-27T18:00:00Z", false);
        check("Mon-Fri 06:00-18:00 UTC", "2026-11-28T12:00:00Z", false);
        check("Sat,Sun 00:00-24:00 +02:00", "2026-11-27T23:00:00Z", true);
        check("Fri 22:00-24:00 -05:00", "2026-11-28T03:30:00Z", true);
        for text in [
            "Mon-Fri 18:00-06:00 UTC",
            "Fri-Mon 06:00-18:00 UTC",
            "Mon 06:00-18:00",
            "Mon 6:00-18:00 UTC",
            "Mon 06:00-24:01 UTC",
            "Mon 06:00-18:00 CET",
            "Mon 06:00-18:00 UTC x",
            "",
            "Mon 06:60-18:00 UTC",
            "Mon 06:00-18:00 +15:00",
        ] {
            assert_eq!(WeekHours::parse(text), Err(WindowError::Hours), "{text}");
        }
    }
}
