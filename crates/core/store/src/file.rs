//! The journal in a file: append-only JSON lines, synced before a caller learns of them; replay and
//! compaction.

mod chain;
mod head;
mod legacy;
mod replay;

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use std::{io, path::Path, time::Duration};

use platform::Mutex;

use crate::directory::Directory;
use crate::disk::{Disk, DiskFile, Folder, on, opened};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::fold::Fold;
use crate::folds::{Waiting, fold};
use crate::group::{GroupCommit, Items, QueueLimits, QueuePermit, Sink};
use crate::journal::{
    Journal, OnDurable, OnUncompacted, Place, Position, Replayed, Snapshot, Watcher,
};
use chain::Chain;
use head::{FilePlace, HEAD_FILE, HeadFile};
use replay::{FORMAT, Header, JOURNAL_FILE, Replay, damaged, replay};

/// Appends that wait for the disk at most, reserved places included.
pub const WRITER_PERMITS_MAX: usize = 4096;

/// Bytes of entries that wait for the disk at most.
pub const WRITER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Lines that a journal holds at most beyond twice its live entries before it is compacted.
const SLACK_LINES: usize = 256;

/// Bytes that a journal has at most beyond twice those after its latest compaction before it is
/// compacted: some records are long.
const SLACK_BYTES: u64 = 64 * 1024 * 1024;

/// The journal in a file of one data directory, with one thread that writes and syncs. Appends that
/// arrive during a sync are the next group.
///
/// Dropping it writes all appends.
#[derive(Debug)]
pub struct FileJournal {
    group: GroupCommit<Submitted>,
    file: Arc<Mutex<JournalFile>>,
    compaction: Arc<Compaction>,
}

impl FileJournal {
    /// Opens the journal of a folder and starts its thread. Removes a torn last line. A journal of
    /// an older format is written anew, and a copy of it stays.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<FileJournal, StoreError> {
        let path = disk.path().to_owned();
        let file = Arc::new(Mutex::new(JournalFile::open(disk)?));
        let compaction = Arc::<Compaction>::default();
        let sink = Commit {
            file: Arc::clone(&file),
            compaction: Arc::clone(&compaction),
        };
        let limits = QueueLimits {
            permits_max: WRITER_PERMITS_MAX,
            bytes_max: WRITER_BYTES_MAX,
            gather: Duration::ZERO,
            gather_bytes: WRITER_BYTES_MAX,
        };
        let group = GroupCommit::start("journal", sink, limits)
            .map_err(|cause| StoreError::io("start a thread for", &path, cause))?;
        Ok(FileJournal {
            group,
            file,
            compaction,
        })
    }
}

impl Journal for FileJournal {
    fn reserve(&self) -> Result<Box<dyn Place>, StoreError> {
        let permit = self.group.reserve()?;
        Ok(Box::new(QueuePlace(permit)))
    }

    fn append(&self, entries: Vec<Entry>, on_durable: OnDurable) {
        QueuePlace(self.group.reserve_beyond_limits()).submit(entries, on_durable);
    }

    fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Result<Position, StoreError> {
        let file = self.file.lock();
        let replay = read(&*file.disk)?;
        replay.entries.into_iter().for_each(take);
        Ok(file.position())
    }

    fn watch(&self, after: Position, watcher: Box<dyn Watcher>) -> Result<(), StoreError> {
        self.file.lock().watch(after, watcher)
    }

    fn compact_by(&self, snapshot: Arc<dyn Snapshot>) {
        self.file.lock().snapshot = Some(snapshot);
    }

    fn on_uncompacted(&self, report: OnUncompacted) {
        let _ = self.compaction.report.set(report);
    }

    fn failure(&self) -> Option<String> {
        let compaction = self.compaction.failure.lock().clone();
        match compaction {
            Some(failure) if failure.stopped => Some(failure.why),
            Some(_) | None => self.group.failure(),
        }
    }

    fn unreadable(&self, number: Option<usize>, cause: &str) -> StoreError {
        // The header is the line before the first entry.
        let line = number.map(|number| number + 1);
        damaged(&*self.file.lock().disk, line, cause)
    }
}

/// A place in the queue of the file.
#[derive(Debug)]
struct QueuePlace(QueuePermit<Submitted>);

impl QueuePlace {
    fn submit(self, entries: Vec<Entry>, on_durable: OnDurable) {
        let position = Arc::<OnceLock<Position>>::default();
        let reached = Arc::clone(&position);
        let report = move |result: Result<(), StoreError>| {
            on_durable(result.map(|()| reached.get().copied().unwrap_or_default()));
        };
        self.0
            .fill(Some(Box::new(report)), |all| all.add(entries, position));
    }
}

impl Place for QueuePlace {
    fn append(self: Box<Self>, entries: Vec<Entry>, on_durable: OnDurable) {
        self.submit(entries, on_durable);
    }
}

/// Appended entries that wait for the disk.
#[derive(Default)]
struct Submitted {
    entries: Vec<Entry>,
    bytes: usize,
    appends: Vec<Submission>,
}

/// One append of a group.
struct Submission {
    /// Number of entries of the group up to the end of the append.
    end: usize,
    /// Its position, once it is durable.
    position: Arc<OnceLock<Position>>,
}

impl Submitted {
    fn add(&mut self, entries: Vec<Entry>, position: Arc<OnceLock<Position>>) {
        self.bytes += entries.iter().map(Entry::bytes).sum::<usize>();
        self.entries.extend(entries);
        let end = self.entries.len();
        self.appends.push(Submission { end, position });
    }
}

impl Items for Submitted {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        *self = Submitted::default();
    }
}

/// Writes groups of entries.
struct Commit {
    file: Arc<Mutex<JournalFile>>,
    compaction: Arc<Compaction>,
}

impl Sink for Commit {
    type Items = Submitted;

    const RETRIES: bool = false;

    fn commit(&mut self, all: &Submitted) -> Result<(), StoreError> {
        let mut file = self.file.lock();
        let before = file.position().0;
        let end = file.commit(&all.entries);
        if end.is_ok() {
            for Submission { end, position } in &all.appends {
                let _ = position.set(Position(before + *end as u64));
            }
        }
        let failure = file.uncompacted.as_ref().map(|error| Uncompacted {
            why: error.to_string(),
            stopped: file.stopped,
        });
        drop(file);
        self.compaction.ended(failure);
        end
    }
}

/// End of the latest compaction of the journal.
#[derive(Default)]
struct Compaction {
    failure: Mutex<Option<Uncompacted>>,
    report: OnceLock<OnUncompacted>,
}

/// A compaction that failed.
#[derive(Debug, Clone)]
struct Uncompacted {
    why: String,
    /// Whether the journal stopped with it.
    stopped: bool,
}

impl Compaction {
    /// Reports the first failure after a success: the compaction is tried again with each group.
    fn ended(&self, failure: Option<Uncompacted>) {
        let before = std::mem::replace(&mut *self.failure.lock(), failure.clone());
        if let (Some(failure), Some(report)) = (failure, self.report.get())
            && before.is_none_or(|before| failure.stopped && !before.stopped)
        {
            report(&failure.why);
        }
    }
}

impl Debug for Compaction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compaction")
            .field(&*self.failure.lock())
            .finish()
    }
}

/// The open file of a journal, for one caller that blocks on the disk.
struct JournalFile {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    /// The first line, and all lines.
    header: Header,
    chain: Chain,
    head: HeadFile,
    /// Bytes of the file now, and after the latest compaction of this process.
    bytes: u64,
    compacted_bytes: u64,
    stopped: bool,
    /// The file was replaced, and the new one is yet to be opened.
    replaced: bool,
    /// Why the latest compaction failed.
    uncompacted: Option<StoreError>,
    watchers: Vec<Box<dyn Watcher>>,
    snapshot: Option<Arc<dyn Snapshot>>,
}

impl JournalFile {
    fn open(disk: Arc<dyn Disk>) -> Result<JournalFile, StoreError> {
        let replay = read(&*disk)?;
        let known = replay.file.is_some();
        if let Some(format) = replay.older_format() {
            keep_copies(&*disk, format)?;
        }
        let (header, chain) = match replay.file {
            Some(known) => known,
            // There is no journal, or one of the first format.
            None => begin_anew(&*disk, &replay.entries)?,
        };
        let mut file = disk
            .open(JOURNAL_FILE)
            .map_err(on(&*disk, "open", JOURNAL_FILE))?;
        let repaired = match known {
            true if replay.open_end => file.append(b"\n"),
            true if replay.torn => file.cut(replay.whole_bytes as u64),
            true | false => Ok(()),
        };
        repaired.map_err(on(&*disk, "repair", JOURNAL_FILE))?;
        let mut journal = JournalFile {
            disk,
            file,
            header,
            chain,
            head: HeadFile::default(),
            bytes: replay.whole_bytes as u64,
            compacted_bytes: 0,
            stopped: false,
            replaced: false,
            uncompacted: None,
            watchers: Vec::new(),
            snapshot: None,
        };
        // Of the first format it was begun anew above.
        if journal.header.format() != FORMAT {
            let entries = replay.entries.into_iter().map(|replayed| replayed.entry);
            journal.replace_by(&entries.collect::<Vec<_>>())?;
        }
        journal.head.save(&*journal.disk, journal.place())?;
        Ok(journal)
    }

    /// Writes these entries, hands them to the watchers, and compacts the journal when that is due.
    fn commit(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        self.append(entries)?;
        let last = self.position();
        self.watchers
            .retain_mut(|watcher| watcher.take(last, entries).is_continue());
        let due = self
            .snapshot
            .clone()
            .filter(|snapshot| self.is_compaction_due(snapshot.live()));
        if let Some(snapshot) = due {
            // The entries are durable even when compaction fails.
            let compacted = snapshot
                .entries()
                .and_then(|entries| self.replace_by(&entries));
            self.uncompacted = compacted.err();
        }
        Ok(())
    }

    /// Appends lines and syncs them. A failure stops the journal.
    fn append(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.open_replaced()?;
        // A copy: the chain moves on only with lines that are on disk.
        let mut chain = self.chain;
        let mut sealed = Vec::new();
        for entry in entries {
            chain.seal(&entry.line(), &mut sealed);
        }
        if let Err(cause) = self.file.append(&sealed) {
            self.stopped = true;
            return Err(on(&*self.disk, "write", JOURNAL_FILE)(cause));
        }
        self.chain = chain;
        self.bytes += sealed.len() as u64;
        self.head.note(self.place());
        Ok(())
    }

    fn place(&self) -> FilePlace {
        FilePlace::new(&self.header.id, self.chain)
    }

    /// The position of the last entry.
    fn position(&self) -> Position {
        self.header.position_after(self.lines())
    }

    /// Its entries.
    fn lines(&self) -> u64 {
        self.chain.lines.saturating_sub(1)
    }

    /// Whether most lines are obsolete, or the file has grown by much.
    fn is_compaction_due(&self, live: usize) -> bool {
        self.lines() > 2 * live as u64 + SLACK_LINES as u64
            || self.bytes > 2 * self.compacted_bytes + SLACK_BYTES
    }

    fn watch(&mut self, after: Position, mut watcher: Box<dyn Watcher>) -> Result<(), StoreError> {
        let last = self.position();
        let known = self.header.entries_up_to(after);
        let missed = match known {
            Some(known) if after <= last => known,
            Some(_) | None => return Err(StoreError::Compacted),
        };
        if after < last {
            let entries: Vec<Entry> = read(&*self.disk)?
                .entries
                .into_iter()
                .skip(missed)
                .map(|replayed| replayed.entry)
                .collect();
            if watcher.take(last, &entries).is_break() {
                return Ok(());
            }
        }
        self.watchers.push(watcher);
        Ok(())
    }

    /// Replaces the journal by these entries. Atomic: a crash leaves the old or the new file.
    ///
    /// When the new file cannot be written, the old one stays in use. When the replacement itself
    /// fails, the journal stops.
    fn replace_by(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        // The new file names the old one, whose id the head must have when a crash follows.
        self.head.save(&*self.disk, self.place())?;
        let header = Header::following(Some(self.place()), self.position(), entries.len());
        let (text, chain) =
            sealed(&header, entries).map_err(on(&*self.disk, "compact", JOURNAL_FILE))?;
        self.disk
            .prepare(JOURNAL_FILE, &text)
            .map_err(on(&*self.disk, "compact", JOURNAL_FILE))?;
        // Until it is certain which of the two files is there.
        self.stopped = true;
        self.disk
            .replace(JOURNAL_FILE)
            .map_err(on(&*self.disk, "replace", JOURNAL_FILE))?;
        self.header = header;
        self.chain = chain;
        self.bytes = text.len() as u64;
        self.compacted_bytes = self.bytes;
        self.stopped = false;
        self.replaced = true;
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

impl Debug for JournalFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalFile")
            .field("header", &self.header)
            .field("chain", &self.chain)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
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

/// Keeps copies of the journal of an older format and of its head, for the version that wrote them:
/// the journal is about to be written anew, before its owners have read their records.
fn keep_copies(disk: &dyn Disk, format: u32) -> Result<(), StoreError> {
    for name in [JOURNAL_FILE, HEAD_FILE] {
        let Some(bytes) = disk.read(name).map_err(on(disk, "read", name))? else {
            continue;
        };
        let copy = format!("{name}.format{format}");
        disk.prepare(&copy, &bytes)
            .and_then(|()| disk.replace(&copy))
            .map_err(on(disk, "write", &copy))?;
    }
    Ok(())
}

/// Begins a file with the entries of one that had no header, or none.
fn begin_anew(disk: &dyn Disk, before: &[Replayed]) -> Result<(Header, Chain), StoreError> {
    let entries: Vec<Entry> = before
        .iter()
        .map(|replayed| replayed.entry.clone())
        .collect();
    let header = Header::following(None, Position(entries.len() as u64), entries.len());
    let (text, chain) = sealed(&header, &entries).map_err(on(disk, "write", JOURNAL_FILE))?;
    // The folder may not exist yet.
    drop(
        disk.open(JOURNAL_FILE)
            .map_err(on(disk, "open", JOURNAL_FILE))?,
    );
    head::accept(disk)?;
    disk.prepare(JOURNAL_FILE, &text)
        .map_err(on(disk, "write", JOURNAL_FILE))?;
    disk.replace(JOURNAL_FILE)
        .map_err(on(disk, "replace", JOURNAL_FILE))?;
    Ok((header, chain))
}

/// The text of a new file and its chain.
fn sealed(header: &Header, entries: &[Entry]) -> io::Result<(Vec<u8>, Chain)> {
    let mut chain = Chain::default();
    let mut text = Vec::new();
    chain.seal(&serde_json::to_vec(header)?, &mut text);
    for entry in entries {
        chain.seal(&entry.line(), &mut text);
    }
    Ok((text, chain))
}

/// A journal that was read without locking its directory, which another process may own.
#[derive(Debug)]
pub struct PeekedJournal {
    folder: Folder,
    replay: Replay,
}

impl PeekedJournal {
    /// Reads a journal. It has no entries when there is none. Repairs nothing.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a line is not as it was written, [`StoreError::Lost`] when the
    /// journal is gone or older than before, [`StoreError::Io`] for all other errors.
    pub fn read(dir: &Path) -> Result<PeekedJournal, StoreError> {
        let folder = Folder::new(dir.to_owned());
        let replay = read(&folder)?;
        Ok(PeekedJournal { folder, replay })
    }

    /// Reads a journal, and checks that this process could open it.
    ///
    /// # Errors
    /// As [`PeekedJournal::read`].
    pub fn check(dir: &Path) -> Result<PeekedJournal, StoreError> {
        Directory::check_writable(dir, &[JOURNAL_FILE, HEAD_FILE])?;
        PeekedJournal::read(dir)
    }

    /// The state of an owner.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the owner cannot read one of its records.
    pub fn fold<F: Fold>(&self) -> Result<F, StoreError> {
        let own = self.replay.entries.iter();
        let own: Vec<Waiting> = own
            .filter(|replayed| replayed.entry.owner() == F::OWNER)
            .cloned()
            .map(Waiting::from)
            .collect();
        let lines_before = usize::from(self.replay.file.is_some());
        fold(&own).map_err(|unread| {
            let line = unread.number.map(|number| number + lines_before);
            damaged(&self.folder, line, &unread.cause)
        })
    }
}

#[cfg(test)]
mod tests;
