//! Groups of entries in lines of the common journal: what was appended together, in one line or in
//! several.

use bytes::Bytes;
use runner::{LINE_BYTES_MAX, ShardLine};
use store::Entry;

/// The line has a whole group.
const WHOLE: u8 = b'G';
/// The line has a whole group that says what is in force, in place of all before it.
const WHOLE_SNAPSHOT: u8 = b'S';
/// The line has the first part of a group, and more follow.
const FIRST: u8 = b'F';
/// The line has a further part.
const PART: u8 = b'P';
/// The line has the last part, after the length of the group.
const LAST: u8 = b'L';
/// As [`LAST`], of a group that says what is in force.
const LAST_SNAPSHOT: u8 = b'C';
const END: u8 = b'\n';
/// Bytes of the length of a group: little-endian.
const LENGTH_BYTES: usize = 8;
/// The most bytes of a part.
const PART_BYTES_MAX: usize = LINE_BYTES_MAX - 1 - LENGTH_BYTES;

/// A line that this version cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the common journal has a line that this version cannot read")]
pub(crate) struct UnreadableLine;

/// A group, as a copy takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) entries: Vec<Entry>,
    /// Whether these entries say what is in force, in place of all before them.
    pub(crate) is_snapshot: bool,
}

/// The lines of a group.
pub(crate) fn lines(entries: &[Entry]) -> Vec<ShardLine> {
    lines_of(entries, WHOLE, LAST)
}

/// The lines of a group that says what is in force, in place of all before it.
pub(crate) fn snapshot_lines(entries: &[Entry]) -> Vec<ShardLine> {
    lines_of(entries, WHOLE_SNAPSHOT, LAST_SNAPSHOT)
}

fn lines_of(entries: &[Entry], whole: u8, last: u8) -> Vec<ShardLine> {
    let mut text = Vec::new();
    for entry in entries {
        text.extend_from_slice(&entry.line());
        text.push(END);
    }
    let mut parts: Vec<&[u8]> = text.chunks(PART_BYTES_MAX).collect();
    let end = parts.pop().unwrap_or_default();
    if parts.is_empty() {
        return vec![line(&[&[whole], end])];
    }
    let kinds = std::iter::once(FIRST).chain(std::iter::repeat(PART));
    let begun = kinds.zip(parts).map(|(kind, part)| line(&[&[kind], part]));
    let length = (text.len() as u64).to_le_bytes();
    let ends = line(&[&[last], &length, end]);
    begun.chain([ends]).collect()
}

fn line(parts: &[&[u8]]) -> ShardLine {
    ShardLine(Bytes::from(parts.concat()))
}

/// Puts the groups of lines together again.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// The epoch in which the group began of which parts have come.
    epoch: u64,
    begun: Vec<u8>,
}

impl Groups {
    /// Takes the next line, and returns the group that ends with it. A group never was if its home
    /// ended before its last part, or if the log did not take one of its parts.
    pub(crate) fn take(
        &mut self,
        epoch: u64,
        line: &ShardLine,
    ) -> Result<Option<Group>, UnreadableLine> {
        let (kind, content) = line.0.split_first().ok_or(UnreadableLine)?;
        if epoch != self.epoch || *kind != PART && *kind != LAST && *kind != LAST_SNAPSHOT {
            self.begun.clear();
        }
        self.epoch = epoch;
        match *kind {
            WHOLE | WHOLE_SNAPSHOT => group(content, *kind == WHOLE_SNAPSHOT).map(Some),
            FIRST | PART => {
                self.begun.extend_from_slice(content);
                Ok(None)
            }
            LAST | LAST_SNAPSHOT => self.end(content, *kind == LAST_SNAPSHOT),
            _ => Err(UnreadableLine),
        }
    }

    fn end(&mut self, content: &[u8], is_snapshot: bool) -> Result<Option<Group>, UnreadableLine> {
        let (length, part) = content
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or(UnreadableLine)?;
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(part);
        if text.len() as u64 != u64::from_le_bytes(*length) {
            return Ok(None);
        }
        group(&text, is_snapshot).map(Some)
    }
}

fn group(text: &[u8], is_snapshot: bool) -> Result<Group, UnreadableLine> {
    Ok(Group {
        entries: read(text)?,
        is_snapshot,
    })
}

fn read(text: &[u8]) -> Result<Vec<Entry>, UnreadableLine> {
    let lines = text.split_inclusive(|byte| *byte == END);
    let entries = lines.map(|line| {
        let line = line.strip_suffix(&[END]).ok_or(UnreadableLine)?;
        Entry::read_line(line).ok_or(UnreadableLine)
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        let line = format!(r#"{{"owner":"test","text":"{text}"}}"#);
        Entry::read_line(line.as_bytes()).unwrap()
    }

    fn plain(entries: &[Entry]) -> Group {
        Group {
            entries: entries.to_vec(),
            is_snapshot: false,
        }
    }

    #[test]
    fn a_group_of_what_is_in_force_is_known_as_one() {
        let entries = [entry(&"x".repeat(2 * LINE_BYTES_MAX)), entry("y")];
        let mut groups = Groups::default();
        let lines = snapshot_lines(&entries);
        let taken = lines.iter().map(|line| groups.take(1, line).unwrap());
        let [group] = <[_; 1]>::try_from(taken.flatten().collect::<Vec<_>>()).unwrap();
        assert!(group.is_snapshot && group.entries == entries);
        assert_eq!(snapshot_lines(&[])[0].0, b"S"[..]);
    }

    #[test]
    fn a_small_group_is_one_line_with_golden_bytes() {
        let [line] = <[_; 1]>::try_from(lines(&[entry("a"), entry("b")])).unwrap();
        let golden = b"G{\"owner\":\"test\",\"text\":\"a\"}\n{\"owner\":\"test\",\"text\":\"b\"}\n";
        assert_eq!(line.0, golden[..]);
    }

    #[test]
    fn a_group_of_any_size_is_what_it_was() {
        for length in [0, 1, LINE_BYTES_MAX, 3 * LINE_BYTES_MAX] {
            let group = [entry(&"x".repeat(length)), entry("end")];
            let lines = lines(&group);
            assert!(lines.iter().all(|line| line.0.len() <= LINE_BYTES_MAX));
            let mut groups = Groups::default();
            let taken = lines.iter().map(|line| groups.take(1, line).unwrap());
            let whole: Vec<_> = taken.flatten().collect();
            assert_eq!(whole, [plain(&group)]);
        }
    }

    #[test]
    fn a_group_whose_home_ended_before_its_last_part_never_was() {
        let cut = lines(&[entry(&"x".repeat(2 * LINE_BYTES_MAX))]);
        let next = [entry("y")];
        let mut groups = Groups::default();
        assert_eq!(groups.take(1, &cut[0]), Ok(None));
        let whole = lines(&next);
        assert_eq!(groups.take(2, &whole[0]), Ok(Some(plain(&next))));
        assert_eq!(groups.take(2, &cut[0]), Ok(None));
        assert_eq!(groups.take(3, cut.last().unwrap()), Ok(None));
    }

    #[test]
    fn a_group_without_one_of_its_parts_never_was_and_the_next_one_is_whole() {
        let large = [entry(&"x".repeat(4 * LINE_BYTES_MAX))];
        let lines = lines(&large);
        for missing in 0..lines.len() {
            let mut groups = Groups::default();
            let there = lines.iter().enumerate().filter(|(at, _)| *at != missing);
            for (_, line) in there {
                assert_eq!(groups.take(1, line), Ok(None), "without {missing}");
            }
            let taken = lines.iter().map(|line| groups.take(1, line).unwrap());
            assert_eq!(taken.flatten().collect::<Vec<_>>(), [plain(&large)]);
        }
    }

    #[test]
    fn a_line_of_a_later_version_is_not_passed_over() {
        let mut groups = Groups::default();
        for foreign in ["", "Z{}", "G{\"owner\":\"test\",\"a\":1}"] {
            let line = ShardLine(Bytes::from_static(foreign.as_bytes()));
            assert_eq!(groups.take(1, &line), Err(UnreadableLine), "{foreign}");
        }
    }
}
