//! A change of a file: planned, shown, then made.

use std::fs::File;

use similar::{ChangeTag, TextDiff};

use crate::edit::EditError;
use crate::files::{FileError, TextFile};
use crate::secret::hidden;

/// Most servers of a client's file.
pub const CLIENT_SERVERS_MAX: usize = 256;

/// Lines that a difference shows around what changes.
const CONTEXT_LINES: usize = 3;

/// Why a change cannot be planned or made. The file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be edited.
    #[error("{path}: {error}")]
    Edit {
        /// The file.
        path: String,
        /// The reason.
        error: EditError,
        /// The entry to write by hand, if the change is one.
        snippet: Option<String>,
    },
    /// A pattern of the file hides a tool that is to be shown.
    #[error("{path}: `{pattern}` in `hide` of `{server}` hides `{tool}`, and may hide others too")]
    ToolHidden {
        /// The file.
        path: String,
        /// The server of the tool.
        server: String,
        /// The pattern in its `hide`.
        pattern: String,
        /// The tool.
        tool: String,
    },
    /// A client's file has more servers than are taken over.
    #[error("{path}: {count} servers are too many: at most {max} are taken over", max = CLIENT_SERVERS_MAX)]
    TooMany {
        /// The file.
        path: String,
        /// Number of servers in the file.
        count: usize,
    },
}

/// Change of a file.
#[derive(Debug, Clone)]
pub struct FileChange {
    /// The file as it is.
    pub file: TextFile,
    /// Its bytes afterwards; `None` if it is removed, or stays absent.
    pub after: Option<Vec<u8>>,
}

/// A line of a difference, secrets hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffRow {
    /// `+`, `-`, ` `, or `@` for the place of what follows.
    pub sign: char,
    /// The line without its end.
    pub text: String,
}

impl FileChange {
    /// Another text for a file.
    #[must_use]
    pub fn text(file: TextFile, text: &str) -> Self {
        let after = (file.exists() || !text.is_empty()).then(|| file.with_text(text));
        Self { file, after }
    }

    /// No change.
    #[must_use]
    pub fn none(file: TextFile) -> Self {
        let after = file.bytes.clone();
        Self { file, after }
    }

    /// Whether the file stays as it is.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.file.bytes == self.after
    }

    /// The difference, as `diff -u` shows it.
    #[must_use]
    pub fn rows(&self) -> Vec<DiffRow> {
        let after = String::from_utf8_lossy(self.after.as_deref().unwrap_or_default()).into_owned();
        let after = after.strip_prefix('\u{feff}').unwrap_or(&after);
        let diff = TextDiff::from_lines(self.file.text.as_str(), after);
        let mut rows = Vec::new();
        for group in diff.grouped_ops(CONTEXT_LINES) {
            if let Some(first) = group.first() {
                rows.push(DiffRow {
                    sign: '@',
                    text: format!("line {}", first.new_range().start + 1),
                });
            }
            for change in group.iter().flat_map(|part| diff.iter_changes(part)) {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                rows.push(DiffRow {
                    sign,
                    text: hidden(change.value().trim_end_matches(['\r', '\n'])),
                });
            }
        }
        rows
    }

    /// Makes the change.
    ///
    /// # Errors
    /// When another program changed the file meanwhile, or it cannot be written.
    pub fn make(&self) -> Result<(), FileError> {
        self.hold()?.make()
    }

    /// The change, of a file that is still as it was read, or is as the change makes it. No other
    /// change of the file is made until it is dropped.
    ///
    /// # Errors
    /// When another program changed the file meanwhile, or has it for too long.
    pub(crate) fn hold(&self) -> Result<HeldChange<'_>, FileError> {
        if self.is_none() {
            return Ok(HeldChange {
                change: self,
                is_made: true,
                _lock: None,
            });
        }
        let lock = self.file.lock(self.after.is_some())?;
        let now = self.file.now()?;
        if now != self.file.bytes && now != self.after {
            return Err(FileError::Changed {
                path: self.file.path.clone(),
            });
        }
        Ok(HeldChange {
            change: self,
            is_made: now == self.after,
            _lock: lock,
        })
    }
}

/// A change that nothing else comes before.
pub(crate) struct HeldChange<'a> {
    change: &'a FileChange,
    /// Whether the file is so already.
    is_made: bool,
    _lock: Option<File>,
}

impl HeldChange<'_> {
    /// Makes the change.
    pub(crate) fn make(&self) -> Result<(), FileError> {
        if self.is_made {
            return Ok(());
        }
        self.change.file.replace(self.change.after.as_deref())
    }
}

/// An edit of a file as an error that names it.
pub(crate) fn edited<T>(
    file: &TextFile,
    result: Result<T, EditError>,
    snippet: impl FnOnce() -> Option<String>,
) -> Result<T, SetupError> {
    result.map_err(|error| {
        let snippet = match error {
            EditError::Unsafe => snippet(),
            EditError::Syntax { .. } | EditError::Shape(_) => None,
        };
        SetupError::Edit {
            path: file.path.display().to_string(),
            error,
            snippet,
        }
    })
}
