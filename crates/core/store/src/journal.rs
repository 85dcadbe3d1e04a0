//! The seam for what lasts: a log of entries in one order, as its users see it.
//!
//! [`crate::FileJournal`] keeps the log in a file of one machine. The log that the nodes of a cluster
//! share is another implementation: nothing above this trait knows of either.

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::StoreError;

/// A place in a journal: that of an entry, or the one before the first ([`Position::default`]).
/// Positions of one journal are ordered as its entries are, and are never used again: neither a
/// restart nor a compaction changes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub(crate) u64);

impl Position {
    /// The place of the entry of this number, from 1; 0 is the one before the first.
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self(number)
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// Receives where the last of the appended entries is once all of them are durable, or why they are
/// not. Runs on a thread of the journal: it must be short, and must not wait for the journal.
pub type OnDurable = Box<dyn FnOnce(Result<Position, StoreError>) + Send>;

/// Receives why a compaction failed.
pub type OnUncompacted = Box<dyn Fn(&str) + Send + Sync>;

/// A log of entries in one order, which outlives the process.
///
/// - Entries of one append follow each other. Appends of one caller keep their order.
/// - An append is reported once its entries are durable: they are in every later replay. What is
///   never reported may be durable or not.
/// - Watchers have taken an entry before its append is reported.
pub trait Journal: Debug + Send + Sync {
    /// Reserves a place in the queue.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the queue is full, [`StoreError::Stopped`] and
    /// [`StoreError::Paused`] when nothing can be appended.
    fn reserve(&self) -> Result<Box<dyn Place>, StoreError>;

    /// Appends entries, also when the queue is full.
    fn append(&self, entries: Vec<Entry>, on_durable: OnDurable);

    /// Hands over the entries that are in force, in their order, and returns the position of the
    /// last one. Those of before the latest compaction are the ones that it kept.
    ///
    /// # Errors
    /// When the log cannot be read, or is not as it was written.
    fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Result<Position, StoreError>;

    /// Hands over all entries after this position, those that are appended later too, each once and
    /// in their order.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when entries after this position are gone: then a replay has what
    /// is in force. As [`Journal::replay`] else.
    fn watch(&self, after: Position, watcher: Box<dyn Watcher>) -> Result<(), StoreError>;

    /// From now on the journal may replace its entries by those of this snapshot, which has taken
    /// all of them as a watcher.
    fn compact_by(&self, snapshot: Arc<dyn Snapshot>);

    /// Has failed compactions reported, the first of a row: the journal grows, or has stopped.
    /// `report` runs on a thread of the journal: it must be short, and must not use the journal.
    /// The first call decides.
    fn on_uncompacted(&self, report: OnUncompacted);

    /// Why nothing can be appended; `None` while it can. For readiness checks and logs: it can name
    /// paths.
    fn failure(&self) -> Option<String>;

    /// The error about an entry that its owner cannot read, with its number in the
    /// [replay](Replayed) if that is known.
    fn unreadable(&self, number: Option<usize>, cause: &str) -> StoreError;
}

/// A place in a journal's queue, for one append. Released when dropped.
pub trait Place: Debug + Send {
    /// Appends entries. The queue does not reject them as [`StoreError::Busy`].
    fn append(self: Box<Self>, entries: Vec<Entry>, on_durable: OnDurable);
}

/// An entry of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Its number in this replay, from 1.
    pub number: usize,
    /// The entry.
    pub entry: Entry,
}

/// Follows a journal. Runs on a thread of the journal, which appends nothing meanwhile: it must be
/// short, and must not use the journal.
pub trait Watcher: Send {
    /// Takes the next entries, which are durable. `last` is the position of the last of them. After
    /// `Break` it gets no more.
    fn take(&mut self, last: Position, entries: &[Entry]) -> ControlFlow<()>;
}

/// A source of the entries in force, from which a compaction writes the journal anew.
pub trait Snapshot: Send + Sync {
    /// Number of entries that [`Snapshot::entries`] returns, or a few more.
    fn live(&self) -> usize;

    /// The entries that rebuild what is in force.
    ///
    /// # Errors
    /// When an entry cannot be written, or something in force is not known here: then the journal
    /// stays as it is.
    fn entries(&self) -> Result<Vec<Entry>, StoreError>;
}
