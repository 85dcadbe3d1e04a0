//! The writer: groups, places, a disk that goes away, and what survives a crash.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::disk::sim::Sim;
use crate::record::{EndedProposal, IssuedToken};

fn token(name: String) -> Record {
    Record::TokenIssued(IssuedToken {
        name,
        sha256: "ab".repeat(32),
        capabilities: None,
        topics: None,
        created_ms: 10,
        expires_ms: None,
    })
}

fn writer(disk: &Sim) -> Writer {
    let (log, state) = Log::open(Arc::new(disk.clone())).unwrap();
    Writer::new(None, log, state).unwrap()
}

fn names(writer: &Writer) -> Vec<String> {
    writer.state(|state| state.tokens().iter().map(|token| token.name.clone()).collect())
}

#[test]
fn many_callers_one_order_and_all_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..8 {
            let writer = writer.clone();
            scope.spawn(move || {
                for at in 0..20 {
                    writer.append(&[token(format!("{caller}-{at}"))]).unwrap();
                    assert!(names(&writer).contains(&format!("{caller}-{at}")), "durable is seen");
                }
            });
        }
    });
    let before = names(&writer);
    assert_eq!(before.len(), 160);
    drop(writer);
    assert_eq!(names(&Writer::open(dir.path()).unwrap()), before);
}

#[test]
fn what_was_submitted_is_written_before_the_directory_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let writer = Writer::open(dir.path()).unwrap();
    for at in 0..50 {
        let told = Arc::clone(&told);
        writer.submit(vec![token(at.to_string())], move |result| {
            result.unwrap();
            told.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(writer);
    assert_eq!(told.load(Ordering::Relaxed), 50);
    assert_eq!(names(&Writer::open(dir.path()).unwrap()).len(), 50);
}

#[test]
fn a_failed_write_stops_it_and_says_so() {
    let disk = Sim::default();
    let writer = writer(&disk);
    writer.append(&[token("a".into())]).unwrap();
    assert_eq!(writer.trouble(), None);
    disk.fail_after(1);
    assert!(matches!(writer.append(&[token("b".into())]), Err(StoreError::Io { .. })));
    assert!(matches!(writer.append(&[token("c".into())]), Err(StoreError::Stopped)));
    assert!(matches!(writer.reserve(), Err(StoreError::Stopped)));
    assert!(writer.trouble().unwrap().contains("the disk is gone"));
    assert_eq!(names(&writer), ["a"]);
}

#[test]
fn places_are_bounded_and_given_back() {
    let writer = writer(&Sim::default());
    let mut places: Vec<_> = (0..WRITER_PLACES_MAX).map(|_| writer.reserve().unwrap()).collect();
    assert!(matches!(writer.reserve(), Err(StoreError::Busy)));
    writer.append(&[token("waits itself".into())]).unwrap();
    places.pop();
    let place = writer.reserve().unwrap();
    assert!(matches!(writer.reserve(), Err(StoreError::Busy)));
    let (tell, told) = mpsc::channel();
    place.submit(vec![token("reserved".into())], move |result| tell.send(result).unwrap());
    told.recv().unwrap().unwrap();
    drop(writer.reserve().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the disk did: what was acknowledged is there after the crash, and what is there was submitted.
    #[test]
    fn no_acknowledged_record_is_lost(runs in prop::collection::vec((0..250_usize, any::<u64>()), 1..4)) {
        let disk = Sim::default();
        let (mut acknowledged, mut submitted) = (Vec::new(), 0);
        for (acts, seed) in runs {
            let writer = writer(&disk);
            let found = names(&writer);
            prop_assert!(acknowledged.iter().all(|name| found.contains(name)));
            disk.fail_after(acts);
            loop {
                let name = format!("token-{submitted}");
                submitted += 1;
                // And records that add up to nothing: so that compaction comes into it.
                let nothing = Record::ProposalEnded(EndedProposal {
                    id: "unknown".into(), state: "failed".into(), reason: None, answer: None, at_ms: 0,
                });
                let mut records = vec![nothing; 7];
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
