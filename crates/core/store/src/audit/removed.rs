//! The removed part of the log, as an entry proves it.

use super::chain::{Chain, ChainHead, ChainLine};
use super::entry::{
    AuditEntry, LoggedPayload, OF_LOG, RecordedEntry, RecordedRemoval, RecordedVerdict,
};
use super::files::{Files, SegmentPart, segment_parts};
use crate::error::StoreError;

/// The part of the log that retention has removed: all entries from the first one to the one that
/// its head names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedPart {
    /// Head of the chain after the last removed entry.
    pub head: ChainHead,
    /// Number of removed entries.
    pub entries: u64,
    /// Time of the first one, in Unix milliseconds.
    pub from_ms: u64,
    /// Time of the last one, in Unix milliseconds.
    pub to_ms: u64,
    /// Defects that the gateway found in it before it removed it.
    pub findings: u64,
}

impl RemovedPart {
    /// The part that an entry has; `None` if its head is none.
    fn of(removal: &RecordedRemoval) -> Option<Self> {
        Some(Self {
            head: removal.head.parse().ok()?,
            entries: removal.entries,
            from_ms: removal.from_ms,
            to_ms: removal.to_ms,
            findings: removal.findings,
        })
    }

    /// The members of the entry that proves the removal.
    pub(super) fn members(&self, at_ms: u64) -> Vec<u8> {
        let why = format!("retention: entries 1 to {}", self.head.seq);
        let entry = AuditEntry::of_log(at_ms, RecordedVerdict::Removed, &why);
        let mut members = Vec::new();
        entry.write_members(&mut members, &LoggedPayload::None);
        let mut removed = Vec::new();
        json::Object::write(&mut removed, |removed| {
            removed.text("head", &self.head.to_string());
            removed.number("entries", self.entries);
            removed.number("from_ms", self.from_ms);
            removed.number("to_ms", self.to_ms);
            removed.number("findings", self.findings);
        });
        members.extend_from_slice(br#","removed":"#);
        members.extend_from_slice(&removed);
        members
    }
}

/// An entry about the log itself, with its time; `None` for another line.
pub(super) fn of_log(line: &[u8]) -> Option<RecordedEntry<'_>> {
    const MARK: &[u8] = br#""kind":"portmoot/audit""#;
    let mut parts = line.windows(MARK.len());
    if !parts.any(|bytes| bytes == MARK) {
        return None;
    }
    let entry = serde_json::from_slice::<RecordedEntry<'_>>(line).ok()?;
    (entry.kind == OF_LOG).then_some(entry)
}

/// The part that an entry about the log says is removed.
pub(super) fn part_of(entry: &RecordedEntry<'_>) -> Option<RemovedPart> {
    let is_removal = entry.verdict == RecordedVerdict::Removed.as_str();
    RemovedPart::of(entry.removed.as_ref().filter(|_| is_removal)?)
}

/// The newest removal that the log proves; an entry whose MAC is wrong proves nothing.
pub(super) fn newest(files: &Files, chain: &Chain) -> Result<Option<RemovedPart>, StoreError> {
    let firsts = files.firsts()?;
    for (at, first) in firsts.iter().enumerate().rev() {
        let before = match at.checked_sub(1).and_then(|at| firsts.get(at)) {
            Some(before) => last_head(&files.segment(*before)?),
            None => None,
        };
        if let Some(part) = newest_in(chain, &files.segment(*first)?, before) {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

fn newest_in(chain: &Chain, text: &[u8], before: Option<ChainHead>) -> Option<RemovedPart> {
    let mut head = before;
    let mut newest = None;
    for line in whole_lines(text) {
        let parsed = ChainLine::read(line);
        let proves = |parsed: &ChainLine<'_>| {
            let goes_on = |head: &ChainHead| chain.goes_on(head, parsed);
            head.as_ref().is_some_and(goes_on)
        };
        if let Some(part) = of_log(line).as_ref().and_then(part_of) {
            newest = parsed
                .as_ref()
                .filter(|one| proves(one))
                .map(|_| part)
                .or(newest);
        }
        head = parsed.map(|parsed| parsed.head());
    }
    newest
}

fn last_head(text: &[u8]) -> Option<ChainHead> {
    let last = whole_lines(text).last()?;
    Some(ChainLine::read(last)?.head())
}

pub(super) fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    segment_parts(text).filter_map(|part| match part {
        SegmentPart::Whole(line) => Some(line),
        SegmentPart::Torn(_) => None,
    })
}
