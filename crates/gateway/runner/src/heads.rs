//! File of the places that are known to have been written, for the next life of the node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use cluster::{HEAD_EPOCHS_MAX, JournalHead, Shard};
use data_encoding::HEXLOWER;
use platform::{open_regular, replace_file};
use sha2::{Digest as _, Sha256};

use crate::encoding::shard_of;

/// The most bytes of the file.
pub const HEADS_BYTES_MAX: u64 = 16 << 20;
const NAME: &str = "heads";
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
    heads: Heads,
}

type Heads = BTreeMap<Shard, BTreeMap<(u64, [u8; 8]), JournalHead>>;

impl HeadsFile {
    /// Reads the file, or begins one. What a crash left beside it is removed.
    ///
    /// # Errors
    /// [`HeadsError`] when it cannot be read, or has another content.
    pub fn open(folder: &Path) -> Result<Self, HeadsError> {
        let path = folder.join(NAME);
        let unusable = |cause| HeadsError::Unusable {
            path: path.clone(),
            cause,
        };
        remove_left_over(folder).map_err(unusable)?;
        let heads = match content(&path).map_err(unusable)? {
            None => Heads::new(),
            Some(content) => read(&content).ok_or_else(|| HeadsError::Foreign(path.clone()))?,
        };
        let folder = folder.to_owned();
        Ok(Self { folder, heads })
    }

    /// All places.
    #[must_use]
    pub fn all(&self) -> Vec<(Shard, JournalHead)> {
        let all = self.heads.iter();
        all.flat_map(|(shard, epochs)| epochs.values().map(|head| (shard.clone(), *head)))
            .collect()
    }

    /// Keeps places, each instead of the one of its epoch. They survive a crash when this returns.
    ///
    /// # Errors
    /// When the file cannot be written: the one before stays, and the next call writes these too.
    pub fn keep(&mut self, places: Vec<(Shard, JournalHead)>) -> io::Result<()> {
        for (shard, head) in places {
            let epochs = self.heads.entry(shard).or_default();
            epochs.insert((head.epoch, head.begun), head);
            if epochs.len() > HEAD_EPOCHS_MAX {
                epochs.pop_first();
            }
        }
        let content = written(&self.heads);
        replace_file(&self.folder.join(NAME), content.as_bytes())
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
    file.take(HEADS_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn written(heads: &Heads) -> String {
    let mut text = TITLE.to_owned();
    for (shard, epochs) in heads {
        for head in epochs.values() {
            let (sum, begun) = (HEXLOWER.encode(&head.sum), HEXLOWER.encode(&head.begun));
            let (shard, epoch, number) = (shard.as_str(), head.epoch, head.number);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{shard} {epoch} {number} {sum} {begun}");
        }
    }
    let end = checked(&text);
    text + END + &end + "\n"
}

/// The sum of a text, by which a damage shows.
fn checked(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

fn read(content: &str) -> Option<Heads> {
    let text = content.strip_suffix('\n')?;
    let (body, end) = text.split_at_checked(text.rfind(END)?)?;
    if end.strip_prefix(END)? != checked(body) {
        return None;
    }
    let mut heads = Heads::new();
    for line in body.strip_prefix(TITLE)?.lines() {
        let (shard, head) = place(line)?;
        let epochs = heads.entry(shard).or_default();
        epochs.insert((head.epoch, head.begun), head);
    }
    Some(heads)
}

fn place(line: &str) -> Option<(Shard, JournalHead)> {
    let mut words = line.split(' ');
    let shard = shard_of(words.next()?)?;
    let head = JournalHead {
        epoch: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        sum: sum(words.next()?)?,
        begun: sum(words.next()?)?,
    };
    words.next().is_none().then_some((shard, head))
}

fn sum(text: &str) -> Option<[u8; 8]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}
