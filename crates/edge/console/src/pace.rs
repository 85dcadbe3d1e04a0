//! Pace of the looks of a stream at its page.

use std::time::Duration;

/// Times as long as a look took until the next one, at least.
const LOOK_PART: u32 = 9;
/// The number of changes in a row after which a page is busy: no one can read all that it shows.
const BUSY_CHANGES: u32 = 3;
/// The time between two looks at a busy page, at least.
const BUSY_PAUSE: Duration = Duration::from_secs(10);

/// The pace of one stream.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The number of looks since the last one at which the page was as before.
    changes: u32,
}

impl Pace {
    /// Notes a look, at which the page had changed or not.
    pub(crate) fn note(&mut self, has_changed: bool) {
        self.changes = if has_changed { self.changes + 1 } else { 0 };
    }

    /// The time until the next look, after one that took this long. A page on which people decide is
    /// never late.
    pub(crate) fn pause(&self, look: Duration, took: Duration, is_urgent: bool) -> Duration {
        let is_busy = self.changes >= BUSY_CHANGES && !is_urgent;
        let at_least = if is_busy { BUSY_PAUSE } else { look };
        look.max(at_least).max(took * LOOK_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_always_changes_is_looked_at_less_often_until_it_does_not() {
        let (look, short) = (Duration::from_secs(2), Duration::from_millis(1));
        let mut pace = Pace::default();
        for change in 0..2 * BUSY_CHANGES {
            let is_busy = change >= BUSY_CHANGES;
            let expected = if is_busy { BUSY_PAUSE } else { look };
            assert_eq!(pace.pause(look, short, false), expected, "{change}");
            assert_eq!(pace.pause(look, short, true), look, "{change}");
            pace.note(true);
        }
        pace.note(false);
        assert_eq!(pace.pause(look, short, false), look);
        let long = Duration::from_secs(2);
        assert_eq!(pace.pause(look, long, true), long * LOOK_PART);
        let rare = 2 * BUSY_PAUSE;
        (0..BUSY_CHANGES).for_each(|_| pace.note(true));
        assert_eq!(pace.pause(rare, short, false), rare);
    }
}
