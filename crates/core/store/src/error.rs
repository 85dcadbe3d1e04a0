//! Errors of the journal and the audit log, with stable codes.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::{Refusal, RefusalCode};

use crate::owner::DirectoryOwner;

/// Error of the data directory, the journal or the audit log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another living process owns this data directory.
    #[error("{}", locked(dir, owner.as_deref()))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The owning process, as its lock file names it.
        owner: Option<Box<DirectoryOwner>>,
    },
    /// The lock file of the data directory is not private to the user of this process.
    #[error("the data directory `{}` may belong to another user, so the address in its lock file is not used", dir.display())]
    Foreign {
        /// The directory.
        dir: PathBuf,
    },
    /// The data directory is another user's: a gateway of that one may run with it.
    #[error("the data directory `{}` belongs to another user (uid {user}), whose gateway cannot be found by this one", dir.display())]
    OfOther {
        /// The directory.
        dir: PathBuf,
        /// The user's number.
        user: u32,
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
    /// A line is not as it was written: the journal is damaged or was written by a newer version.
    #[error("{} of `{}` is damaged: {cause}", damaged_part(*line), path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The file of its head.
        head: PathBuf,
        /// Line number, from 1; `None` if it is not known.
        line: Option<usize>,
        /// Fault of the line.
        cause: String,
    },
    /// The journal is gone, or is not the one that the file of its head names.
    #[error("the journal `{}` is not what this data directory had: {cause}", path.display())]
    Lost {
        /// The journal.
        path: PathBuf,
        /// The file of its head. With the word `accepted` in it the journal is taken as it is.
        head: PathBuf,
        /// Fault of the journal.
        cause: String,
    },
    /// Entries after a position are gone: a compaction has dropped them. Or the journal never had the
    /// position.
    #[error("the journal has no entries after that position any more")]
    Compacted,
    /// A file could not be opened, so nothing was written. Writing goes on as soon as it can be
    /// opened.
    #[error("cannot open `{}`: {cause}", path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// Nothing is written until a file can be opened.
    #[error("writing waits until a file can be opened")]
    Paused,
    /// An earlier write failed; nothing more is written.
    #[error("writing stopped after an earlier failure; restart once the disk works")]
    Stopped,
    /// This process is not the one of the cluster that writes the journal, or is it no more. An
    /// append that was under way is stored or not.
    #[error("another node of the cluster writes the journal now")]
    Elsewhere,
    /// The log that the nodes of the cluster share did not take the entries. They are not stored.
    #[error("the cluster's log took no entries: {0}")]
    Untaken(&'static str),
    /// The entries of one participant that wait for the disk fill its share of the queue.
    #[error("too many entries of one participant wait for the disk")]
    Share,
    /// The queue for the disk is full.
    #[error("the disk is too slow: the write queue is full")]
    Busy,
}

/// The user of this process.
fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The damaged part of a journal.
fn damaged_part(line: Option<usize>) -> String {
    match line {
        Some(line) => format!("line {line}"),
        None => "a line".to_owned(),
    }
}

/// That another process has a data directory.
fn locked(dir: &Path, owner: Option<&DirectoryOwner>) -> String {
    let dir = dir.display();
    match owner {
        None => format!("the data directory `{dir}` is in use by another process"),
        Some(DirectoryOwner {
            pid, listen: None, ..
        }) => {
            format!("the data directory `{dir}` is in use by process {pid}")
        }
        Some(DirectoryOwner {
            pid,
            listen: Some(listen),
            ..
        }) => {
            format!(
                "a gateway runs already with the data directory `{dir}`: process {pid}, on {listen}"
            )
        }
    }
}

impl StoreError {
    /// That a file of a data directory cannot be opened: the directory is another user's, if that is
    /// why.
    pub(crate) fn unopened(dir: &Path, file: &Path, cause: std::io::Error) -> StoreError {
        let known = std::fs::metadata(dir).map(|data| data.uid());
        match known {
            Ok(user) if cause.kind() == ErrorKind::PermissionDenied && user != own_user() => {
                StoreError::OfOther {
                    dir: dir.to_owned(),
                    user,
                }
            }
            Ok(_) | Err(_) => StoreError::io("open", file, cause),
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, cause: std::io::Error) -> StoreError {
        StoreError::Io {
            action,
            path: path.to_owned(),
            cause,
        }
    }

    /// Stable code for scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Locked { .. } => "data_dir_locked",
            StoreError::Foreign { .. } | StoreError::OfOther { .. } => "data_dir_foreign",
            StoreError::Io { .. }
            | StoreError::Unopened { .. }
            | StoreError::Compacted
            | StoreError::Paused
            | StoreError::Untaken(_)
            | StoreError::Stopped => "log_unavailable",
            StoreError::Elsewhere => "home_elsewhere",
            StoreError::Busy | StoreError::Share => "overloaded",
            StoreError::Damaged { .. } => "journal_damaged",
            StoreError::Lost { .. } => "journal_lost",
        }
    }
}

/// The refusal of a change that could not be written. The cause goes to the log alone.
pub fn not_written(error: &StoreError) -> Refusal {
    if matches!(error, StoreError::Elsewhere) {
        let message =
            "another node of the cluster is the home now: the change was made, or it was not";
        return Refusal::new(RefusalCode::LogUnavailable, message)
            .hint("look whether it was made before you make it again");
    }
    tracing::error!(code = error.code(), %error, "the journal cannot be written");
    let message = "the change could not be written to the journal, so it was not made";
    Refusal::new(RefusalCode::LogUnavailable, message).hint("the gateway's log says why")
}
