//! Data directory: private mode, lock of one process, address of its owner.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use platform::{open_regular, unix_ms};
use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::disk::{private, readable};
use crate::error::StoreError;
use crate::owner::DirectoryOwner;

const LOCK_FILE: &str = "lock";
const LOCK_FILE_BYTES_MAX: u64 = 64 << 10;
/// The longest names of configuration files that are written together, in bytes, so that the lock
/// file can be read.
const FILES_BYTES_MAX: usize = 32 << 10;
/// The longest reason of a failed reload that is written, in characters.
const REASON_CHARS_MAX: usize = 2_000;
const LOCK_TRIES: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A data directory that this process has locked until the value is dropped. The operating system
/// releases the lock when the process ends, also after a kill.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    lock: File,
    /// Time at which the process took the directory, in Unix milliseconds.
    since_ms: u64,
}

impl Directory {
    /// Creates the directory if it does not exist (mode 0700) and locks it for this process.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process holds the lock, [`StoreError::Io`] when the
    /// directory cannot be created or opened.
    pub fn acquire(path: &Path) -> Result<Directory, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|cause| StoreError::io("create", path, cause))?;
        make_private(path)?;
        let lock_path = path.join(LOCK_FILE);
        let lock = open_regular(private().read(true), &lock_path)
            .map_err(|cause| StoreError::io("open", &lock_path, cause))?;
        if !lock_exclusively(&lock) {
            let owner = read_owner(&lock).filter(|_| is_private(&lock));
            return Err(StoreError::Locked {
                dir: path.to_owned(),
                owner: owner.map(Box::new),
            });
        }
        let directory = Directory {
            path: path.to_owned(),
            lock,
            since_ms: unix_ms(),
        };
        directory.announce(DirectoryOwner::default())?;
        Ok(directory)
    }

    /// The current owner of a directory; `None` when it is not locked or does not exist. Does not
    /// lock it.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] when the lock file is not private to the user of this process:
    /// another user may have written the address in it. [`StoreError::OfOther`] when the directory is
    /// another user's, and [`StoreError::Io`] when this process may not read the lock file else.
    pub fn owner(path: &Path) -> Result<Option<DirectoryOwner>, StoreError> {
        let lock_path = path.join(LOCK_FILE);
        let lock = match readable(&lock_path) {
            Ok(lock) => lock,
            Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
                return Err(StoreError::unopened(path, &lock_path, cause));
            }
            // A file that is no lock is none.
            Err(_) => return Ok(None),
        };
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
            return Ok(None);
        }
        if !is_private(&lock) {
            return Err(StoreError::Foreign {
                dir: path.to_owned(),
            });
        }
        Ok(read_owner(&lock))
    }

    /// Checks that this process may write in a directory, its lock file and these other files of
    /// it. Changes nothing, and does not lock it.
    ///
    /// # Errors
    /// [`StoreError::Io`] that names what it may not write.
    pub(crate) fn check_writable(path: &Path, files: &[&str]) -> Result<(), StoreError> {
        let may = |path: &Path, mode| match access(path, mode) {
            Err(cause) if cause != Errno::NOENT => Err(StoreError::io("write", path, cause.into())),
            _ => Ok(()),
        };
        may(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?;
        let mut files = files.iter().chain(&[LOCK_FILE]);
        files.try_for_each(|file| may(&path.join(file), Access::READ_OK | Access::WRITE_OK))
    }

    /// Writes into the lock file what commands must know of this process: its address and the
    /// certificate that it shows there, and its configuration files. Process id and time are the
    /// directory's own.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the lock file cannot be written.
    pub fn announce(&self, mut owner: DirectoryOwner) -> Result<(), StoreError> {
        (owner.pid, owner.since_ms) = (std::process::id(), self.since_ms);
        let mut bytes = 0;
        owner.files.retain(|file| {
            bytes += file.len();
            bytes <= FILES_BYTES_MAX
        });
        owner.reload_failed = owner
            .reload_failed
            .map(|why| why.chars().take(REASON_CHARS_MAX).collect());
        let path = self.path.join(LOCK_FILE);
        let line = serde_json::to_string(&owner)
            .map_err(|cause| StoreError::io("write", &path, cause.into()))?;
        let mut lock = &self.lock;
        lock.set_len(0)
            .and_then(|()| lock.seek(SeekFrom::Start(0)))
            .and_then(|_| lock.write_all(line.as_bytes()))
            .map_err(|cause| StoreError::io("write", &path, cause))
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the permissions of other users from a directory that existed before: it holds keys.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let metadata = std::fs::metadata(path).map_err(|cause| StoreError::io("read", path, cause))?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o700))
        .map_err(|cause| StoreError::io("make private", path, cause))
}

/// Whether only the user of this process can have written a file.
fn is_private(file: &File) -> bool {
    let is_own =
        |data: Metadata| data.uid() == geteuid().as_raw() && data.permissions().mode() & 0o077 == 0;
    file.metadata().is_ok_and(is_own)
}

/// Retries, since a process that calls [`Directory::owner`] holds the lock for a moment.
fn lock_exclusively(lock: &File) -> bool {
    (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(LOCK_PAUSE);
        }
        flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

fn read_owner(mut lock: &File) -> Option<DirectoryOwner> {
    let mut text = String::new();
    lock.seek(SeekFrom::Start(0)).ok()?;
    lock.take(LOCK_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    serde_json::from_str(&text).ok()
}
