//! The audit log as it is written: opened where the head says, mended where a crash tore it, continued. Must not know what
//! an entry says, except that it writes one itself where something does not fit.

use std::sync::Arc;

use platform::Mutex;

use super::chain::{Chain, Head, Link};
use super::entry::{Entry, Verdict, Written};
use super::files::{Files, HEAD_FILE, Kept, Piece, SLOTS, name, on, pieces};
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::group::{Items, Sink};

/// When a segment has this many bytes, the next entry begins another.
pub const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Memory of what was written that is kept for what comes next.
const BODIES_KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The log, open for writing.
#[derive(Debug)]
pub(super) struct Log {
    files: Files,
    chain: Chain,
    head: Head,
    /// What is durable, for others to see.
    shown: Arc<Mutex<Head>>,
    head_file: Box<dyn DiskFile>,
    /// How often the head has been written.
    turn: u64,
    segment: Option<Segment>,
    segment_bytes_max: u64,
    text: Vec<u8>,
}

#[derive(Debug)]
struct Segment {
    name: String,
    file: Box<dyn DiskFile>,
    bytes: u64,
}

/// What was found at a start.
struct Found {
    head: Head,
    /// The last segment, if writing goes on in it: its first entry and the bytes of it that are whole.
    tail: Option<(u64, u64)>,
    /// What does not fit, in words for the log.
    broken: Option<String>,
}

impl Log {
    /// Opens the log. `begun` is whether this key has been in use before: then there must be a head.
    pub(super) fn open(
        files: Files,
        chain: Chain,
        begun: bool,
        now_ms: u64,
        segment_bytes_max: u64,
    ) -> Result<Log, StoreError> {
        let known = files.head(&chain, begun)?;
        let found = find(&files, &chain, known, begun)?;
        let head_file = files.heads.open(HEAD_FILE).map_err(on(&*files.heads, "open", HEAD_FILE))?;
        let turn = known.map_or(0, |kept| kept.turn);
        let shown = Arc::new(Mutex::new(found.head));
        let head = found.head;
        let (text, segment) = (Vec::new(), None);
        let mut log = Log { files, chain, head, shown, head_file, turn, segment, segment_bytes_max, text };
        if known.is_none() {
            // Both slots: from here on, one that is not whole was torn or changed.
            log.write_head()?;
            log.write_head()?;
        }
        if let Some((first, whole)) = found.tail {
            log.go_on(first, whole)?;
        }
        match (found.broken, known) {
            (Some(why), _) => log.write(std::iter::once(broken(&why, now_ms).as_slice()))?,
            // What a crash left of a group that nobody was told of stays beyond the head until the next group ends.
            (None, Some(kept)) if kept.torn => log.write_head()?,
            (None, _) => {}
        }
        Ok(log)
    }

    /// Where others see how far the log reaches.
    pub(super) fn shown(&self) -> Arc<Mutex<Head>> {
        Arc::clone(&self.shown)
    }

    /// Writes entries, syncs them, and then the head.
    pub(super) fn write<'a>(&mut self, bodies: impl Iterator<Item = &'a [u8]>) -> Result<(), StoreError> {
        let before = self.head.seq;
        let mut bodies = bodies.peekable();
        while let Some(body) = bodies.next() {
            self.head = self.chain.write(&mut self.text, &self.head, body, bodies.peek().is_none());
            let filled = self.segment.as_ref().map_or(0, |segment| segment.bytes) + self.text.len() as u64;
            if filled >= self.segment_bytes_max {
                // A segment is durable before the next one exists.
                self.write_text(before)?;
                self.segment = None;
            }
        }
        self.write_text(before)?;
        if self.head.seq == before { Ok(()) } else { self.write_head() }
    }

    /// Writes what was gathered to the segment in use, or to a new one.
    fn write_text(&mut self, before: u64) -> Result<(), StoreError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let segments = &*self.files.segments;
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let first = Link::read(self.text.split(|byte| *byte == b'\n').next().unwrap_or_default());
                let name = name(first.map_or(before + 1, |link| link.seq));
                let file = segments.open(&name).map_err(on(segments, "open", &name))?;
                none.insert(Segment { name, file, bytes: 0 })
            }
        };
        let written = segment.file.append(&self.text).and_then(|()| segment.file.sync());
        written.map_err(on(segments, "write", &segment.name))?;
        segment.bytes += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    fn write_head(&mut self) -> Result<(), StoreError> {
        let turn = self.turn + 1;
        let slot = self.chain.slot(&self.head, turn);
        let at = turn % SLOTS * slot.len() as u64;
        let written = self.head_file.write_at(at, &slot).and_then(|()| self.head_file.sync());
        written.map_err(on(&*self.files.heads, "write", HEAD_FILE))?;
        self.turn = turn;
        *self.shown.lock() = self.head;
        Ok(())
    }

    /// Opens the last segment to write on, without what a crash has left of a write.
    fn go_on(&mut self, first: u64, whole: u64) -> Result<(), StoreError> {
        let (name, segments) = (name(first), &*self.files.segments);
        let mut file = segments.open(&name).map_err(on(segments, "open", &name))?;
        let mended = file.cut(whole).and_then(|()| file.sync());
        mended.map_err(on(segments, "repair", &name))?;
        self.segment = Some(Segment { name, file, bytes: whole });
        Ok(())
    }
}

/// Finds the entry that the head names, and follows the chain from there.
fn find(files: &Files, chain: &Chain, known: Option<Kept>, begun: bool) -> Result<Found, StoreError> {
    let firsts = files.firsts()?;
    let Some(Kept { head, torn, .. }) = known else {
        let lost = begun || !firsts.is_empty();
        let broken = lost.then(|| "the head that was kept outside the log is missing or not ours".to_owned());
        return Ok(Found { head: beyond(files, Head::START, &firsts)?, tail: None, broken });
    };
    let mut place = head;
    let mut anchored = head.seq == 0;
    let (mut tail, mut end) = (None, false);
    let from = firsts.iter().rposition(|first| *first <= head.seq).unwrap_or_default();
    for first in firsts.iter().skip(from) {
        let (text, mut whole) = (files.segment(*first)?, 0);
        for piece in pieces(&text) {
            let Piece::Whole(line) = piece else { break };
            let link = Link::read(line);
            match link {
                Some(link) if !anchored => anchored = link.seq == head.seq && link.mac == head.last,
                Some(link) if follows(chain, &place, &link) => {
                    place = Head { seq: link.seq, last: link.mac };
                    end = link.end;
                }
                _ if !anchored => {}
                _ => {
                    return lost(files, head, &firsts, "what comes after the head that was kept is not ours");
                }
            }
            whole += line.len() as u64 + 1;
        }
        tail = Some((*first, whole));
        if whole < text.len() as u64 && firsts.last() != Some(first) {
            return lost(files, head, &firsts, "a segment ends within an entry");
        }
    }
    match anchored {
        true if torn && !end => lost(files, head, &firsts, "one of the two places of the head was changed"),
        true => Ok(Found { head: place, tail, broken: None }),
        false => lost(files, head, &firsts, "the last entry that the head names is missing or changed"),
    }
}

fn lost(files: &Files, head: Head, firsts: &[u64], why: &str) -> Result<Found, StoreError> {
    let broken = Some(format!("{why}; its last entry was {}", head.seq));
    Ok(Found { head: beyond(files, head, firsts)?, tail: None, broken })
}

pub(super) fn follows(chain: &Chain, before: &Head, link: &Link<'_>) -> bool {
    link.seq == before.seq + 1 && chain.after(&before.last, link.covered) == link.mac
}

/// A head whose next entry begins a segment that is not there yet.
fn beyond(files: &Files, head: Head, firsts: &[u64]) -> Result<Head, StoreError> {
    let last = match firsts.last() {
        Some(first) => first.saturating_add(pieces(&files.segment(*first)?).count() as u64),
        None => 0,
    };
    Ok(Head { seq: head.seq.max(last), ..head })
}

fn broken(why: &str, at_ms: u64) -> Vec<u8> {
    let entry = Entry {
        at_ms,
        topic: None,
        from: model::GATEWAY,
        kind: "portmoot/audit".into(),
        own: None,
        to: &[],
        verdict: Verdict::Broken,
        why: Some(why),
        operation: None,
        digest: None,
        payload: None,
    };
    let mut body = Vec::new();
    entry.spell(&mut body, &Written::Nothing);
    body
}

/// The bodies of entries, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Bodies {
    /// Adds an entry, of whose payload this is written.
    pub(super) fn add(&mut self, entry: &Entry<'_>, payload: &Written<'_>) {
        entry.spell(&mut self.text, payload);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.text.get(*start..*end).unwrap_or_default())
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
        self.ends.shrink_to(BODIES_KEPT_BYTES_MAX / size_of::<usize>());
    }
}

impl Sink for Log {
    type Items = Bodies;

    fn commit(&mut self, bodies: &Bodies) -> Result<(), StoreError> {
        self.write(bodies.iter())
    }
}
