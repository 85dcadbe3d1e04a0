//! The journal: append-only JSON lines, each synced before anyone is told. Must not know what a record means.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::directory::{Directory, io, private};
use crate::error::StoreError;
use crate::record::Record;
use crate::state::State;

const JOURNAL_FILE: &str = "journal.jsonl";
const NEW_FILE: &str = "journal.jsonl.new";

/// Lines that a journal may hold beyond twice its live records before it is written anew.
const SLACK_LINES: usize = 256;

/// The open journal of one data directory. Its calls block on the disk: an async caller hands them to a thread.
#[derive(Debug)]
pub struct Journal {
    directory: Directory,
    file: File,
    state: State,
    lines: usize,
    stopped: bool,
}

impl Journal {
    /// Takes the directory, replays its journal and cuts a torn last line off.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has the directory, [`StoreError::Damaged`] when a line before the
    /// last cannot be read, [`StoreError::Io`] for the rest.
    pub fn open(dir: &Path) -> Result<Journal, StoreError> {
        let directory = Directory::own(dir)?;
        let path = directory.path().join(JOURNAL_FILE);
        let new = !path.exists();
        let file = private().append(true).read(true).open(&path).map_err(|cause| io("open", &path, cause))?;
        let text = fs::read(&path).map_err(|cause| io("read", &path, cause))?;
        let replay = replay(&path, &text)?;
        if replay.whole_bytes < text.len() {
            file.set_len(replay.whole_bytes as u64).map_err(|cause| io("repair", &path, cause))?;
            file.sync_data().map_err(|cause| io("sync", &path, cause))?;
        }
        if new {
            directory.sync()?;
        }
        let mut journal =
            Journal { directory, file, state: replay.state, lines: replay.lines, stopped: false };
        journal.compact_if_due()?;
        Ok(journal)
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
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        let path = self.path();
        let text = lines(&path, records)?;
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(cause) = written {
            self.stopped = true;
            return Err(io("write", &path, cause));
        }
        self.lines += records.len();
        records.iter().for_each(|record| self.state.apply(record));
        // The records are durable whatever becomes of the tidying; the next append tries it again.
        let _ = self.compact_if_due();
        Ok(())
    }

    /// Writes the journal anew with only what is still true. Atomic: a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses; the old journal stays in use, or, where the new one took its place and
    /// cannot be opened, the journal is stopped.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        let (path, new) = (self.path(), self.directory.path().join(NEW_FILE));
        let records: Vec<Record> = self.state.records().collect();
        let text = lines(&new, &records)?;
        let file = private().truncate(true).open(&new).map_err(|cause| io("open", &new, cause))?;
        let mut writer = BufWriter::new(&file);
        writer.write_all(&text).and_then(|()| writer.flush()).map_err(|cause| io("write", &new, cause))?;
        drop(writer);
        file.sync_all().map_err(|cause| io("sync", &new, cause))?;
        fs::rename(&new, &path).map_err(|cause| io("replace", &path, cause))?;
        let was_stopped = std::mem::replace(&mut self.stopped, true);
        self.directory.sync()?;
        self.file = private().append(true).open(&path).map_err(|cause| io("open", &path, cause))?;
        (self.lines, self.stopped) = (records.len(), was_stopped);
        Ok(())
    }

    fn compact_if_due(&mut self) -> Result<(), StoreError> {
        if self.lines > 2 * self.state.len() + SLACK_LINES { self.compact() } else { Ok(()) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(JOURNAL_FILE)
    }
}

struct Replay {
    state: State,
    lines: usize,
    whole_bytes: usize,
}

/// Reads whole lines. A last line without its line feed was never promised to anybody: it is left out.
fn replay(path: &Path, text: &[u8]) -> Result<Replay, StoreError> {
    let whole_bytes = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = text.get(..whole_bytes).unwrap_or_default();
    let mut replay = Replay { state: State::default(), lines: 0, whole_bytes };
    for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        replay.lines += 1;
        let record = serde_json::from_slice::<Record>(line).map_err(|cause| StoreError::Damaged {
            path: path.to_owned(),
            line: replay.lines,
            cause: cause.to_string(),
        })?;
        replay.state.apply(&record);
    }
    Ok(replay)
}

fn lines(path: &Path, records: &[Record]) -> Result<Vec<u8>, StoreError> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record).map_err(|cause| io("write", path, cause.into()))?;
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
