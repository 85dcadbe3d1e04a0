//! Journal shared by many callers: permits, submissions and one thread that commits in groups.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use std::{path::Path, time::Duration};

use platform::{Mutex, SHARE_OF_POOL, Share, Shares};

use crate::group::{GroupCommit, Items, QueueLimits, QueuePermit, Sink};
use crate::journal::{Journal, JournalFile, lines};
use crate::{
    directory::Directory, error::StoreError, owner::DirectoryOwner, record::Record, state::State,
};

/// Submissions that wait for the disk at most, reserved permits included.
pub const WRITER_PERMITS_MAX: usize = 4096;

/// Bytes of records that wait for the disk at most.
pub const WRITER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The share of one participant, and of all guests together, in what proposals add to these bytes.
pub const PARTICIPANT_WRITER_BYTES_MAX: usize = WRITER_BYTES_MAX / SHARE_OF_POOL;

/// The journal of one data directory for many callers; clones share one journal. Submissions that
/// arrive during a sync are the next group.
///
/// Dropping the last clone writes all submissions and releases the directory.
#[derive(Debug, Clone)]
pub struct JournalWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the thread ends before the lock on the directory is released.
    group: GroupCommit<Submitted>,
    state: Arc<Mutex<State>>,
    directory: Option<Directory>,
    accounts: Arc<Shares>,
    compaction: Arc<Compaction>,
}

/// Receives why a compaction failed.
type Report = Box<dyn Fn(&str) + Send + Sync>;

/// End of the latest compaction of the journal.
#[derive(Default)]
struct Compaction {
    /// Cause of its failure, and whether the journal stopped.
    failure: Mutex<Option<(String, bool)>>,
    report: OnceLock<Report>,
}

impl Debug for Compaction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compaction")
            .field(&*self.failure.lock())
            .finish()
    }
}

impl Compaction {
    /// Reports the first failure after a success: the compaction is tried again with each group.
    fn ended(&self, failure: Option<(String, bool)>) {
        let before = std::mem::replace(&mut *self.failure.lock(), failure.clone());
        if let (Some((why, stopped)), Some(report)) = (failure, self.report.get())
            && before.is_none_or(|(_, before)| stopped && !before)
        {
            report(&why);
        }
    }
}

/// Permit for one submission: the queue does not reject it as [`StoreError::Busy`]. Released when
/// dropped.
#[derive(Debug)]
pub struct JournalPermit(QueuePermit<Submitted>);

/// Submitted records that wait for the disk.
#[derive(Default)]
struct Submitted {
    text: Vec<u8>,
    records: Vec<Record>,
}

struct Commit {
    file: JournalFile,
    state: Arc<Mutex<State>>,
    compaction: Arc<Compaction>,
}

impl JournalWriter {
    /// Opens the journal of a directory and starts its thread.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open(dir: &Path) -> Result<JournalWriter, StoreError> {
        JournalWriter::start(Journal::open(dir)?)
    }

    /// Starts the thread of an open journal.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the operating system cannot start a thread.
    pub fn start(journal: Journal) -> Result<JournalWriter, StoreError> {
        let Journal {
            directory,
            file,
            state,
        } = journal;
        let path = directory.path().to_owned();
        JournalWriter::new(Some(directory), file, state)
            .map_err(|cause| StoreError::io("start a thread for", &path, cause))
    }

    pub(crate) fn new(
        directory: Option<Directory>,
        file: JournalFile,
        state: State,
    ) -> std::io::Result<JournalWriter> {
        let state = Arc::new(Mutex::new(state));
        let compaction = Arc::<Compaction>::default();
        let commit = Commit {
            file,
            state: Arc::clone(&state),
            compaction: Arc::clone(&compaction),
        };
        let limits = QueueLimits {
            permits_max: WRITER_PERMITS_MAX,
            bytes_max: WRITER_BYTES_MAX,
            gather: Duration::ZERO,
            gather_bytes: WRITER_BYTES_MAX,
        };
        let group = GroupCommit::start("journal", commit, limits)?;
        // All together are bounded by the queue itself.
        let accounts = Shares::new(usize::MAX, PARTICIPANT_WRITER_BYTES_MAX);
        Ok(JournalWriter(Arc::new(Inner {
            group,
            state,
            directory,
            accounts,
            compaction,
        })))
    }

    /// The account of a participant: its share of what waits for the disk. The caller takes from
    /// it.
    #[must_use]
    pub fn account(&self, holder: &str) -> Arc<Share> {
        self.0.accounts.of(holder)
    }

    /// Calls `read` with the state of all durable records. The writing thread waits meanwhile: keep
    /// `read` short.
    pub fn state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.0.state.lock())
    }

    /// Reserves a permit for one submission that the caller makes under a lock or after a step that
    /// cannot be undone.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`WRITER_PERMITS_MAX`] or [`WRITER_BYTES_MAX`] is reached,
    /// [`StoreError::Stopped`] when the journal cannot be written any more.
    pub fn reserve(&self) -> Result<JournalPermit, StoreError> {
        self.0.group.reserve().map(JournalPermit)
    }

    /// Writes records that belong together. `on_durable` runs on the writing thread when they are
    /// durable or their write has failed: it must be short and must not wait for this journal. It
    /// runs at once when the queue is full.
    pub fn submit(
        &self,
        records: Vec<Record>,
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match self.reserve() {
            Ok(permit) => permit.submit(records, on_durable),
            Err(error) => on_durable(Err(error)),
        }
    }

    /// Writes records and blocks until they are durable. Deadlocks when `on_durable` of a
    /// submission calls it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; [`StoreError::Stopped`] from then on.
    pub fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        let text = text_of(records)?;
        self.0
            .group
            .fill_and_wait(|all| all.add(text, records.to_vec()))
    }

    /// The error that stopped the journal; `None` while it works. For readiness checks and logs: it
    /// can name paths.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let stopped = || {
            self.0
                .compaction
                .failure
                .lock()
                .clone()
                .filter(|(_, stopped)| *stopped)
        };
        stopped()
            .map(|(why, _)| why)
            .or_else(|| self.0.group.failure())
    }

    /// Has failed compactions reported, the first of a row: the journal grows, or has stopped.
    /// `report` runs on the writing thread: it must be short and must not use this journal. The
    /// first call decides.
    pub fn on_uncompacted(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.0.compaction.report.set(Box::new(report));
    }

    /// Writes into the lock file what commands must know of this process.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the lock file cannot be written.
    pub fn announce(&self, owner: DirectoryOwner) -> Result<(), StoreError> {
        self.0
            .directory
            .as_ref()
            .map_or(Ok(()), |directory| directory.announce(owner))
    }

    /// The data directory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.directory.as_ref().map(Directory::path)
    }
}

impl JournalPermit {
    /// As [`JournalWriter::submit`], with this permit.
    pub fn submit(
        self,
        records: Vec<Record>,
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match text_of(&records) {
            Ok(text) => self
                .0
                .fill(Some(Box::new(on_durable)), |all| all.add(text, records)),
            Err(error) => on_durable(Err(error)),
        }
    }
}

fn text_of(records: &[Record]) -> Result<Vec<u8>, StoreError> {
    lines(records).map_err(|cause| StoreError::io("write", Path::new("journal"), cause))
}

impl Submitted {
    fn add(&mut self, text: Vec<u8>, records: Vec<Record>) {
        self.text.extend(text);
        self.records.extend(records);
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

    const RETRIES: bool = false;

    fn commit(&mut self, all: &Submitted) -> Result<(), StoreError> {
        let end = self
            .file
            .commit(&all.text, &all.records, || self.state.lock());
        let stopped = self.file.has_stopped();
        self.compaction.ended(
            self.file
                .uncompacted
                .as_ref()
                .map(|error| (error.to_string(), stopped)),
        );
        end
    }
}

#[cfg(test)]
mod tests;
