//! The data directory: made private, and owned by one process at a time. Must not know the journal's records.

use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::disk::private;
use crate::error::StoreError;

const LOCK_FILE: &str = "lock";
const LOCK_FILE_BYTES_MAX: u64 = 4096;
const LOCK_TRIES: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A data directory that this process owns until the value is dropped. The lock is the operating system's: it ends
/// with the process, however that ends.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    lock: File,
}

/// What the owner of a data directory says about itself in the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// Where it listens, as `host:port`; `None` before it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

impl Directory {
    /// Makes the directory if it is not there (mode 0700) and takes it for this process.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has it, [`StoreError::Io`] when it cannot be made or opened.
    pub fn own(path: &Path) -> Result<Directory, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|cause| io("make", path, cause))?;
        tighten(path)?;
        let lock_path = path.join(LOCK_FILE);
        let lock = private().read(true).open(&lock_path).map_err(|cause| io("open", &lock_path, cause))?;
        if !lock_exclusively(&lock) {
            let owner = read_owner(&lock);
            return Err(StoreError::Locked {
                dir: path.to_owned(),
                owner: owner
                    .as_ref()
                    .map_or_else(|| "another process".into(), |owner| format!("process {}", owner.pid)),
                listen: owner.and_then(|owner| owner.listen),
            });
        }
        let directory = Directory { path: path.to_owned(), lock };
        directory.announce(None)?;
        Ok(directory)
    }

    /// Who owns a directory now, without taking it; `None` when nobody does or it is not there.
    #[must_use]
    pub fn owner(path: &Path) -> Option<Owner> {
        let lock = File::open(path.join(LOCK_FILE)).ok()?;
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => None,
            Err(_) => read_owner(&lock),
        }
    }

    /// Writes where this process listens into the lock file, so that the command line finds it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the lock file cannot be written.
    pub fn announce(&self, listen: Option<&str>) -> Result<(), StoreError> {
        let owner = Owner { pid: std::process::id(), listen: listen.map(str::to_owned) };
        let path = self.path.join(LOCK_FILE);
        let line = serde_json::to_string(&owner).map_err(|cause| io("write", &path, cause.into()))?;
        let mut lock = &self.lock;
        lock.set_len(0)
            .and_then(|()| lock.seek(SeekFrom::Start(0)))
            .and_then(|_| lock.write_all(line.as_bytes()))
            .map_err(|cause| io("write", &path, cause))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Shorthand for an error with its place.
pub(crate) fn io(what: &'static str, path: &Path, cause: std::io::Error) -> StoreError {
    StoreError::Io { what, path: path.to_owned(), cause }
}

/// A directory that already existed may be readable by others: keys live here, so that is taken back.
fn tighten(path: &Path) -> Result<(), StoreError> {
    let metadata = std::fs::metadata(path).map_err(|cause| io("read", path, cause))?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o700))
        .map_err(|cause| io("make private", path, cause))
}

/// Somebody who only looks ([`Directory::owner`]) holds the lock for a moment, and is waited for.
fn lock_exclusively(lock: &File) -> bool {
    (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(LOCK_PAUSE);
        }
        flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

fn read_owner(mut lock: &File) -> Option<Owner> {
    let mut text = String::new();
    lock.seek(SeekFrom::Start(0)).ok()?;
    lock.take(LOCK_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
