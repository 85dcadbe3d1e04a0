//! File of the places that are known to have been written, for the next life of the node.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cluster::{JournalHead, KnownHeads, NUMBER_MAX, Shard};
use data_encoding::HEXLOWER;
use platform::{open_regular, replace_file};
use sha2::{Digest as _, Sha256};

use crate::encoding::shard_of;

/// The most bytes of the file.
pub const HEADS_BYTES_MAX: u64 = 16 << 20;
const NAME: &str = "heads";
const LOCK: &str = "heads.lock";
const TITLE: &str = "portmoot heads 1\n";
const END: &str = "end ";

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadsError {
    /// It cannot be read, or made.
    #[error("{path}: {cause}")]
    Unusable {
        /// Its path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// Another process has the folder.
    #[error("{0}: another process of Portmoot has this folder")]
    Locked(PathBuf),
    /// It is damaged, or another program's.
    #[error(
        "{0} is damaged, or no file of Portmoot's: it says which messages of the cluster's journals are known to have been \
         written, so that a loss is noticed. Bring it back from a backup; without it the node relies on what other nodes know"
    )]
    Foreign(PathBuf),
}

/// The file `heads` of a folder, which one process at a time has locked.
#[derive(Debug)]
pub struct HeadsFile {
    folder: PathBuf,
    heads: KnownHeads,
    /// The folder is this process's as long as this is open.
    lock: Option<File>,
}

impl HeadsFile {
    /// Locks the folder, and reads the file, or begins one. What a crash left beside it is removed.
    ///
    /// # Errors
    /// [`HeadsError`] when another process has the folder, or the file cannot be read, or has
    /// another content.
    pub fn open(folder: &Path) -> Result<Self, HeadsError> {
        let lock = Some(locked(folder)?);
        let unusable = |cause| HeadsError::Unusable {
            path: folder.join(NAME),
            cause,
        };
        remove_left_over(folder).map_err(unusable)?;
        let heads = places(folder)?;
        let folder = folder.to_owned();
        Ok(Self {
            folder,
            heads,
            lock,
        })
    }

    /// All places.
    #[must_use]
    pub fn all(&self) -> Vec<(Shard, JournalHead)> {
        let all = self.heads.all();
        all.map(|(shard, head)| (shard.clone(), *head)).collect()
    }

    /// Keeps places, each instead of a lower one of its epoch. They survive a crash when this
    /// returns.
    ///
    /// # Errors
    /// When the file cannot be written, or would be too large, or is closed: the one before stays,
    /// and the next call writes these too.
    pub fn keep(&mut self, places: Vec<(Shard, JournalHead)>) -> io::Result<()> {
        if self.lock.is_none() {
            return Err(io::Error::other("the file is closed"));
        }
        for (shard, head) in places {
            self.heads.learn(&shard, &head);
        }
        let content = written(&self.heads);
        if content.len() as u64 > HEADS_BYTES_MAX {
            let why = format!("there are more than {HEADS_BYTES_MAX} bytes of places");
            return Err(io::Error::other(why));
        }
        replace_file(&self.folder.join(NAME), content.as_bytes())
    }

    /// Leaves the folder to others; nothing is kept any more.
    pub fn close(&mut self) {
        self.lock = None;
    }
}

fn locked(folder: &Path) -> Result<File, HeadsError> {
    let path = folder.join(LOCK);
    let unusable = |cause| HeadsError::Unusable {
        path: path.clone(),
        cause,
    };
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let lock = open_regular(options, &path).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(HeadsError::Locked(folder.to_owned())),
        Err(TryLockError::Error(cause)) => Err(unusable(cause)),
    }
}

/// The places that the file of a folder has; none if there is no file.
pub(crate) fn places(folder: &Path) -> Result<KnownHeads, HeadsError> {
    let path = folder.join(NAME);
    match content(&path) {
        Ok(None) => Ok(KnownHeads::default()),
        Ok(Some(content)) => read(&content).ok_or(HeadsError::Foreign(path)),
        Err(cause) => Err(HeadsError::Unusable { path, cause }),
    }
}

/// Removes versions that a crash left unfinished.
fn remove_left_over(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("heads.") && name.ends_with(".new") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn content(path: &Path) -> io::Result<Option<String>> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(HEADS_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > HEADS_BYTES_MAX {
        let why = format!("it has more than {HEADS_BYTES_MAX} bytes");
        return Err(io::Error::other(why));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn written(heads: &KnownHeads) -> String {
    let mut text = TITLE.to_owned();
    for (shard, head) in heads.all() {
        let (sum, begun) = (HEXLOWER.encode(&head.sum), HEXLOWER.encode(&head.begun));
        let (shard, epoch, number) = (shard.as_str(), head.epoch, head.number);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{shard} {epoch} {number} {sum} {begun}");
    }
    let end = checked(&text);
    text + END + &end + "\n"
}

/// The sum of a text, by which a damage shows.
fn checked(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

fn read(content: &str) -> Option<KnownHeads> {
    let text = content.strip_suffix('\n')?;
    let (body, end) = text.split_at_checked(text.rfind(END)?)?;
    if end.strip_prefix(END)? != checked(body) {
        return None;
    }
    let mut heads = KnownHeads::default();
    for line in body.strip_prefix(TITLE)?.lines() {
        let (shard, head) = place(line)?;
        heads.learn(&shard, &head);
    }
    Some(heads)
}

fn place(line: &str) -> Option<(Shard, JournalHead)> {
    let mut words = line.split(' ');
    let shard = shard_of(words.next()?)?;
    let head = JournalHead {
        epoch: number(words.next()?)?,
        number: number(words.next()?)?,
        sum: sum(words.next()?)?,
        begun: sum(words.next()?)?,
    };
    words.next().is_none().then_some((shard, head))
}

fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number <= NUMBER_MAX).then_some(number)
}

fn sum(text: &str) -> Option<[u8; 8]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}
