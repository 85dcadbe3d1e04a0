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
        match Self::of_files(all.files) {
            Ok(shared) => {
                let placed = read.into_iter();
                placed.map(|place| shared.placed(place?)).collect()
            }
            // One of them is not valid, or two name the same thing in different files.
            Err(_) => Self::read_apart(sets, read),
        }
    }

    /// The descriptors of one set of several, which share these.
    fn placed(&self, place: Place) -> Result<Self, SetError> {
        match place {
            Place::Shared(names) => Ok(self.only(names)),
            Place::Separate(files) => Self::of_files(files),
        }
    }

    /// Reads each set by itself, but those that were refused already.
    fn read_apart(
        sets: &[&[u8]],
        places: Vec<Result<Place, SetError>>,
    ) -> Vec<Result<Self, SetError>> {
        let mut separate = 0;
        let mut read = Vec::with_capacity(sets.len());
        for (set, place) in sets.iter().zip(places) {
            let descriptors = match place {
                Ok(_) => {
                    within(separate + 1, SEPARATE_SETS_MAX, SEPARATE).and_then(|()| Self::read(set))
                }
                Err(refused) => Err(refused),
            };
            // A set that is refused keeps no memory.
            separate += usize::from(descriptors.is_ok());
            read.push(descriptors);
        }
        read
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
    /// Adds the files of one set, unless one of them contradicts a file of this name.
    fn add(&mut self, files: Vec<RawFile>) -> Result<Place, SetError> {
        let mut differs = false;
        let mut new_parts = 0;
        let mut all_parts = 0;
        for file in &files {
            all_parts += file.parts;
            match self.by_name.get(&file.name) {
                Some(known) => differs |= *known != file.bytes,
                None => new_parts += file.parts,
            }
        }
        // A separate set shares nothing, so that all its parts are new ones.
        let parts = self.parts + if differs { all_parts } else { new_parts };
        within(parts, ALL_PARTS_MAX, "parts of all tools")?;
        if differs {
            within(self.separate + 1, SEPARATE_SETS_MAX, SEPARATE)?;
            self.separate += 1;
            self.parts = parts;
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
