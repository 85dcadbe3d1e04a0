//! Head of the journal, in a file beside it: the place that the journal has reached.
//!
//! With it a journal that is gone, cut at the end or replaced by an older one is noticed. The file
//! is synced when the journal is opened and before it is compacted, and written without a sync
//! after each group of records: after a power failure it may name an earlier place, never a later
//! one.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::chain::{Chain, Sum};
use crate::disk::{Disk, DiskFile, on};
use crate::error::StoreError;

/// The file of the head, in the data directory.
pub(crate) const HEAD_FILE: &str = "journal.head";
/// Bytes of that file. Its length never changes, so that a write changes one sector of a disk.
const HEAD_BYTES: usize = 160;
/// Content of the file, blanks aside, with which the journal is taken as it is: when one is begun,
/// and when an operator has written it to go on with what is there.
const ACCEPTED: &str = "accepted";

/// A place in a journal: which one, how many lines, the sum of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePlace {
    /// The id of the file of lines, which a compaction changes.
    pub(super) id: String,
    pub(super) lines: u64,
    sum: String,
}

impl FilePlace {
    pub(super) fn new(id: &str, chain: Chain) -> Self {
        Self {
            id: id.to_owned(),
            lines: chain.lines,
            sum: hex(chain.sum),
        }
    }

    /// Whether these lines of the same file end here.
    pub(super) fn is_at(&self, chain: Chain) -> bool {
        self.lines == chain.lines && self.sum == hex(chain.sum)
    }

    fn check(&self) -> String {
        let text = format!("{} {} {}", self.id, self.lines, self.sum);
        let hash: [u8; 32] = Sha256::digest(text).into();
        hex(hash.first_chunk().copied().unwrap_or_default())
    }
}

fn hex(sum: Sum) -> String {
    HEXLOWER.encode(&sum)
}

/// Content of the file of the head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// There is no such file, or nothing of one: the data directory is new, its gateway was older,
    /// or the head was lost.
    Absent,
    /// A crash has left a part of one head in another, which is no head. There was a journal.
    Unreadable,
    /// The journal is taken as it is.
    Accepted,
    At(FilePlace),
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    place: FilePlace,
    check: String,
}

/// Reads the head.
pub(super) fn read(disk: &dyn Disk) -> Result<Head, StoreError> {
    let Some(text) = disk.read(HEAD_FILE).map_err(on(disk, "read", HEAD_FILE))? else {
        return Ok(Head::Absent);
    };
    Ok(match serde_json::from_slice::<Written>(&text) {
        Ok(Written { place, check }) if check == place.check() => Head::At(place),
        Ok(_) | Err(_) if text.trim_ascii() == ACCEPTED.as_bytes() => Head::Accepted,
        Ok(_) | Err(_) if text.len() == HEAD_BYTES => Head::Unreadable,
        // No crash leaves another length.
        Ok(_) | Err(_) => Head::Absent,
    })
}

/// Writes a head that has the journal taken as it is, until the first one of a place is written.
pub(super) fn accept(disk: &dyn Disk) -> Result<(), StoreError> {
    let wrong = on(disk, "write", HEAD_FILE);
    disk.prepare(HEAD_FILE, &padded(ACCEPTED.into()))
        .and_then(|()| disk.replace(HEAD_FILE))
        .map_err(wrong)
}

/// The open file of the head.
#[derive(Debug, Default)]
pub(super) struct HeadFile(Option<Box<dyn DiskFile>>);

impl HeadFile {
    /// Writes and syncs the head.
    pub(super) fn save(&mut self, disk: &dyn Disk, place: FilePlace) -> Result<(), StoreError> {
        let wrong = on(disk, "write", HEAD_FILE);
        let file = match &mut self.0 {
            Some(file) => file,
            None => self
                .0
                .insert(disk.open(HEAD_FILE).map_err(on(disk, "open", HEAD_FILE))?),
        };
        file.write_at(0, &text(place)).map_err(wrong)
    }

    /// Writes the head without a sync. If that fails, the file names an earlier place.
    pub(super) fn note(&mut self, place: FilePlace) {
        if let Some(file) = &mut self.0 {
            let _ = file.note(&text(place));
        }
    }
}

fn text(place: FilePlace) -> Vec<u8> {
    let check = place.check();
    padded(serde_json::to_vec(&Written { place, check }).unwrap_or_default())
}

fn padded(mut text: Vec<u8>) -> Vec<u8> {
    text.resize(HEAD_BYTES - 1, b' ');
    text.push(b'\n');
    text
}
