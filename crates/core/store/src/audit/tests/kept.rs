//! Tests of retention: what it removes stays proved, through crashes and attacks.

use std::time::Duration;

use super::super::retention::Retention;
use super::*;

/// The files of a log of at most so many bytes.
fn bytes(bytes: u64) -> LogFiles {
    LogFiles {
        keep_bytes: Some(bytes),
        ..LogFiles::default()
    }
}

/// The files of a log whose entries are kept for so many milliseconds.
fn age(ms: u64) -> LogFiles {
    LogFiles {
        keep_age: Some(Duration::from_millis(ms)),
        ..LogFiles::default()
    }
}

/// Removes what is due, with the writer of the log.
fn retain(
    disk: &SimDisk,
    log: &mut LogWriter,
    keep: LogFiles,
    now_ms: u64,
) -> Result<(), StoreError> {
    let mut retention = Retention::new(files(disk), Chain::new(&KEY), keep);
    while retention.step(now_ms, |proofs| log.write(proofs.iter().map(Vec::as_slice)))? {}
    Ok(())
}

/// A log of 80 entries, of which the oldest are removed, in two removals.
fn kept_log() -> SimDisk {
    let disk = SimDisk::default();
    let mut log = open(&disk, false).unwrap();
    for group in 0..20 {
        write(&mut log, 4 * group, 4).unwrap();
        if group % 10 == 9 {
            retain(&disk, &mut log, bytes(12_000), 1_000).unwrap();
        }
    }
    let report = report(&disk, true);
    assert!(report.is_whole(), "{report:?}");
    disk
}

fn firsts(disk: &SimDisk) -> Vec<u64> {
    files(disk).firsts().unwrap()
}

fn found(disk: &SimDisk, expected: Option<ChainHead>) -> Report {
    verify::verify(&files(disk), &Chain::new(&KEY), true, expected).unwrap()
}

#[test]
fn the_oldest_segments_are_removed_and_proved() {
    let disk = kept_log();
    let firsts = firsts(&disk);
    let report = report(&disk, true);
    let removed = report.removed.clone().unwrap();
    assert!(firsts[0] > 40 && firsts.len() > 2, "{firsts:?}");
    assert_eq!(removed.part.head.seq, firsts[0] - 1);
    assert_eq!(removed.part.entries, firsts[0] - 1);
    assert_eq!(report.entries + removed.part.entries, report.head.seq);
    // Entry 1 is of the time 0; entries about removals are of the time 1,000.
    assert_eq!((removed.part.from_ms, removed.at_ms), (0, 1_000));
    assert_eq!(removed.part.findings, 0);
    let total: u64 = firsts
        .iter()
        .map(|first| files(&disk).bytes(*first).unwrap())
        .sum();
    // The proofs come after the removal was decided.
    assert!(total <= 12_000 + 6_000, "{total}");
    // A start goes on with it.
    write(&mut open(&disk, true).unwrap(), 100, 1).unwrap();
    assert!(found(&disk, None).is_whole());
}

#[test]
fn entries_are_kept_for_their_time() {
    let disk = whole_log();
    let mut log = open(&disk, true).unwrap();
    let before = firsts(&disk);
    retain(&disk, &mut log, age(100), 100).unwrap();
    assert_eq!(firsts(&disk), before);
    let second = before[1];
    // The last entry of the first segment has the time of its number less one.
    retain(&disk, &mut log, age(100), 100 + second - 2).unwrap();
    assert_eq!(firsts(&disk)[0], 1);
    retain(&disk, &mut log, age(100), 100 + second - 1).unwrap();
    assert_eq!(firsts(&disk)[0], second);
    // All but the one that is written to.
    retain(&disk, &mut log, age(1), u64::MAX).unwrap();
    assert_eq!(Some(&firsts(&disk)[0]), before.last());
    let report = found(&disk, None);
    assert!(report.is_whole(), "{report:?}");
}

#[test]
fn a_segment_ends_at_its_age() {
    let disk = SimDisk::default();
    let open = |age_max_ms| {
        let rotation = Rotation {
            bytes_max: 1 << 20,
            age_max_ms: Some(age_max_ms),
            begun: None,
        };
        let begun = !firsts(&disk).is_empty();
        LogWriter::open(files(&disk), Chain::new(&KEY), begun, 0, rotation).unwrap()
    };
    let mut log = open(0);
    (0..3).for_each(|at| write(&mut log, at, 1).unwrap());
    assert_eq!(firsts(&disk), [1, 2, 3]);
    // After a start the age is that of the first entry, which is of 1970.
    let mut log = open(3_600_000);
    (3..6).for_each(|at| write(&mut log, at, 1).unwrap());
    assert_eq!(firsts(&disk), [1, 2, 3, 4]);
    assert!(report(&disk, true).is_whole());
}

#[test]
fn no_step_of_a_removal_is_a_finding_and_the_next_start_goes_on() {
    for acts in 0..60 {
        let disk = whole_log();
        let mut log = open(&disk, true).unwrap();
        let before = times(&disk);
        disk.fail_after(acts);
        let ended = retain(&disk, &mut log, bytes(6_000), 1_000).is_ok();
        for seed in [0, 7, 99] {
            let disk = disk.copy();
            disk.crash(seed);
            let report = found(&disk, None);
            assert!(report.is_whole(), "after {acts} acts: {report:?}");
            let removed = report.removed.map_or(0, |removed| removed.part.entries);
            let kept = times(&disk);
            let kept: Vec<u64> = kept.into_iter().filter(|at| *at < 1_000).collect();
            assert_eq!(kept, before[removed as usize..], "after {acts} acts");
            let mut log = open(&disk, true).unwrap();
            retain(&disk, &mut log, bytes(6_000), 1_000).unwrap();
            let report = found(&disk, None);
            assert!(report.is_whole(), "after {acts} acts: {report:?}");
            assert!(firsts(&disk)[0] > 1);
        }
        if ended {
            assert!(acts > 10);
            return;
        }
    }
    panic!("the removal never ended");
}

#[test]
fn a_removal_that_no_entry_covers_is_found() {
    let disk = kept_log();
    let firsts = firsts(&disk);
    let first = firsts[0];
    disk.remove(&name(first));
    let report = found(&disk, None);
    assert_eq!(
        report.findings,
        [Finding::Missing {
            from: first,
            to: firsts[1] - 1
        }]
    );
    // What is removed later does not make up for it.
    let mut log = open(&disk, true).unwrap();
    for start in 0..4 {
        write(&mut log, 200 + start, 8).unwrap();
        retain(&disk, &mut log, bytes(4_000), 2_000).unwrap();
        let report = found(&disk, None);
        assert!(!report.is_whole(), "after {start}: {report:?}");
    }
    let to = found(&disk, None).removed.unwrap().part.head.seq;
    assert_eq!(
        found(&disk, None).findings,
        [Finding::RemovedDamaged { to, findings: 1 }]
    );
    assert!(to > firsts[1]);
}

#[test]
fn a_head_of_the_removed_part_says_so() {
    let disk = whole_log();
    let mut log = open(&disk, true).unwrap();
    let last = *log.durable_head.lock();
    let heads: Vec<ChainHead> = times(&disk)
        .iter()
        .map(|at| {
            let first = firsts(&disk)
                .into_iter()
                .rfind(|first| *first <= at + 1)
                .unwrap();
            let text = files(&disk).segment(first).unwrap();
            let line = text
                .split(|byte| *byte == b'\n')
                .nth((at + 1 - first) as usize);
            chain::ChainLine::read(line.unwrap()).unwrap().head()
        })
        .collect();
    retain(&disk, &mut log, bytes(6_000), 1_000).unwrap();
    let to = found(&disk, None).removed.unwrap().part.head.seq;
    let old = found(&disk, Some(heads[1]));
    assert!(old.is_whole() && old.head_is_removed);
    // The log still has the last one of the removed part, and knows another one with its number.
    let edge = heads[to as usize - 1];
    let report = found(&disk, Some(edge));
    assert!(report.is_whole() && !report.head_is_removed, "{report:?}");
    let other = ChainHead { seq: to, ..last };
    assert_eq!(
        found(&disk, Some(other)).findings,
        [Finding::Changed { seq: to }]
    );
    let report = found(&disk, Some(last));
    assert!(report.is_whole() && !report.head_is_removed);
    // The first one that is kept.
    let report = found(&disk, Some(heads[to as usize]));
    assert!(report.is_whole() && !report.head_is_removed);
    let other = ChainHead {
        seq: to + 1,
        ..last
    };
    assert_eq!(
        found(&disk, Some(other)).findings,
        [Finding::Changed { seq: to + 1 }]
    );
}

#[test]
fn a_forged_proof_proves_nothing() {
    let disk = kept_log();
    let firsts = firsts(&disk);
    // An attacker writes what the gateway would, without the key.
    let part = RemovedPart {
        head: ChainHead {
            seq: firsts[1] - 1,
            last: [1; 32],
        },
        entries: firsts[1] - 1,
        ..RemovedPart::default()
    };
    disk.remove(&name(firsts[0]));
    let forged = Chain::new(&[9; 32]);
    let head = found(&disk, None).head;
    let mut line = Vec::new();
    forged.write(&mut line, &head, &part.members(1_000), true);
    disk.tamper(&name(*firsts.last().unwrap()), |text| text.extend(line));
    let before = found(&disk, None);
    assert!(
        before
            .removed
            .is_some_and(|removed| removed.part.head.seq < firsts[0])
    );
    // Nor does the gateway take it over.
    let mut log = open(&disk, true).unwrap();
    write(&mut log, 300, 20).unwrap();
    retain(&disk, &mut log, bytes(4_000), 2_000).unwrap();
    let report = found(&disk, None);
    assert!(!report.is_whole(), "{report:?}");
    let removed = report.removed.unwrap().part;
    assert!(
        removed.findings > 0 && removed.head.seq >= firsts[1],
        "{removed:?}"
    );
}

/// The times of the entries of a batch.
fn times_of(batch: &TailBatch) -> Vec<u64> {
    let entries = batch
        .lines
        .iter()
        .map(|line| RecordedEntry::read(line).unwrap());
    entries.map(|entry| entry.at_ms).collect()
}

#[test]
fn a_tail_comes_to_each_entry_and_goes_on_where_it_was_confirmed() {
    let disk = whole_log();
    let tail = || LogTail::on(files(&disk), "here").unwrap();
    let mut one = tail();
    let first = one.next(40, 7).unwrap();
    assert_eq!(times_of(&first), (0..7).collect::<Vec<_>>());
    // What is not confirmed comes again, also after a restart.
    assert_eq!(times_of(&one.next(40, 7).unwrap()), times_of(&first));
    one.confirm(&first).unwrap();
    assert_eq!(one.seq(), 7);
    let mut other = tail();
    let rest = other.next(39, 100).unwrap();
    // Nothing beyond what is durable.
    assert_eq!(times_of(&rest), (7..39).collect::<Vec<_>>());
    assert_eq!(rest.missing, 0);
    other.confirm(&rest).unwrap();
    assert!(other.next(39, 100).unwrap().is_empty());
    assert_eq!(times_of(&other.next(40, 100).unwrap()), [39]);
    // An older log in its place is read from its begin.
    let again = tail().next(20, 100).unwrap();
    assert_eq!(times_of(&again), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_tail_counts_what_was_removed_before_it_came_there() {
    let disk = whole_log();
    let tail = || LogTail::on(files(&disk), "here").unwrap();
    let mut one = tail();
    let first = one.next(40, 2).unwrap();
    one.confirm(&first).unwrap();
    let mut log = open(&disk, true).unwrap();
    retain(&disk, &mut log, bytes(6_000), 1_000).unwrap();
    let begin = firsts(&disk)[0];
    let rest = tail().next(40, 100).unwrap();
    assert_eq!(rest.missing, begin - 1 - 2);
    assert_eq!(times_of(&rest), (begin - 1..40).collect::<Vec<_>>());
    // A new one begins with what is there, and misses nothing.
    let rest = LogTail::on(files(&disk), "new")
        .unwrap()
        .next(40, 100)
        .unwrap();
    assert_eq!((rest.missing, times_of(&rest)[0]), (0, begin - 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// No later start of the gateway, and no later removal, makes a damaged log pass.
    #[test]
    fn no_removal_hides_an_attack(attack in any_attack()) {
        let disk = kept_log();
        let counted = times(&disk).len();
        // The attack counts lines from the begin of what is kept.
        let attack = match attack {
            Attack::RemoveLine(at) => Attack::RemoveLine(at % counted),
            Attack::SwapLines(a, b) if a % counted == b % counted => Attack::RemoveLine(a % counted),
            Attack::SwapLines(a, b) => Attack::SwapLines(a % counted, b % counted),
            Attack::RepeatLine(at) => Attack::RepeatLine(at % counted),
            Attack::CutOff(kept) => Attack::CutOff(kept % counted),
            Attack::FlipHead { at, kept } => Attack::FlipHead { at, kept: kept % counted },
            Attack::RemoveSegment(at) => Attack::RemoveSegment(at % 3),
            Attack::SwapSegments(a, b) if a % 3 == b % 3 => Attack::RemoveSegment(a % 3),
            Attack::SwapSegments(a, b) => Attack::SwapSegments(a % 3, b % 3),
            other => other,
        };
        apply(&attack, &disk);
        prop_assert!(!found(&disk, None).is_whole());
        for start in 0..4 {
            let mut log = open(&disk, true).unwrap();
            write(&mut log, 100 + start, 12).unwrap();
            prop_assert!(retain(&disk, &mut log, bytes(5_000), 1_000).is_ok());
            let report = found(&disk, None);
            prop_assert!(!report.is_whole(), "after start {start}: {report:?}");
        }
    }
}
