//! The few things that are done with files, behind a trait: so that tests can put a disk beneath that loses what was
//! not synced. Must not know what is written.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A folder of files.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Where it is, for messages.
    fn place(&self) -> &Path;

    /// The names of its files, sorted.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All bytes of a file; `None` if it is not there.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Opens a file for writing. One that is made by this is there after a crash, perhaps empty.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Writes a new version of a file beside it; it survives a crash, as does the old one, which is still in use.
    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Puts the new version in the place of the old one: after a crash there is one or the other, and once this returns,
    /// the new one.
    fn put_in_place(&self, name: &str) -> io::Result<()>;
}

/// A file that is open for writing.
pub(crate) trait DiskFile: Debug + Send {
    /// Writes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes over what is there.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Shortens it.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;

    /// When this returns, what was written survives a crash.
    fn sync(&mut self) -> io::Result<()>;
}

/// A folder of the operating system; it and its files may be read by their owner only.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this path; made when the first file is.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Disk for Folder {
    fn place(&self) -> &Path {
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
        match fs::read(self.path.join(name)) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            bytes => bytes.map(Some),
        }
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        if !self.path.exists() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
            self.path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        let path = self.path.join(name);
        let known = path.exists();
        let file = private().open(&path)?;
        if !known {
            self.sync()?;
        }
        let end = file.metadata()?.len();
        Ok(Box::new(Open { file, end }))
    }

    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = private().truncate(true).open(self.path.join(new(name)))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn put_in_place(&self, name: &str) -> io::Result<()> {
        fs::rename(self.path.join(new(name)), self.path.join(name))?;
        self.sync()
    }
}

/// What the new version of a file is called until it takes its place.
fn new(name: &str) -> String {
    format!("{name}.new")
}

/// Options for a file that only its owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

/// A file of the operating system, and where it ends.
#[derive(Debug)]
struct Open {
    file: File,
    end: u64,
}

impl DiskFile for Open {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)?;
        self.end = self.end.max(at + bytes.len() as u64);
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.end = bytes;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
pub(crate) mod sim;
