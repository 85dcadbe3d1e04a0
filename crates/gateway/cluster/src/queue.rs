//! Records of a home that wait for the log.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::record::{CommonEntry, HomeLine, JournalHead};
use crate::timing::{WAITING_BYTES_MAX, WAITING_LINES_MAX};

/// The bytes of a record beside its lines, at a guess.
const RECORD_BYTES: usize = 64;

/// A record that waits for the log.
#[derive(Debug, Clone)]
pub(crate) enum Queued<R> {
    Entry {
        entry: CommonEntry<R>,
        ticket: Option<u64>,
    },
    Fence {
        next: Option<Arc<str>>,
    },
    Lost {
        known: JournalHead,
    },
    Accepted,
    /// A snapshot with these lines.
    Compaction {
        ticket: u64,
        lines: Vec<R>,
    },
    /// An empty group.
    Alive,
}

impl<R: HomeLine> Queued<R> {
    /// An entry that no caller waits for.
    pub(crate) fn silent(entry: CommonEntry<R>) -> Self {
        Self::Entry {
            entry,
            ticket: None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Entry { entry, .. } => entry.bytes(),
            Self::Compaction { lines, .. } => {
                let lines = lines.iter().map(|line| line.bytes().len() + RECORD_BYTES);
                lines.sum()
            }
            _ => RECORD_BYTES,
        }
    }

    /// Whether it is a line, or has some.
    fn has_lines(&self) -> bool {
        match self {
            Self::Entry { entry, .. } => entry.line().is_some(),
            Self::Compaction { .. } => true,
            _ => false,
        }
    }

    /// Whether it changes the members.
    pub(crate) fn changes_members(&self) -> bool {
        matches!(self, Self::Entry { entry, .. } if entry.changes_members())
    }
}

/// A snapshot that is being written.
#[derive(Debug, Clone)]
pub(crate) struct Compacting<R> {
    /// The runner's number.
    pub(crate) ticket: u64,
    /// The lines, as long as its beginning is not durable.
    pub(crate) lines: Vec<R>,
    /// The sequence of its beginning, once that is durable.
    pub(crate) sequence: Option<u64>,
}

/// The records of a home that wait, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Queue<R> {
    records: VecDeque<Queued<R>>,
    bytes: usize,
}

impl<R: HomeLine> Queue<R> {
    pub(crate) fn new() -> Self {
        Self {
            records: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether it takes no further line of a caller's.
    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= WAITING_LINES_MAX || self.bytes >= WAITING_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn push_back(&mut self, queued: Queued<R>) {
        self.bytes += queued.bytes();
        self.records.push_back(queued);
    }

    pub(crate) fn push_front(&mut self, queued: Queued<R>) {
        self.bytes += queued.bytes();
        self.records.push_front(queued);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Queued<R>> {
        let first = self.records.pop_front()?;
        self.bytes = self.bytes.saturating_sub(first.bytes());
        Some(first)
    }

    pub(crate) fn front(&self) -> Option<&Queued<R>> {
        self.records.front()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Removes the lines of callers, and returns the runner's numbers of them.
    pub(crate) fn take_tickets(&mut self) -> Vec<u64> {
        let records = std::mem::take(&mut self.records);
        self.bytes = 0;
        let mut tickets = Vec::new();
        for queued in records {
            match queued {
                Queued::Entry {
                    ticket: Some(ticket),
                    ..
                }
                | Queued::Compaction { ticket, .. } => tickets.push(ticket),
                other => self.push_back(other),
            }
        }
        tickets
    }

    /// Whether lines wait.
    pub(crate) fn has_lines(&self) -> bool {
        self.records.iter().any(Queued::has_lines)
    }

    /// Removes the snapshot that is the next record, if it is one; returns the runner's number and
    /// the lines.
    pub(crate) fn pop_compaction(&mut self) -> Option<Compacting<R>> {
        let Some(Queued::Compaction { .. }) = self.front() else {
            return None;
        };
        match self.pop_front() {
            Some(Queued::Compaction { ticket, lines }) => Some(Compacting {
                ticket,
                lines,
                sequence: None,
            }),
            _ => None,
        }
    }

    pub(crate) fn changes_members(&self) -> bool {
        self.records.iter().any(Queued::changes_members)
    }

    /// The place of the end of the epoch, if it waits.
    fn fence_at(&self) -> Option<usize> {
        let mut records = self.records.iter();
        records.position(|queued| matches!(queued, Queued::Fence { .. }))
    }

    /// Whether the end of the epoch waits.
    pub(crate) fn has_fence(&self) -> bool {
        self.fence_at().is_some()
    }

    /// Puts a record last, but before the end of the epoch.
    pub(crate) fn push_before_fence(&mut self, queued: Queued<R>) {
        self.bytes += queued.bytes();
        let at = self.fence_at().unwrap_or(self.records.len());
        self.records.insert(at, queued);
    }
}
