//! Audit log writer: recovery at a start, segments, the head after each group.

use std::sync::Arc;

use super::chain::{Chain, ChainHead, ChainLine};
use super::config::LogFiles;
use super::entry::{AuditEntry, LoggedPayload, RecordedVerdict};
use super::files::{Files, HEAD_FILE, SLOTS, SegmentPart, StoredHead, name, segment_parts};
use super::look::oldest_ms;
use super::retention::OnSegment;
use crate::disk::{DiskFile, on, opened};
use crate::error::StoreError;
use crate::group::{Items, Sink};
use platform::{Mutex, unix_ms};

/// Bytes of memory that the writer keeps for the next group.
const BODIES_KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The open log.
#[derive(Debug)]
pub(super) struct LogWriter {
    files: Files,
    chain: Chain,
    head: ChainHead,
    /// The durable head, shared with readers.
    pub(super) durable_head: Arc<Mutex<ChainHead>>,
    head_file: Box<dyn DiskFile>,
    /// Number of times that the head has been written.
    turn: u64,
    segment: Option<Segment>,
    rotation: Rotation,
    /// Lines that are in the chain and not yet in a segment.
    text: Vec<u8>,
    /// Entries of the group that are in the chain: more than none at its begin if a segment could
    /// not be opened.
    chained: usize,
}

/// The end of a segment.
#[derive(Debug)]
pub(super) struct Rotation {
    pub(super) bytes_max: u64,
    pub(super) age_max_ms: Option<u64>,
    /// The signal that another segment has begun.
    pub(super) begun: Option<OnSegment>,
}

impl Rotation {
    pub(super) fn new(files: &LogFiles, begun: OnSegment) -> Self {
        let age = files.rotate_age.map(|age| age.as_millis());
        Self {
            bytes_max: files.rotate_bytes,
            age_max_ms: age.map(|age| u64::try_from(age).unwrap_or(u64::MAX)),
            begun: Some(begun),
        }
    }
}

#[derive(Debug)]
struct Segment {
    name: String,
    file: Box<dyn DiskFile>,
    bytes: u64,
    /// When it began, in Unix milliseconds.
    begun_ms: u64,
}

/// State of the log at a start.
struct Recovered {
    head: ChainHead,
    /// The last segment, if the writer continues it: number of its first entry, bytes of its
    /// complete lines.
    tail: Option<(u64, u64)>,
    /// Difference between the log and its stored head, as a reason for the log.
    broken: Option<String>,
}

impl LogWriter {
    /// Opens the log. `begun` says whether the key was in use before; then a head must exist.
    pub(super) fn open(
        files: Files,
        chain: Chain,
        begun: bool,
        now_ms: u64,
        rotation: Rotation,
    ) -> Result<LogWriter, StoreError> {
        let known = files.head(&chain, begun)?;
        let recovered = recover(&files, &chain, known, begun)?;
        let head_file =
            files
                .heads
                .open(HEAD_FILE)
                .map_err(on(&*files.heads, "open", HEAD_FILE))?;
        let turn = known.map_or(0, |kept| kept.turn);
        let durable_head = Arc::new(Mutex::new(recovered.head));
        let head = recovered.head;
        let text = Vec::new();
        let segment = None;
        let chained = 0;
        let mut log = LogWriter {
            files,
            chain,
            head,
            durable_head,
            head_file,
            turn,
            segment,
            rotation,
            text,
            chained,
        };
        if known.is_none() {
            // Both slots: from now on a slot that is not intact was torn or changed.
            log.write_head()?;
            log.write_head()?;
        }
        if let Some((first, whole)) = recovered.tail {
            log.continue_segment(first, whole)?;
        }
        match (recovered.broken, known) {
            (Some(why), _) => log.write(std::iter::once(broken(&why, now_ms).as_slice()))?,
            // Entries of an unacknowledged group that a crash left stay after the head until the
            // next group ends.
            (None, Some(kept)) if kept.torn => log.write_head()?,
            (None, _) => {}
        }
        Ok(log)
    }

    /// Writes entries, syncs them, and then the head. After [`StoreError::Unopened`] it goes on
    /// where it stopped when it is called with the same entries again.
    pub(super) fn write<'a>(
        &mut self,
        bodies: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), StoreError> {
        let before = self.durable_head.lock().seq;
        let mut bodies = bodies.skip(self.chained).peekable();
        if self.chained > 0 {
            self.write_text(before)?;
        } else if bodies.peek().is_some() && self.is_old() {
            self.segment = None;
        }
        while let Some(body) = bodies.next() {
            self.chained += 1;
            self.head = self
                .chain
                .write(&mut self.text, &self.head, body, bodies.peek().is_none());
            let filled =
                self.segment.as_ref().map_or(0, |segment| segment.bytes) + self.text.len() as u64;
            if filled >= self.rotation.bytes_max {
                // A segment is durable before the next one exists.
                self.write_text(before)?;
                self.segment = None;
            }
        }
        self.write_text(before)?;
        self.chained = 0;
        if self.head.seq == before {
            Ok(())
        } else {
            self.write_head()
        }
    }

    /// Whether the segment has reached the age at which it ends.
    fn is_old(&self) -> bool {
        let ages = self.segment.as_ref().zip(self.rotation.age_max_ms);
        ages.is_some_and(|(segment, age)| segment.begun_ms.saturating_add(age) <= unix_ms())
    }

    /// Writes the gathered lines to the current segment, or to a new one.
    fn write_text(&mut self, before: u64) -> Result<(), StoreError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let segments = &*self.files.segments;
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let first = ChainLine::read(
                    self.text
                        .split(|byte| *byte == b'\n')
                        .next()
                        .unwrap_or_default(),
                );
                let name = name(first.map_or(before + 1, |parsed| parsed.seq));
                let file = opened(segments, &name)?;
                if let Some(begun) = &self.rotation.begun {
                    begun.signal();
                }
                none.insert(Segment {
                    name,
                    file,
                    bytes: 0,
                    begun_ms: unix_ms(),
                })
            }
        };
        segment
            .file
            .append(&self.text)
            .map_err(on(segments, "write", &segment.name))?;
        segment.bytes += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    fn write_head(&mut self) -> Result<(), StoreError> {
        let turn = self.turn + 1;
        let slot = self.chain.slot(&self.head, turn);
        let at = turn % SLOTS * slot.len() as u64;
        self.head_file
            .write_at(at, &slot)
            .map_err(on(&*self.files.heads, "write", HEAD_FILE))?;
        self.turn = turn;
        *self.durable_head.lock() = self.head;
        Ok(())
    }

    /// Opens the last segment and removes the rest of a write that a crash interrupted.
    fn continue_segment(&mut self, first: u64, whole: u64) -> Result<(), StoreError> {
        let name = name(first);
        let segments = &*self.files.segments;
        let mut file = segments.open(&name).map_err(on(segments, "open", &name))?;
        file.cut(whole).map_err(on(segments, "repair", &name))?;
        let begun_ms = oldest_ms(&self.files, first)?.unwrap_or_else(unix_ms);
        self.segment = Some(Segment {
            name,
            file,
            bytes: whole,
            begun_ms,
        });
        Ok(())
    }
}

/// Finds the entry that the head names and verifies the chain from there.
fn recover(
    files: &Files,
    chain: &Chain,
    known: Option<StoredHead>,
    begun: bool,
) -> Result<Recovered, StoreError> {
    let firsts = files.firsts()?;
    let Some(StoredHead { head, torn, .. }) = known else {
        let lost = begun || !firsts.is_empty();
        let broken = lost.then(|| {
            "the head that is stored outside the log is missing or has a wrong MAC".to_owned()
        });
        return Ok(Recovered {
            head: beyond(files, ChainHead::default(), &firsts)?,
            tail: None,
            broken,
        });
    };
    let mut walk = Walk {
        chain,
        stored: head,
        last: head,
        is_anchored: head.seq == 0,
        ends_group: false,
    };
    let mut tail = None;
    let from = firsts
        .iter()
        .rposition(|first| *first <= head.seq)
        .unwrap_or_default();
    for first in firsts.iter().skip(from) {
        let text = files.segment(*first)?;
        let mut whole = 0;
        for part in segment_parts(&text) {
            let SegmentPart::Whole(line) = part else {
                break;
            };
            if !walk.step(line) {
                let why = "an entry after the stored head has a wrong MAC";
                return lost(files, head, &firsts, why);
            }
            whole += line.len() as u64 + 1;
        }
        tail = Some((*first, whole));
        if whole < text.len() as u64 && firsts.last() != Some(first) {
            let why = "a segment ends within an entry";
            return lost(files, head, &firsts, why);
        }
    }
    if !walk.is_anchored {
        let why = "the last entry that the head names is missing or changed";
        return lost(files, head, &firsts, why);
    }
    if torn && !walk.ends_group {
        let why = "one of the two slots of the head was changed";
        return lost(files, head, &firsts, why);
    }
    Ok(Recovered {
        head: walk.last,
        tail,
        broken: None,
    })
}

/// The entries that are on disk, read from before the one that the stored head names.
struct Walk<'c> {
    chain: &'c Chain,
    /// The head that is stored outside the log.
    stored: ChainHead,
    /// The head after the last entry that was read.
    last: ChainHead,
    /// Whether the entry that the stored head names was found.
    is_anchored: bool,
    /// Whether the last entry is the last one of its group.
    ends_group: bool,
}

impl Walk<'_> {
    /// Reads the next entry; false if it does not go on with the chain.
    fn step(&mut self, line: &[u8]) -> bool {
        let parsed = ChainLine::read(line);
        if !self.is_anchored {
            // Entries before the stored head were checked before it was stored.
            self.is_anchored = parsed.is_some_and(|parsed| {
                parsed.seq == self.stored.seq && parsed.mac == self.stored.last
            });
            return true;
        }
        match parsed {
            Some(parsed) if self.chain.goes_on(&self.last, &parsed) => {
                self.last = ChainHead {
                    seq: parsed.seq,
                    last: parsed.mac,
                };
                self.ends_group = parsed.end;
                true
            }
            Some(_) | None => false,
        }
    }
}

fn lost(
    files: &Files,
    head: ChainHead,
    firsts: &[u64],
    why: &str,
) -> Result<Recovered, StoreError> {
    let broken = Some(format!("{why}; its last entry was {}", head.seq));
    Ok(Recovered {
        head: beyond(files, head, firsts)?,
        tail: None,
        broken,
    })
}

/// A head whose next entry begins a new segment.
fn beyond(files: &Files, head: ChainHead, firsts: &[u64]) -> Result<ChainHead, StoreError> {
    let last = match firsts.last() {
        Some(first) => first.saturating_add(segment_parts(&files.segment(*first)?).count() as u64),
        None => 0,
    };
    Ok(ChainHead {
        seq: head.seq.max(last),
        ..head
    })
}

fn broken(why: &str, at_ms: u64) -> Vec<u8> {
    let entry = AuditEntry::of_log(at_ms, RecordedVerdict::Broken, why);
    let mut body = Vec::new();
    entry.write_members(&mut body, &LoggedPayload::None);
    body
}

/// Bodies of entries, one after the other.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Bodies {
    /// Adds an entry with its payload in the form for the log.
    pub(super) fn add(&mut self, entry: &AuditEntry<'_>, payload: &LoggedPayload<'_>) {
        entry.write_members(&mut self.text, payload);
        self.ends.push(self.text.len());
    }

    /// Adds an entry by its members.
    pub(super) fn add_members(&mut self, members: &[u8]) {
        self.text.extend_from_slice(members);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| self.text.get(*start..*end).unwrap_or_default())
    }
}

impl Items for Bodies {
    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(BODIES_KEPT_BYTES_MAX);
        self.ends.clear();
        self.ends
            .shrink_to(BODIES_KEPT_BYTES_MAX / size_of::<usize>());
    }
}

impl Sink for LogWriter {
    type Items = Bodies;

    const RETRIES: bool = true;

    fn commit(&mut self, bodies: &Bodies) -> Result<(), StoreError> {
        self.write(bodies.iter())
    }
}
