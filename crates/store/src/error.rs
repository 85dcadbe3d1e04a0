//! Errors of the journal and the audit log, with stable codes.

use std::path::{Path, PathBuf};

/// Error of the data directory, the journal or the audit log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another living process owns this data directory.
    #[error("the data directory `{}` is in use by {owner}", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The owning process, as its lock file names it.
        owner: String,
        /// Address on which that process listens, if its lock file has one.
        listen: Option<String>,
    },
    /// The operating system reported an error.
    #[error("cannot {action} `{}`: {cause}", path.display())]
    Io {
        /// The action that failed, as a verb: open, write, sync.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// A line before the last one is not a record: the journal is damaged or was written by a newer version.
    #[error("line {line} of `{}` cannot be read: {cause}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Error of the parser.
        cause: String,
    },
    /// An earlier write failed; nothing more is written.
    #[error("writing stopped after an earlier failure; restart once the disk works")]
    Stopped,
    /// The queue for the disk is full.
    #[error("the disk is too slow: the write queue is full")]
    Busy,
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path, cause: std::io::Error) -> StoreError {
        StoreError::Io { action, path: path.to_owned(), cause }
    }

    /// Stable code for scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Locked { .. } => "data_dir_locked",
            StoreError::Io { .. } | StoreError::Stopped => "log_unavailable",
            StoreError::Busy => "overloaded",
            StoreError::Damaged { .. } => "journal_damaged",
        }
    }
}
