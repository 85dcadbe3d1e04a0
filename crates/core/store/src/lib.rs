//! Storage of one data directory: the journal, which is the source after a restart, and the audit
//! log, which people read.
//!
//! The crate owns the file formats, the lock that gives a directory to one process, and the rule
//! that a record is synced before a caller acts on it. It knows no record but its own: each record
//! of the journal belongs to an owner ([`Fold`]), who folds its own state from it.
//!
//! - [`Journal`]: a log of entries, as its users see it; [`FileJournal`] is the one of today.
//! - [`JournalWriter`]: a journal with the states of its owners. [`Ledger`] is the part of one.
//! - [`PeekedJournal`]: a journal that another process may own.

pub mod audit;
mod directory;
mod disk;
mod entry;
mod error;
mod file;
mod fold;
mod folds;
mod group;
mod journal;
mod key;
mod ledger;
mod operator_key;
mod owner;
pub mod recorder;
#[cfg(test)]
mod tests;
mod writer;

pub use directory::Directory;
pub use entry::Entry;
pub use error::{StoreError, not_written};
pub use file::{FileJournal, PeekedJournal, WRITER_BYTES_MAX, WRITER_PERMITS_MAX};
pub use fold::Fold;
pub use journal::{
    Journal, OnDurable, OnUncompacted, Place, Position, Replayed, Snapshot, Watcher,
};
pub use key::SealingKey;
pub use ledger::{JournalPermit, Ledger};
pub use operator_key::{operator_key, remove_operator_key, write_operator_key};
pub use owner::DirectoryOwner;
pub use writer::{JournalWriter, PARTICIPANT_WRITER_BYTES_MAX};
