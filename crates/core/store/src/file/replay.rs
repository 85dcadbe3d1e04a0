//! Replay of a journal's file: its lines, checked, and their entries.

use serde::{Deserialize, Serialize};

use super::chain::{Chain, is_numbered, is_torn, members};
use super::head::{FilePlace, HEAD_FILE, Head};
use super::legacy;
use crate::disk::{Disk, on};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::journal::{Position, Replayed};

/// The file of the lines, in the data directory.
pub(crate) const JOURNAL_FILE: &str = "journal.jsonl";
/// Traces of an earlier gateway in a data directory without a journal and its head.
const AUDIT_HEAD_FILE: &str = "audit.head";
const AUDIT_FOLDER: &str = "audit";
const NO_HEAD: &str = "nothing says how far it went: `journal.head` is gone or emptied";
const NO_HEAD_BUT_LOG: &str = "it is gone with its head, and there is an audit log";
/// The version of the format that this program writes.
pub(super) const FORMAT: u32 = 3;
/// The version before it, whose entries have no owners.
const FORMAT_WITHOUT_OWNERS: u32 = 2;
/// The version before that, whose lines have no numbers and no checksums.
const FORMAT_WITHOUT_SUMS: u32 = 1;

/// The first line of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    journal: u32,
    pub(super) id: String,
    /// The position that the file has begun at, and how many of its first entries are those that
    /// were in force there. The format before had neither.
    #[serde(default)]
    at: u64,
    #[serde(default)]
    kept: u64,
    /// The last place of the file that this one has replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<FilePlace>,
}

impl Header {
    /// The first line of a file that begins at a position, with so many entries that were in force
    /// there.
    pub(super) fn following(follows: Option<FilePlace>, at: Position, kept: usize) -> Self {
        Self {
            journal: FORMAT,
            id: data_encoding::HEXLOWER.encode(&platform::random::<16>()),
            at: at.0,
            kept: kept as u64,
            follows,
        }
    }

    pub(super) fn format(&self) -> u32 {
        self.journal
    }

    /// The position after so many entries of the file.
    pub(super) fn position_after(&self, entries: u64) -> Position {
        Position(self.at + entries.saturating_sub(self.kept))
    }

    /// Number of entries of the file up to a position; `None` if the file has begun later.
    pub(super) fn entries_up_to(&self, position: Position) -> Option<usize> {
        let later = position.0.checked_sub(self.at)?;
        usize::try_from(self.kept.checked_add(later)?).ok()
    }
}

/// A journal that was read.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) entries: Vec<Replayed>,
    /// The first line of the file, and all lines; `None` if there is no journal, or one of the
    /// format without checksums.
    pub(super) file: Option<(Header, Chain)>,
    /// The bytes up to the end of the last whole line, and whether others follow.
    pub(super) whole_bytes: usize,
    pub(super) torn: bool,
    /// Whether the last whole line lacks its line feed, which an interrupted write has not written.
    pub(super) open_end: bool,
}

impl Replay {
    /// The format of a journal that is older than the one that this program writes.
    pub(super) fn older_format(&self) -> Option<u32> {
        let format = match &self.file {
            Some((header, _)) => header.format(),
            None if self.entries.is_empty() => return None,
            None => FORMAT_WITHOUT_SUMS,
        };
        Some(format).filter(|format| *format != FORMAT)
    }
}

/// Reads all whole lines. A last line of which a part is missing was never acknowledged: it is
/// skipped.
pub(super) fn replay(disk: &dyn Disk, text: &[u8], head: &Head) -> Result<Replay, StoreError> {
    let reader = Reader {
        disk,
        replay: Replay::default(),
        line: 0,
    };
    if text.is_empty() || !is_numbered(text) {
        return match head {
            Head::Absent if text.is_empty() && has_audit_log(disk)? => {
                Err(lost(disk, NO_HEAD_BUT_LOG))
            }
            Head::Absent | Head::Accepted => reader.unnumbered(text),
            Head::Unreadable | Head::At(_) if text.is_empty() => Err(lost(disk, "it is gone")),
            Head::Unreadable | Head::At(_) => {
                reader.unnumbered(text)?;
                Err(lost(disk, "it is of an older version"))
            }
        };
    }
    reader.numbered(text, head)
}

struct Reader<'d> {
    disk: &'d dyn Disk,
    replay: Replay,
    line: usize,
}

impl Reader<'_> {
    /// Reads the format without numbers and checksums, of which every line is a record.
    fn unnumbered(mut self, text: &[u8]) -> Result<Replay, StoreError> {
        let (whole, _) = whole_lines(text);
        for line in whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            self.line += 1;
            if is_numbered(line) {
                return Err(self.damaged("the lines before it have no number and no checksum"));
            }
            let members = line.strip_prefix(b"{").unwrap_or_default();
            self.entry(legacy::entry(members))?;
        }
        self.replay.whole_bytes = whole.len();
        Ok(self.replay)
    }

    fn numbered(mut self, text: &[u8], head: &Head) -> Result<Replay, StoreError> {
        let (whole, mut tail) = whole_lines(text);
        let mut chain = Chain::default();
        let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let mut header = None;
        self.replay.whole_bytes = whole.len();
        lines.push(tail);
        for line in lines {
            self.line += 1;
            let is_tail = !line.ends_with(b"\n");
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let mut next = chain;
            match next.check(line) {
                Ok(()) if is_tail => {
                    (self.replay.whole_bytes, self.replay.open_end) = (text.len(), true);
                    tail = b"";
                }
                Ok(()) => {}
                Err(_) if is_tail => break,
                Err(cause) => return Err(self.damaged(&cause)),
            }
            chain = next;
            match &header {
                None => header = Some(self.header(line)?),
                Some(header) => {
                    let members = members(line).unwrap_or_default();
                    self.entry(match header.journal {
                        FORMAT_WITHOUT_OWNERS => legacy::entry(members),
                        _ => Entry::read(members),
                    })?;
                }
            }
            self.compare(header.as_ref(), chain, head)?;
        }
        let shortened = tail
            .split_last()
            .is_some_and(|(_, line)| chain.clone().check(line).is_ok());
        if shortened || !is_torn(chain, tail) {
            return Err(self.damaged("it is not a line that was being written"));
        }
        let header = header.ok_or_else(|| self.damaged("the first line is missing"))?;
        self.complete(&header, chain, head)?;
        self.replay.torn = !tail.is_empty();
        self.replay.file = Some((header, chain));
        Ok(self.replay)
    }

    fn header(&self, line: &[u8]) -> Result<Header, StoreError> {
        match serde_json::from_slice::<Header>(line) {
            Ok(header) if [FORMAT_WITHOUT_OWNERS, FORMAT].contains(&header.journal) => Ok(header),
            Ok(header) => Err(self.damaged(&format!(
                "a newer version wrote it (format {})",
                header.journal
            ))),
            Err(cause) => Err(self.damaged(&cause.to_string())),
        }
    }

    fn entry(&mut self, entry: Option<Entry>) -> Result<(), StoreError> {
        let entry = entry.ok_or_else(|| self.damaged("it is no record that is known"))?;
        let number = self.replay.entries.len() + 1;
        self.replay.entries.push(Replayed { number, entry });
        Ok(())
    }

    /// Compares the line at the head's place with the head.
    fn compare(
        &self,
        header: Option<&Header>,
        chain: Chain,
        head: &Head,
    ) -> Result<(), StoreError> {
        match (header, head) {
            (Some(header), Head::At(place))
                if place.id == header.id && place.lines == chain.lines && !place.is_at(chain) =>
            {
                Err(self.damaged(&format!("it is not the line that `{HEAD_FILE}` names")))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the journal has reached the head, or follows a file that has.
    fn complete(&self, header: &Header, chain: Chain, head: &Head) -> Result<(), StoreError> {
        let place = match head {
            Head::Accepted | Head::Unreadable => return Ok(()),
            Head::Absent => return Err(lost(self.disk, NO_HEAD)),
            Head::At(place) => place,
        };
        if place.id == header.id {
            let is = chain.lines;
            let was = place.lines;
            return if is < was {
                Err(lost(
                    self.disk,
                    &format!("its end is gone: it has {is} lines, and had {was}"),
                ))
            } else {
                Ok(())
            };
        }
        match &header.follows {
            Some(before) if before.id == place.id && before.lines >= place.lines => Ok(()),
            Some(_) | None => Err(lost(self.disk, "it is another or an older one")),
        }
    }

    fn damaged(&self, cause: &str) -> StoreError {
        damaged(self.disk, Some(self.line), cause)
    }
}

/// The error about a line, by its number from 1 if that is known.
pub(super) fn damaged(disk: &dyn Disk, line: Option<usize>, cause: &str) -> StoreError {
    let [path, head] = [JOURNAL_FILE, HEAD_FILE].map(|name| disk.path().join(name));
    StoreError::Damaged {
        path,
        head,
        line,
        cause: cause.to_owned(),
    }
}

/// Whether a gateway has written an audit log beside the journal.
fn has_audit_log(disk: &dyn Disk) -> Result<bool, StoreError> {
    let head = disk
        .read(AUDIT_HEAD_FILE)
        .map_err(on(disk, "read", AUDIT_HEAD_FILE))?;
    let folder = || std::fs::read_dir(disk.path().join(AUDIT_FOLDER));
    Ok(head.is_some_and(|head| !head.is_empty())
        || folder().is_ok_and(|mut files| files.next().is_some()))
}

fn lost(disk: &dyn Disk, cause: &str) -> StoreError {
    let [path, head] = [JOURNAL_FILE, HEAD_FILE].map(|name| disk.path().join(name));
    StoreError::Lost {
        path,
        head,
        cause: cause.to_owned(),
    }
}

/// The whole lines of a text, and what follows the last line feed.
fn whole_lines(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    text.split_at(end)
}
