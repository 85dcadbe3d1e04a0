//! File operations behind a trait: a folder of the operating system, and in tests a simulated disk
//! that loses unsynced writes.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use platform::open_regular;

use crate::error::StoreError;

/// A folder of files.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Path of the folder, for messages.
    fn path(&self) -> &Path;

    /// Names of its files, sorted.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All bytes of a file; `None` if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// The length of a file in bytes; 0 if it does not exist.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// The bytes of a file from this one on, at most so many; fewer at its end.
    fn part(&self, name: &str, from: u64, bytes: u64) -> io::Result<Vec<u8>>;

    /// Opens a file for writing. A file that this call creates survives a crash, perhaps empty.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Writes and syncs a new version of a file beside the old one, which stays in use.
    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Replaces a file by its prepared version. A crash leaves the old or the new version; after
    /// this returns, the new one.
    fn replace(&self, name: &str) -> io::Result<()>;

    /// Removes a file, if there is one. After this returns, a crash does not bring it back.
    fn unlink(&self, name: &str) -> io::Result<()>;
}

/// A file that is open for writing. Each change except [`DiskFile::note`] is synced: it survives a
/// crash when the call returns.
pub(crate) trait DiskFile: Debug + Send {
    /// Writes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Overwrites bytes at an offset.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Overwrites the first bytes, without a sync: a crash may leave older ones.
    fn note(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Shortens the file to this many bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

/// Returns a function that makes the error of a failed action on a file of this disk.
pub(crate) fn on(
    disk: &dyn Disk,
    action: &'static str,
    name: &str,
) -> impl Fn(io::Error) -> StoreError + use<> {
    let path = disk.path().join(name);
    move |cause| StoreError::io(action, &path, cause)
}

/// Opens a file for writing.
pub(crate) fn opened(disk: &dyn Disk, name: &str) -> Result<Box<dyn DiskFile>, StoreError> {
    disk.open(name).map_err(|cause| StoreError::Unopened {
        path: disk.path().join(name),
        cause,
    })
}

/// A folder of the operating system. Only its owner can read it and its files.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Kept open, so that a name can be synced when the process has no descriptor left.
    folder: OnceLock<File>,
}

impl Folder {
    /// The folder at this path. Opening the first file creates it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            folder: OnceLock::new(),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.folder.get().is_none() {
            let _ = self.folder.set(File::open(&self.path)?);
        }
        self.folder.get().map_or(Ok(()), File::sync_all)
    }
}

impl Disk for Folder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file = match readable(&self.path.join(name)) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| Some(bytes))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        match readable(&self.path.join(name)) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(0),
            file => Ok(file?.metadata()?.len()),
        }
    }

    fn part(&self, name: &str, from: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let mut file = match readable(&self.path.join(name)) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(from))?;
        let mut part = Vec::new();
        file.take(bytes).read_to_end(&mut part).map(|_| part)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        if !self.path.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.path)?;
            self.path
                .parent()
                .map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        let file = open_regular(&mut private(), self.path.join(name))?;
        let end = file.metadata()?.len();
        if end == 0 {
            // It is new, or its name was not synced when it was.
            self.sync()?;
        }
        Ok(Box::new(FolderFile { file, end }))
    }

    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = open_regular(private().truncate(true), self.path.join(prepared(name)))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn replace(&self, name: &str) -> io::Result<()> {
        fs::rename(self.path.join(prepared(name)), self.path.join(name))?;
        self.sync()
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(cause),
            Ok(()) => self.sync(),
        }
    }
}

/// Name of the prepared version of a file.
pub(crate) fn prepared(name: &str) -> String {
    format!("{name}.new")
}

/// Options for a file that only its owner can read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

/// Opens a regular file for reading.
pub(crate) fn readable(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

/// A file of the operating system, with its length.
#[derive(Debug)]
struct FolderFile {
    file: File,
    end: u64,
}

impl DiskFile for FolderFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_at(self.end, bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)?;
        self.end = self.end.max(at + bytes.len() as u64);
        self.file.sync_data()
    }

    fn note(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, 0)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.end = bytes;
        self.file.sync_data()
    }
}
