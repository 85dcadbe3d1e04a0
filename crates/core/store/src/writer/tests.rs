//! Tests of the shared journal: groups, permits, a failing disk and crashes.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::WRITER_PERMITS_MAX;
use crate::ledger::Ledger;
use crate::tests::names::{NameRecord, Names, added, nothing};
use crate::tests::sim::SimDisk;

fn writer(disk: &SimDisk) -> JournalWriter {
    let journal = FileJournal::open(Arc::new(disk.clone())).unwrap();
    JournalWriter::over(Arc::new(journal), None).unwrap()
}

fn ledger(writer: &JournalWriter) -> Ledger<Names> {
    writer.ledger().unwrap()
}

fn names(writer: &JournalWriter) -> Vec<String> {
    ledger(writer).state(|names| names.0.clone())
}

fn append(writer: &JournalWriter, records: &[NameRecord]) -> Result<(), StoreError> {
    ledger(writer).append(records)
}

#[test]
fn records_of_many_callers_have_one_order_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let writer = JournalWriter::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..8 {
            let writer = writer.clone();
            scope.spawn(move || {
                for at in 0..20 {
                    let name = format!("{caller}-{at}");
                    append(&writer, &[added(&name)]).unwrap();
                    assert!(
                        names(&writer).contains(&name),
                        "a durable record is visible"
                    );
                }
            });
        }
    });
    let before = names(&writer);
    assert_eq!(before.len(), 160);
    drop(writer);
    assert_eq!(names(&JournalWriter::open(dir.path()).unwrap()), before);
}

#[test]
fn drop_writes_all_submissions_before_it_releases_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let writer = JournalWriter::open(dir.path()).unwrap();
    for at in 0..50 {
        let written = Arc::clone(&written);
        ledger(&writer).submit(&[added(&at.to_string())], move |result| {
            result.unwrap();
            written.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(writer);
    assert_eq!(written.load(Ordering::Relaxed), 50);
    assert_eq!(names(&JournalWriter::open(dir.path()).unwrap()).len(), 50);
}

#[test]
fn a_failed_write_stops_the_journal_and_is_reported() {
    let disk = SimDisk::default();
    let writer = writer(&disk);
    append(&writer, &[added("a")]).unwrap();
    assert_eq!(writer.failure(), None);
    disk.fail_after(1);
    assert!(matches!(
        append(&writer, &[added("b")]),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        append(&writer, &[added("c")]),
        Err(StoreError::Stopped)
    ));
    assert!(matches!(writer.reserve(), Err(StoreError::Stopped)));
    assert!(writer.failure().unwrap().contains("the disk is gone"));
    assert_eq!(names(&writer), ["a"]);
}

#[test]
fn permits_are_bounded_and_released() {
    let writer = writer(&SimDisk::default());
    let ledger = ledger(&writer);
    let mut permits: Vec<_> = (0..WRITER_PERMITS_MAX)
        .map(|_| ledger.reserve().unwrap())
        .collect();
    assert!(matches!(ledger.reserve(), Err(StoreError::Busy)));
    append(&writer, &[added("blocks")]).unwrap();
    permits.pop();
    let permit = ledger.reserve().unwrap();
    assert!(matches!(ledger.reserve(), Err(StoreError::Busy)));
    let (sender, results) = mpsc::channel();
    permit.submit(&[added("reserved")], move |result| {
        sender.send(result).unwrap();
    });
    results.recv().unwrap().unwrap();
    drop(ledger.reserve().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After a crash at any point the journal holds every acknowledged record, and submitted
    /// records only.
    #[test]
    fn no_acknowledged_record_is_lost(runs in prop::collection::vec((0..250_usize, any::<u64>()), 1..4)) {
        let disk = SimDisk::default();
        let mut acknowledged = Vec::new();
        let mut submitted = 0;
        for (acts, seed) in runs {
            let writer = writer(&disk);
            let found = names(&writer);
            prop_assert!(acknowledged.iter().all(|name| found.contains(name)));
            disk.fail_after(acts);
            loop {
                let name = format!("name-{submitted}");
                submitted += 1;
                let mut records = nothing(7);
                records.push(added(&name));
                match append(&writer, &records) {
                    Ok(()) => acknowledged.push(name),
                    Err(_) => break,
                }
            }
            drop(writer);
            disk.crash(seed);
        }
        let found = names(&writer(&disk));
        prop_assert!(acknowledged.iter().all(|name| found.contains(name)));
        prop_assert!(found.len() <= submitted);
    }
}

#[test]
fn a_participant_has_a_share_of_the_journals_queue() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let greedy = journal.account("greedy");
    let other = journal.account("other");
    let waits = greedy.take(PARTICIPANT_WRITER_BYTES_MAX).unwrap();
    assert!(!greedy.has_room(1) && !journal.account("greedy").has_room(1));
    assert!(other.has_room(PARTICIPANT_WRITER_BYTES_MAX));
    drop(waits);
    assert!(greedy.has_room(1));
}

#[test]
fn a_compacted_journal_that_cannot_be_opened_is_opened_later() {
    let disk = SimDisk::default();
    let writer = writer(&disk);
    // The owner is asked first: what it does not know is not obsolete.
    assert!(names(&writer).is_empty());
    disk.fail_opens(2);
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    for number in 0..200 {
        let mut records = nothing(7);
        let name = format!("name-{number}");
        records.push(added(&name));
        match append(&writer, &records) {
            Ok(()) => acknowledged.push(name),
            Err(error) => {
                assert!(matches!(error, StoreError::Unopened { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(
        (refused, acknowledged.len()),
        (1, 199),
        "the first attempt is made with the compaction"
    );
    drop(writer);
    let found = names(&super::tests::writer(&disk));
    assert!(
        acknowledged.iter().all(|name| found.contains(name)) && found.len() == acknowledged.len()
    );
}

#[test]
fn a_failed_compaction_is_reported_and_one_that_stops_the_journal_is_its_failure() {
    let disk = SimDisk::default();
    let writer = writer(&disk);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&reports);
    writer.on_uncompacted(move |why| reported.lock().push(why.to_owned()));
    disk.fail_replacing(Some(false));
    for _ in 0..3 {
        append(&writer, &nothing(300)).unwrap();
    }
    // The report of a group comes before the answers of the next one.
    writer.append(Vec::new()).unwrap();
    let seen = reports.lock().clone();
    assert!(
        matches!(&*seen, [why] if why.contains("compact") && why.contains("no space")),
        "{seen:?}"
    );
    assert_eq!(writer.failure(), None, "it can still be written");
    disk.fail_replacing(None);
    append(&writer, &nothing(300)).unwrap();
    disk.fail_replacing(Some(true));
    append(&writer, &nothing(600)).unwrap();
    let _ = writer.append(Vec::new());
    assert_eq!(reports.lock().len(), 2);
    assert!(
        writer.failure().is_some_and(|why| why.contains("replace")),
        "{:?}",
        writer.failure()
    );
    assert!(append(&writer, &nothing(1)).is_err());
}
