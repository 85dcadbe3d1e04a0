//! The journal: append-only JSON lines, each synced before anyone is told. Must not know what a record means.

mod log;

use std::path::Path;
use std::sync::Arc;

use crate::directory::{Directory, io};
use crate::disk::Folder;
use crate::error::StoreError;
use crate::record::Record;
use crate::state::State;

pub(crate) use log::{Log, lines, shortest};

/// The open journal of one data directory, for one caller that waits for the disk at each call. Many callers share one
/// through a [`crate::Writer`].
#[derive(Debug)]
pub struct Journal {
    directory: Directory,
    log: Log,
    state: State,
}

impl Journal {
    /// Takes the directory, replays its journal and cuts a torn last line off.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has the directory, [`StoreError::Damaged`] when a line before the
    /// last cannot be read, [`StoreError::Io`] for the rest.
    pub fn open(dir: &Path) -> Result<Journal, StoreError> {
        let directory = Directory::own(dir)?;
        let (log, state) = Log::open(Arc::new(Folder::new(directory.path().to_owned())))?;
        Ok(Journal { directory, log, state })
    }

    /// What the journal of a directory says now, without taking the directory: another process may own it. Empty where
    /// there is no journal.
    ///
    /// # Errors
    /// As [`Journal::open`], except for [`StoreError::Locked`].
    pub fn peek(dir: &Path) -> Result<State, StoreError> {
        Log::peek(&Folder::new(dir.to_owned()))
    }

    /// What the journal says.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The directory, to announce where this process listens.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Writes records and syncs them once. When this returns `Ok` they survive a crash, and only then may anyone be told.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses. From then on the journal is stopped and every call gives
    /// [`StoreError::Stopped`]: what is on disk is no longer known for sure.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let text = lines(records).map_err(|cause| io("write", self.directory.path(), cause))?;
        self.log.append(&text, records.len())?;
        records.iter().for_each(|record| self.state.apply(record));
        // The records are durable whatever becomes of the tidying.
        if self.log.is_due(&self.state) {
            let _ = self.compact();
        }
        Ok(())
    }

    /// Writes the journal anew with only what is still true. Atomic: a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; the old journal stays in use, or, where it is not known which of them
    /// has its place, the journal is stopped.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        let text = shortest(&mut self.state).map_err(|cause| io("write", self.directory.path(), cause));
        text.and_then(|(text, lines)| self.log.compact(&text, lines))
    }

    pub(crate) fn parts(self) -> (Directory, Log, State) {
        (self.directory, self.log, self.state)
    }
}

#[cfg(test)]
mod tests;
