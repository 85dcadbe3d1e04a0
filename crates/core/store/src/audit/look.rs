//! Looks at a log that may be larger than memory: backward from a place, or forward, in chunks, and
//! at no more than so many bytes.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use super::entry::RecordedEntry;
use super::files::Files;
use crate::error::StoreError;

/// Bytes of the log that one look reads at most, give or take a chunk.
pub const LOOK_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes that a look reads at once, unless a line is longer.
const CHUNK_BYTES: u64 = 256 * 1024;

/// A place between two lines of the log: so many bytes into the segment that begins with this entry.
/// It stays where it is while the log grows. It prints as `SEGMENT-BYTES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    pub(super) segment: u64,
    pub(super) bytes: u64,
}

/// A text is not a [`LogPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no place in the audit log")]
pub struct ParsePlaceError;

/// The end of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookEnd {
    /// The place at which a further look goes on; `None` at the end of the log, or at its begin if
    /// the look went backward.
    pub next: Option<LogPlace>,
    /// Whether the look has ended because it had read [`LOOK_BYTES_MAX`].
    pub is_cut: bool,
}

/// An entry that a look has come to.
#[derive(Debug, Clone, Copy)]
pub struct SeenEntry<'a> {
    /// The entry.
    pub entry: &'a RecordedEntry<'a>,
    /// Its line.
    pub line: &'a str,
    /// The place before it.
    pub place: LogPlace,
}

/// The action on each entry of a look. With `Break` the look ends before the entry: a further one
/// comes to it again.
type OnEntry<'f> = &'f mut dyn FnMut(SeenEntry<'_>) -> ControlFlow<()>;

/// Looks at the entries before a place, or at the end of the log, newest first. Skips lines that are
/// not entries.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read.
pub fn look_back(
    dir: &Path,
    before: Option<LogPlace>,
    mut each: impl FnMut(SeenEntry<'_>) -> ControlFlow<()>,
) -> Result<LookEnd, StoreError> {
    back(&Files::at(dir), before, LOOK_BYTES_MAX, &mut each)
}

/// Looks at the entries after a place, oldest first. Skips lines that are not entries.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read.
pub fn look_on(
    dir: &Path,
    after: LogPlace,
    mut each: impl FnMut(SeenEntry<'_>) -> ControlFlow<()>,
) -> Result<LookEnd, StoreError> {
    forward(&Files::at(dir), after, LOOK_BYTES_MAX, &mut each)
}

pub(super) fn back(
    files: &Files,
    before: Option<LogPlace>,
    bytes_max: u64,
    each: OnEntry<'_>,
) -> Result<LookEnd, StoreError> {
    let mut look = Look::new(files, bytes_max);
    let last = before.map_or(u64::MAX, |place| place.segment);
    let mut firsts = files.firsts()?;
    firsts.retain(|first| *first <= last);
    for segment in firsts.into_iter().rev() {
        let bytes = files.bytes(segment)?;
        let end = before.filter(|place| place.segment == segment);
        let end = end.map_or(bytes, |place| place.bytes.min(bytes));
        let from = LogPlace {
            segment,
            bytes: end,
        };
        if let Some(end) = look.back_in_segment(from, each)? {
            return Ok(end);
        }
    }
    Ok(LookEnd::OF_LOG)
}

pub(super) fn forward(
    files: &Files,
    after: LogPlace,
    bytes_max: u64,
    each: OnEntry<'_>,
) -> Result<LookEnd, StoreError> {
    let mut look = Look::new(files, bytes_max);
    for segment in files.firsts()? {
        if segment < after.segment {
            continue;
        }
        let bytes = if segment == after.segment {
            after.bytes
        } else {
            0
        };
        if let Some(end) = look.on_in_segment(LogPlace { segment, bytes }, each)? {
            return Ok(end);
        }
    }
    Ok(LookEnd::OF_LOG)
}

/// The time of the newest entry of a segment; `None` if it has none.
pub(super) fn newest_ms(files: &Files, segment: u64) -> Result<Option<u64>, StoreError> {
    let mut newest = None;
    let bytes = files.bytes(segment)?;
    let from = LogPlace { segment, bytes };
    Look::new(files, LOOK_BYTES_MAX).back_in_segment(from, &mut |seen| {
        newest = Some(seen.entry.at_ms);
        ControlFlow::Break(())
    })?;
    Ok(newest)
}

/// The time of the oldest entry of a segment; `None` if it has none.
pub(super) fn oldest_ms(files: &Files, segment: u64) -> Result<Option<u64>, StoreError> {
    let mut oldest = None;
    let from = LogPlace { segment, bytes: 0 };
    Look::new(files, LOOK_BYTES_MAX).on_in_segment(from, &mut |seen| {
        oldest = Some(seen.entry.at_ms);
        ControlFlow::Break(())
    })?;
    Ok(oldest)
}

impl LookEnd {
    /// The end of a look that has come to the end of the log.
    const OF_LOG: LookEnd = LookEnd {
        next: None,
        is_cut: false,
    };

    fn at(next: LogPlace, is_cut: bool) -> LookEnd {
        LookEnd {
            next: Some(next),
            is_cut,
        }
    }
}

/// One look.
struct Look<'f> {
    files: &'f Files,
    bytes_max: u64,
    /// Bytes that it may still read.
    left: u64,
}

impl<'f> Look<'f> {
    fn new(files: &'f Files, bytes_max: u64) -> Self {
        Self {
            files,
            bytes_max,
            left: bytes_max,
        }
    }

    /// Reads the lines of a segment before a place, the last first; `None` if the look goes on in the
    /// segment before.
    fn back_in_segment(
        &mut self,
        from: LogPlace,
        each: OnEntry<'_>,
    ) -> Result<Option<LookEnd>, StoreError> {
        // What was read and is in no line yet: the bytes from `begin` up to `end`.
        let mut held = Vec::new();
        let (mut begin, mut end) = (from.bytes, from.bytes);
        while begin > 0 {
            if self.left == 0 {
                // A line that is longer than a look is passed over, so that the next one gets on.
                let is_longer = end == from.bytes && end - begin >= self.bytes_max;
                let bytes = if is_longer { begin } else { end };
                return Ok(Some(LookEnd::at(LogPlace { bytes, ..from }, true)));
            }
            let bytes = CHUNK_BYTES.max(held.len() as u64).min(begin);
            let mut chunk = self.read(from.segment, begin - bytes, bytes)?;
            begin -= bytes;
            chunk.append(&mut held);
            held = chunk;
            let mut lines = LinesBack::new(&held, begin == 0);
            for line in lines.by_ref() {
                let bytes = begin + line.from as u64;
                let place = LogPlace { bytes, ..from };
                if line.is_shown(place, each).is_break() {
                    let bytes = begin + line.to as u64;
                    return Ok(Some(LookEnd::at(LogPlace { bytes, ..from }, false)));
                }
            }
            let kept = lines.kept;
            end = begin + kept as u64;
            held.truncate(kept);
        }
        Ok(None)
    }

    /// Reads the lines of a segment after a place; `None` if the look goes on in the next segment.
    fn on_in_segment(
        &mut self,
        from: LogPlace,
        each: OnEntry<'_>,
    ) -> Result<Option<LookEnd>, StoreError> {
        let mut held: Vec<u8> = Vec::new();
        let mut at = from.bytes;
        loop {
            if self.left == 0 {
                let held = held.len() as u64;
                let is_longer = at == from.bytes && held >= self.bytes_max;
                let bytes = if is_longer { at + held } else { at };
                return Ok(Some(LookEnd::at(LogPlace { bytes, ..from }, true)));
            }
            let bytes = CHUNK_BYTES.max(held.len() as u64);
            let mut chunk = self.read(from.segment, at + held.len() as u64, bytes)?;
            if chunk.is_empty() {
                return Ok(None);
            }
            held.append(&mut chunk);
            let mut done = 0;
            while let Some(line) = SeenLine::first(&held, done) {
                let bytes = at + done as u64;
                let place = LogPlace { bytes, ..from };
                if line.is_shown(place, each).is_break() {
                    return Ok(Some(LookEnd::at(place, false)));
                }
                done = line.to;
            }
            held.drain(..done);
            at += done as u64;
        }
    }

    fn read(&mut self, segment: u64, from: u64, bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.left = self.left.saturating_sub(bytes);
        self.files.part(segment, from, bytes)
    }
}

/// A line within bytes that were read.
struct SeenLine<'b> {
    /// Its first byte.
    from: usize,
    /// The byte after its line feed.
    to: usize,
    text: &'b [u8],
}

impl<'b> SeenLine<'b> {
    /// The line that begins at this byte, if its line feed is there.
    fn first(bytes: &'b [u8], from: usize) -> Option<Self> {
        let rest = bytes.get(from..)?;
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        Some(Self {
            from,
            to: from + length + 1,
            text: rest.get(..length)?,
        })
    }

    /// Gives it to `each` if it is an entry.
    fn is_shown(&self, place: LogPlace, each: OnEntry<'_>) -> ControlFlow<()> {
        let Ok(line) = std::str::from_utf8(self.text) else {
            return ControlFlow::Continue(());
        };
        match serde_json::from_str::<RecordedEntry<'_>>(line) {
            Ok(entry) => each(SeenEntry {
                entry: &entry,
                line,
                place,
            }),
            Err(_) => ControlFlow::Continue(()),
        }
    }
}

/// The lines of bytes of a segment, the last first. Bytes without a line feed at the end are no line,
/// and the first line is whole only if the bytes begin with one.
struct LinesBack<'b> {
    bytes: &'b [u8],
    begins_line: bool,
    /// Bytes that are in no line yet: the end of a line whose begin was not read.
    kept: usize,
}

impl<'b> LinesBack<'b> {
    fn new(bytes: &'b [u8], begins_line: bool) -> Self {
        Self {
            bytes,
            begins_line,
            kept: bytes.len(),
        }
    }
}

impl<'b> Iterator for LinesBack<'b> {
    type Item = SeenLine<'b>;

    fn next(&mut self) -> Option<SeenLine<'b>> {
        let is_feed = |byte: &u8| *byte == b'\n';
        let feed = self.bytes.get(..self.kept)?.iter().rposition(is_feed)?;
        let before = self.bytes.get(..feed)?;
        let from = match before.iter().rposition(is_feed) {
            Some(other) => other + 1,
            None if self.begins_line => 0,
            None => return None,
        };
        self.kept = from;
        Some(SeenLine {
            from,
            to: feed + 1,
            text: before.get(from..)?,
        })
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.segment, self.bytes)
    }
}

impl FromStr for LogPlace {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<LogPlace, ParsePlaceError> {
        let (segment, bytes) = text.split_once('-').ok_or(ParsePlaceError)?;
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse::<u64>().ok().filter(|_| is_plain);
            number.ok_or(ParsePlaceError)
        };
        Ok(LogPlace {
            segment: number(segment)?,
            bytes: number(bytes)?,
        })
    }
}

#[cfg(test)]
mod tests;
