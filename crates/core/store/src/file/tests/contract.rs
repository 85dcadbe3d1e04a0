//! Contract of every journal ([`Journal`]), and owners over it: over files, and over a log that two
//! processes share.

use std::ops::ControlFlow;
use std::sync::mpsc;

use super::*;
use crate::journal::Position;
use crate::tests::names::{OtherNames, adds};
use crate::tests::sim::SimDisk;

/// A watcher that sends what it takes, until it has so many entries.
struct Sends {
    sender: mpsc::Sender<(Position, Vec<Entry>)>,
    left: usize,
}

impl Watcher for Sends {
    fn take(&mut self, last: Position, entries: &[Entry]) -> ControlFlow<()> {
        self.sender.send((last, entries.to_vec())).unwrap();
        self.left = self.left.saturating_sub(entries.len());
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

type Taken = mpsc::Receiver<(Position, Vec<Entry>)>;

fn watch(journal: &dyn Journal, after: Position, count: usize) -> Result<Taken, StoreError> {
    let (sender, taken) = mpsc::channel();
    let watcher = Sends {
        sender,
        left: count,
    };
    journal.watch(after, Box::new(watcher))?;
    Ok(taken)
}

/// Appends entries, and waits until they are durable.
fn append(journal: &dyn Journal, entries: Vec<Entry>) -> Position {
    let (sender, result) = mpsc::channel();
    journal.append(entries, Box::new(move |end| sender.send(end).unwrap()));
    result.recv().unwrap().unwrap()
}

fn replayed(journal: &dyn Journal) -> (Vec<Entry>, Position) {
    let mut all = Vec::new();
    let last = journal
        .replay(&mut |replayed| {
            assert_eq!(replayed.number, all.len() + 1);
            all.push(replayed.entry);
        })
        .unwrap();
    (all, last)
}

/// Takes the promises of the trait one by one. `open` opens the same journal again.
fn keeps_its_promises(open: impl Fn() -> Box<dyn Journal>) {
    let journal = open();
    assert_eq!(replayed(&*journal), (Vec::new(), Position::default()));
    let from_the_start = watch(&*journal, Position::default(), usize::MAX).unwrap();
    let first = append(&*journal, vec![adds("a"), adds("b")]);
    // A watcher has taken an entry before its append is reported.
    assert_eq!(
        from_the_start.try_recv().unwrap(),
        (first, vec![adds("a"), adds("b")])
    );
    let second = append(&*journal, vec![adds("c")]);
    assert!(Position::default() < first && first < second);
    assert_eq!(
        replayed(&*journal),
        (vec![adds("a"), adds("b"), adds("c")], second)
    );
    // One that comes later gets what it has missed, then what follows, each once.
    let later = watch(&*journal, first, 2).unwrap();
    let third = append(&*journal, vec![adds("d")]);
    assert_eq!(later.try_recv().unwrap(), (second, vec![adds("c")]));
    assert_eq!(later.try_recv().unwrap(), (third, vec![adds("d")]));
    let place = journal.reserve().unwrap();
    let (sender, result) = mpsc::channel();
    place.append(
        vec![adds("e")],
        Box::new(move |end| sender.send(end).unwrap()),
    );
    let fourth = result.recv().unwrap().unwrap();
    assert!(third < fourth);
    // The watcher has ended itself.
    assert!(later.try_recv().is_err());
    assert!(matches!(
        watch(&*journal, Position(fourth.0 + 1), 1),
        Err(StoreError::Compacted)
    ));
    drop(journal);
    let journal = open();
    let (entries, last) = replayed(&*journal);
    assert_eq!(
        (entries.len(), last),
        (5, fourth),
        "a restart keeps positions"
    );
    let after = watch(&*journal, third, 1).unwrap();
    assert_eq!(after.try_recv().unwrap(), (fourth, vec![adds("e")]));
}

#[test]
fn a_file_keeps_the_promises_of_a_journal() {
    let disk = SimDisk::default();
    keeps_its_promises(|| Box::new(FileJournal::open(Arc::new(disk.clone())).unwrap()));
}

#[test]
fn a_shared_log_keeps_the_promises_of_a_journal() {
    let log = SharedLog::default();
    keeps_its_promises(|| Box::new(log.clone()));
}

/// A snapshot of two entries, which is always due.
#[derive(Debug)]
struct Two;

impl Snapshot for Two {
    fn live(&self) -> usize {
        0
    }

    fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        Ok(vec![adds("x"), adds("y")])
    }
}

#[test]
fn a_compaction_keeps_positions_and_drops_what_was_before() {
    let disk = SimDisk::default();
    let journal = FileJournal::open(Arc::new(disk.clone())).unwrap();
    let first = append(&journal, vec![adds("a")]);
    journal.compact_by(Arc::new(Two));
    let taken = watch(&journal, first, usize::MAX).unwrap();
    let entries: Vec<Entry> = (0..SLACK_LINES).map(|_| adds("b")).collect();
    let last = append(&journal, entries);
    assert_eq!(taken.try_recv().unwrap().0, last);
    // A watcher that has taken all goes on; one that has not begins with a replay.
    let next = watch(&journal, last, usize::MAX).unwrap();
    assert!(matches!(
        watch(&journal, first, 1),
        Err(StoreError::Compacted)
    ));
    let after = append(&journal, vec![adds("c")]);
    assert!(last < after);
    assert_eq!(next.try_recv().unwrap(), (after, vec![adds("c")]));
    let expected = (vec![adds("x"), adds("y"), adds("c")], after);
    assert_eq!(replayed(&journal), expected);
    drop(journal);
    let journal = FileJournal::open(Arc::new(disk)).unwrap();
    assert_eq!(replayed(&journal), expected);
    let from_there = watch(&journal, last, 1).unwrap();
    assert_eq!(from_there.try_recv().unwrap(), (after, vec![adds("c")]));
}

#[test]
fn a_journal_of_long_records_is_compacted_for_its_bytes() {
    let journal = FileJournal::open(Arc::new(SimDisk::default())).unwrap();
    journal.compact_by(Arc::new(Two));
    let before = journal.file.lock().bytes;
    append(&journal, vec![adds("a")]);
    let line_bytes = journal.file.lock().bytes - before;
    for (more, is_compacted) in [(0, false), (1, true)] {
        // As if the records before were as long.
        journal.file.lock().bytes = SLACK_BYTES - line_bytes + more;
        append(&journal, vec![adds("a")]);
        let entries = replayed(&journal).0;
        assert_eq!(entries == [adds("x"), adds("y")], is_compacted, "{more}");
    }
}

#[test]
fn records_of_an_owner_that_this_process_does_not_know_survive_its_compactions() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let others = journal.ledger::<OtherNames>().unwrap();
    others.append(&[added("theirs"), added("gone")]).unwrap();
    others.append(&[removed("gone")]).unwrap();
    drop((others, journal));
    let journal = JournalWriter::open(dir.path()).unwrap();
    add(&journal, "ours");
    let ledger = journal.ledger::<Names>().unwrap();
    ledger.append(&nothing(2 * SLACK_LINES)).unwrap();
    assert_eq!(names(&journal), ["ours"]);
    drop((ledger, journal));
    assert_eq!(lines(dir.path()), 4, "one of its own and all of the other");
    let journal = JournalWriter::open(dir.path()).unwrap();
    let others = journal.ledger::<OtherNames>().unwrap();
    assert_eq!(others.state(|names| names.0.0.clone()), ["theirs"]);
}

#[test]
fn entries_of_several_owners_are_written_together() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(dir.path()).unwrap();
    let own = journal.ledger::<Names>().unwrap();
    let others = journal.ledger::<OtherNames>().unwrap();
    let of_other = Entry::of::<OtherNames>(&added("b")).unwrap();
    journal
        .append(vec![adds("a"), of_other, adds("c")])
        .unwrap();
    assert_eq!(own.state(|names| names.0.clone()), ["a", "c"]);
    assert_eq!(others.state(|names| names.0.0.clone()), ["b"]);
}

/// Two processes over one log: each has the records of the other, as they would with a log on
/// several machines.
#[test]
fn owners_follow_a_log_to_which_another_process_appends() {
    let log = SharedLog::default();
    let one = JournalWriter::over(Arc::new(log.clone()), None).unwrap();
    add(&one, "a");
    let other = JournalWriter::over(Arc::new(log), None).unwrap();
    assert_eq!(names(&other), ["a"]);
    add(&other, "b");
    add(&one, "c");
    assert_eq!(names(&one), ["a", "b", "c"]);
    assert_eq!(names(&other), ["a", "b", "c"]);
}

/// A log in memory that several journals share.
#[derive(Debug, Clone, Default)]
struct SharedLog(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    entries: Vec<Entry>,
    watchers: Vec<Box<dyn Watcher>>,
}

impl Debug for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Log").field(&self.entries).finish()
    }
}

impl Log {
    fn last(&self) -> Position {
        Position(self.entries.len() as u64)
    }
}

impl Journal for SharedLog {
    fn reserve(&self) -> Result<Box<dyn Place>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    fn append(&self, entries: Vec<Entry>, on_durable: OnDurable) {
        let mut log = self.0.lock();
        log.entries.extend(entries.iter().cloned());
        let last = log.last();
        log.watchers
            .retain_mut(|watcher| watcher.take(last, &entries).is_continue());
        drop(log);
        on_durable(Ok(last));
    }

    fn replay(&self, take: &mut dyn FnMut(Replayed)) -> Result<Position, StoreError> {
        let log = self.0.lock();
        for (at, entry) in log.entries.iter().enumerate() {
            take(Replayed {
                number: at + 1,
                entry: entry.clone(),
            });
        }
        Ok(log.last())
    }

    fn watch(&self, after: Position, mut watcher: Box<dyn Watcher>) -> Result<(), StoreError> {
        let mut log = self.0.lock();
        let last = log.last();
        let missed = log
            .entries
            .get(after.0 as usize..)
            .ok_or(StoreError::Compacted)?;
        if missed.is_empty() || watcher.take(last, missed).is_continue() {
            log.watchers.push(watcher);
        }
        Ok(())
    }

    fn compact_by(&self, _: Arc<dyn Snapshot>) {}

    fn on_uncompacted(&self, _: OnUncompacted) {}

    fn failure(&self) -> Option<String> {
        None
    }

    fn unreadable(&self, _: Option<usize>, _: &str) -> StoreError {
        StoreError::Stopped
    }
}

impl Place for SharedLog {
    fn append(self: Box<Self>, entries: Vec<Entry>, on_durable: OnDurable) {
        Journal::append(&*self, entries, on_durable);
    }
}
