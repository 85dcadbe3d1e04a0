//! What the log says of a flood: the first entries one by one, the rest as a count, so that whoever is refused a million
//! times a minute costs the disk no more than whoever is refused a few hundred times.
//!
//! Must not know what is refused, nor how entries are kept.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use store::audit::{Entry, Verdict};

use super::place::{Place, entry};
use crate::guests::ANONYMOUS_PREFIX;

/// Entries of one participant, or of all guests, in one topic, with one verdict, that are written out within a
/// [`FLOOD_WINDOW`]; more are counted.
pub const FLOOD_ENTRIES_MAX: u32 = 256;
/// For how long they are counted before the count is written.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// Participants whose floods are watched at once; what goes beyond is written out.
pub const FLOODS_MAX: usize = 16_384;
/// Causes that one count tells apart.
const CAUSES_MAX: usize = 16;
/// The kind of a count of several kinds.
pub const FLOOD: &str = "portmoot/flood";

/// Whose, in which topic, and with which verdict.
type Key = (String, Option<String>, Verdict);

/// What one window has seen.
#[derive(Debug, Default)]
struct Seen {
    written: u32,
    kind: Option<String>,
    mixed: bool,
    causes: BTreeMap<String, u64>,
    /// Kept for the count since the first that was not written.
    place: Option<Place>,
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
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        if seen.written < FLOOD_ENTRIES_MAX {
            seen.written += 1;
            drop(all);
            return place.write(entry);
        }
        seen.count(place, entry);
    }

    /// A window is over: its count is written.
    fn settle(&self, key: &Key) {
        let over = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        if let Some(seen) = over {
            seen.write(key);
        }
    }

    /// Writes every count now.
    pub(super) fn settle_all(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, seen) in all {
            seen.write(&key);
        }
    }
}

impl Seen {
    fn count(&mut self, place: Place, entry: &Entry<'_>) {
        self.place.get_or_insert(place);
        match &self.kind {
            None => self.kind = Some(entry.kind.to_owned()),
            Some(kind) => self.mixed |= kind != entry.kind,
        }
        let why = entry.why.unwrap_or_default();
        let cause = why.split(':').next().unwrap_or_default();
        let known = self.causes.contains_key(cause) || self.causes.len() < CAUSES_MAX;
        *self.causes.entry(if known { cause } else { "other" }.to_owned()).or_default() += 1;
    }

    fn write(self, (from, topic, verdict): &Key) {
        let Some(place) = self.place else { return };
        let mut why = String::from("counted:");
        for (at, (cause, count)) in self.causes.iter().enumerate() {
            let _ = write!(why, "{} {cause} {count}", if at == 0 { "" } else { "," });
        }
        let kind = self.kind.as_deref().filter(|_| !self.mixed).unwrap_or(FLOOD);
        place.write(&Entry { why: Some(&why), ..entry(topic.as_deref(), from, kind, *verdict) });
    }
}
