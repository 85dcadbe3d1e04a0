//! The audit log's files: segments in a folder of their own, the head outside it. Must not know what an entry says.

use std::io;
use std::sync::Arc;

use super::chain::{Chain, Head, SLOT_BYTES};
use crate::directory::io as failed;
use crate::disk::Disk;
use crate::error::StoreError;

/// The folder of segments in a data directory.
pub(super) const FOLDER: &str = "audit";

/// The file of the head, in the data directory itself.
pub(super) const HEAD_FILE: &str = "audit.head";

/// The head is written into two places in turn, so that a torn write leaves the other.
pub(super) const SLOTS: u64 = 2;

/// The two places on disk.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) segments: Arc<dyn Disk>,
    pub(super) heads: Arc<dyn Disk>,
}

impl Files {
    /// The numbers of the segments' first entries, in order.
    pub(super) fn firsts(&self) -> Result<Vec<u64>, StoreError> {
        let names = self.segments.names().map_err(on(&*self.segments, "list", ""))?;
        Ok(names.iter().filter_map(|name| first(name)).collect())
    }

    /// All bytes of the segment that begins with this entry.
    pub(super) fn segment(&self, first: u64) -> Result<Vec<u8>, StoreError> {
        let name = name(first);
        let bytes = self.segments.read(&name).map_err(on(&*self.segments, "read", &name))?;
        Ok(bytes.unwrap_or_default())
    }

    /// The newest head that is whole. A log that was not `begun` has none, whatever a crash has left of its making.
    pub(super) fn head(&self, chain: &Chain, begun: bool) -> Result<Option<Kept>, StoreError> {
        if !begun {
            return Ok(None);
        }
        let bytes =
            self.heads.read(HEAD_FILE).map_err(on(&*self.heads, "read", HEAD_FILE))?.unwrap_or_default();
        let slots = bytes.chunks(SLOT_BYTES).zip(0_u64..);
        let whole =
            slots.filter_map(|(slot, at)| chain.read_slot(slot).filter(|(_, turn)| turn % SLOTS == at));
        let mut whole: Vec<(Head, u64)> = whole.collect();
        whole.sort_by_key(|(_, turn)| *turn);
        let neighbours = matches!(&*whole, [(_, before), (_, turn)] if before + 1 == *turn);
        Ok(whole.last().map(|(head, turn)| Kept { head: *head, turn: *turn, torn: !neighbours }))
    }
}

/// The head as it was kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) head: Head,
    /// How often it has been written.
    pub(super) turn: u64,
    /// The other slot does not hold the head before this one. A crash leaves that when it tears the write of a head; but
    /// then what that head counted is there: beyond this one, up to the end of a group.
    pub(super) torn: bool,
}

/// What a segment is called that begins with this entry.
pub(super) fn name(first: u64) -> String {
    format!("{first:020}.jsonl")
}

/// An error about a file of this disk.
pub(super) fn on<'a>(
    disk: &'a dyn Disk,
    what: &'static str,
    name: &'a str,
) -> impl Fn(io::Error) -> StoreError + 'a {
    move |cause| failed(what, &disk.place().join(name), cause)
}

fn first(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl")?;
    let first = digits.parse().ok()?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit()) && first > 0).then_some(first)
}

/// What comes at a place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A line, without its line feed.
    Whole(&'a [u8]),
    /// What a write has left that a crash cut short: no line feed, or bytes that were never filled.
    Torn(&'a [u8]),
}

/// The pieces of a segment, in order. Nothing comes after a torn one.
pub(super) fn pieces(text: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        match end.and_then(|end| Some((rest.get(..end)?, rest.get(end + 1..)?))) {
            Some((line, after)) if !line.contains(&0) => {
                rest = after;
                Some(Piece::Whole(line))
            }
            _ => Some(Piece::Torn(std::mem::take(&mut rest))),
        }
    })
}
