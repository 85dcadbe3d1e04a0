//! Cache of references on disk: one file for each label and each descriptor set, with a digest of
//! what is in it.
//!
//! The directory has what the cache in memory has. A file is written beside its place and moved
//! there, so that it is whole or absent.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use platform::{open_regular, replace_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cache::{Cache, CacheEntry, SetKey};
use super::fetch::SET_BYTES_MAX;

/// Begins every file.
const MAGIC: &str = "portmoot-registry 1 ";
/// The longest file: a set with what is before it, in bytes.
const FILE_BYTES_MAX: usize = SET_BYTES_MAX + 8_192;
/// The end of the names of its files, and of files that are being written.
const ENDS: [&str; 2] = ["kept", "new"];

/// Key of a file: its second line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Head {
    Label {
        module: String,
        label: String,
        commit: String,
        at_ms: u64,
    },
    Set {
        module: String,
        commit: String,
        symbol: Option<String>,
    },
}

/// The directory.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Opens a directory, which is made if there is none, for its owner alone.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(Self(dir.to_owned()))
    }

    /// Puts what is there into the cache. A file that is not as it was written is removed, as is
    /// one for which there is no room.
    pub(crate) fn read_into(&self, cache: &mut Cache) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)?.flatten() {
            let path = entry.path();
            let end = path.extension();
            if end.is_some_and(|end| ENDS.iter().any(|own| end == *own)) {
                let written = fs::metadata(&path).and_then(|file| file.modified()).ok();
                files.push((written, path));
            }
        }
        // The oldest first: where there is no room for all, they go.
        files.sort();
        for (_, path) in files {
            match read(&path) {
                Some((kept, set)) => {
                    for gone in cache.restore(kept, set) {
                        self.remove(&gone);
                    }
                }
                None => {
                    let file = path.display();
                    tracing::warn!(%file, "a file of the cache of schemas is not as it was written: removed");
                    remove(&path);
                }
            }
        }
        Ok(())
    }

    /// Writes an entry of the cache.
    pub(crate) fn write(&self, kept: &CacheEntry, set: &[u8]) -> io::Result<()> {
        let mut rest = serde_json::to_vec(&Head::from(kept))?;
        rest.push(b'\n');
        rest.extend_from_slice(set);
        let content = [format!("{MAGIC}{}\n", digest(&rest)).as_bytes(), &rest].concat();
        replace_file(&self.path(kept), &content)
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, gone: &CacheEntry) {
        remove(&self.path(gone));
    }

    /// The file of an entry. Its name follows from what it is of.
    fn path(&self, kept: &CacheEntry) -> PathBuf {
        self.0.join(name(kept)).with_extension(ENDS[0])
    }
}

/// The name of the file of an entry, without its end: no part of a reference becomes a path.
fn name(kept: &CacheEntry) -> String {
    let parts = match kept {
        CacheEntry::Label { module, label, .. } => ["label", module, label, ""],
        CacheEntry::Set(SetKey {
            module,
            commit,
            symbol,
        }) => ["set", module, commit, symbol.as_deref().unwrap_or_default()],
    };
    digest(parts.join("\n").as_bytes())
}

/// The SHA-256 of bytes, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(%error, "a file of the cache of schemas was not removed");
    }
}

/// Content of a file; `None` if it is not what was written under its name.
fn read(path: &Path) -> Option<(CacheEntry, Bytes)> {
    let file: File = open_regular(OpenOptions::new().read(true), path).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    let bytes = Bytes::from(bytes);
    // A line with the digest of the rest, a line of JSON, and the set.
    let first = line_end(&bytes, 0)?;
    let rest = bytes.get(first + 1..)?;
    let said = std::str::from_utf8(bytes.get(..first)?)
        .ok()?
        .strip_prefix(MAGIC)?;
    if bytes.len() > FILE_BYTES_MAX || said != digest(rest) {
        return None;
    }
    let second = line_end(&bytes, first + 1)?;
    let head: Head = serde_json::from_slice(bytes.get(first + 1..second)?).ok()?;
    let kept = CacheEntry::from(head);
    // A file under the name of another would answer for that one.
    let is_named = path
        .file_stem()
        .is_some_and(|stem| stem == name(&kept).as_str());
    is_named.then(|| (kept, bytes.slice(second + 1..)))
}

/// Index of the line break that ends the line which begins at `from`.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.iter().position(|byte| *byte == b'\n')?)
}

impl From<&CacheEntry> for Head {
    fn from(kept: &CacheEntry) -> Self {
        match kept.clone() {
            CacheEntry::Label {
                module,
                label,
                commit,
                at_ms,
            } => Self::Label {
                module,
                label,
                commit,
                at_ms,
            },
            CacheEntry::Set(SetKey {
                module,
                commit,
                symbol,
            }) => Self::Set {
                module,
                commit,
                symbol,
            },
        }
    }
}

impl From<Head> for CacheEntry {
    fn from(head: Head) -> Self {
        match head {
            Head::Label {
                module,
                label,
                commit,
                at_ms,
            } => Self::Label {
                module,
                label,
                commit,
                at_ms,
            },
            Head::Set {
                module,
                commit,
                symbol,
            } => Self::Set(SetKey {
                module,
                commit,
                symbol,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::SETS_BYTES_MAX;
    use super::*;

    fn set(number: usize) -> CacheEntry {
        CacheEntry::Set(SetKey {
            module: "a.example/b/c".into(),
            commit: number.to_string(),
            symbol: None,
        })
    }

    fn files(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn what_is_written_is_read_and_a_changed_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(&dir.path().join("cache")).unwrap();
        let label = CacheEntry::Label {
            module: "a.example/b/c".into(),
            label: "v1".into(),
            commit: "x".into(),
            at_ms: 1_000,
        };
        disk.write(&set(1), b"one\ntwo").unwrap();
        disk.write(&set(2), b"three").unwrap();
        disk.write(&label, b"").unwrap();
        fs::write(disk.0.join("another.txt"), "not of the cache").unwrap();
        fs::write(disk.0.join("half.0123.new"), "of a writer that was killed").unwrap();
        let mut cache = Cache::default();
        disk.read_into(&mut cache).unwrap();
        let read = |cache: &Cache, number: usize| match set(number) {
            CacheEntry::Set(key) => cache.set(&key),
            CacheEntry::Label { .. } => None,
        };
        assert_eq!(read(&cache, 1).as_deref(), Some(&b"one\ntwo"[..]));
        assert_eq!(
            cache.commit("a.example/b/c", "v1", 1_999, 1_000),
            Some("x".to_owned())
        );
        assert_eq!(cache.commit("a.example/b/c", "v1", 2_000, 1_000), None);
        assert_eq!(
            cache.commit("a.example/b/c", "v1", 999, 1_000),
            None,
            "looked up in the future"
        );
        assert_eq!(files(&disk.0), 4);
        // One byte of a set, and a file under the name of another.
        let mut bytes = fs::read(disk.path(&set(1))).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(disk.path(&set(1)), bytes).unwrap();
        fs::copy(disk.path(&set(2)), disk.path(&set(3))).unwrap();
        let mut cache = Cache::default();
        disk.read_into(&mut cache).unwrap();
        assert_eq!((read(&cache, 1), read(&cache, 3)), (None, None));
        assert_eq!(
            (read(&cache, 2).as_deref(), files(&disk.0)),
            (Some(&b"three"[..]), 3)
        );
    }

    #[test]
    fn the_directory_has_no_more_than_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path()).unwrap();
        let large = vec![0; SET_BYTES_MAX];
        let room = SETS_BYTES_MAX / SET_BYTES_MAX;
        for number in 0..room + 3 {
            disk.write(&set(number), &large).unwrap();
        }
        let mut cache = Cache::default();
        disk.read_into(&mut cache).unwrap();
        assert_eq!(files(dir.path()), room);
    }
}
