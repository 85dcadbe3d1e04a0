//! Journal of a branch: a node that is not the home reads what the home writes, and writes nothing.

use std::fmt::{self, Debug, Formatter};
use std::ops::ControlFlow;
use std::sync::Arc;

use platform::Mutex;
use store::{
    Entry, Journal, JournalWriter, OnDurable, OnUncompacted, Place, Position, Replayed, Snapshot,
    StoreError, Watcher,
};

use crate::copy::{AppliedGroup, JournalCopy, unreadable};

/// Receives entries that count from now on, once those who watch have taken them. The other nodes
/// learn that this one has them once it is back.
pub type OnApplied = Box<dyn Fn(&[Entry]) + Send + Sync>;

/// The journal of a node that is not the home, for a gateway that writes nothing. It ends when the
/// copy of the log begins anew.
pub struct BranchJournal {
    copy: Arc<Mutex<JournalCopy>>,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    is_over: bool,
    watchers: Vec<Box<dyn Watcher>>,
    on_applied: Option<Arc<OnApplied>>,
}

impl BranchJournal {
    pub(crate) fn new(copy: Arc<Mutex<JournalCopy>>) -> Arc<Self> {
        Arc::new(Self {
            copy,
            readers: Mutex::default(),
        })
    }

    /// The journal for its users.
    ///
    /// # Errors
    /// When an entry cannot be read, or the log goes on meanwhile.
    pub fn writer(self: &Arc<Self>) -> Result<JournalWriter, StoreError> {
        JournalWriter::over(Arc::new(FollowedJournal(Arc::clone(self))), None)
    }

    /// Has what is applied from now on reported.
    pub fn on_applied(&self, report: OnApplied) {
        self.readers.lock().on_applied = Some(Arc::new(report));
    }

    /// Whether nothing follows any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.readers.lock().is_over
    }

    /// Hands groups that count to those who watch. The caller has the copy's lock, so that none begins
    /// to watch meanwhile.
    pub(crate) fn applied(&self, groups: &[AppliedGroup]) {
        let mut readers = self.readers.lock();
        // A snapshot says what those who watch have.
        for group in groups.iter().filter(|group| !group.group.is_snapshot) {
            let watches = |watcher: &mut Box<dyn Watcher>| {
                watcher.take(group.last, &group.group.entries) == ControlFlow::Continue(())
            };
            readers.watchers.retain_mut(watches);
        }
    }

    /// Reports the groups. The caller has no lock.
    pub(crate) fn report(&self, groups: &[AppliedGroup]) {
        let on_applied = self.readers.lock().on_applied.clone();
        let Some(report) = on_applied else {
            return;
        };
        for group in groups.iter().filter(|group| !group.group.is_snapshot) {
            report(&group.group.entries);
        }
    }

    /// Nothing follows any more.
    pub(crate) fn end(&self) {
        *self.readers.lock() = Readers {
            is_over: true,
            ..Readers::default()
        };
    }
}

impl Debug for BranchJournal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_over = self.is_over();
        f.debug_struct("BranchJournal")
            .field("is_over", &is_over)
            .finish_non_exhaustive()
    }
}

/// The journal as its users have it.
#[derive(Debug)]
struct FollowedJournal(Arc<BranchJournal>);

impl Journal for FollowedJournal {
    fn reserve(&self) -> Result<Box<dyn Place>, StoreError> {
        Err(StoreError::Elsewhere)
    }

    fn append(&self, _: Vec<Entry>, on_durable: OnDurable) {
        on_durable(Err(StoreError::Elsewhere));
    }

    fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Result<Position, StoreError> {
        Ok(self.0.copy.lock().replay(take))
    }

    fn watch(&self, after: Position, watcher: Box<dyn Watcher>) -> Result<(), StoreError> {
        // The copy changes under its lock, and is handed to watchers under it.
        let copy = self.0.copy.lock();
        if copy.last() != after || self.0.is_over() {
            return Err(StoreError::Elsewhere);
        }
        self.0.readers.lock().watchers.push(watcher);
        Ok(())
    }

    fn compact_by(&self, _: Arc<dyn Snapshot>) {}

    fn on_uncompacted(&self, _: OnUncompacted) {}

    fn failure(&self) -> Option<String> {
        let fault = self.0.copy.lock().fault();
        fault.map(|fault| fault.to_string())
    }

    fn unreadable(&self, number: Option<usize>, cause: &str) -> StoreError {
        unreadable(number, cause)
    }
}
