//! Copy of the common journal: the entries that are in force, as this node has applied them.

use cluster::JournalHead;
use runner::ShardLine;
use store::{Entry, Position, Replayed, StoreError};

use crate::group::{Group, Groups, UnreadableLine};

/// The copy.
#[derive(Debug, Default)]
pub(crate) struct JournalCopy {
    groups: Groups,
    entries: Vec<Entry>,
    /// The number of all entries that were applied.
    applied: u64,
    /// Why this copy is behind the journal.
    fault: Option<UnreadableLine>,
}

/// Entries that were appended together.
#[derive(Debug)]
pub(crate) struct AppliedGroup {
    pub(crate) group: Group,
    pub(crate) last: Position,
}

impl JournalCopy {
    /// Takes lines of one message, and returns the groups that they end.
    pub(crate) fn apply(&mut self, at: JournalHead, lines: &[ShardLine]) -> Vec<AppliedGroup> {
        let mut groups = Vec::new();
        for line in lines {
            match self.groups.take(at.epoch, line) {
                Ok(None) => {}
                // It says that a use of a refresh token is over, and no more.
                Ok(Some(group)) if group.entries.is_empty() && !group.is_snapshot => {}
                Ok(Some(group)) => {
                    if group.is_snapshot {
                        self.entries.clear();
                    }
                    self.applied += group.entries.len() as u64;
                    self.entries.extend(group.entries.iter().cloned());
                    let last = self.last();
                    groups.push(AppliedGroup { group, last });
                }
                Err(fault) => self.fault = Some(fault),
            }
        }
        groups
    }

    /// The place of the last entry.
    pub(crate) fn last(&self) -> Position {
        Position::of(self.applied)
    }

    /// The entries that are in force.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Hands over the entries that are in force, and returns the place of the last one.
    pub(crate) fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Position {
        for (index, entry) in self.entries.iter().enumerate() {
            take(Replayed {
                number: index + 1,
                entry: entry.clone(),
            });
        }
        self.last()
    }

    /// Begins anew: messages were lost, and a person has accepted it.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Why the copy cannot be used.
    pub(crate) fn fault(&self) -> Option<UnreadableLine> {
        self.fault
    }
}

/// The error about an entry that its owner cannot read.
pub(crate) fn unreadable(number: Option<usize>, cause: &str) -> StoreError {
    let which = number.map_or_else(String::new, |number| format!(" {number}"));
    tracing::error!(cause, "entry{which} of the common journal cannot be read");
    StoreError::Untaken("an entry of it cannot be read by this version")
}
