//! Tests of the journal in a real directory: torn tails, damage, the lock, compaction, modes.

mod contract;
mod damage;
mod golden;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::head::HEAD_FILE;
use super::*;
use crate::tests::names::{Names, OtherNames, added, adds, nothing, removed};
use crate::{DirectoryOwner, JournalWriter};

fn names(journal: &JournalWriter) -> Vec<String> {
    journal
        .ledger::<Names>()
        .unwrap()
        .state(|names| names.0.clone())
}

fn add(journal: &JournalWriter, name: &str) {
    journal
        .ledger::<Names>()
        .unwrap()
        .append(&[added(name)])
        .unwrap();
}

/// Number of the journal's lines, without the header.
fn lines(dir: &Path) -> usize {
    let text = fs::read_to_string(dir.join(JOURNAL_FILE)).unwrap();
    text.lines().count() - 1
}

#[test]
fn appended_records_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let ledger = journal.ledger::<Names>().unwrap();
    ledger.append(&[added("scout"), added("ci")]).unwrap();
    ledger.append(&[removed("ci")]).unwrap();
    assert_eq!(names(&journal), ["scout"]);
    drop((ledger, journal));
    assert_eq!(names(&JournalWriter::open(dir.path()).unwrap()), ["scout"]);
    let peeked = PeekedJournal::read(dir.path()).unwrap();
    assert_eq!(peeked.fold::<Names>().unwrap().0, ["scout"]);
}

#[test]
fn a_torn_last_line_is_removed_and_writing_continues() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    add(&journal, "scout");
    let path = dir.path().join(JOURNAL_FILE);
    let head = dir.path().join(HEAD_FILE);
    let before = fs::read(&head).unwrap();
    add(&journal, "ci");
    drop(journal);
    let text = fs::read(&path).unwrap();
    for cut in 1..40 {
        // The head is written after the lines.
        fs::write(&head, &before).unwrap();
        fs::write(&path, &text[..text.len() - cut]).unwrap();
        let whole: &[_] = if cut == 1 {
            &["scout", "ci"]
        } else {
            &["scout"]
        };
        let peeked = PeekedJournal::read(dir.path()).unwrap();
        assert_eq!(peeked.fold::<Names>().unwrap().0, whole);
        let journal = JournalWriter::open(dir.path()).unwrap();
        assert_eq!(names(&journal), whole, "cut {cut}");
        add(&journal, "late");
        drop(journal);
        assert_eq!(
            names(&JournalWriter::open(dir.path()).unwrap()),
            [whole, &["late"]].concat(),
            "cut {cut}"
        );
    }
}

#[test]
fn a_locked_directory_names_the_address_of_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Directory::owner(dir.path()).unwrap(), None);
    let first = JournalWriter::open(dir.path()).unwrap();
    let files = vec!["/etc/a.toml".to_owned(), "x".repeat(64 << 10)];
    let listen = Some("127.0.0.1:7070".to_owned());
    first
        .announce(DirectoryOwner {
            listen,
            files,
            ..DirectoryOwner::default()
        })
        .unwrap();
    let StoreError::Locked { owner, .. } = JournalWriter::open(dir.path()).unwrap_err() else {
        panic!("locked")
    };
    let owner = owner.unwrap();
    assert_eq!(
        (owner.pid, owner.listen.as_deref()),
        (std::process::id(), Some("127.0.0.1:7070"))
    );
    assert_eq!(
        owner.files,
        ["/etc/a.toml"],
        "what makes the file too long is left out"
    );
    assert!(owner.since_ms > 0);
    assert_eq!(
        Directory::owner(dir.path()).unwrap().as_ref(),
        Some(&*owner)
    );
    drop(first);
    assert_eq!(Directory::owner(dir.path()).unwrap(), None);
    JournalWriter::open(dir.path()).unwrap();
}

#[test]
fn files_are_private_and_existing_directories_become_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/data");
    fs::create_dir_all(&data).unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let journal = JournalWriter::open(&data).unwrap();
    add(&journal, "scout");
    let ledger = journal.ledger::<Names>().unwrap();
    ledger.append(&nothing(2 * SLACK_LINES)).unwrap();
    assert_eq!(names(&journal), ["scout"]);
    drop((ledger, journal));
    assert_eq!(lines(&data), 1, "it was compacted");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join(JOURNAL_FILE)), 0o600);
    assert_eq!(mode(&data.join("lock")), 0o600);
}

#[test]
fn compaction_drops_what_no_owner_needs() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let ledger = journal.ledger::<Names>().unwrap();
    ledger.append(&[added("keeper")]).unwrap();
    for round in 0..SLACK_LINES {
        let name = format!("job-{round}");
        ledger.append(&[added(&name), removed(&name)]).unwrap();
    }
    drop((ledger, journal));
    assert!(lines(dir.path()) <= 2 + SLACK_LINES);
    assert_eq!(names(&JournalWriter::open(dir.path()).unwrap()), ["keeper"]);
}

/// A record of names that they cannot read.
fn unknown() -> Entry {
    Entry::read(br#""owner":"names","record":"renamed","name":"x"}"#).unwrap()
}

#[test]
fn a_record_that_its_owner_cannot_read_survives_with_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&reports);
    journal.on_uncompacted(move |why| reported.lock().push(why.to_owned()));
    let ledger = journal.ledger::<Names>().unwrap();
    journal
        .append(vec![adds("before"), unknown(), adds("after")])
        .unwrap();
    assert_eq!(names(&journal), ["before", "after"]);
    ledger.append(&nothing(2 * SLACK_LINES)).unwrap();
    // The report of a group comes before the answers of the next one.
    ledger.append(&nothing(1)).unwrap();
    let seen = reports.lock().clone();
    assert!(
        matches!(&*seen, [why] if why.contains("a record of `names` cannot be read")),
        "{seen:?}"
    );
    drop((ledger, journal));
    let journal = PeekedJournal::read(dir.path()).unwrap();
    let entries: Vec<Entry> = journal
        .replay
        .entries
        .into_iter()
        .map(|replayed| replayed.entry)
        .collect();
    assert_eq!(entries.len(), 3 + 2 * SLACK_LINES + 1);
    assert_eq!(entries[..3], [adds("before"), unknown(), adds("after")]);
}

#[test]
fn a_record_that_its_owner_cannot_read_is_damage_on_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    add(&journal, "scout");
    journal.append(vec![unknown()]).unwrap();
    let failure = journal.failure().unwrap();
    assert!(failure.contains("a record of `names`"), "{failure}");
    drop(journal);
    let peeked = PeekedJournal::read(dir.path()).unwrap();
    let error = peeked.fold::<Names>().unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { line: Some(3), .. }),
        "{error}"
    );
    let journal = JournalWriter::open(dir.path()).unwrap();
    let error = journal.ledger::<Names>().unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { line: Some(3), .. }),
        "{error}"
    );
}

#[test]
fn an_error_names_a_line_only_while_the_record_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let error_of_names = |journal: &JournalWriter| {
        let error = journal.ledger::<Names>().unwrap_err().to_string();
        let (line, _) = error.split_once(" of `").unwrap();
        line.to_owned()
    };
    let others = journal.ledger::<OtherNames>().unwrap();
    others.append(&nothing(2)).unwrap();
    journal.append(vec![unknown()]).unwrap();
    assert_eq!(error_of_names(&journal), "a line", "no replay had it");
    drop((others, journal));
    let journal = JournalWriter::open(dir.path()).unwrap();
    assert_eq!(error_of_names(&journal), "line 4");
    let others = journal.ledger::<OtherNames>().unwrap();
    others.append(&nothing(2 * SLACK_LINES)).unwrap();
    assert_eq!(error_of_names(&journal), "a line", "it has moved");
    drop((others, journal));
    let journal = JournalWriter::open(dir.path()).unwrap();
    assert_eq!(error_of_names(&journal), "line 2");
}

#[test]
fn a_directory_of_another_user_is_not_taken_for_a_free_one() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let lock = own.join("lock");
    let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    // The root of the file system is root's.
    let foreign = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
        dir.path()
    } else {
        Path::new("/")
    };
    let error = StoreError::unopened(foreign, &foreign.join("lock"), denied());
    assert!(matches!(error, StoreError::OfOther { .. }), "{error}");
    assert_eq!(error.code(), "data_dir_foreign");
    let error = StoreError::unopened(&own, &lock, denied());
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    // A lock file that this user may not read: root may read every file.
    std::fs::write(&lock, "").unwrap();
    std::fs::set_permissions(&lock, PermissionsExt::from_mode(0o000)).unwrap();
    let owner = Directory::owner(&own);
    assert_eq!(
        owner.is_err(),
        std::fs::File::open(&lock).is_err(),
        "{owner:?}"
    );
}
