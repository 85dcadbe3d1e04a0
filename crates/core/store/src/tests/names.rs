//! An owner of records for tests: names that are added and removed.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::fold::Fold;

/// Names in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<String>);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum NameRecord {
    Added { name: String },
    Removed { name: String },
}

impl Fold for Names {
    const OWNER: &'static str = "names";
    type Record = NameRecord;

    fn apply(&mut self, record: &NameRecord) {
        match record {
            NameRecord::Added { name } => self.0.push(name.clone()),
            NameRecord::Removed { name } => self.0.retain(|known| known != name),
        }
    }

    fn live(&self) -> usize {
        self.0.len()
    }

    fn records(&mut self, _: u64) -> Vec<NameRecord> {
        self.0.iter().map(|name| added(name)).collect()
    }
}

/// A second owner with the same records.
#[derive(Debug, Default)]
pub(crate) struct OtherNames(pub(crate) Names);

impl Fold for OtherNames {
    const OWNER: &'static str = "other_names";
    type Record = NameRecord;

    fn apply(&mut self, record: &NameRecord) {
        self.0.apply(record);
    }

    fn live(&self) -> usize {
        self.0.live()
    }

    fn records(&mut self, now_ms: u64) -> Vec<NameRecord> {
        self.0.records(now_ms)
    }
}

pub(crate) fn added(name: &str) -> NameRecord {
    NameRecord::Added { name: name.into() }
}

pub(crate) fn removed(name: &str) -> NameRecord {
    NameRecord::Removed { name: name.into() }
}

/// The entry that adds a name.
pub(crate) fn adds(name: &str) -> Entry {
    Entry::of::<Names>(&added(name)).unwrap()
}

/// Records without effect, which make compaction due.
pub(crate) fn nothing(count: usize) -> Vec<NameRecord> {
    vec![removed("unknown"); count]
}
