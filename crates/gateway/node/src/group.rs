//! Groups of entries in lines of the common journal: what was appended together, in one line or in
//! several.

use bytes::Bytes;
use runner::{LINE_BYTES_MAX, ShardLine};
use store::Entry;

/// The line has a whole group.
const WHOLE: u8 = b'G';
/// The line has a part of a group, and more follow.
const PART: u8 = b'P';
/// The line has the last part of a group.
const LAST: u8 = b'L';
const END: u8 = b'\n';

/// A line that this version cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the common journal has a line that this version cannot read")]
pub(crate) struct UnreadableLine;

/// The lines of a group.
pub(crate) fn lines(entries: &[Entry]) -> Vec<ShardLine> {
    let mut text = Vec::new();
    for entry in entries {
        text.extend_from_slice(&entry.line());
        text.push(END);
    }
    let mut parts: Vec<&[u8]> = text.chunks(LINE_BYTES_MAX - 1).collect();
    let last = parts.pop().unwrap_or_default();
    let kind = if parts.is_empty() { WHOLE } else { LAST };
    let mut lines: Vec<ShardLine> = parts.into_iter().map(|part| line(PART, part)).collect();
    lines.push(line(kind, last));
    lines
}

fn line(kind: u8, part: &[u8]) -> ShardLine {
    ShardLine(Bytes::from([&[kind], part].concat()))
}

/// Puts the groups of lines together again.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// The epoch in which the group began of which parts have come.
    epoch: u64,
    begun: Vec<u8>,
}

impl Groups {
    /// Takes the next line, and returns the group that ends with it. A group whose home ended
    /// before its last part never was.
    pub(crate) fn take(
        &mut self,
        epoch: u64,
        line: &ShardLine,
    ) -> Result<Option<Vec<Entry>>, UnreadableLine> {
        let (kind, part) = line.0.split_first().ok_or(UnreadableLine)?;
        if epoch != self.epoch || *kind == WHOLE {
            self.begun.clear();
        }
        self.epoch = epoch;
        self.begun.extend_from_slice(part);
        match *kind {
            PART => Ok(None),
            WHOLE | LAST => read(&std::mem::take(&mut self.begun)).map(Some),
            _ => Err(UnreadableLine),
        }
    }
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
            assert_eq!(whole, [group.to_vec()]);
        }
    }

    #[test]
    fn a_group_whose_home_ended_before_its_last_part_never_was() {
        let cut = lines(&[entry(&"x".repeat(2 * LINE_BYTES_MAX))]);
        let next = [entry("y")];
        let mut groups = Groups::default();
        assert_eq!(groups.take(1, &cut[0]), Ok(None));
        let whole = lines(&next);
        assert_eq!(groups.take(2, &whole[0]), Ok(Some(next.to_vec())));
        assert_eq!(groups.take(2, &cut[0]), Ok(None));
        assert_eq!(groups.take(3, cut.last().unwrap()), Err(UnreadableLine));
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
