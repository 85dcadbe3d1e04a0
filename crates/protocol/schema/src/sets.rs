//! The sets of all tools of a peer, read together: most tools have the same files.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::files::{self, Bounds, RawFile, SetError, within};
use crate::set::Descriptors;

/// Parts ([`Bounds::parts`]) that all sets together may have.
const ALL_PARTS_MAX: usize = 200_000;
/// Sets that contradict others: each costs the memory of a pool of descriptors, a few hundred
/// kilobytes.
const SEPARATE_SETS_MAX: usize = 16;

impl Descriptors {
    /// Reads the sets that came with the tools of one peer, in their order, each as
    /// [`Descriptors::read`] does. Those that do not contradict each other share their descriptors.
    /// It takes about half a millisecond and as much as their rules need: not on the path of a
    /// call.
    #[must_use]
    pub fn read_all(sets: &[&[u8]]) -> Vec<Result<Self, SetError>> {
        let mut all = All::default();
        let mut read = Vec::with_capacity(sets.len());
        for set in sets {
            read.push(files::read(set, Bounds::OF_PEERS).and_then(|files| all.add(files)));
        }
        if let Ok(shared) = Self::of_files(all.files.clone()) {
            let one = |place: Result<Place, SetError>| match place? {
                Place::Shared(names) => Ok(shared.only(names)),
                Place::Separate(files) => Self::of_files(files),
            };
            return read.into_iter().map(one).collect();
        }
        // One of them is not valid, or two name the same thing in different files.
        let mut separate = 0;
        let one = |(place, set): (Result<Place, SetError>, &&[u8])| {
            place?;
            separate += 1;
            within(separate, SEPARATE_SETS_MAX, SEPARATE)?;
            Self::read(set).inspect_err(|_| separate -= 1)
        };
        read.into_iter().zip(sets).map(one).collect()
    }
}

/// Text for sets beyond [`SEPARATE_SETS_MAX`].
const SEPARATE: &str = "sets that contradict each other";

/// Place of the files of a set.
enum Place {
    /// Among those of all, under these names.
    Shared(HashSet<String>),
    /// For themselves.
    Separate(Vec<RawFile>),
}

/// The files of all sets.
#[derive(Default)]
struct All {
    files: Vec<RawFile>,
    by_name: HashMap<String, Bytes>,
    parts: usize,
    separate: usize,
}

impl All {
    fn add(&mut self, files: Vec<RawFile>) -> Result<Place, SetError> {
        let known = |file: &RawFile| self.by_name.get(&file.name);
        let differs = files
            .iter()
            .any(|file| known(file).is_some_and(|known| *known != file.bytes));
        let added = files.iter().filter(|file| differs || known(file).is_none());
        let parts = self.parts + added.map(|file| file.parts).sum::<usize>();
        within(parts, ALL_PARTS_MAX, "parts of all tools")?;
        if differs {
            within(self.separate + 1, SEPARATE_SETS_MAX, SEPARATE)?;
            (self.separate, self.parts) = (self.separate + 1, parts);
            return Ok(Place::Separate(files));
        }
        self.parts = parts;
        let names = files.iter().map(|file| file.name.clone()).collect();
        for file in files {
            if !self.by_name.contains_key(&file.name) {
                self.by_name.insert(file.name.clone(), file.bytes.clone());
                self.files.push(file);
            }
        }
        Ok(Place::Shared(names))
    }
}
