//! Journal of one data directory: append-only JSON lines, synced before a caller learns of them;
//! replay and compaction.

mod chain;
mod head;
mod replay;

use std::{io, ops::DerefMut, path::Path, sync::Arc};

use crate::disk::{Disk, DiskFile, Folder, on, opened};
use crate::{directory::Directory, error::StoreError, record::Record, state::State};
use chain::Chain;
use head::{HEAD_FILE, HeadFile, JournalPosition};
use replay::{Header, JOURNAL_FILE, Replay, replay};

/// The open journal of one data directory, for one caller that blocks on the disk at each call.
/// Many callers share a journal through a [`crate::JournalWriter`].
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
    /// [`StoreError::Locked`] when another process holds the lock, [`StoreError::Damaged`] when a
    /// line is not as it was written, [`StoreError::Lost`] when the journal is gone or older than
    /// before, [`StoreError::Io`] for all other errors.
    pub fn open(dir: &Path) -> Result<Journal, StoreError> {
        let directory = Directory::acquire(dir)?;
        let (file, state) = JournalFile::open(Arc::new(Folder::new(directory.path().to_owned())))?;
        Ok(Journal {
            directory,
            file,
            state,
        })
    }

    /// Reads the state of a journal without locking its directory, which another process may own.
    /// The state is empty when there is no journal.
    ///
    /// # Errors
    /// As [`Journal::open`], except for [`StoreError::Locked`].
    pub fn peek(dir: &Path) -> Result<State, StoreError> {
        JournalFile::peek(&Folder::new(dir.to_owned()))
    }

    /// Reads the state as [`Journal::peek`], and checks that this process could open the journal.
    ///
    /// # Errors
    /// As [`Journal::peek`].
    pub fn check(dir: &Path) -> Result<State, StoreError> {
        Directory::check_writable(dir, &[JOURNAL_FILE, HEAD_FILE])?;
        Journal::peek(dir)
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

    /// Writes records and syncs them once. When this returns `Ok` they survive a crash; callers act
    /// on them only then.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a write fails. The journal stops, since the content of the disk is
    /// no longer certain: every later call returns [`StoreError::Stopped`].
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let text = lines(records)
            .map_err(|cause| StoreError::io("write", self.directory.path(), cause))?;
        self.file.commit(&text, records, || &mut self.state)
    }
}

/// Lines that a journal holds at most beyond twice its live records before it is compacted.
const SLACK_LINES: usize = 256;

/// The open file of a journal.
#[derive(Debug)]
pub(crate) struct JournalFile {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    /// The id of the file, and its lines.
    id: String,
    chain: Chain,
    head: HeadFile,
    stopped: bool,
    /// The file was replaced, and the new one is yet to be opened.
    replaced: bool,
    /// Why the latest compaction failed.
    pub(crate) uncompacted: Option<StoreError>,
}

impl JournalFile {
    /// Replays the file and removes a torn last line. A journal of the format without checksums is
    /// written anew.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<(JournalFile, State), StoreError> {
        let mut replay = read(&*disk)?;
        let (id, chain) = match replay.file.take() {
            Some(known) => known,
            None => {
                let text =
                    compacted(&mut replay.state).map_err(on(&*disk, "write", JOURNAL_FILE))?;
                let (text, id, chain) =
                    begin(None, &text).map_err(on(&*disk, "write", JOURNAL_FILE))?;
                // The folder may not exist yet.
                drop(
                    disk.open(JOURNAL_FILE)
                        .map_err(on(&*disk, "open", JOURNAL_FILE))?,
                );
                head::accept(&*disk)?;
                disk.prepare(JOURNAL_FILE, &text)
                    .map_err(on(&*disk, "write", JOURNAL_FILE))?;
                disk.replace(JOURNAL_FILE)
                    .map_err(on(&*disk, "replace", JOURNAL_FILE))?;
                (replay.torn, replay.open_end) = (false, false);
                (id, chain)
            }
        };
        let mut file = disk
            .open(JOURNAL_FILE)
            .map_err(on(&*disk, "open", JOURNAL_FILE))?;
        let repaired = match replay.open_end {
            true => file.append(b"\n"),
            false if replay.torn => file.cut(replay.whole_bytes as u64),
            false => Ok(()),
        };
        repaired.map_err(on(&*disk, "repair", JOURNAL_FILE))?;
        let head = HeadFile::default();
        let mut journal = JournalFile {
            disk,
            file,
            id,
            chain,
            head,
            stopped: false,
            replaced: false,
            uncompacted: None,
        };
        if journal.is_compaction_due(&replay.state) {
            let text =
                compacted(&mut replay.state).map_err(on(&*journal.disk, "write", JOURNAL_FILE))?;
            journal.compact(&text)?;
        }
        journal.head.save(&*journal.disk, journal.place())?;
        Ok((journal, replay.state))
    }

    /// Reads the state of a journal that another process may be writing. Repairs nothing.
    pub(crate) fn peek(disk: &dyn Disk) -> Result<State, StoreError> {
        Ok(read(disk)?.state)
    }

    /// Writes these records, applies them to the state, and compacts the journal when that is due.
    /// `text` is their lines, without numbers and checksums. The state is locked only after the
    /// write, and not while the compacted journal is written.
    pub(crate) fn commit<S: DerefMut<Target = State>>(
        &mut self,
        text: &[u8],
        records: &[Record],
        lock: impl FnOnce() -> S,
    ) -> Result<(), StoreError> {
        self.append(text)?;
        let mut state = lock();
        records.iter().for_each(|record| state.apply(record));
        let compact = self
            .is_compaction_due(&state)
            .then(|| compacted(&mut state).ok())
            .flatten();
        drop(state);
        if let Some(text) = compact {
            // The records are durable even when compaction fails.
            self.uncompacted = self.compact(&text).err();
        }
        Ok(())
    }

    /// Appends lines and syncs them. A failure stops the journal.
    fn append(&mut self, text: &[u8]) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.open_replaced()?;
        // A copy: the chain moves on only with lines that are on disk.
        let (mut chain, mut sealed) = (self.chain, Vec::with_capacity(2 * text.len()));
        chain.seal_all(text, &mut sealed);
        if let Err(cause) = self.file.append(&sealed) {
            self.stopped = true;
            return Err(on(&*self.disk, "write", JOURNAL_FILE)(cause));
        }
        self.chain = chain;
        self.head.note(self.place());
        Ok(())
    }

    /// Whether nothing more can be written.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }

    fn place(&self) -> JournalPosition {
        JournalPosition::new(&self.id, self.chain)
    }

    /// Whether most lines are obsolete.
    fn is_compaction_due(&self, state: &State) -> bool {
        self.lines() > 2 * state.len() + SLACK_LINES
    }

    /// Its records.
    fn lines(&self) -> usize {
        usize::try_from(self.chain.lines).map_or(usize::MAX, |lines| lines.saturating_sub(1))
    }

    /// Replaces the journal by these lines. Atomic: a crash leaves the old or the new file.
    ///
    /// When the new file cannot be written, the old one stays in use. When the replacement itself
    /// fails, the journal stops.
    pub(crate) fn compact(&mut self, text: &[u8]) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        // The new file names the old one, whose id the head must have when a crash follows.
        self.head.save(&*self.disk, self.place())?;
        let begun = begin(Some(self.place()), text);
        let (text, id, chain) = begun.map_err(on(&*self.disk, "compact", JOURNAL_FILE))?;
        self.disk
            .prepare(JOURNAL_FILE, &text)
            .map_err(on(&*self.disk, "compact", JOURNAL_FILE))?;
        // Until it is certain which of the two files is there.
        self.stopped = true;
        self.disk
            .replace(JOURNAL_FILE)
            .map_err(on(&*self.disk, "replace", JOURNAL_FILE))?;
        (self.id, self.chain, self.stopped, self.replaced) = (id, chain, false, true);
        self.head.note(self.place());
        self.open_replaced()
    }

    /// Opens the file that took the place of the one before. If it cannot be opened, nothing is
    /// written until it can.
    fn open_replaced(&mut self) -> Result<(), StoreError> {
        if self.replaced {
            self.file = opened(&*self.disk, JOURNAL_FILE)?;
            self.replaced = false;
        }
        Ok(())
    }
}

/// Reads the journal. The head is read first: the journal is never behind it.
fn read(disk: &dyn Disk) -> Result<Replay, StoreError> {
    let head = head::read(disk)?;
    let text = disk
        .read(JOURNAL_FILE)
        .map_err(on(disk, "read", JOURNAL_FILE))?
        .unwrap_or_default();
    replay(disk, &text, &head)
}

/// A new file of lines: its text, its id and its chain.
fn begin(follows: Option<JournalPosition>, text: &[u8]) -> io::Result<(Vec<u8>, String, Chain)> {
    let header = Header::new(follows);
    let (mut chain, mut sealed) = (Chain::default(), Vec::new());
    chain.seal(&serde_json::to_vec(&header)?, &mut sealed);
    chain.seal_all(text, &mut sealed);
    Ok((sealed, header.id, chain))
}

/// The shortest lines that rebuild a state. Drops expired digests from the state.
pub(crate) fn compacted(state: &mut State) -> io::Result<Vec<u8>> {
    state.drop_expired(platform::unix_ms());
    let records: Vec<Record> = state.records().collect();
    lines(&records)
}

/// Encodes records as lines, without numbers and checksums.
pub(crate) fn lines(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
