//! Deadlines of operations, proposals and tasks, by time.

use std::collections::BTreeSet;

use model::OperationId;

/// Entries that are due at certain times, on one clock. Of two at one time the one with the smaller
/// id is due first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    all: BTreeSet<Deadline>,
}

/// In the order of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at_ms: u64,
    id: OperationId,
}

impl Deadlines {
    pub(crate) fn insert(&mut self, at_ms: u64, id: OperationId) {
        self.all.insert(Deadline { at_ms, id });
    }

    pub(crate) fn remove(&mut self, at_ms: u64, id: OperationId) {
        self.all.remove(&Deadline { at_ms, id });
    }

    /// The time of the first.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        Some(self.all.first()?.at_ms)
    }

    /// The first, if it is due.
    pub(crate) fn due(&self, now_ms: u64) -> Option<OperationId> {
        let first = self.all.first()?;
        if first.at_ms > now_ms {
            return None;
        }
        Some(first.id)
    }

    /// Takes out the first, if it is due.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<OperationId> {
        let id = self.due(now_ms)?;
        self.all.pop_first();
        Some(id)
    }
}
