//! A reader of the log that keeps its place: it comes to each entry at least once, also after a
//! restart, and says how many were removed before it came to them.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::look::{LOOK_BYTES_MAX, LogPlace, forward};
use crate::disk::on;
use crate::error::StoreError;

/// Entries of one batch at most.
pub const TAIL_ENTRIES_MAX: usize = 512;
/// Bytes of one batch at most, unless one entry has more.
pub const TAIL_BYTES_MAX: usize = 1024 * 1024;

/// A reader of the log that keeps its place in a file beside the log.
#[derive(Debug)]
pub struct LogTail {
    files: Files,
    name: String,
    place: TailPlace,
}

/// The place after the last entry that was confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct TailPlace {
    segment: u64,
    bytes: u64,
    /// Number of that entry.
    seq: u64,
}

/// Entries that a tail has come to.
#[derive(Debug, Default)]
pub struct TailBatch {
    /// The lines, without line feeds, oldest first.
    pub lines: Vec<String>,
    /// Number of entries that are not in the log any more, and were never in a batch.
    pub missing: u64,
    /// The place after it; `None` if the tail did not move.
    next: Option<TailPlace>,
}

impl TailBatch {
    /// Whether there is nothing to confirm.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

impl LogTail {
    /// The tail of this name. A new one begins with the first entry that the log has.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the directory cannot be read or written.
    pub fn open(dir: &Path, name: &str) -> Result<Self, StoreError> {
        Self::on(Files::at(dir), name)
    }

    pub(super) fn on(files: Files, name: &str) -> Result<Self, StoreError> {
        let name = format!("audit.sent.{name}");
        let read = files.heads.read(&name);
        let read = read.map_err(on(&*files.heads, "read", &name))?;
        let kept = read.and_then(|text| serde_json::from_slice(&text).ok());
        let place = match kept {
            Some(place) => place,
            None => TailPlace::begin(&files)?,
        };
        let tail = Self { files, name, place };
        if kept.is_none() {
            tail.keep()?;
        }
        Ok(tail)
    }

    /// Number of the last entry that was confirmed, or of the one before the first.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.place.seq
    }

    /// The entries after the place, up to this number, as many as a batch has room for.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the log cannot be read.
    pub fn next(&mut self, durable: u64, entries_max: usize) -> Result<TailBatch, StoreError> {
        if durable < self.place.seq {
            // Another, older log is there.
            self.place = TailPlace::begin(&self.files)?;
        }
        let mut batch = TailBatch::default();
        if durable == self.place.seq {
            return Ok(batch);
        }
        let mut place = self.place;
        let mut bytes = 0;
        let from = LogPlace {
            segment: place.segment,
            bytes: place.bytes,
        };
        let end = forward(&self.files, from, LOOK_BYTES_MAX, &mut |seen| {
            let seq = seen.entry.seq;
            let length = seen.line.len() + 1;
            let is_full = !batch.lines.is_empty() && bytes + length > TAIL_BYTES_MAX;
            if seq > durable || is_full || batch.lines.len() >= entries_max {
                return ControlFlow::Break(());
            }
            if seq > place.seq {
                batch.missing += seq - place.seq - 1;
                batch.lines.push(seen.line.to_owned());
                bytes += length;
                place.seq = seq;
            }
            place.segment = seen.place.segment;
            place.bytes = seen.place.bytes + length as u64;
            ControlFlow::Continue(())
        })?;
        if let Some(next) = end.next.filter(|_| end.is_cut) {
            (place.segment, place.bytes) = (next.segment, next.bytes);
        }
        batch.next = Some(place).filter(|place| *place != self.place);
        Ok(batch)
    }

    /// Keeps the place after a batch: its entries are not read again.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the place cannot be written.
    pub fn confirm(&mut self, batch: &TailBatch) -> Result<(), StoreError> {
        let Some(next) = batch.next else {
            return Ok(());
        };
        self.place = next;
        self.keep()
    }

    fn keep(&self) -> Result<(), StoreError> {
        let heads = &*self.files.heads;
        let text = serde_json::to_vec(&self.place).unwrap_or_default();
        let written = heads.prepare(&self.name, &text);
        let written = written.and_then(|()| heads.replace(&self.name));
        written.map_err(on(heads, "write", &self.name))
    }
}

impl TailPlace {
    /// The place before the first entry that the log has.
    fn begin(files: &Files) -> Result<Self, StoreError> {
        let first = files.firsts()?.first().copied().unwrap_or(1);
        Ok(Self {
            segment: first,
            bytes: 0,
            seq: first.saturating_sub(1),
        })
    }
}
