//! Tests of damaged and lost journals: every change of an acknowledged line is noticed, and the
//! files stay as they are.

use proptest::prelude::*;

use super::super::head::HEAD_FILE;
use super::*;
use crate::tests::names::adds;
use crate::tests::sim::SimDisk;

/// A disk with a journal of some records; with a compaction in its history if `compacted`.
fn disk(records: usize, is_compacted: bool) -> SimDisk {
    let disk = SimDisk::default();
    let mut file = JournalFile::open(Arc::new(disk.clone())).unwrap();
    let mut all = Vec::new();
    for at in 0..records {
        let entry = adds(&format!("name-{at}"));
        file.commit(std::slice::from_ref(&entry)).unwrap();
        all.push(entry);
        if is_compacted && at == records / 2 {
            file.replace_by(&all).unwrap();
        }
    }
    disk
}

/// Opens the journal of a disk; returns the number of its entries.
fn open(disk: &SimDisk) -> Result<usize, StoreError> {
    let journal = JournalFile::open(Arc::new(disk.clone()))?;
    Ok(read(&*journal.disk)?.entries.len())
}

/// Changes a file of the disk; returns whether the journal is refused, and stays as it is.
#[track_caller]
fn check(disk: &SimDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    disk.tamper(name, change);
    let before = [JOURNAL_FILE, HEAD_FILE].map(|name| disk.bytes(name));
    let peeked = read(disk).unwrap_err();
    let error = open(disk).unwrap_err();
    assert_eq!(peeked.to_string(), error.to_string());
    assert!(
        matches!(error, StoreError::Damaged { .. } | StoreError::Lost { .. }),
        "{error}"
    );
    assert_eq!(
        [JOURNAL_FILE, HEAD_FILE].map(|name| disk.bytes(name)),
        before,
        "{error}"
    );
}

/// The lines of a text, with their line feeds.
fn change_lines(text: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut all = text
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    change(&mut all);
    *text = all.concat();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_changed_byte_is_noticed(
        records in 0..8_usize, compacted: bool, at: prop::sample::Index, flip in 1..=255_u8,
    ) {
        check(&disk(records, compacted), JOURNAL_FILE, |text| {
            let at = at.index(text.len());
            text[at] ^= flip;
        });
    }

    #[test]
    fn a_removed_line_is_noticed(records in 0..8_usize, compacted: bool, at: prop::sample::Index) {
        check(&disk(records, compacted), JOURNAL_FILE, |text| {
            change_lines(text, |lines| _ = lines.remove(at.index(lines.len())));
        });
    }

    #[test]
    fn a_cut_end_is_noticed(records in 0..8_usize, compacted: bool, left: prop::sample::Index) {
        let disk = disk(records, compacted);
        let lines = disk.bytes(JOURNAL_FILE).len() - 1;
        // Without its last line feed alone, a line is whole.
        check(&disk, JOURNAL_FILE, |text| text.truncate(left.index(lines)));
    }

    #[test]
    fn swapped_and_repeated_lines_are_noticed(
        records in 2..8_usize, compacted: bool, one: prop::sample::Index, other: prop::sample::Index,
    ) {
        let both = |lines: usize| (one.index(lines), other.index(lines));
        let swapped = disk(records, compacted);
        let (from, to) = both(records + 1);
        if from != to {
            check(&swapped, JOURNAL_FILE, |text| change_lines(text, |lines| {
                lines.swap(from, to);
            }));
        }
        check(&disk(records, compacted), JOURNAL_FILE, |text| change_lines(text, |lines| {
            let (from, to) = both(lines.len());
            let line = lines[from].clone();
            lines.insert(to, line);
        }));
    }

    /// Lines of another journal, or of this one before a compaction, do not fit.
    #[test]
    fn lines_of_another_journal_are_noticed(records in 2..8_usize, at: prop::sample::Index) {
        let other = disk(records, false).bytes(JOURNAL_FILE);
        let others: Vec<Vec<u8>> = other.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        check(&disk(records, false), JOURNAL_FILE, |text| change_lines(text, |lines| {
            let at = at.index(lines.len());
            lines[at].clone_from(&others[at]);
        }));
    }
}

#[test]
fn a_lost_journal_is_not_taken_for_a_new_one() {
    for change in [
        |text: &mut Vec<u8>| text.clear(),
        |text: &mut Vec<u8>| text.truncate(3),
    ] {
        check(&disk(3, false), JOURNAL_FILE, change);
    }
    let lost = disk(3, true);
    lost.remove(JOURNAL_FILE);
    assert!(matches!(open(&lost).unwrap_err(), StoreError::Lost { .. }));
    assert!(matches!(read(&lost).unwrap_err(), StoreError::Lost { .. }));
    lost.remove(HEAD_FILE);
    assert_eq!(open(&lost).unwrap(), 0, "its operator goes on without it");
}

#[test]
fn an_older_journal_is_not_taken_for_the_latest() {
    let disk = SimDisk::default();
    let mut file = JournalFile::open(Arc::new(disk.clone())).unwrap();
    let mut older = Vec::new();
    let mut all = Vec::new();
    for round in 0..4 {
        older.push(disk.bytes(JOURNAL_FILE));
        let entry = adds(&round.to_string());
        file.commit(std::slice::from_ref(&entry)).unwrap();
        all.push(entry);
        if round % 2 == 1 {
            older.push(disk.bytes(JOURNAL_FILE));
            file.replace_by(&all).unwrap();
        }
    }
    for text in older {
        check(&disk.copy(), JOURNAL_FILE, |now| now.clone_from(&text));
    }
    for older_format in [golden::UNNUMBERED.as_bytes(), golden::FORMAT_2] {
        check(&disk.copy(), JOURNAL_FILE, |now| {
            now.clear();
            now.extend(older_format);
        });
    }
}

/// A power failure may leave an older head, or one of which only a part was written.
#[test]
fn a_head_that_cannot_be_read_guards_against_a_lost_journal_only() {
    let unreadable = disk(3, false);
    unreadable.tamper(HEAD_FILE, |text| text[9] ^= 1);
    assert_eq!(open(&unreadable.copy()).unwrap(), 3);
    check(&unreadable, JOURNAL_FILE, Vec::clear);
}

/// No crash removes or empties the head, so a journal without one may be cut.
#[test]
fn a_journal_without_its_head_is_refused_until_it_is_accepted() {
    for records in [0, 1, 3] {
        for cut in 0..=records {
            let disk = disk(records, false);
            disk.tamper(JOURNAL_FILE, |text| {
                change_lines(text, |lines| lines.truncate(lines.len() - cut))
            });
            check(&disk, HEAD_FILE, Vec::clear);
            check(&disk, HEAD_FILE, |text| text.extend(b"{}"));
            disk.remove(HEAD_FILE);
            assert!(matches!(open(&disk).unwrap_err(), StoreError::Lost { .. }));
            drop(disk.open(HEAD_FILE));
            disk.tamper(HEAD_FILE, |text| text.extend(b"accepted\n"));
            assert_eq!(open(&disk).unwrap(), records - cut);
            assert_eq!(open(&disk).unwrap(), records - cut, "and is guarded again");
            check(&disk, JOURNAL_FILE, Vec::clear);
        }
    }
}

#[test]
fn a_journal_that_is_gone_beside_an_audit_log_is_refused() {
    let gone = disk(2, false);
    drop(gone.open("audit.head"));
    gone.tamper("audit.head", |text| text.extend(b"x"));
    gone.remove(JOURNAL_FILE);
    gone.remove(HEAD_FILE);
    assert!(matches!(open(&gone).unwrap_err(), StoreError::Lost { .. }));
    gone.remove("audit.head");
    assert_eq!(open(&gone).unwrap(), 0, "a new data directory");
}
