//! Journals in a log that others write to too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster::{
    AppendId, AppendResult, CommonEntry, HomeMessage, HomeRecord, NodeLife, Shard, ShardSubject,
};
use fabric::sim::{Faults, Simulated};
use fabric::{
    Append, Appended, ClusterKeys, ClusterSubjects, Log, LogError, MessageId, Ongoing, Page,
    Record, Sequence, SubjectName, SubjectPattern, token,
};

use super::{KEY, line, topic};
use crate::journals::{Journals, READS_MAX, WantedAppend, WantedPurge};

fn journals(log: Arc<dyn Log>) -> Journals {
    let subjects = ClusterSubjects::of("sim").unwrap();
    Journals::new(log, ClusterKeys::new(&KEY), &subjects)
}

fn wanted(epoch: u64, expected: u64, number: u64) -> WantedAppend {
    let subject = ShardSubject {
        shard: topic(),
        epoch,
    };
    let record = HomeRecord::Lines(vec![CommonEntry::Line(line("one"))]);
    let incarnation = NodeLife {
        directory: 1,
        life: 1,
    };
    let message = HomeMessage {
        number,
        sum: [1; 8],
        begun: [2; 8],
        record,
    };
    let id = AppendId {
        incarnation,
        number,
    };
    WantedAppend {
        subject,
        expected,
        id,
        message,
    }
}

/// A record of a content, sealed by a key, behind the last one of an epoch.
async fn append_other(log: &dyn Log, key: [u8; 32], content: &[u8], expected: u64) -> u64 {
    let shard = token(topic().as_str());
    let subject: SubjectName = format!("pm.sim.j.{shard}.1").parse().unwrap();
    let id = MessageId::random();
    let append = Append {
        bytes: ClusterKeys::new(&key).seal_record(&subject, id, content),
        subject,
        expected,
        id,
    };
    match log.append(&append).await {
        fabric::Appended::At(sequence) => sequence,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_record_is_passed_over_and_expected() {
    let world = Simulated::new(1, Faults::default());
    let log: Arc<dyn Log> = Arc::new(world.node(0));
    let journals = journals(Arc::clone(&log));
    let first = journals.append(wanted(1, 0, 1)).await;
    assert_eq!(first, AppendResult::Acked { sequence: 1 });
    let foreign = append_other(&*log, [1; 32], b"\x01not ours", 1).await;
    for _ in 0..2 {
        let last = journals.look(&topic()).await.unwrap().unwrap();
        assert_eq!((last.head.number, last.sequence), (1, foreign));
    }
    let behind = journals.append(wanted(1, foreign, 2)).await;
    assert_eq!(behind, AppendResult::Acked { sequence: 3 });
    let last = journals.look(&topic()).await.unwrap().unwrap();
    assert_eq!((last.head.number, last.sequence), (2, 3));
    let numbers = journals.read(&topic(), 0).await.unwrap();
    let numbers: Vec<u64> = numbers.iter().map(|one| one.message.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_later_version_is_not_taken_for_absent() {
    let world = Simulated::new(1, Faults::default());
    let log: Arc<dyn Log> = Arc::new(world.node(0));
    let journals = journals(Arc::clone(&log));
    journals.append(wanted(1, 0, 1)).await;
    append_other(&*log, KEY, b"\x02of tomorrow", 1).await;
    assert!(matches!(
        journals.read(&topic(), 0).await,
        Err(LogError::Unreadable(_))
    ));
    assert!(matches!(
        journals.look(&topic()).await,
        Err(LogError::Unreadable(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_look_finds_the_highest_epoch_and_what_is_gone() {
    let world = Simulated::new(1, Faults::default());
    let log: Arc<dyn Log> = Arc::new(world.node(0));
    let journals = journals(log);
    assert_eq!(journals.look(&topic()).await.unwrap(), None);
    for epoch in 1..=5 {
        journals.append(wanted(epoch, 0, epoch)).await;
        if epoch % 2 == 1 {
            let last = journals.look(&topic()).await.unwrap().unwrap();
            assert_eq!(last.head.epoch, epoch);
        }
    }
    assert_eq!(journals.look(&Shard::Common).await.unwrap(), None);
    world.world(|world| world.lose(3));
    let last = journals.look(&topic()).await.unwrap().unwrap();
    assert_eq!(last.head.epoch, 2, "the others are gone");
    world.world(|world| world.lose(2));
    assert_eq!(journals.look(&topic()).await.unwrap(), None);
}

/// A copy of a directory has the same lives and numbers.
#[tokio::test(start_paused = true)]
async fn appends_of_two_starts_are_never_one() {
    let world = Simulated::new(1, Faults::default());
    let (one, other) = (
        journals(Arc::new(world.node(0))),
        journals(Arc::new(world.node(1))),
    );
    let first = one.append(wanted(1, 0, 1)).await;
    assert_eq!(first, AppendResult::Acked { sequence: 1 });
    assert_eq!(one.append(wanted(1, 0, 1)).await, first, "tried again");
    let second = other.append(wanted(1, 0, 1)).await;
    assert_eq!(second, AppendResult::Refused { last: 1 });
}

/// A log whose readings take a second, and are counted.
#[derive(Default)]
struct Slow {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Log for Slow {
    fn append<'a>(&'a self, _: &'a Append) -> Ongoing<'a, Appended> {
        Box::pin(async { Appended::Unknown(String::new()) })
    }

    fn read<'a>(
        &'a self,
        _: &'a SubjectPattern,
        _: Sequence,
    ) -> Ongoing<'a, Result<Page, LogError>> {
        Box::pin(async {
            let now = 1 + self.now.fetch_add(1, Ordering::Relaxed);
            self.most.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            Ok(Page::default())
        })
    }

    fn purge<'a>(
        &'a self,
        _: &'a SubjectPattern,
        _: Sequence,
    ) -> Ongoing<'a, Result<(), LogError>> {
        Box::pin(async { Ok(()) })
    }

    fn last<'a>(&'a self, _: &'a SubjectName) -> Ongoing<'a, Result<Option<Record>, LogError>> {
        Box::pin(async { Ok(None) })
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_topics_are_read_at_a_time_and_the_common_journal_beside_them() {
    let slow = Arc::new(Slow::default());
    let journals = Arc::new(journals(slow.clone()));
    let mut readings = tokio::task::JoinSet::new();
    let mut read = |shard: Shard| {
        let journals = Arc::clone(&journals);
        readings.spawn(async move { journals.read(&shard, 0).await.unwrap() });
    };
    (0..3 * READS_MAX).for_each(|_| read(topic()));
    read(Shard::Common);
    readings.join_all().await;
    assert_eq!(slow.most.load(Ordering::Relaxed), READS_MAX + 1);
}

/// The numbers of the messages of the topic that are there.
async fn numbers(journals: &Journals) -> Vec<u64> {
    let messages = journals.read(&topic(), 0).await.unwrap();
    messages.iter().map(|one| one.message.number).collect()
}

#[tokio::test(start_paused = true)]
async fn a_purge_removes_all_epochs_before_a_snapshot_whose_end_is_in_its_place() {
    let world = Simulated::new(1, Faults::default());
    let journals = journals(Arc::new(world.node(0)));
    for (epoch, expected, number) in [(1, 0, 1), (1, 1, 2), (2, 0, 3), (2, 3, 4), (2, 4, 5)] {
        journals.append(wanted(epoch, expected, number)).await;
    }
    let all = journals.read(&topic(), 0).await.unwrap();
    let purge = WantedPurge {
        shard: topic(),
        epoch: 2,
        before: 4,
        end: all[4].head(),
        end_sequence: 5,
    };
    let other = WantedPurge {
        end: all[3].head(),
        ..purge.clone()
    };
    let missing = WantedPurge {
        end_sequence: 6,
        ..purge.clone()
    };
    let elsewhere = WantedPurge {
        shard: Shard::Common,
        ..purge.clone()
    };
    let deposed = WantedPurge {
        epoch: 1,
        ..purge.clone()
    };
    for wrong in [other, missing, elsewhere, deposed] {
        assert!(journals.purge(&wrong).await.is_err(), "{wrong:?}");
    }
    assert_eq!(numbers(&journals).await, [1, 2, 3, 4, 5]);
    for _ in 0..2 {
        journals.purge(&purge).await.unwrap();
        assert_eq!(numbers(&journals).await, [4, 5]);
    }
    let last = journals.look(&topic()).await.unwrap().unwrap();
    assert_eq!((last.head.number, last.sequence), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_beginning_that_comes_when_its_epoch_is_purged_is_not_the_end() {
    let world = Simulated::new(1, Faults::default());
    let journals = journals(Arc::new(world.node(0)));
    journals.append(wanted(1, 0, 1)).await;
    assert!(
        journals.look(&topic()).await.unwrap().is_some(),
        "epoch 1 was seen"
    );
    journals.append(wanted(2, 0, 2)).await;
    let last = journals.append(wanted(3, 0, 3)).await;
    assert_eq!(last, AppendResult::Acked { sequence: 3 });
    let end = journals.read(&topic(), 0).await.unwrap()[2].head();
    let purge = WantedPurge {
        shard: topic(),
        epoch: 3,
        before: 3,
        end,
        end_sequence: 3,
    };
    journals.purge(&purge).await.unwrap();
    let mut late = wanted(1, 0, 4);
    late.message.begun = late.message.sum;
    assert_eq!(
        journals.append(late).await,
        AppendResult::Acked { sequence: 4 }
    );
    let last = journals.look(&topic()).await.unwrap().unwrap();
    assert_eq!((last.head.epoch, last.sequence), (3, 3));
}
