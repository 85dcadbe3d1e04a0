//! Golden bytes of the journal: lines of this format, and journals of the formats before it.

use super::super::head::HEAD_FILE;
use super::super::replay::Header;
use super::*;
use crate::tests::names::{OtherNames, adds};
use crate::tests::sim::SimDisk;

/// Two lines of the first format.
pub(super) const UNNUMBERED: &str = r#"{"record":"token_issued","name":"scout","sha256":"cc","created_ms":3}
{"record":"proposals_closed","digests":[[16,"000102030405060708090a0b0c0d0e0f"]]}
"#;

/// A journal of the second format with a record of each kind, as version 0.1 has written it.
pub(super) const FORMAT_2: &[u8] = include_bytes!("format2/journal.jsonl");
const FORMAT_2_HEAD: &[u8] = include_bytes!("format2/journal.head");

/// The lines of a journal: numbers, checksums and owners.
const SEALED: &str = r#"{"n":0,"sum":"107c51153a007579","journal":3,"id":"00","at":7,"kept":1,"follows":{"id":"01","lines":2,"sum":"0000000000000003"}}
{"n":1,"sum":"ec4b569fe48d6e8f","owner":"names","record":"added","name":"a"}
{"n":2,"sum":"10e9cceda4a5858c","owner":"other_names","record":"removed","name":"b"}
"#;

#[test]
fn every_line_has_its_number_its_checksum_and_its_owner() {
    let header = r#"{"journal":3,"id":"00","at":7,"kept":1,"follows":{"id":"01","lines":2,"sum":"0000000000000003"}}"#;
    let header: Header = serde_json::from_str(header).unwrap();
    let other = Entry::of::<OtherNames>(&removed("b")).unwrap();
    let (text, _) = sealed(&header, &[adds("a"), other]).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), SEALED);
}

#[test]
fn an_entry_is_read_as_it_was_written_or_not_at_all() {
    let entry = adds("a");
    let line = entry.line();
    assert_eq!(
        String::from_utf8_lossy(&line),
        r#"{"owner":"names","record":"added","name":"a"}"#
    );
    assert_eq!(Entry::read(&line[1..]), Some(entry));
    for wrong in [
        r#""record":"added","name":"a"}"#,
        r#""owner":"","record":"added"}"#,
        r#""owner":"Names","record":"added"}"#,
        r#""owner":"na\u006des","record":"added"}"#,
        r#""owner":"names"}"#,
        r#""owner":"names","#,
        "",
    ] {
        let read = Entry::read(wrong.as_bytes());
        assert!(
            read.as_ref().is_none_or(|entry| entry.body() == b"{"),
            "{wrong}: {read:?}"
        );
    }
}

/// Owners of the entries of a journal, each once, with the number of its entries.
fn owners(entries: &[Replayed]) -> Vec<(&str, usize)> {
    let count = |name| {
        let own = entries
            .iter()
            .filter(|replayed| replayed.entry.owner() == name);
        (name, own.count())
    };
    let mut names: Vec<&str> = entries
        .iter()
        .map(|replayed| replayed.entry.owner())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(count).collect()
}

#[test]
fn a_journal_without_owners_is_read_and_written_anew() {
    let disk = of_files(&[(JOURNAL_FILE, FORMAT_2), (HEAD_FILE, FORMAT_2_HEAD)]);
    let before = read(&disk).unwrap();
    let kinds = [
        ("access", 23),
        ("accounts", 5),
        ("audit", 1),
        ("pins", 4),
        ("proposals", 14),
        ("sealing", 2),
        ("sessions", 3),
        ("tasks", 2),
    ];
    assert_eq!(owners(&before.entries), kinds);
    // Each has the bytes that it had, but for the number, the checksum and its owner.
    let lines = FORMAT_2.split(|byte| *byte == b'\n').skip(1);
    for (line, replayed) in lines.zip(&before.entries) {
        let members = chain::members(line).unwrap();
        assert_eq!(replayed.entry.body(), [b"{", members].concat());
    }
    let file = JournalFile::open(Arc::new(disk.clone())).unwrap();
    assert_eq!(file.position(), Position(before.entries.len() as u64));
    assert_eq!(read(&disk).unwrap().file.unwrap().0.format(), FORMAT);
    let after = read(&disk).unwrap();
    assert_eq!(after.entries, before.entries);
    // Copies of both files are what the version before can go on with.
    for (copy, bytes) in [
        ("journal.jsonl.format2", FORMAT_2),
        ("journal.head.format2", FORMAT_2_HEAD),
    ] {
        assert_eq!(disk.bytes(copy), bytes, "{copy}");
    }
    // It follows the journal that it has replaced: that one is not taken over any more.
    disk.tamper(JOURNAL_FILE, |text| {
        text.clear();
        text.extend(FORMAT_2);
    });
    assert!(matches!(
        JournalFile::open(Arc::new(disk)).unwrap_err(),
        StoreError::Lost { .. }
    ));
}

/// A disk with these files.
fn of_files(files: &[(&str, &[u8])]) -> SimDisk {
    let disk = SimDisk::default();
    for (name, bytes) in files {
        drop(disk.open(name));
        disk.tamper(name, |text| text.extend(*bytes));
    }
    disk
}

/// Lets the disk fail at each change of the opening of an older journal, and crash. No entry is
/// lost, and the old journal or a copy of it is there.
fn survives_crashes(files: &[(&str, &[u8])], copy: &str) {
    let mut left_old = 0;
    let mut left_new = 0;
    for changes in 0..20 {
        for seed in 0..8 {
            let disk = of_files(files);
            let before = read(&disk).unwrap().entries;
            disk.fail_after(changes);
            let _ = JournalFile::open(Arc::new(disk.clone()));
            disk.crash(seed);
            if read(&disk).unwrap().older_format().is_some() {
                left_old += 1;
            } else {
                left_new += 1;
            }
            let journal = JournalFile::open(Arc::new(disk.clone())).unwrap();
            assert_eq!(read(&*journal.disk).unwrap().entries, before);
            assert_eq!(disk.bytes(copy), files[0].1, "{changes} {seed}");
        }
    }
    assert!(left_old > 0 && left_new > 0, "{left_old} {left_new}");
}

#[test]
fn a_crash_while_a_journal_is_written_anew_leaves_the_old_or_the_new_one() {
    let files = [(JOURNAL_FILE, FORMAT_2), (HEAD_FILE, FORMAT_2_HEAD)];
    survives_crashes(&files, "journal.jsonl.format2");
}

#[test]
fn a_crash_while_a_journal_of_the_first_format_is_written_anew_leaves_the_old_or_the_new_one() {
    survives_crashes(
        &[(JOURNAL_FILE, UNNUMBERED.as_bytes())],
        "journal.jsonl.format1",
    );
}

#[test]
fn a_journal_without_numbers_is_read_and_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(JOURNAL_FILE), UNNUMBERED).unwrap();
    let peeked = PeekedJournal::read(dir.path()).unwrap();
    assert_eq!(
        owners(&peeked.replay.entries),
        [("access", 1), ("proposals", 1)]
    );
    drop(JournalWriter::open(dir.path()).unwrap());
    let text = fs::read_to_string(dir.path().join(JOURNAL_FILE)).unwrap();
    assert!(text.starts_with(r#"{"n":0,"sum":""#), "{text}");
    let again = PeekedJournal::read(dir.path()).unwrap();
    assert_eq!(again.replay.entries, peeked.replay.entries);
    let copy = dir.path().join("journal.jsonl.format1");
    assert_eq!(fs::read_to_string(&copy).unwrap(), UNNUMBERED);
    let mode = fs::metadata(&copy).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    // A journal of this format is not copied.
    fs::remove_file(&copy).unwrap();
    drop(JournalWriter::open(dir.path()).unwrap());
    assert!(!copy.exists());
}

#[test]
fn a_line_of_an_older_format_whose_kind_is_not_known_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{UNNUMBERED}{{\"record\":\"token_renamed\",\"name\":\"x\"}}\n");
    fs::write(dir.path().join(JOURNAL_FILE), text).unwrap();
    for error in [
        PeekedJournal::read(dir.path()).unwrap_err(),
        JournalWriter::open(dir.path()).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Damaged { line: Some(3), .. }),
            "{error}"
        );
    }
}
