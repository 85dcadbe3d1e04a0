//! The journal as the whole process shares it: what its owners make of it, and appends of many
//! callers.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, mpsc};

use platform::{Mutex, SHARE_OF_POOL, Share, Shares};

use crate::directory::Directory;
use crate::disk::Folder;
use crate::entry::Entry;
use crate::error::StoreError;
use crate::file::{FileJournal, WRITER_BYTES_MAX};
use crate::fold::Fold;
use crate::folds::Folds;
use crate::journal::{Journal, Place, Position, Watcher};
use crate::owner::DirectoryOwner;

/// The share of one participant, and of all guests together, in what proposals add to the bytes
/// that wait for the disk.
pub const PARTICIPANT_WRITER_BYTES_MAX: usize = WRITER_BYTES_MAX / SHARE_OF_POOL;

/// The journal of a data directory with the states of its owners, for many callers; clones share
/// one journal.
///
/// Dropping the last clone writes all submissions and releases the directory.
#[derive(Debug, Clone)]
pub struct JournalWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the journal ends before the lock on the directory is released.
    journal: Arc<dyn Journal>,
    folds: Arc<Folds>,
    directory: Option<Directory>,
    accounts: Arc<Shares>,
}

/// Hands what is appended to the owners.
struct Follow(Arc<Folds>);

impl Watcher for Follow {
    fn take(&mut self, _: Position, entries: &[Entry]) -> ControlFlow<()> {
        self.0.take(entries);
        ControlFlow::Continue(())
    }
}

impl JournalWriter {
    /// Locks a directory and opens its journal.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process holds the lock, [`StoreError::Damaged`] when a
    /// line is not as it was written, [`StoreError::Lost`] when the journal is gone or older than
    /// before, [`StoreError::Io`] for all other errors.
    pub fn open(dir: &Path) -> Result<JournalWriter, StoreError> {
        let directory = Directory::acquire(dir)?;
        let folder = Folder::new(directory.path().to_owned());
        let journal = FileJournal::open(Arc::new(folder))?;
        JournalWriter::over(Arc::new(journal), Some(directory))
    }

    /// Over this journal: reads what is in force, and follows what is appended. With a `directory`
    /// it has a data directory, which it keeps locked.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn over(
        journal: Arc<dyn Journal>,
        directory: Option<Directory>,
    ) -> Result<JournalWriter, StoreError> {
        let folds = Arc::<Folds>::default();
        let last = journal.replay(&mut |replayed| folds.keep(replayed))?;
        journal.watch(last, Box::new(Follow(Arc::clone(&folds))))?;
        journal.compact_by(Arc::<Folds>::clone(&folds));
        // All together are bounded by the queue itself.
        let accounts = Shares::new(usize::MAX, PARTICIPANT_WRITER_BYTES_MAX);
        Ok(JournalWriter(Arc::new(Inner {
            journal,
            folds,
            directory,
            accounts,
        })))
    }

    /// The state of one owner. The first call folds it from the owner's records.
    pub(crate) fn folded<F: Fold>(&self) -> Result<Arc<Mutex<F>>, StoreError> {
        self.0.folds.of::<F>(&*self.0.journal)
    }

    /// The account of a participant: its share of what waits for the disk. The caller takes from
    /// it.
    #[must_use]
    pub fn account(&self, holder: &str) -> Arc<Share> {
        self.0.accounts.of(holder)
    }

    /// Reserves a place for one submission that the caller makes under a lock or after a step that
    /// cannot be undone.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`crate::WRITER_PERMITS_MAX`] or [`crate::WRITER_BYTES_MAX`] is
    /// reached, [`StoreError::Stopped`] when the journal cannot be written any more.
    pub(crate) fn reserve(&self) -> Result<Box<dyn Place>, StoreError> {
        self.0.journal.reserve()
    }

    /// Writes entries that belong together, of one owner or of several. `on_durable` runs on a
    /// thread of the journal when they are durable or their write has failed: it must be short and
    /// must not wait for this journal. It runs at once when the queue is full.
    pub fn submit(
        &self,
        entries: Vec<Entry>,
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        match self.reserve() {
            Ok(place) => place.append(entries, Box::new(|end| on_durable(end.map(drop)))),
            Err(error) => on_durable(Err(error)),
        }
    }

    /// Writes entries that belong together, and blocks until they are durable. Deadlocks when
    /// `on_durable` of a submission calls it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; [`StoreError::Stopped`] from then on.
    pub fn append(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let (sender, result) = mpsc::sync_channel(1);
        let on_durable = move |end: Result<Position, StoreError>| _ = sender.send(end.map(drop));
        self.0.journal.append(entries, Box::new(on_durable));
        result.recv().unwrap_or(Err(StoreError::Stopped))
    }

    /// The error that stopped the journal, or for which an owner does not follow it; `None` while
    /// all works. For readiness checks and logs: it can name paths.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.0.journal.failure().or_else(|| self.0.folds.fault())
    }

    /// Has failed compactions reported, the first of a row: the journal grows, or has stopped.
    /// `report` runs on a thread of the journal: it must be short and must not use this journal.
    /// The first call decides.
    pub fn on_uncompacted(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        self.0.journal.on_uncompacted(Box::new(report));
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

#[cfg(test)]
mod tests;
