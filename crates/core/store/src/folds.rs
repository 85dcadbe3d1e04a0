//! The folds of one journal, by their owners' names.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::Arc;

use platform::{Mutex, unix_ms};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::fold::Fold;
use crate::journal::{Journal, Replayed, Snapshot};

/// An entry that its owner has not asked for yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Its number in the replay; `None` of one that was appended later, or when a compaction may
    /// have moved it since.
    number: Option<usize>,
    entry: Entry,
}

impl From<Replayed> for Waiting {
    fn from(replayed: Replayed) -> Self {
        Self {
            number: Some(replayed.number),
            entry: replayed.entry,
        }
    }
}

/// An entry that its owner cannot read: its number in the replay, if that is known, and why.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) number: Option<usize>,
    pub(crate) cause: String,
}

/// Folds entries.
pub(crate) fn fold<F: Fold>(entries: &[Waiting]) -> Result<F, Unread> {
    let mut state = F::default();
    for Waiting { number, entry } in entries {
        let record = serde_json::from_slice::<F::Record>(entry.body()).map_err(|cause| Unread {
            number: *number,
            cause: cause.to_string(),
        })?;
        state.apply(&record);
    }
    Ok(state)
}

/// The fold of one owner, whatever its type.
trait AnyFold: Send + Sync {
    /// Takes entries in their order. Those that cannot be read are left out; the first error is
    /// returned.
    fn apply(&self, entries: &[Entry]) -> Result<(), serde_json::Error>;
    fn live(&self) -> usize;
    fn entries(&self, now_ms: u64) -> Result<Vec<Entry>, StoreError>;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<F: Fold> AnyFold for Mutex<F> {
    fn apply(&self, entries: &[Entry]) -> Result<(), serde_json::Error> {
        let records: Vec<Result<F::Record, _>> = entries
            .iter()
            .map(|entry| serde_json::from_slice(entry.body()))
            .collect();
        let mut state = self.lock();
        let mut first_error = None;
        for record in records {
            match record {
                Ok(record) => state.apply(&record),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn live(&self) -> usize {
        self.lock().live()
    }

    fn entries(&self, now_ms: u64) -> Result<Vec<Entry>, StoreError> {
        let records = self.lock().records(now_ms);
        records.iter().map(Entry::of::<F>).collect()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The entries of one owner, or the state that it has folded from them.
enum Owned {
    /// Its entries, while it has not asked for them. A compaction writes them as they are, so that
    /// no process loses the records of an owner that it does not know.
    Unread(Vec<Waiting>),
    Folded(Arc<dyn AnyFold>),
}

/// All owners of a journal.
#[derive(Default)]
pub(crate) struct Folds {
    owners: Mutex<BTreeMap<String, Owned>>,
    /// Why an owner could not read one of its records, which leaves its state behind the journal.
    fault: Mutex<Option<String>>,
}

impl Folds {
    /// Keeps an entry of the journal's past.
    pub(crate) fn keep(&self, replayed: Replayed) {
        let mut owners = self.owners.lock();
        let name = replayed.entry.owner().to_owned();
        if let Owned::Unread(entries) = owners
            .entry(name)
            .or_insert_with(|| Owned::Unread(Vec::new()))
        {
            entries.push(replayed.into());
        }
    }

    /// The state of an owner. The first time it is folded from all entries so far.
    pub(crate) fn of<F: Fold>(&self, journal: &dyn Journal) -> Result<Arc<Mutex<F>>, StoreError> {
        // The lock is released before the journal is asked: it holds its own when it calls here.
        let state = self.claim::<F>();
        state.map_err(|unread| journal.unreadable(unread.number, &unread.cause))
    }

    fn claim<F: Fold>(&self) -> Result<Arc<Mutex<F>>, Unread> {
        let mut owners = self.owners.lock();
        let known = owners
            .entry(F::OWNER.to_owned())
            .or_insert_with(|| Owned::Unread(Vec::new()));
        match known {
            Owned::Unread(entries) => {
                let state = Arc::new(Mutex::new(fold::<F>(entries)?));
                *known = Owned::Folded(Arc::<Mutex<F>>::clone(&state));
                Ok(state)
            }
            Owned::Folded(folded) => {
                let state = Arc::clone(folded).into_any().downcast();
                state.map_err(|_| Unread {
                    number: None,
                    cause: format!("there are two owners `{}`", F::OWNER),
                })
            }
        }
    }

    /// Takes entries that belong together and were appended.
    pub(crate) fn take(&self, entries: &[Entry]) {
        let mut owners = self.owners.lock();
        for own in entries.chunk_by(|one, next| one.owner() == next.owner()) {
            let Some(name) = own.first().map(Entry::owner) else {
                continue;
            };
            let known = owners
                .entry(name.to_owned())
                .or_insert_with(|| Owned::Unread(Vec::new()));
            match known {
                Owned::Folded(folded) => {
                    if let Err(cause) = folded.apply(own) {
                        let why = format!("a record of `{name}` cannot be read: {cause}");
                        self.fault.lock().get_or_insert(why);
                    }
                }
                Owned::Unread(unread) => unread.extend(own.iter().map(|entry| Waiting {
                    number: None,
                    entry: entry.clone(),
                })),
            }
        }
    }

    /// Why the state of an owner is behind the journal; `None` while all follow.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.lock().clone()
    }
}

impl Snapshot for Folds {
    fn live(&self) -> usize {
        let owners = self.owners.lock();
        let live = owners.values().map(|owned| match owned {
            Owned::Unread(entries) => entries.len(),
            Owned::Folded(folded) => folded.live(),
        });
        live.sum()
    }

    fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let now_ms = unix_ms();
        let mut all = Vec::new();
        let mut owners = self.owners.lock();
        // The state lacks a record: only the journal as it is still has it.
        if let Some(fault) = self.fault() {
            return Err(StoreError::io(
                "compact",
                "journal".as_ref(),
                io::Error::other(fault),
            ));
        }
        for owned in owners.values_mut() {
            match owned {
                Owned::Unread(entries) => {
                    for waiting in entries {
                        // Its line is another one in the journal to come.
                        waiting.number = None;
                        all.push(waiting.entry.clone());
                    }
                }
                Owned::Folded(folded) => all.extend(folded.entries(now_ms)?),
            }
        }
        Ok(all)
    }
}

impl Debug for Folds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.owners.lock().keys()).finish()
    }
}
