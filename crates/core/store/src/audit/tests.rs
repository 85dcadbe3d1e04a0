//! Tests of the audit log: crashes, attacks on its files, payload policies, queries.

use proptest::prelude::*;

use super::files::{FOLDER, HEAD_FILE, name};
use super::*;
use crate::tests::sim::SimDisk;

mod kept;

const KEY: [u8; 32] = [7; 32];

fn files(disk: &SimDisk) -> Files {
    Files {
        segments: Arc::new(disk.clone()),
        heads: Arc::new(disk.clone()),
    }
}

fn open(disk: &SimDisk, begun: bool) -> Result<LogWriter, StoreError> {
    let rotation = Rotation {
        bytes_max: 2_000,
        age_max_ms: None,
        begun: None,
    };
    LogWriter::open(files(disk), Chain::new(&KEY), begun, 0, rotation)
}

fn report(disk: &SimDisk, begun: bool) -> Report {
    verify::verify(&files(disk), &Chain::new(&KEY), begun, None).unwrap()
}

fn body(at: u64) -> Vec<u8> {
    entry_body(
        &Policy::default(),
        &entry(at, &format!("mcp/request:tools/call:tool-{at}")),
    )
}

fn entry_body(policy: &Policy, entry: &AuditEntry<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    entry.write_members(&mut body, &policy.apply(entry.payload));
    body
}

fn entry(at_ms: u64, kind: &str) -> AuditEntry<'_> {
    AuditEntry {
        at_ms,
        topic: Some("main"),
        from: "scout",
        origin: EntryOrigin::default(),
        kind: kind.into(),
        own: None,
        to: &["files"],
        verdict: RecordedVerdict::Admitted,
        why: Some("mcp/*"),
        operation: Some(model::OperationId(at_ms.into())),
        trace: None,
        digest: None,
        payload: Some(br#"{"a":1}"#),
    }
}

fn write(log: &mut LogWriter, from: u64, count: u64) -> Result<(), StoreError> {
    let bodies: Vec<_> = (from..from + count).map(body).collect();
    log.write(bodies.iter().map(Vec::as_slice))
}

/// The `at_ms` of all entries in the log.
fn times(disk: &SimDisk) -> Vec<u64> {
    let files = files(disk);
    let mut found = Vec::new();
    for first in files.firsts().unwrap() {
        let text = files.segment(first).unwrap();
        found.extend(segment_parts(&text).filter_map(|part| {
            match part {
                SegmentPart::Whole(line) => Some(
                    serde_json::from_slice::<RecordedEntry<'_>>(line)
                        .unwrap()
                        .at_ms,
                ),
                SegmentPart::Torn(_) => None,
            }
        }));
    }
    found
}

/// A log of 40 entries in several segments, in groups of four.
fn whole_log() -> SimDisk {
    let disk = SimDisk::default();
    let mut log = open(&disk, false).unwrap();
    (0..10).for_each(|group| write(&mut log, 4 * group, 4).unwrap());
    assert!(files(&disk).firsts().unwrap().len() > 3);
    assert!(report(&disk, true).is_whole());
    disk
}

/// A change of the files by an attacker.
#[derive(Debug, Clone)]
enum Attack {
    Flip {
        segment: usize,
        at: usize,
        mask: u8,
    },
    RemoveLine(usize),
    SwapLines(usize, usize),
    RepeatLine(usize),
    CutOff(usize),
    RemoveSegment(usize),
    SwapSegments(usize, usize),
    /// Also removes the end of the log, as far as the other slot of the head does not count it, or
    /// more.
    FlipHead {
        at: usize,
        kept: usize,
    },
    CutHead(usize),
    RemoveHead,
}

fn any_attack() -> impl Strategy<Value = Attack> {
    let at = any::<prop::sample::Index>();
    let other = any::<prop::sample::Index>();
    let of = |count: usize| move |at: prop::sample::Index| at.index(count);
    let two =
        |count: usize| (0..count, 1..count).prop_map(move |(one, by)| (one, (one + by) % count));
    prop_oneof![
        6 => (other, 0..2_000_usize, 1..=255_u8)
            .prop_map(|(segment, at, mask)| Attack::Flip { segment: segment.index(64), at, mask }),
        2 => at.clone().prop_map(of(40)).prop_map(Attack::RemoveLine),
        2 => two(40).prop_map(|(a, b)| Attack::SwapLines(a, b)),
        1 => at.clone().prop_map(of(40)).prop_map(Attack::RepeatLine),
        2 => (0..40_usize).prop_map(Attack::CutOff),
        1 => at.prop_map(of(4)).prop_map(Attack::RemoveSegment),
        1 => two(4).prop_map(|(a, b)| Attack::SwapSegments(a, b)),
        3 => (0..512_usize, 30..40_usize).prop_map(|(at, kept)| Attack::FlipHead { at, kept }),
        1 => (0..360_usize).prop_map(Attack::CutHead),
        1 => Just(Attack::RemoveHead),
    ]
}

/// Changes the lines of the whole log; each segment but the last keeps its number of lines.
fn with_lines(disk: &SimDisk, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let firsts = files(disk).firsts().unwrap();
    let mut lines = Vec::new();
    let mut counts = Vec::new();
    for first in &firsts {
        let text = disk.bytes(&name(*first));
        let own: Vec<Vec<u8>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        counts.push(own.len());
        lines.extend(own);
    }
    change(&mut lines);
    let mut lines = lines.into_iter();
    for (first, count) in firsts.iter().zip(&counts) {
        let last = first == firsts.last().unwrap();
        let own: Vec<u8> = lines
            .by_ref()
            .take(if last { usize::MAX } else { *count })
            .flatten()
            .collect();
        disk.tamper(&name(*first), |text| *text = own);
    }
}

fn apply(attack: &Attack, disk: &SimDisk) {
    let firsts = files(disk).firsts().unwrap();
    match attack.clone() {
        Attack::Flip { segment, at, mask } => {
            disk.tamper(&name(firsts[segment % firsts.len()]), |text| {
                let at = at % text.len();
                text[at] ^= mask;
            })
        }
        Attack::RemoveLine(at) => with_lines(disk, |lines| drop(lines.remove(at))),
        Attack::SwapLines(a, b) => with_lines(disk, |lines| lines.swap(a, b)),
        Attack::RepeatLine(at) => with_lines(disk, |lines| lines.insert(at, lines[at].clone())),
        Attack::CutOff(kept) => with_lines(disk, |lines| lines.truncate(kept)),
        Attack::RemoveSegment(at) => disk.remove(&name(firsts[at])),
        Attack::SwapSegments(a, b) => {
            let one = disk.bytes(&name(firsts[a]));
            let other = disk.bytes(&name(firsts[b]));
            disk.tamper(&name(firsts[a]), |text| *text = other);
            disk.tamper(&name(firsts[b]), |text| *text = one);
        }
        Attack::FlipHead { at, kept } => {
            disk.tamper(HEAD_FILE, |text| text[at] ^= 0x80);
            with_lines(disk, |lines| lines.truncate(kept));
        }
        Attack::CutHead(bytes) => disk.tamper(HEAD_FILE, |text| text.truncate(bytes)),
        Attack::RemoveHead => disk.remove(HEAD_FILE),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No later start of the gateway makes a damaged log pass.
    #[test]
    fn verify_fails_after_every_change_and_every_later_start(attack in any_attack()) {
        let disk = whole_log();
        apply(&attack, &disk);
        prop_assert!(!report(&disk, true).is_whole());
        for start in 0..3 {
            write(&mut open(&disk, true).unwrap(), 100 + start, 1).unwrap();
            prop_assert!(!report(&disk, true).is_whole(), "after start {start}");
        }
    }

    #[test]
    fn verify_passes_after_every_crash_and_no_acknowledged_entry_is_lost(
        runs in prop::collection::vec((0..60_usize, 1..9_u64, any::<u64>()), 1..6)
    ) {
        let disk = SimDisk::default();
        let mut begun = false;
        let mut next = 0;
        let mut acknowledged = Vec::new();
        for (acts, group, seed) in runs {
            disk.fail_after(acts);
            if let Ok(mut log) = open(&disk, begun) {
                begun = true;
                while write(&mut log, next, group).is_ok() {
                    acknowledged.extend(next..next + group);
                    next += group;
                }
                next += group;
            }
            disk.crash(seed);
            let found = report(&disk, begun);
            prop_assert!(found.is_whole(), "{found:?}");
            let there = times(&disk);
            prop_assert!(there.is_sorted());
            prop_assert!(acknowledged.iter().all(|at| there.binary_search(at).is_ok()));
        }
        let log = open(&disk, begun).unwrap();
        let found = report(&disk, true);
        prop_assert!(found.is_whole() && found.unfinished_bytes == 0, "{found:?}");
        prop_assert_eq!(found.head, *log.durable_head.lock());
    }

    /// The chain protects acknowledged entries against truncation after a crash too.
    #[test]
    fn truncation_after_a_crash_is_found(acts in 10..60_usize, seed: u64, cut in 1..40_usize) {
        let disk = SimDisk::default();
        let mut log = open(&disk, false).unwrap();
        disk.fail_after(acts);
        let mut acknowledged = 0_u64;
        while write(&mut log, acknowledged, 2).is_ok() {
            acknowledged += 2;
        }
        disk.crash(seed);
        let kept = (acknowledged as usize).saturating_sub(cut);
        with_lines(&disk, |lines| lines.truncate(kept));
        prop_assert!(!report(&disk, true).is_whole());
    }
}

#[test]
fn findings_name_their_entries() {
    let check = |attack: Attack, expected: &[&str]| {
        let disk = whole_log();
        apply(&attack, &disk);
        let found: Vec<String> = report(&disk, true)
            .findings
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{attack:?}");
    };
    check(
        Attack::Flip {
            segment: 0,
            at: 30,
            mask: 1,
        },
        &["entry 1, or the entry before it, was changed"],
    );
    check(
        Attack::CutOff(38),
        &["the end was cut off: entries 39 to 40 are missing"],
    );
    check(
        Attack::RemoveHead,
        &["the head that is stored outside the log is missing or has a wrong MAC"],
    );
    check(
        Attack::FlipHead { at: 256, kept: 40 },
        &["one of the two slots of the head was changed"],
    );
    check(
        Attack::FlipHead { at: 0, kept: 39 },
        &["one of the two slots of the head was changed"],
    );
}

#[test]
fn a_head_kept_elsewhere_reveals_a_restored_log_and_head() {
    let disk = SimDisk::default();
    let mut log = open(&disk, false).unwrap();
    write(&mut log, 0, 3).unwrap();
    let before = disk.copy();
    write(&mut log, 3, 3).unwrap();
    let noted: ChainHead = report(&disk, true).head.to_string().parse().unwrap();
    let check = |disk: &SimDisk| {
        verify::verify(&files(disk), &Chain::new(&KEY), true, Some(noted)).unwrap()
    };
    assert!(check(&disk).is_whole());
    assert!(report(&before, true).is_whole());
    assert_eq!(
        check(&before).findings,
        [Finding::CutOff { from: 4, to: 6 }]
    );
    let mut other = open(&before, true).unwrap();
    write(&mut other, 90, 3).unwrap();
    assert_eq!(check(&before).findings, [Finding::Changed { seq: 6 }]);
}

#[test]
fn many_writers_and_a_restart_on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let writer = JournalWriter::open(dir.path()).unwrap();
    assert_eq!(verify(dir.path(), None).unwrap(), None);
    for start in 0..2_u64 {
        let audit = AuditLog::open(
            &writer,
            &[start as u8; 32],
            1,
            Policy::default(),
            LogFiles::default(),
        )
        .unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..100 {
                        audit.reserve().unwrap().write(&entry(at, "chat"));
                    }
                });
            }
        });
        audit.flush().unwrap();
        let report = verify(dir.path(), None).unwrap().unwrap();
        assert!(report.is_whole(), "{report:?}");
        assert_eq!(
            (report.entries, report.head),
            (400 * (start + 1), audit.head())
        );
    }
    let first = dir.path().join(FOLDER).join(name(1));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(first).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_failing_disk_stops_the_log_and_permits_are_bounded() {
    let disk = SimDisk::default();
    let audit = AuditLog::on(open(&disk, false).unwrap(), Policy::default()).unwrap();
    let permits: Vec<_> = (0..AUDIT_PERMITS_MAX)
        .map(|_| audit.reserve().unwrap())
        .collect();
    assert!(matches!(audit.reserve(), Err(StoreError::Busy)));
    drop(permits);
    audit.reserve().unwrap().write(&entry(1, "chat"));
    audit.flush().unwrap();
    disk.fail_after(0);
    let (sender, results) = std::sync::mpsc::channel();
    audit
        .reserve()
        .unwrap()
        .write_then(&entry(2, "chat"), move |result| {
            sender.send(result).unwrap()
        });
    assert!(matches!(
        results.recv().unwrap(),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(audit.reserve(), Err(StoreError::Stopped)));
    assert!(audit.failure().is_some());
    disk.crash(1);
    assert!(report(&disk, true).is_whole());
    assert_eq!(times(&disk), [1]);
}

#[test]
fn a_participant_fills_its_share_of_the_log_and_no_other() {
    let disk = SimDisk::default();
    let audit = AuditLog::on(open(&disk, false).unwrap(), Policy::default()).unwrap();
    let greedy = audit.account("greedy");
    let other = audit.account("other");
    let permits: Vec<_> = std::iter::from_fn(|| audit.reserve_on(&greedy).ok()).collect();
    assert_eq!(permits.len(), AUDIT_PERMITS_MAX / SHARE_OF_POOL);
    assert!(matches!(audit.reserve_on(&greedy), Err(StoreError::Share)));
    audit.reserve_on(&other).unwrap().write(&entry(1, "chat"));
    drop(permits);
    audit.reserve_on(&greedy).unwrap().write(&entry(2, "chat"));
    audit.flush().unwrap();
    assert_eq!(
        (times(&disk), greedy.taken(), other.taken()),
        (vec![1, 2], 0, 0)
    );
}

#[test]
fn a_segment_that_cannot_be_opened_is_opened_later_and_no_entry_is_lost() {
    let disk = SimDisk::default();
    let audit = AuditLog::on(open(&disk, false).unwrap(), Policy::default()).unwrap();
    let mut written = 0;
    for opens in 1..6 {
        disk.fail_opens(opens % 3);
        // More than one segment's worth, so that one group opens several.
        let permits: Vec<_> = (0..20).map(|_| audit.reserve().unwrap()).collect();
        for permit in permits {
            written += 1;
            permit.write(&entry(written, "chat"));
        }
        // A failed flush may be followed by an open that succeeds: then there is no failure any
        // more.
        while let Err(error) = audit.flush() {
            assert!(matches!(error, StoreError::Paused), "{error}");
            assert!(
                audit
                    .failure()
                    .is_none_or(|why| why.contains("too many open files"))
            );
        }
        assert_eq!(disk.opens_to_fail(), 0, "all of them were tried");
    }
    assert_eq!(times(&disk), (1..=written).collect::<Vec<_>>());
    assert!(report(&disk, true).is_whole());
}

#[test]
fn entries_are_written_as_their_policy_says() {
    let check = |payloads: Payloads, payload: &[u8], expected: &str| {
        let entry = AuditEntry {
            payload: Some(payload),
            to: &[],
            why: None,
            ..entry(5, "a\"\n\u{202e}")
        };
        let text =
            String::from_utf8(entry_body(&Policy::new(payloads, &REDACTED), &entry)).unwrap();
        let start =
            "\"at_ms\":5,\"topic\":\"main\",\"from\":\"scout\",\"kind\":\"a\\\"\\n\u{202e}\"";
        let rest = text.strip_prefix(start).unwrap();
        let rest = rest.strip_prefix(
            r#","verdict":"admitted","operation":"00000000000000000000000000000005""#,
        );
        assert_eq!(rest, Some(expected));
        serde_json::from_str::<RecordedEntry<'_>>(&format!("{{\"seq\":1,{text}}}")).unwrap();
    };
    check(Payloads::None, b"{}", "");
    check(
        Payloads::Full,
        b"{\n\"token\": \"x\", \"n\": 1.50}",
        r#","payload":{"token":"[redacted]","n":1.50}"#,
    );
    let of_braces =
        r#","payload_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a""#;
    check(Payloads::Digest, b" { } ", of_braces);
    let of_nothing =
        r#","payload_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#;
    check(Payloads::Full, b"", of_nothing);
    let long = format!("\"{}\"", "x".repeat(ENTRY_PAYLOAD_BYTES_MAX));
    let full = Policy::new(Payloads::Full, &REDACTED);
    let body = entry_body(
        &full,
        &AuditEntry {
            payload: Some(long.as_bytes()),
            ..entry(1, "a")
        },
    );
    assert!(body.len() < 400);
    let longest = "\u{e4}".repeat(ENTRY_TEXT_BYTES_MAX);
    let body = entry_body(&Policy::default(), &entry(1, &longest));
    assert!(body.len() < ENTRY_TEXT_BYTES_MAX + 400);
}

#[test]
fn queries_return_matching_entries_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let audit = AuditLog::open(
        &JournalWriter::open(dir.path()).unwrap(),
        &KEY,
        1,
        Policy::default(),
        LogFiles::default(),
    )
    .unwrap();
    for (at, kind) in [
        "chat",
        "mcp/request:tools/call:read_file",
        "system/welcome",
        "mcp/request",
        "x y",
    ]
    .into_iter()
    .enumerate()
    {
        audit.reserve().unwrap().write(&entry(at as u64, kind));
    }
    audit.flush().unwrap();
    let check = |filter: EntryFilter, expected: &[u64]| {
        let mut found = Vec::new();
        query(dir.path(), &filter, |entry, _| {
            found.push(entry.at_ms);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(found, expected, "{filter:?}");
    };
    let kinds = |text: &str| EntryFilter {
        kinds: Some(KindPattern::parse(text).unwrap()),
        ..EntryFilter::default()
    };
    let who = |name: &str| EntryFilter {
        participant: Some(name.into()),
        ..EntryFilter::default()
    };
    check(EntryFilter::default(), &[0, 1, 2, 3, 4]);
    check(kinds("mcp/request:tools/call:read_*"), &[1]);
    check(kinds("mcp/*"), &[1]);
    check(kinds("system/*"), &[2]);
    check(kinds("mcp/request"), &[1, 3]);
    check(kinds("x y"), &[4]);
    check(who("scout"), &[0, 1, 2, 3, 4]);
    check(who("files"), &[0, 1, 2, 3, 4]);
    check(who("other"), &[]);
    check(
        EntryFilter {
            since_ms: Some(1),
            until_ms: Some(3),
            ..EntryFilter::default()
        },
        &[1, 2],
    );
    check(
        EntryFilter {
            operation: Some(format!("{:032x}", 3)),
            ..EntryFilter::default()
        },
        &[3],
    );
    check(
        EntryFilter {
            verdict: Some("refused".into()),
            ..EntryFilter::default()
        },
        &[],
    );
    check(
        EntryFilter {
            topic: Some("main".into()),
            ..who("scout")
        },
        &[0, 1, 2, 3, 4],
    );
    assert!(KindPattern::parse("*").is_err());
}

#[test]
fn segments_and_head_have_golden_bytes() {
    let disk = SimDisk::default();
    let mut log = open(&disk, false).unwrap();
    write(&mut log, 5, 2).unwrap();
    let text = |name: &str| String::from_utf8(disk.bytes(name)).unwrap();
    let segment = concat!(
        r#"{"seq":1,"at_ms":5,"topic":"main","from":"scout","kind":"mcp/request:tools/call:tool-5","to":["files"],"#,
        r#""verdict":"admitted","why":"mcp/*","operation":"00000000000000000000000000000005","#,
        r#""payload_sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","#,
        r#""mac":"f69f5d241c82fef19b798ecdc26f5adef6b0c7c4e3e66326091acce3436d3ead"}"#,
        "\n",
        r#"{"seq":2,"end":true,"at_ms":6,"topic":"main","from":"scout","kind":"mcp/request:tools/call:tool-6","#,
        r#""to":["files"],"verdict":"admitted","why":"mcp/*","operation":"00000000000000000000000000000006","#,
        r#""payload_sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","#,
        r#""mac":"1d75bfe11c8381aad13cf7317c9d18181cfb41f0e24a9682b4641761ea4d2580"}"#,
        "\n",
    );
    assert_eq!(text(&name(1)), segment);
    let slots = [
        concat!(
            r#"{"turn":2,"seq":0,"last":"0000000000000000000000000000000000000000000000000000000000000000","#,
            r#""mac":"791c61db2f9c0e50da45bb665836f0b4028c935068b5d9fd1fc152126a23bb1d"}"#,
        ),
        concat!(
            r#"{"turn":3,"seq":2,"last":"1d75bfe11c8381aad13cf7317c9d18181cfb41f0e24a9682b4641761ea4d2580","#,
            r#""mac":"f94f7f4a43116bfeec59fb485cf41c11f1b216f0e875264814e2a913ab71b7e0"}"#,
        ),
    ];
    assert_eq!(
        text(HEAD_FILE),
        slots.map(|slot| format!("{slot:<255}\n")).concat()
    );
}
