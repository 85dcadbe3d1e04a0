//! Files of others: read with all that must survive an edit, and replaced as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use data_encoding::HEXLOWER;
use platform::{open_regular, random};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// Largest file that is read, bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Byte order mark.
pub(crate) const BOM: &str = "\u{feff}";
/// Most links from one file to the next.
pub(crate) const LINKS_MAX: usize = 16;
/// Attempts to lock a folder: ten seconds. A change takes milliseconds.
const LOCK_TRIES: usize = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// It is not a text in UTF-8.
    #[error("{}: line {line} is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Another program changed it between the plan and its execution.
    #[error("{} was changed by another program: nothing was written", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("cannot write {}: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// A file as it was when it was read.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Its path as it was named.
    pub path: PathBuf,
    /// Path of the file, links followed.
    real: PathBuf,
    /// Its bytes; `None` if it is not there.
    pub bytes: Option<Vec<u8>>,
    /// Its text without a byte order mark; empty if it is not there.
    pub text: String,
}

impl TextFile {
    /// Reads a file; one that is not there is empty.
    ///
    /// # Errors
    /// When it cannot be read, is not regular, too long, or not UTF-8.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let unreadable = |why: String| FileError::Unreadable {
            path: path.to_owned(),
            why,
        };
        let real = followed(path).map_err(|error| unreadable(error.to_string()))?;
        let Some(bytes) = read_bytes(&real).map_err(|error| unreadable(error.to_string()))? else {
            return Ok(Self {
                path: path.to_owned(),
                real,
                bytes: None,
                text: String::new(),
            });
        };
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text.strip_prefix(BOM).unwrap_or(text).to_owned(),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                return Err(FileError::NotText {
                    path: path.to_owned(),
                    line,
                });
            }
        };
        Ok(Self {
            path: path.to_owned(),
            real,
            bytes: Some(bytes),
            text,
        })
    }

    /// Path of the file, if its own path leads there by links.
    #[must_use]
    pub fn linked_to(&self) -> Option<PathBuf> {
        let parent = fs::canonicalize(self.real.parent()?).ok()?;
        let real = parent.join(self.real.file_name()?);
        (real != self.path).then_some(real)
    }

    /// Whether the file is there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.bytes.is_some()
    }

    /// The bytes of the file with another text: its byte order mark stays.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Vec<u8> {
        let has_mark = self
            .bytes
            .as_ref()
            .is_some_and(|bytes| bytes.starts_with(BOM.as_bytes()));
        [if has_mark { BOM } else { "" }, text]
            .concat()
            .into_bytes()
    }

    /// The bytes of the file as it is now; `None` if it is not there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn now(&self) -> Result<Option<Vec<u8>>, FileError> {
        read_bytes(&self.real).map_err(|error| self.unwritable(error))
    }

    /// Replaces the file, or removes it. Links, permissions and the old content survive a failure.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn replace(&self, content: Option<&[u8]>) -> Result<(), FileError> {
        let replaced = match content {
            Some(content) => write_bytes(&self.real, content),
            None if self.exists() => fs::remove_file(&self.real),
            None => Ok(()),
        };
        replaced.map_err(|error| self.unwritable(error))
    }

    /// Locks the folder of the file for this program's changes, until the value is dropped. `None`
    /// if the folder is not there, or is of a file system without locks. The lock is the folder's,
    /// as the file itself is replaced, and so that nothing is left beside it.
    ///
    /// # Errors
    /// When the folder cannot be made or opened, or another process has it for too long.
    pub(crate) fn lock(&self, makes_folder: bool) -> Result<Option<File>, FileError> {
        let folder = match self.real.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        if makes_folder {
            make_folder(folder).map_err(|error| self.unwritable(error))?;
        }
        let folder = match File::open(folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unwritable(error)),
        };
        for _ in 0..LOCK_TRIES {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(folder)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(LOCK_PAUSE),
                Err(_) => return Ok(None),
            }
        }
        Err(self.unwritable(io::Error::other("another process has locked its folder")))
    }

    fn unwritable(&self, error: io::Error) -> FileError {
        FileError::Unwritable {
            path: self.path.clone(),
            why: error.to_string(),
        }
    }
}

/// Makes a folder that is not there, for its owner alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Path to which a path leads. The last file may not be there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..=LINKS_MAX {
        match fs::read_link(&at) {
            Ok(target) => at = at.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("too many links"))
}

/// The bytes of a regular file; `None` if it is not there.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it has more than {FILE_BYTES_MAX} bytes"
        )));
    }
    Ok(Some(bytes))
}

/// Writes a file beside the old one and moves it there, with the permissions of the old one; a new
/// file is its owner's alone.
pub(crate) fn write_bytes(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    if !folder.as_os_str().is_empty() {
        make_folder(&folder)?;
    }
    let mode = fs::metadata(path).map_or(0o600, |known| known.permissions().mode() & 0o7777);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{name}.{:016x}.new", u64::from_ne_bytes(random())));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
