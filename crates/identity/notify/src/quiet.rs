//! Quiet hours: a span of each day at a fixed offset from UTC.

use std::fmt;

use rules::WeekHours;

const MINUTE_MS: u64 = 60_000;
/// Minutes of a day.
const DAY_MINUTES: u64 = 24 * 60;
const ALL_DAYS: &str = "Mon-Sun";
const MIDNIGHT: &str = "00:00";
const DAY_END: &str = "24:00";

/// A text names no quiet hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("quiet hours are a span and an offset, as in `22:00-07:00 UTC` or `22:00-07:00 +02:00`")]
pub struct QuietError;

/// Hours of every day in which nothing is sent. They may go over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// Up to midnight, if they go over it.
    evening: WeekHours,
    morning: Option<WeekHours>,
}

impl QuietHours {
    /// Reads hours, such as `22:00-07:00 +02:00`.
    ///
    /// # Errors
    /// [`QuietError`].
    pub fn parse(text: &str) -> Result<Self, QuietError> {
        Self::read(text).ok_or(QuietError)
    }

    fn read(text: &str) -> Option<Self> {
        let quiet = Self::read_span(text)?;
        // Some minute of each day must be left in which something is sent.
        let mut minutes = 0..DAY_MINUTES;
        minutes
            .any(|minute| !quiet.has(minute * MINUTE_MS))
            .then_some(quiet)
    }

    fn read_span(text: &str) -> Option<Self> {
        let (span, offset) = text.split_once(' ')?;
        let (from, until) = span.split_once('-')?;
        let hours = |from: &str, until: &str| {
            WeekHours::parse(&format!("{ALL_DAYS} {from}-{until} {offset}")).ok()
        };
        if let Some(day) = hours(from, until) {
            return Some(Self {
                evening: day,
                morning: None,
            });
        }
        let morning = if until == MIDNIGHT {
            None
        } else {
            Some(hours(MIDNIGHT, until)?)
        };
        let quiet = Self {
            evening: hours(from, DAY_END)?,
            morning,
        };
        (from != until).then_some(quiet)
    }

    /// Whether a time, in Unix milliseconds, is quiet.
    #[must_use]
    pub fn has(self, at_ms: u64) -> bool {
        self.evening.has(at_ms) || self.morning.is_some_and(|morning| morning.has(at_ms))
    }

    /// The end of the quiet hours that a time lies in, in Unix milliseconds.
    #[must_use]
    pub fn end_ms(self, at_ms: u64) -> u64 {
        let minute = at_ms / MINUTE_MS;
        let ends = (1..=DAY_MINUTES).map(|more| (minute + more) * MINUTE_MS);
        let mut ends = ends.filter(|end| !self.has(*end));
        ends.next().unwrap_or(at_ms)
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.evening)?;
        match self.morning {
            Some(morning) => write!(f, ", {morning}"),
            None => Ok(()),
        }
    }
}
