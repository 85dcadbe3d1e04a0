//! A disk for tests that loses what was not synced, and tears the last write. Seeded; must not know what is written.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use platform::Mutex;

use super::{Disk, DiskFile, new};

/// The disk; its clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sim(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    files: BTreeMap<String, Content>,
    /// Acts that still succeed; `None` is all.
    acts_left: Option<usize>,
    /// What decides how much of a torn write is kept.
    seed: u64,
}

#[derive(Debug, Default, Clone)]
struct Content {
    seen: Vec<u8>,
    synced: Vec<u8>,
}

impl Sim {
    /// From now on, this many acts that change something succeed; then the disk is gone.
    pub(crate) fn fail_after(&self, acts: usize) {
        self.0.lock().acts_left = Some(acts);
    }

    /// The power fails, and comes back: what was not synced is lost, but for a torn piece of each file's last write.
    pub(crate) fn crash(&self, seed: u64) {
        let mut platter = self.0.lock();
        platter.acts_left = None;
        platter.seed ^= seed;
        let mut random = platter.seed;
        for content in platter.files.values_mut() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            content.tear(random >> 33);
            content.synced.clone_from(&content.seen);
        }
        platter.seed = random;
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.lock().files[name].seen.clone()
    }

    /// Somebody changes a file behind our back.
    pub(crate) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut platter = self.0.lock();
        let content = platter.files.get_mut(name).unwrap();
        change(&mut content.seen);
        content.synced.clone_from(&content.seen);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().files.remove(name);
    }

    /// Another disk with the same files, to try something on.
    pub(crate) fn copy(&self) -> Sim {
        let files = self.0.lock().files.clone();
        Sim(Arc::new(Mutex::new(Platter { files, ..Platter::default() })))
    }

    fn act<T>(&self, act: impl FnOnce(&mut Platter) -> T) -> io::Result<T> {
        let mut platter = self.0.lock();
        match platter.acts_left.as_mut() {
            Some(0) => return Err(io::Error::other("the disk is gone")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(act(&mut platter))
    }
}

impl Content {
    /// Keeps a piece of what was written since the last sync: from the first difference on, some bytes more.
    fn tear(&mut self, random: u64) {
        let same = self.seen.iter().zip(&self.synced).take_while(|(new, old)| new == old).count();
        let (new, old) = (&self.seen[same..], &self.synced[same..]);
        let kept = random as usize % (new.len() + 1);
        let mut torn = self.synced[..same].to_vec();
        torn.extend_from_slice(&new[..kept]);
        torn.extend_from_slice(old.get(kept..).unwrap_or_default());
        self.seen = torn;
    }
}

impl Disk for Sim {
    fn place(&self) -> &Path {
        Path::new("simulated")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().files.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().files.get(name).map(|content| content.seen.clone()))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.act(|platter| _ = platter.files.entry(name.to_owned()).or_default())?;
        Ok(Box::new(SimFile { disk: self.clone(), name: name.to_owned() }))
    }

    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.act(|platter| {
            let content = Content { seen: bytes.to_vec(), synced: bytes.to_vec() };
            platter.files.insert(new(name), content);
        })
    }

    fn put_in_place(&self, name: &str) -> io::Result<()> {
        self.act(|platter| {
            let content = platter.files.remove(&new(name)).unwrap();
            platter.files.insert(name.to_owned(), content);
        })
    }
}

#[derive(Debug)]
struct SimFile {
    disk: Sim,
    name: String,
}

impl SimFile {
    fn change(&mut self, change: impl FnOnce(&mut Content)) -> io::Result<()> {
        self.disk.act(|platter| change(platter.files.get_mut(&self.name).unwrap()))
    }
}

impl DiskFile for SimFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.change(|content| content.seen.extend_from_slice(bytes))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(|content| {
            let (from, to) = (at as usize, at as usize + bytes.len());
            let longest = content.seen.len().max(to);
            content.seen.resize(longest, 0);
            content.seen[from..to].copy_from_slice(bytes);
        })
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.change(|content| content.seen.truncate(bytes as usize))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.change(|content| content.synced.clone_from(&content.seen))
    }
}
