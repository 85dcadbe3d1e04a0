//! The journal's file: whole lines, synced; written anew now and then. Must not know what a record means, nor who waits.

use std::io;
use std::sync::Arc;

use crate::directory::io as failed;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::record::Record;
use crate::state::State;

pub(crate) const JOURNAL_FILE: &str = "journal.jsonl";

/// Lines that a journal may hold beyond twice its live records before it is written anew.
pub(super) const SLACK_LINES: usize = 256;

/// The journal's open file.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    pub(super) lines: usize,
    stopped: bool,
}

impl Log {
    /// Replays the file and cuts a torn last line off.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<(Log, State), StoreError> {
        let mut file = disk.open(JOURNAL_FILE).map_err(error(&*disk, "open"))?;
        let text = disk.read(JOURNAL_FILE).map_err(error(&*disk, "read"))?.unwrap_or_default();
        let mut replay = replay(&*disk, &text)?;
        if replay.whole_bytes < text.len() {
            file.cut(replay.whole_bytes as u64).map_err(error(&*disk, "repair"))?;
            file.sync().map_err(error(&*disk, "sync"))?;
        }
        let mut log = Log { disk, file, lines: replay.lines, stopped: false };
        if log.is_due(&replay.state) {
            let (text, lines) = shortest(&mut replay.state).map_err(error(&*log.disk, "write"))?;
            log.compact(&text, lines)?;
        }
        Ok((log, replay.state))
    }

    /// What a journal says that another process may be writing; nothing is repaired.
    pub(crate) fn peek(disk: &dyn Disk) -> Result<State, StoreError> {
        let text = disk.read(JOURNAL_FILE).map_err(error(disk, "read"))?.unwrap_or_default();
        Ok(replay(disk, &text)?.state)
    }

    /// Writes lines and syncs them. After a failure nothing is written any more.
    pub(crate) fn append(&mut self, text: &[u8], lines: usize) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        if let Err(cause) = self.file.append(text).and_then(|()| self.file.sync()) {
            self.stopped = true;
            return Err(error(&*self.disk, "write")(cause));
        }
        self.lines += lines;
        Ok(())
    }

    /// Whether so much is no longer true that the journal should be written anew.
    pub(crate) fn is_due(&self, state: &State) -> bool {
        self.lines > 2 * state.len() + SLACK_LINES
    }

    /// Writes the journal anew with these lines only. Atomic: a crash leaves the old one or the new one.
    ///
    /// The old one stays in use when the new one cannot be written. When it is not known which of them is in place,
    /// nothing is written any more.
    pub(crate) fn compact(&mut self, text: &[u8], lines: usize) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.disk.prepare(JOURNAL_FILE, text).map_err(error(&*self.disk, "write anew"))?;
        self.stopped = true;
        self.disk.put_in_place(JOURNAL_FILE).map_err(error(&*self.disk, "replace"))?;
        self.file = self.disk.open(JOURNAL_FILE).map_err(error(&*self.disk, "open"))?;
        (self.lines, self.stopped) = (lines, false);
        Ok(())
    }
}

/// A state as the lines that add up to it, and how many. Drops from the state what has expired.
pub(crate) fn shortest(state: &mut State) -> io::Result<(Vec<u8>, usize)> {
    state.drop_expired(platform::unix_ms());
    let records: Vec<Record> = state.records().collect();
    Ok((lines(&records)?, records.len()))
}

/// Records as lines.
pub(crate) fn lines(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// An error about the journal's file.
pub(crate) fn error(disk: &dyn Disk, what: &'static str) -> impl Fn(io::Error) -> StoreError {
    let path = disk.place().join(JOURNAL_FILE);
    move |cause| failed(what, &path, cause)
}

struct Replay {
    state: State,
    lines: usize,
    whole_bytes: usize,
}

/// Reads whole lines. A last line without its line feed was never promised to anybody: it is left out.
fn replay(disk: &dyn Disk, text: &[u8]) -> Result<Replay, StoreError> {
    let whole_bytes = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = text.get(..whole_bytes).unwrap_or_default();
    let mut replay = Replay { state: State::default(), lines: 0, whole_bytes };
    for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        replay.lines += 1;
        let record = serde_json::from_slice::<Record>(line).map_err(|cause| StoreError::Damaged {
            path: disk.place().join(JOURNAL_FILE),
            line: replay.lines,
            cause: cause.to_string(),
        })?;
        replay.state.apply(&record);
    }
    Ok(replay)
}
