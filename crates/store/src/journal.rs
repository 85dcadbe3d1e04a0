//! Journal of one data directory: append-only JSON lines, synced before a caller learns of them; replay and compaction.

use std::{io, ops::DerefMut, path::Path, sync::Arc};

use crate::disk::{Disk, DiskFile, Folder, on};
use crate::{directory::Directory, error::StoreError, record::Record, state::State};

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

const JOURNAL_FILE: &str = "journal.jsonl";

/// Lines that a journal holds at most beyond twice its live records before it is compacted.
const SLACK_LINES: usize = 256;

/// The open file of a journal.
#[derive(Debug)]
pub(crate) struct JournalFile {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    lines: usize,
    stopped: bool,
}

impl JournalFile {
    /// Replays the file and removes a torn last line.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<(JournalFile, State), StoreError> {
        let mut file = disk.open(JOURNAL_FILE).map_err(on(&*disk, "open", JOURNAL_FILE))?;
        let text = disk.read(JOURNAL_FILE).map_err(on(&*disk, "read", JOURNAL_FILE))?.unwrap_or_default();
        let mut replay = replay(&*disk, &text)?;
        if replay.whole_bytes < text.len() {
            file.cut(replay.whole_bytes as u64).map_err(on(&*disk, "repair", JOURNAL_FILE))?;
        }
        let mut journal = JournalFile { disk, file, lines: replay.lines, stopped: false };
        if journal.is_compaction_due(&replay.state) {
            let (text, lines) =
                compacted(&mut replay.state).map_err(on(&*journal.disk, "write", JOURNAL_FILE))?;
            journal.compact(&text, lines)?;
        }
        Ok((journal, replay.state))
    }

    /// Reads the state of a journal that another process may be writing. Repairs nothing.
    pub(crate) fn peek(disk: &dyn Disk) -> Result<State, StoreError> {
        let text = disk.read(JOURNAL_FILE).map_err(on(disk, "read", JOURNAL_FILE))?.unwrap_or_default();
        Ok(replay(disk, &text)?.state)
    }

    /// Writes the lines of these records, applies them to the state, and compacts the journal when that is due. The state is
    /// locked only after the write, and not while the compacted journal is written.
    pub(crate) fn commit<S: DerefMut<Target = State>>(
        &mut self,
        text: &[u8],
        records: &[Record],
        lock: impl FnOnce() -> S,
    ) -> Result<(), StoreError> {
        self.append(text, records.len())?;
        let mut state = lock();
        records.iter().for_each(|record| state.apply(record));
        let compact = self.is_compaction_due(&state).then(|| compacted(&mut state).ok()).flatten();
        drop(state);
        if let Some((text, lines)) = compact {
            // The records are durable even when compaction fails.
            let _ = self.compact(&text, lines);
        }
        Ok(())
    }

    /// Appends lines and syncs them. A failure stops the journal.
    fn append(&mut self, text: &[u8], lines: usize) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        if let Err(cause) = self.file.append(text) {
            self.stopped = true;
            return Err(on(&*self.disk, "write", JOURNAL_FILE)(cause));
        }
        self.lines += lines;
        Ok(())
    }

    /// Whether most lines are obsolete.
    fn is_compaction_due(&self, state: &State) -> bool {
        self.lines > 2 * state.len() + SLACK_LINES
    }

    /// Replaces the journal by these lines. Atomic: a crash leaves the old or the new file.
    ///
    /// When the new file cannot be written, the old one stays in use. When the replacement itself fails, the journal stops.
    pub(crate) fn compact(&mut self, text: &[u8], lines: usize) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.disk.prepare(JOURNAL_FILE, text).map_err(on(&*self.disk, "compact", JOURNAL_FILE))?;
        self.stopped = true;
        self.disk.replace(JOURNAL_FILE).map_err(on(&*self.disk, "replace", JOURNAL_FILE))?;
        self.file = self.disk.open(JOURNAL_FILE).map_err(on(&*self.disk, "open", JOURNAL_FILE))?;
        (self.lines, self.stopped) = (lines, false);
        Ok(())
    }
}

/// The shortest lines that rebuild a state, and their number. Drops expired digests from the state.
pub(crate) fn compacted(state: &mut State) -> io::Result<(Vec<u8>, usize)> {
    state.drop_expired(platform::unix_ms());
    let records: Vec<Record> = state.records().collect();
    Ok((lines(&records)?, records.len()))
}

/// Encodes records as lines.
pub(crate) fn lines(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    Ok(text)
}

struct Replay {
    state: State,
    lines: usize,
    whole_bytes: usize,
}

/// Reads all complete lines. A last line without a line feed was never acknowledged: it is skipped.
fn replay(disk: &dyn Disk, text: &[u8]) -> Result<Replay, StoreError> {
    let whole_bytes = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = text.get(..whole_bytes).unwrap_or_default();
    let mut replay = Replay { state: State::default(), lines: 0, whole_bytes };
    for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        replay.lines += 1;
        let record = serde_json::from_slice::<Record>(line).map_err(|cause| StoreError::Damaged {
            path: disk.path().join(JOURNAL_FILE),
            line: replay.lines,
            cause: cause.to_string(),
        })?;
        replay.state.apply(&record);
    }
    Ok(replay)
}

#[cfg(test)]
mod tests;
