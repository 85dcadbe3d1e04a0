//! Simulated disk for tests: a seeded crash loses unsynced writes and tears the last one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use platform::Mutex;

use crate::disk::{Disk, DiskFile, prepared};

/// The disk; clones share one disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    by_name: BTreeMap<String, Content>,
    /// Changes that still succeed; `None` is no limit.
    changes_left: Option<usize>,
    /// Attempts to open a file that fail from now on.
    unopened: usize,
    /// Whether no new version of the journal can be prepared (`false`) or put in place (`true`).
    unreplaced: Option<bool>,
    /// Seed for the part of a torn write that is kept.
    seed: u64,
}

#[derive(Debug, Default, Clone)]
struct Content {
    current: Vec<u8>,
    synced: Vec<u8>,
}

impl SimDisk {
    /// Lets this many more changes succeed; then every change fails.
    pub(crate) fn fail_after(&self, changes: usize) {
        self.0.lock().changes_left = Some(changes);
    }

    /// Lets this many attempts to open a file fail, as without descriptors.
    pub(crate) fn fail_opens(&self, count: usize) {
        self.0.lock().unopened = count;
    }

    /// Lets the journal not be replaced: no new version can be prepared, or none be put in place.
    pub(crate) fn fail_replacing(&self, at_the_end: Option<bool>) {
        self.0.lock().unreplaced = at_the_end;
    }

    fn replaces(&self, name: &str, at_the_end: bool) -> io::Result<()> {
        match self.0.lock().unreplaced.filter(|_| name == "journal.jsonl") {
            Some(fails) if fails == at_the_end => Err(io::Error::other("no space is left")),
            _ => Ok(()),
        }
    }

    pub(crate) fn opens_to_fail(&self) -> usize {
        self.0.lock().unopened
    }

    /// Simulates a power failure: unsynced writes are lost, except for a torn part of each file's
    /// last write.
    pub(crate) fn crash(&self, seed: u64) {
        let mut files = self.0.lock();
        files.changes_left = None;
        files.seed ^= seed;
        let mut random = files.seed;
        for content in files.by_name.values_mut() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            content.tear(random >> 33);
            content.synced.clone_from(&content.current);
        }
        files.seed = random;
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.lock().by_name[name].current.clone()
    }

    /// Changes a file from outside the program.
    pub(crate) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut files = self.0.lock();
        let content = files.by_name.get_mut(name).unwrap();
        change(&mut content.current);
        content.synced.clone_from(&content.current);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().by_name.remove(name);
    }

    /// Another disk with the same files.
    pub(crate) fn copy(&self) -> SimDisk {
        let by_name = self.0.lock().by_name.clone();
        SimDisk(Arc::new(Mutex::new(Files {
            by_name,
            ..Files::default()
        })))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Files) -> T) -> io::Result<T> {
        let mut files = self.0.lock();
        match files.changes_left.as_mut() {
            Some(0) => return Err(io::Error::other("the disk is gone")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(change(&mut files))
    }
}

impl Content {
    /// Keeps some bytes of the writes since the last sync, from the first difference on.
    fn tear(&mut self, random: u64) {
        let same = self
            .current
            .iter()
            .zip(&self.synced)
            .take_while(|(new, old)| new == old)
            .count();
        let new = &self.current[same..];
        let old = &self.synced[same..];
        let kept = random as usize % (new.len() + 1);
        let mut torn = self.synced[..same].to_vec();
        torn.extend_from_slice(&new[..kept]);
        torn.extend_from_slice(old.get(kept..).unwrap_or_default());
        self.current = torn;
    }
}

impl Disk for SimDisk {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().by_name.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self
            .0
            .lock()
            .by_name
            .get(name)
            .map(|content| content.current.clone()))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.read(name)?.map_or(0, |bytes| bytes.len() as u64))
    }

    fn part(&self, name: &str, from: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let all = self.read(name)?.unwrap_or_default();
        let rest = all.into_iter().skip(from as usize);
        Ok(rest.take(bytes as usize).collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        {
            let mut files = self.0.lock();
            if files.unopened > 0 {
                files.unopened -= 1;
                return Err(io::Error::other("too many open files"));
            }
        }
        self.change(|files| _ = files.by_name.entry(name.to_owned()).or_default())?;
        Ok(Box::new(SimFile {
            disk: self.clone(),
            name: name.to_owned(),
        }))
    }

    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.replaces(name, false)?;
        self.change(|files| {
            let content = Content {
                current: bytes.to_vec(),
                synced: bytes.to_vec(),
            };
            files.by_name.insert(prepared(name), content);
        })
    }

    fn replace(&self, name: &str) -> io::Result<()> {
        self.replaces(name, true)?;
        self.change(|files| {
            let content = files.by_name.remove(&prepared(name)).unwrap();
            files.by_name.insert(name.to_owned(), content);
        })
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        self.change(|files| _ = files.by_name.remove(name))
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    name: String,
}

impl SimFile {
    /// Changes the content, then syncs it: two changes, between which the disk can fail.
    fn change(&mut self, change: impl FnOnce(&mut Content)) -> io::Result<()> {
        self.disk
            .change(|files| change(files.by_name.get_mut(&self.name).unwrap()))?;
        self.disk.change(|files| {
            let content = files.by_name.get_mut(&self.name).unwrap();
            content.synced.clone_from(&content.current);
        })
    }
}

impl DiskFile for SimFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.change(|content| content.current.extend_from_slice(bytes))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(|content| {
            let from = at as usize;
            let to = at as usize + bytes.len();
            let longest = content.current.len().max(to);
            content.current.resize(longest, 0);
            content.current[from..to].copy_from_slice(bytes);
        })
    }

    fn note(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.change(|files| {
            let content = &mut files.by_name.get_mut(&self.name).unwrap().current;
            content.resize(content.len().max(bytes.len()), 0);
            content[..bytes.len()].copy_from_slice(bytes);
        })
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.change(|content| content.current.truncate(bytes as usize))
    }
}
