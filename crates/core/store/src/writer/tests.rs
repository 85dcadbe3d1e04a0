//! Tests of the shared journal: groups, permits, a failing disk and crashes.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::record::{EndedProposal, IssuedToken};
use crate::tests::sim::SimDisk;

fn token(name: String) -> Record {
    Record::TokenIssued(IssuedToken {
        name,
        sha256: "ab".repeat(32),
        capabilities: None,
        topics: None,
        created_ms: 10,
        expires_ms: None,
        expired: false,
        incarnation: None,
    })
}

/// Records without effect, which make compaction due.
fn nothing(count: usize) -> Vec<Record> {
    let (id, state, reason, answer, at_ms) = ("unknown".into(), "failed".into(), None, None, 0);
    vec![
        Record::ProposalEnded(EndedProposal {
            id,
            state,
            reason,
            answer,
            at_ms
        });
        count
    ]
}

fn writer(disk: &SimDisk) -> JournalWriter {
    let (file, state) = JournalFile::open(Arc::new(disk.clone())).unwrap();
    JournalWriter::new(None, file, state).unwrap()
}

fn names(writer: &JournalWriter) -> Vec<String> {
    writer.state(|state| {
        state
            .tokens()
            .iter()
            .map(|token| token.name.clone())
            .collect()
    })
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
                    writer.append(&[token(format!("{caller}-{at}"))]).unwrap();
                    assert!(
                        names(&writer).contains(&format!("{caller}-{at}")),
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
        writer.submit(vec![token(at.to_string())], move |result| {
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
    writer.append(&[token("a".into())]).unwrap();
    assert_eq!(writer.failure(), None);
    disk.fail_after(1);
    assert!(matches!(
        writer.append(&[token("b".into())]),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        writer.append(&[token("c".into())]),
        Err(StoreError::Stopped)
    ));
    assert!(matches!(writer.reserve(), Err(StoreError::Stopped)));
    assert!(writer.failure().unwrap().contains("the disk is gone"));
    assert_eq!(names(&writer), ["a"]);
}

#[test]
fn permits_are_bounded_and_released() {
    let writer = writer(&SimDisk::default());
    let mut permits: Vec<_> = (0..WRITER_PERMITS_MAX)
        .map(|_| writer.reserve().unwrap())
        .collect();
    assert!(matches!(writer.reserve(), Err(StoreError::Busy)));
    writer.append(&[token("blocks".into())]).unwrap();
    permits.pop();
    let permit = writer.reserve().unwrap();
    assert!(matches!(writer.reserve(), Err(StoreError::Busy)));
    let (sender, results) = std::sync::mpsc::channel();
    permit.submit(vec![token("reserved".into())], move |result| {
        sender.send(result).unwrap()
    });
    results.recv().unwrap().unwrap();
    drop(writer.reserve().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After a crash at any point the journal holds every acknowledged record, and submitted
    /// records only.
    #[test]
    fn no_acknowledged_record_is_lost(runs in prop::collection::vec((0..250_usize, any::<u64>()), 1..4)) {
        let disk = SimDisk::default();
        let (mut acknowledged, mut submitted) = (Vec::new(), 0);
        for (acts, seed) in runs {
            let writer = writer(&disk);
            let found = names(&writer);
            prop_assert!(acknowledged.iter().all(|name| found.contains(name)));
            disk.fail_after(acts);
            loop {
                let name = format!("token-{submitted}");
                submitted += 1;
                let mut records = nothing(7);
                records.push(token(name.clone()));
                match writer.append(&records) {
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
    let (greedy, other) = (journal.account("greedy"), journal.account("other"));
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
    disk.fail_opens(2);
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for number in 0..200 {
        let mut records = nothing(7);
        let name = format!("token-{number}");
        records.push(token(name.clone()));
        match writer.append(&records) {
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
        writer.append(&nothing(300)).unwrap();
    }
    writer.0.group.flush().unwrap();
    let seen = reports.lock().clone();
    assert!(
        matches!(&*seen, [why] if why.contains("compact") && why.contains("no space")),
        "{seen:?}"
    );
    assert_eq!(writer.failure(), None, "it can still be written");
    disk.fail_replacing(None);
    writer.append(&nothing(300)).unwrap();
    disk.fail_replacing(Some(true));
    writer.append(&nothing(600)).unwrap();
    let _ = writer.0.group.flush();
    assert_eq!(reports.lock().len(), 2);
    assert!(
        writer.failure().is_some_and(|why| why.contains("replace")),
        "{:?}",
        writer.failure()
    );
    assert!(writer.append(&nothing(1)).is_err());
}
