//! Times in a page: text without script, local time with it.

use html::Hostile;
use maud::{Markup, html};
use wire::time::read_rfc3339;

/// The time of day of an RFC 3339 time, in UTC.
pub(crate) fn clock(at: &str) -> Markup {
    let Some(seen) = at.get(11..19).filter(|_| read_rfc3339(at).is_some()) else {
        return html! { (Hostile(at)) };
    };
    html! { time datetime=(at) data-clock { (seen) " UTC" } }
}

/// Day and time of an RFC 3339 time, in UTC.
pub(crate) fn day(at: &str) -> Markup {
    let (date, time) = (at.get(..10), at.get(11..16));
    match (date, time) {
        (Some(date), Some(time)) if read_rfc3339(at).is_some() => html! {
            time datetime=(at) data-day { (date) " " (time) " UTC" }
        },
        _ => html! { (Hostile(at)) },
    }
}

/// Unix milliseconds of an RFC 3339 time; 0 if it is none.
pub(crate) fn ms(at: &str) -> u64 {
    read_rfc3339(at).unwrap_or_default()
}

/// A length of time in words: the two largest units.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        (_, _, _) => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_without_a_script() {
        let at = "2026-07-28T12:30:05.000Z";
        assert!(clock(at).into_string().contains(">12:30:05 UTC<"));
        assert!(day(at).into_string().contains(">2026-07-28 12:30 UTC<"));
        assert!(day("?").into_string().contains(">?<"));
        for (ms, words) in [
            (0, "0 s"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(ms), words);
        }
    }
}
