//! What the log says of a flood: the first entries one by one, the rest as a count, so that whoever is refused a million
//! times a minute costs the disk no more than whoever is refused a few hundred times.
//!
//! Must not know what is refused, nor how entries are kept.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use platform::Mutex;
use store::audit::{Entry, Verdict};

use super::place::{Place, entry};
use crate::guests::ANONYMOUS_PREFIX;

/// Entries of one participant, or of all guests, in one topic, with one verdict and one cause, that are written out within a
/// [`FLOOD_WINDOW`]; more are counted.
pub const FLOOD_ENTRIES_MAX: u32 = 256;
/// For how long they are counted before the count is written.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// Participants whose floods are watched at once; what goes beyond is written out.
pub const FLOODS_MAX: usize = 16_384;
/// Causes that are told apart in one window; the others are one together.
const CAUSES_MAX: usize = 16;
/// What those others are called.
const OTHER: &str = "other";
/// The kind of a count of several kinds.
pub const FLOOD: &str = "portmoot/flood";

/// Whose, in which topic, and with which verdict.
type Key = (String, Option<String>, Verdict);

/// What one window has seen.
#[derive(Debug, Default)]
struct Seen {
    kind: Option<String>,
    mixed: bool,
    causes: BTreeMap<String, Tally>,
    /// Kept for the count since the first that was not written.
    place: Option<Place>,
}

/// What one window has seen of one cause.
#[derive(Debug, Default)]
struct Tally {
    written: u32,
    counted: u64,
}

/// The floods of a gateway; clones watch the same.
#[derive(Debug, Default, Clone)]
pub(super) struct Floods(Arc<Mutex<HashMap<Key, Seen>>>);

impl Floods {
    /// Writes the entry, or counts it.
    pub(super) fn write(&self, place: Place, entry: &Entry<'_>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return place.write(entry) };
        // Whoever comes without a token has another name each time.
        let guest = entry.from.starts_with(ANONYMOUS_PREFIX);
        let from = if guest { ANONYMOUS_PREFIX } else { entry.from };
        let key = (from.to_owned(), entry.topic.map(str::to_owned), entry.verdict);
        let mut all = self.0.lock();
        if all.len() >= FLOODS_MAX && !all.contains_key(&key) {
            drop(all);
            return place.write(entry);
        }
        let seen = all.entry(key.clone()).or_insert_with(|| {
            let floods = self.clone();
            runtime.spawn(async move {
                tokio::time::sleep(FLOOD_WINDOW).await;
                floods.settle(&key);
            });
            Seen::default()
        });
        if let Some(place) = seen.count(place, entry) {
            drop(all);
            place.write(entry);
        }
    }

    /// A window is over: its count is written.
    fn settle(&self, key: &Key) {
        let over = self.0.lock().remove(key);
        if let Some(seen) = over {
            seen.write(key);
        }
    }

    /// Writes every count now.
    pub(super) fn settle_all(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        for (key, seen) in all {
            seen.write(&key);
        }
    }
}

impl Seen {
    /// Counts the entry, or gives its place back: it is one of the first of its cause, and is written out.
    fn count(&mut self, place: Place, entry: &Entry<'_>) -> Option<Place> {
        let why = entry.why.unwrap_or_default();
        let cause = why.split(':').next().unwrap_or_default();
        let known = self.causes.contains_key(cause) || self.causes.len() < CAUSES_MAX;
        let tally = self.causes.entry(if known { cause } else { OTHER }.to_owned()).or_default();
        if tally.written < FLOOD_ENTRIES_MAX {
            tally.written += 1;
            return Some(place);
        }
        tally.counted += 1;
        match &self.kind {
            None => self.kind = Some(entry.kind.to_string()),
            Some(kind) => self.mixed |= *kind != entry.kind.to_string(),
        }
        self.place.get_or_insert(place);
        None
    }

    fn write(self, (from, topic, verdict): &Key) {
        let Some(place) = self.place else { return };
        let mut why = String::from("counted:");
        let counted = self.causes.iter().filter(|(_, tally)| tally.counted > 0);
        for (at, (cause, tally)) in counted.enumerate() {
            let _ = write!(why, "{} {cause} {}", if at == 0 { "" } else { "," }, tally.counted);
        }
        let kind = self.kind.as_deref().filter(|_| !self.mixed).unwrap_or(FLOOD);
        place.write(&Entry { why: Some(&why), ..entry(topic.as_deref(), from, kind, *verdict) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(seen: &mut Seen, why: &str) -> bool {
        let refused = Entry { why: Some(why), ..entry(None, "ann", "chat", Verdict::Refused) };
        seen.count(Place::none(), &refused).is_some()
    }

    #[test]
    fn a_flood_of_one_cause_hides_no_other() {
        let mut seen = Seen::default();
        for number in 0..FLOOD_ENTRIES_MAX + 9 {
            // Only the word before the colon is the cause.
            let is_written = count(&mut seen, &format!("malformed: {number}"));
            assert_eq!(is_written, number < FLOOD_ENTRIES_MAX, "{number}");
        }
        assert!(count(&mut seen, "not_admitted"));
        let counted = |cause: &str| seen.causes[cause].counted;
        assert_eq!((counted("malformed"), counted("not_admitted")), (9, 0));
    }

    #[test]
    fn many_causes_are_bounded_together() {
        let (mut seen, mut written) = (Seen::default(), 0);
        for number in 0..10_000 {
            written += u32::from(count(&mut seen, &format!("cause-{number}")));
        }
        let first = u32::try_from(CAUSES_MAX).unwrap();
        assert_eq!(written, first + FLOOD_ENTRIES_MAX);
        assert_eq!(seen.causes.len(), CAUSES_MAX + 1);
        assert_eq!(seen.causes[OTHER].counted, u64::from(10_000 - written));
    }
}
