//! RFC 3339 timestamps in UTC. The calendar only: nothing here reads a clock.

use chrono::{DateTime, SecondsFormat};

/// The end of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;

/// Milliseconds since 1970 in UTC as an RFC 3339 timestamp with milliseconds:
/// `2025-08-26T14:00:00.000Z`.
///
/// Times after the year 9999 are written as its end.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let unix_ms = i64::try_from(unix_ms.min(LAST_MS)).unwrap_or_default();
    DateTime::from_timestamp_millis(unix_ms)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads an RFC 3339 timestamp, with `Z` or an offset, as milliseconds since 1970. `None` for
/// anything else, and for times before 1970.
#[must_use]
pub fn read_rfc3339(text: &str) -> Option<u64> {
    u64::try_from(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()).ok()
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
