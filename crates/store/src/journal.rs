//! Journal of one data directory: append-only JSON lines, synced before a caller learns of them.

mod file;

use std::path::Path;
use std::sync::Arc;

use crate::directory::Directory;
use crate::disk::Folder;
use crate::error::StoreError;
use crate::record::Record;
use crate::state::State;

pub(crate) use file::{JournalFile, lines};

/// The open journal of one data directory, for one caller that blocks on the disk at each call. Many callers share a
/// journal through a [`crate::JournalWriter`].
#[derive(Debug)]
pub struct Journal {
    pub(crate) directory: Directory,
    pub(crate) file: JournalFile,
    pub(crate) state: State,
}

impl Journal {
    /// Locks the directory, replays its journal and removes a torn last line.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process holds the lock, [`StoreError::Damaged`] when a line before the last is
    /// not a record, [`StoreError::Io`] for all other errors.
    pub fn open(dir: &Path) -> Result<Journal, StoreError> {
        let directory = Directory::acquire(dir)?;
        let (file, state) = JournalFile::open(Arc::new(Folder::new(directory.path().to_owned())))?;
        Ok(Journal { directory, file, state })
    }

    /// Reads the state of a journal without locking its directory, which another process may own. The state is empty when
    /// there is no journal.
    ///
    /// # Errors
    /// As [`Journal::open`], except for [`StoreError::Locked`].
    pub fn peek(dir: &Path) -> Result<State, StoreError> {
        JournalFile::peek(&Folder::new(dir.to_owned()))
    }

    /// State after all records.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The locked directory, for [`Directory::announce`].
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Writes records and syncs them once. When this returns `Ok` they survive a crash; callers act on them only then.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a write fails. The journal stops, since the content of the disk is no longer certain: every
    /// later call returns [`StoreError::Stopped`].
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let text = lines(records).map_err(|cause| StoreError::io("write", self.directory.path(), cause))?;
        self.file.commit(&text, records, || &mut self.state)
    }
}

#[cfg(test)]
mod tests;
