//! The journal for many callers at once: a thread that commits in groups. Must not know what a record means.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use platform::Mutex;

use crate::directory::{Directory, io};
use crate::error::StoreError;
use crate::group::{Bounds, Group, Items, Place, Sink};
use crate::journal::{Journal, Log, lines, shortest};
use crate::record::Record;
use crate::state::State;

/// Submissions that may wait for the disk, reserved places included.
pub const WRITER_PLACES_MAX: usize = 4096;

/// Bytes of records that may wait for the disk.
pub const WRITER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The journal of one data directory, shared by many: clones are the same journal. Whatever arrives while the last group
/// is being synced is the next group.
///
/// The directory is given back, with everything written, when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Writer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the thread ends before the directory is given back.
    group: Group<Submitted>,
    state: Arc<Mutex<State>>,
    directory: Option<Directory>,
}

/// A place in the writer's queue: what fills it is not refused for want of room.
pub struct JournalPlace(Place<Submitted>);

/// What was submitted and waits for the disk.
#[derive(Default)]
struct Submitted {
    text: Vec<u8>,
    records: Vec<Record>,
}

struct Commit {
    log: Log,
    state: Arc<Mutex<State>>,
}

impl Writer {
    /// Opens the journal of a directory, and starts its thread.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open(dir: &Path) -> Result<Writer, StoreError> {
        Writer::start(Journal::open(dir)?)
    }

    /// Takes over an open journal.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the system gives no thread.
    pub fn start(journal: Journal) -> Result<Writer, StoreError> {
        let (directory, log, state) = journal.parts();
        let path = directory.path().to_owned();
        Writer::new(Some(directory), log, state).map_err(|cause| io("start a thread for", &path, cause))
    }

    pub(crate) fn new(directory: Option<Directory>, log: Log, state: State) -> std::io::Result<Writer> {
        let state = Arc::new(Mutex::new(state));
        let commit = Commit { log, state: Arc::clone(&state) };
        let bounds = Bounds {
            places_max: WRITER_PLACES_MAX,
            bytes_max: WRITER_BYTES_MAX,
            gather: Duration::ZERO,
            gather_bytes: WRITER_BYTES_MAX,
        };
        let group = Group::start("journal", commit, bounds)?;
        Ok(Writer(Arc::new(Inner { group, state, directory })))
    }

    /// Looks at what the journal says: only what is durable. Keep it short, the writer waits meanwhile.
    pub fn state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.0.state.lock())
    }

    /// Keeps room for one submission, to be made under a lock or after a step that cannot be undone.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`WRITER_PLACES_MAX`] or [`WRITER_BYTES_MAX`] is reached, [`StoreError::Stopped`] when
    /// the journal cannot be written any more.
    pub fn reserve(&self) -> Result<JournalPlace, StoreError> {
        self.0.group.reserve().map(JournalPlace)
    }

    /// Writes records that belong together. `told` runs on the writer's thread once they are durable, or cannot be: it
    /// must be short and must not wait for this writer. It runs at once where there is no room.
    pub fn submit(&self, records: Vec<Record>, told: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        match self.reserve() {
            Ok(place) => place.submit(records, told),
            Err(error) => told(Err(error)),
        }
    }

    /// Writes records and waits until they are durable. Blocks the thread; not for the writer's own.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; [`StoreError::Stopped`] from then on.
    pub fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        let (tell, told) = mpsc::sync_channel(1);
        let place = JournalPlace(self.0.group.place());
        place.submit(records.to_vec(), move |result| _ = tell.send(result));
        told.recv().unwrap_or(Err(StoreError::Stopped))
    }

    /// Why nothing can be written any more; `None` while all is well. For readiness and logs, not for strangers.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.group.trouble()
    }

    /// Writes down where this process listens, for commands that look for it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the lock file cannot be written.
    pub fn announce(&self, listen: &str) -> Result<(), StoreError> {
        self.0.directory.as_ref().map_or(Ok(()), |directory| directory.announce(Some(listen)))
    }

    /// The data directory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.directory.as_ref().map(Directory::path)
    }
}

impl JournalPlace {
    /// As [`Writer::submit`], with the room that was kept.
    pub fn submit(self, records: Vec<Record>, told: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        match lines(&records) {
            Ok(text) => self.0.fill(Some(Box::new(told)), |all| {
                all.text.extend(text);
                all.records.extend(records);
            }),
            Err(cause) => told(Err(io("write", Path::new("journal"), cause))),
        }
    }
}

impl std::fmt::Debug for JournalPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JournalPlace")
    }
}

impl Items for Submitted {
    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn clear(&mut self) {
        *self = Submitted::default();
    }
}

impl Sink for Commit {
    type Items = Submitted;

    fn commit(&mut self, all: &Submitted) -> Result<(), StoreError> {
        self.log.append(&all.text, all.records.len())?;
        let mut state = self.state.lock();
        all.records.iter().for_each(|record| state.apply(record));
        // The records are durable whatever becomes of the tidying.
        let anew = self.log.is_due(&state).then(|| shortest(&mut state).ok()).flatten();
        drop(state);
        if let Some((text, lines)) = anew {
            let _ = self.log.compact(&text, lines);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
