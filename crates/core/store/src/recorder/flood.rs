//! Floods of equal entries: the first ones are written, the rest are counted.
//!
//! A participant that is refused a million times a minute costs the disk no more than one that is
//! refused a few hundred times.

use std::collections::HashMap;
use std::{fmt::Write as _, sync::Arc, time::Duration};

use crate::audit::{AuditEntry, RecordedVerdict};
use platform::Mutex;

use super::permit::{RecordPermit, entry};
use model::ANONYMOUS_PREFIX;

/// Entries of one participant, or of all guests, in one topic, with one verdict and one cause, that
/// are written within a [`FLOOD_WINDOW`]; more are counted.
pub const FLOOD_ENTRIES_MAX: u32 = 256;
/// Time that entries are counted before the counts are written. A window begins with the first
/// entry after the last one.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// Participants whose floods are counted at once; entries of others are written.
pub const FLOODS_MAX: usize = 16_384;
/// Causes with a count of their own in one window; the others share one.
const CAUSES_MAX: usize = 16;
/// The name of that shared count.
const OTHER: &str = "other";
/// The kind of a count of several kinds.
pub const FLOOD: &str = "portmoot/flood";

/// Participant, topic and verdict.
type Key = (String, Option<String>, RecordedVerdict);

/// The entries of one key in a window.
#[derive(Debug, Default)]
struct Window {
    kind: Option<String>,
    mixed: bool,
    /// By cause: at most [`CAUSES_MAX`], and the shared one.
    tallies: HashMap<Box<str>, Tally>,
    /// Kept for the count, since the first entry that was not written.
    permit: Option<RecordPermit>,
}

/// The entries of one cause in a window.
#[derive(Debug, Default)]
struct Tally {
    written: u32,
    counted: u64,
}

/// The floods of a gateway. Clones count together.
#[derive(Debug, Default, Clone)]
pub(super) struct Floods(Arc<Mutex<HashMap<Key, Window>>>);

impl Floods {
    /// Writes the entry, or counts it.
    pub(super) fn write(&self, permit: RecordPermit, entry: &AuditEntry<'_>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return permit.write(entry);
        };
        // A guest has another name on each connection.
        let guest = entry.from.starts_with(ANONYMOUS_PREFIX);
        let from = if guest { ANONYMOUS_PREFIX } else { entry.from };
        let key = (
            from.to_owned(),
            entry.topic.map(str::to_owned),
            entry.verdict,
        );
        let mut all = self.0.lock();
        if all.len() >= FLOODS_MAX && !all.contains_key(&key) {
            drop(all);
            return permit.write(entry);
        }
        if all.is_empty() {
            let floods = self.clone();
            runtime.spawn(async move {
                tokio::time::sleep(FLOOD_WINDOW).await;
                floods.settle_all();
            });
        }
        if let Some(permit) = all.entry(key).or_default().count(permit, entry) {
            drop(all);
            permit.write(entry);
        }
    }

    /// Ends the window: writes every count.
    pub(super) fn settle_all(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        for (key, window) in all {
            window.write(&key);
        }
    }
}

impl Window {
    /// Counts the entry, or returns its permit: the entry is one of the first of its cause and is
    /// written.
    fn count(&mut self, permit: RecordPermit, entry: &AuditEntry<'_>) -> Option<RecordPermit> {
        let why = entry.why.unwrap_or_default();
        let cause = why.split(':').next().unwrap_or_default();
        let tally = self.tally(cause);
        if tally.written < FLOOD_ENTRIES_MAX {
            tally.written += 1;
            return Some(permit);
        }
        tally.counted += 1;
        match &self.kind {
            None => self.kind = Some(entry.kind.to_string()),
            Some(kind) => self.mixed |= *kind != entry.kind.to_string(),
        }
        // The count is about acts from anywhere.
        self.permit.get_or_insert(permit.from_address(None));
        None
    }

    /// The tally of a cause; the shared one if there are too many causes.
    fn tally(&mut self, cause: &str) -> &mut Tally {
        let known = self.tallies.contains_key(cause) || self.tallies.len() < CAUSES_MAX;
        self.tallies
            .entry(if known { cause } else { OTHER }.into())
            .or_default()
    }

    fn write(self, (from, topic, verdict): &Key) {
        let Some(permit) = self.permit else { return };
        let mut why = String::from("counted:");
        let mut counted: Vec<_> = self
            .tallies
            .iter()
            .filter(|(_, tally)| tally.counted > 0)
            .collect();
        counted.sort_unstable_by_key(|(cause, _)| *cause);
        for (at, (cause, tally)) in counted.into_iter().enumerate() {
            let _ = write!(
                why,
                "{} {cause} {}",
                if at == 0 { "" } else { "," },
                tally.counted
            );
        }
        let kind = self
            .kind
            .as_deref()
            .filter(|_| !self.mixed)
            .unwrap_or(FLOOD);
        permit.write(&AuditEntry {
            why: Some(&why),
            ..entry(topic.as_deref(), from, kind, *verdict)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn count(window: &mut Window, why: &str) -> bool {
        let refused = AuditEntry {
            why: Some(why),
            ..entry(None, "ann", "chat", RecordedVerdict::Refused)
        };
        window.count(RecordPermit::none(), &refused).is_some()
    }

    #[test]
    fn a_flood_of_one_cause_hides_no_other() {
        let mut window = Window::default();
        for number in 0..FLOOD_ENTRIES_MAX + 9 {
            // Only the word before the colon is the cause.
            let is_written = count(&mut window, &format!("malformed: {number}"));
            assert_eq!(is_written, number < FLOOD_ENTRIES_MAX, "{number}");
        }
        assert!(count(&mut window, "not_admitted"));
        let mut counted = |cause: &str| window.tally(cause).counted;
        assert_eq!((counted("malformed"), counted("not_admitted")), (9, 0));
    }

    #[test]
    fn a_count_is_of_no_address() {
        let mut window = Window::default();
        let refused = AuditEntry {
            why: Some("malformed"),
            ..entry(None, "ann", "chat", RecordedVerdict::Refused)
        };
        let here = Some(Ipv4Addr::LOCALHOST.into());
        for _ in 0..FLOOD_ENTRIES_MAX {
            let permit = RecordPermit::none().from_address(here);
            let written = window.count(permit, &refused).unwrap();
            assert_eq!(written.address(), here);
        }
        let permit = RecordPermit::none().from_address(here);
        assert!(window.count(permit, &refused).is_none());
        assert_eq!(window.permit.unwrap().address(), None);
    }

    #[test]
    fn many_causes_are_bounded_together() {
        let mut window = Window::default();
        let mut written = 0;
        for number in 0..10_000 {
            written += u32::from(count(&mut window, &format!("cause-{number}")));
        }
        let first = u32::try_from(CAUSES_MAX).unwrap();
        assert_eq!(written, first + FLOOD_ENTRIES_MAX);
        assert_eq!(window.tallies.len(), CAUSES_MAX + 1);
        assert_eq!(window.tally(OTHER).counted, u64::from(10_000 - written));
    }
}
