//! What can go wrong with the files. Must not know what the records mean.

use std::path::PathBuf;

/// Why the journal could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another living process owns this data directory.
    #[error("the data directory `{}` is in use by {owner}", dir.display())]
    Locked {
        /// The directory that was asked for.
        dir: PathBuf,
        /// Who has it, as far as its lock file says.
        owner: String,
        /// Where that process listens, if it said so.
        listen: Option<String>,
    },
    /// The operating system refused.
    #[error("cannot {what} `{}`: {cause}", path.display())]
    Io {
        /// The act that failed, as a verb: open, write, sync.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// A line that is not the last one cannot be read: the journal was damaged or comes from a newer version.
    #[error("line {line} of `{}` cannot be read: {cause}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// An earlier write failed, so nothing that was promised durable can be promised any more.
    #[error("the journal stopped after a failed write; restart once the disk is well")]
    Stopped,
    /// More waits to be written than may wait.
    #[error("the disk is too slow: too much waits to be written")]
    Busy,
}

impl StoreError {
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
