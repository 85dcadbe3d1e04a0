//! Files of the audit log: a folder of segments, and the file of the head outside it.

use super::chain::{Chain, ChainHead, SLOT_BYTES};
use crate::disk::{Disk, Folder, on};
use crate::error::StoreError;
use std::path::Path;
use std::sync::Arc;

/// Bytes at which a segment ends unless others are configured: the next entry begins another one.
pub const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The folder of segments in a data directory.
pub(super) const FOLDER: &str = "audit";

/// The file of the head, in the data directory.
pub(super) const HEAD_FILE: &str = "audit.head";

/// Slots of the file of the head. Writes alternate between them, so that a torn write leaves the
/// other one.
pub(super) const SLOTS: u64 = 2;

/// The two folders on disk.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) segments: Arc<dyn Disk>,
    pub(super) heads: Arc<dyn Disk>,
}

impl Files {
    /// The files of a data directory.
    pub(super) fn at(dir: &Path) -> Self {
        let folder = |path| -> Arc<dyn Disk> { Arc::new(Folder::new(path)) };
        Self {
            segments: folder(dir.join(FOLDER)),
            heads: folder(dir.to_owned()),
        }
    }

    /// Numbers of the first entries of all segments, in order.
    pub(super) fn firsts(&self) -> Result<Vec<u64>, StoreError> {
        let names = self
            .segments
            .names()
            .map_err(on(&*self.segments, "list", ""))?;
        Ok(names.iter().filter_map(|name| first(name)).collect())
    }

    /// All bytes of the segment that begins with this entry; none if it was removed.
    pub(super) fn segment(&self, first: u64) -> Result<Vec<u8>, StoreError> {
        Ok(self.segment_if_there(first)?.unwrap_or_default())
    }

    /// All bytes of the segment that begins with this entry, unless it was removed.
    pub(super) fn segment_if_there(&self, first: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name(first);
        let read = self.segments.read(&name);
        read.map_err(on(&*self.segments, "read", &name))
    }

    /// The length of the segment that begins with this entry, in bytes; 0 if there is none.
    pub(super) fn bytes(&self, first: u64) -> Result<u64, StoreError> {
        let name = name(first);
        let length = self.segments.length(&name);
        length.map_err(on(&*self.segments, "read", &name))
    }

    /// The bytes of a segment from this one on, at most so many; fewer at its end.
    pub(super) fn part(&self, first: u64, from: u64, bytes: u64) -> Result<Vec<u8>, StoreError> {
        let name = name(first);
        let part = self.segments.part(&name, from, bytes);
        part.map_err(on(&*self.segments, "read", &name))
    }

    /// The newest intact head. `None` for a log that was not `begun`, also when a crash during its
    /// creation left a file.
    pub(super) fn head(
        &self,
        chain: &Chain,
        begun: bool,
    ) -> Result<Option<StoredHead>, StoreError> {
        if !begun {
            return Ok(None);
        }
        let bytes = self
            .heads
            .read(HEAD_FILE)
            .map_err(on(&*self.heads, "read", HEAD_FILE))?
            .unwrap_or_default();
        let slots = bytes.chunks(SLOT_BYTES).zip(0_u64..);
        let intact = slots
            .filter_map(|(slot, at)| chain.read_slot(slot).filter(|(_, turn)| turn % SLOTS == at));
        let mut intact: Vec<(ChainHead, u64)> = intact.collect();
        intact.sort_by_key(|(_, turn)| *turn);
        let neighbours = matches!(&*intact, [(_, before), (_, turn)] if before + 1 == *turn);
        Ok(intact.last().map(|(head, turn)| StoredHead {
            head: *head,
            turn: *turn,
            torn: !neighbours,
        }))
    }
}

/// The head in the file outside the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredHead {
    pub(super) head: ChainHead,
    /// Number of times that the head has been written.
    pub(super) turn: u64,
    /// Whether the other slot does not hold the head before this one. A crash during the write of a
    /// head causes this; then the entries of that head follow this one in the log, up to the end of
    /// a group.
    pub(super) torn: bool,
}

/// File name of the segment that begins with this entry.
pub(super) fn name(first: u64) -> String {
    format!("{first:020}.jsonl")
}

fn first(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl")?;
    let first = digits.parse().ok()?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit()) && first > 0)
        .then_some(first)
}

/// One part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentPart<'a> {
    /// A line, without its line feed.
    Whole(&'a [u8]),
    /// The rest of a write that a crash interrupted: no line feed, or bytes that were never
    /// written.
    Torn(&'a [u8]),
}

/// The parts of a segment, in order. A torn part is the last one.
pub(super) fn segment_parts(text: &[u8]) -> impl Iterator<Item = SegmentPart<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        match end.and_then(|end| Some((rest.get(..end)?, rest.get(end + 1..)?))) {
            Some((line, after)) if !line.contains(&0) => {
                rest = after;
                Some(SegmentPart::Whole(line))
            }
            _ => Some(SegmentPart::Torn(std::mem::take(&mut rest))),
        }
    })
}
