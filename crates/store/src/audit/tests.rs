//! The audit log on a disk that forgets, and under somebody who changes it.

use proptest::prelude::*;

use super::files::{HEAD_FILE, name};
use super::*;
use crate::disk::sim::Sim;

const KEY: [u8; 32] = [7; 32];

fn files(disk: &Sim) -> Files {
    Files { segments: Arc::new(disk.clone()), heads: Arc::new(disk.clone()) }
}

fn open(disk: &Sim, begun: bool) -> Result<Log, StoreError> {
    Log::open(files(disk), Chain::new(&KEY), begun, 0, 2_000)
}

fn report(disk: &Sim, begun: bool) -> Report {
    verify::verify(&files(disk), &Chain::new(&KEY), begun, None).unwrap()
}

fn body(at: u64) -> Vec<u8> {
    spelled(&Policy::default(), &entry(at, &format!("mcp/request:tools/call:tool-{at}")))
}

fn spelled(policy: &Policy, entry: &Entry<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    entry.spell(&mut body, &policy.written(entry.payload));
    body
}

fn entry(at_ms: u64, kind: &str) -> Entry<'_> {
    Entry {
        at_ms,
        topic: Some("main"),
        from: "scout",
        kind: kind.into(),
        own: None,
        to: &["files"],
        verdict: Verdict::Admitted,
        why: Some("mcp/*"),
        operation: Some(model::OperationId(at_ms.into())),
        digest: None,
        payload: Some(br#"{"a":1}"#),
    }
}

fn write(log: &mut Log, from: u64, count: u64) -> Result<(), StoreError> {
    let bodies: Vec<_> = (from..from + count).map(body).collect();
    log.write(bodies.iter().map(Vec::as_slice))
}

/// The `at_ms` of all entries that are there.
fn times(disk: &Sim) -> Vec<u64> {
    let files = files(disk);
    let mut found = Vec::new();
    for first in files.firsts().unwrap() {
        let text = files.segment(first).unwrap();
        found.extend(pieces(&text).filter_map(|piece| match piece {
            Piece::Whole(line) => Some(serde_json::from_slice::<Recorded<'_>>(line).unwrap().at_ms),
            Piece::Torn(_) => None,
        }));
    }
    found
}

/// A log of 40 entries in several segments, in groups of four.
fn whole_log() -> Sim {
    let disk = Sim::default();
    let mut log = open(&disk, false).unwrap();
    (0..10).for_each(|group| write(&mut log, 4 * group, 4).unwrap());
    assert!(files(&disk).firsts().unwrap().len() > 3);
    assert!(report(&disk, true).is_whole());
    disk
}

/// What somebody may do to the files.
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
    /// And cut off the end, as far as the other place of the head does not count it, or further.
    FlipHead {
        at: usize,
        kept: usize,
    },
    CutHead(usize),
    RemoveHead,
}

fn any_attack() -> impl Strategy<Value = Attack> {
    let (at, other) = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let of = |count: usize| move |at: prop::sample::Index| at.index(count);
    let two = |count: usize| (0..count, 1..count).prop_map(move |(one, by)| (one, (one + by) % count));
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

/// Applies a change to the lines of the whole log, keeping each segment's number of lines as far as it goes.
fn with_lines(disk: &Sim, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let firsts = files(disk).firsts().unwrap();
    let mut lines = Vec::new();
    let mut counts = Vec::new();
    for first in &firsts {
        let text = disk.bytes(&name(*first));
        let own: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        counts.push(own.len());
        lines.extend(own);
    }
    change(&mut lines);
    let mut lines = lines.into_iter();
    for (first, count) in firsts.iter().zip(&counts) {
        let last = first == firsts.last().unwrap();
        let own: Vec<u8> = lines.by_ref().take(if last { usize::MAX } else { *count }).flatten().collect();
        disk.tamper(&name(*first), |text| *text = own);
    }
}

fn apply(attack: &Attack, disk: &Sim) {
    let firsts = files(disk).firsts().unwrap();
    match attack.clone() {
        Attack::Flip { segment, at, mask } => disk.tamper(&name(firsts[segment % firsts.len()]), |text| {
            let at = at % text.len();
            text[at] ^= mask;
        }),
        Attack::RemoveLine(at) => with_lines(disk, |lines| drop(lines.remove(at))),
        Attack::SwapLines(a, b) => with_lines(disk, |lines| lines.swap(a, b)),
        Attack::RepeatLine(at) => with_lines(disk, |lines| lines.insert(at, lines[at].clone())),
        Attack::CutOff(kept) => with_lines(disk, |lines| lines.truncate(kept)),
        Attack::RemoveSegment(at) => disk.remove(&name(firsts[at])),
        Attack::SwapSegments(a, b) => {
            let (one, other) = (disk.bytes(&name(firsts[a])), disk.bytes(&name(firsts[b])));
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

    /// And it stays false: no start of the gateway, however often, makes a damaged log look whole.
    #[test]
    fn verify_is_false_after_any_change(attack in any_attack()) {
        let disk = whole_log();
        apply(&attack, &disk);
        prop_assert!(!report(&disk, true).is_whole());
        for start in 0..3 {
            write(&mut open(&disk, true).unwrap(), 100 + start, 1).unwrap();
            prop_assert!(!report(&disk, true).is_whole(), "after start {start}");
        }
    }

    #[test]
    fn verify_is_true_after_every_crash_and_nothing_acknowledged_is_lost(
        runs in prop::collection::vec((0..60_usize, 1..9_u64, any::<u64>()), 1..6)
    ) {
        let (disk, mut begun, mut next) = (Sim::default(), false, 0);
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
        prop_assert_eq!(found.head, *log.shown().lock());
    }

    /// What a crash has left is as safe from being cut as the rest, up to the last entry that was acknowledged.
    #[test]
    fn a_cut_after_a_crash_is_found(acts in 10..60_usize, seed: u64, cut in 1..40_usize) {
        let disk = Sim::default();
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
fn findings_name_the_place() {
    let check = |attack: Attack, expected: &[&str]| {
        let disk = whole_log();
        apply(&attack, &disk);
        let found: Vec<String> = report(&disk, true).findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{attack:?}");
    };
    check(Attack::Flip { segment: 0, at: 30, mask: 1 }, &["entry 1, or what stands before it, was changed"]);
    check(Attack::CutOff(38), &["the end was cut off: entries 39 to 40 are missing"]);
    check(Attack::RemoveHead, &["the head that is kept outside the log is missing or not ours"]);
    check(Attack::FlipHead { at: 256, kept: 40 }, &["one of the two places of the head was changed"]);
    check(Attack::FlipHead { at: 0, kept: 39 }, &["one of the two places of the head was changed"]);
}

#[test]
fn a_head_kept_elsewhere_shows_that_log_and_head_were_put_back_together() {
    let disk = Sim::default();
    let mut log = open(&disk, false).unwrap();
    write(&mut log, 0, 3).unwrap();
    let before = disk.copy();
    write(&mut log, 3, 3).unwrap();
    let noted: Head = report(&disk, true).head.to_string().parse().unwrap();
    let check = |disk: &Sim| verify::verify(&files(disk), &Chain::new(&KEY), true, Some(noted)).unwrap();
    assert!(check(&disk).is_whole());
    assert!(report(&before, true).is_whole());
    assert_eq!(check(&before).findings, [Finding::CutOff { from: 4, to: 6 }]);
    let mut other = open(&before, true).unwrap();
    write(&mut other, 90, 3).unwrap();
    assert_eq!(check(&before).findings, [Finding::Changed { seq: 6 }]);
}

#[test]
fn many_writers_and_a_restart_on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    assert_eq!(verify(dir.path(), None).unwrap(), None);
    for start in 0..2_u64 {
        let audit = Audit::open(&writer, &[start as u8; 32], 1, Policy::default()).unwrap();
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
        assert_eq!((report.entries, report.head), (400 * (start + 1), audit.head()));
    }
    let first = dir.path().join(FOLDER).join(name(1));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(first).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_disk_that_is_gone_stops_the_log_and_places_are_bounded() {
    let disk = Sim::default();
    let audit = Audit::on(open(&disk, false).unwrap(), Policy::default()).unwrap();
    let places: Vec<_> = (0..AUDIT_PLACES_MAX).map(|_| audit.reserve().unwrap()).collect();
    assert!(matches!(audit.reserve(), Err(StoreError::Busy)));
    drop(places);
    audit.reserve().unwrap().write(&entry(1, "chat"));
    audit.flush().unwrap();
    disk.fail_after(0);
    let (tell, told) = mpsc::channel();
    audit.reserve().unwrap().write_then(&entry(2, "chat"), move |result| tell.send(result).unwrap());
    assert!(matches!(told.recv().unwrap(), Err(StoreError::Io { .. })));
    assert!(matches!(audit.reserve(), Err(StoreError::Stopped)));
    assert!(audit.trouble().is_some());
    disk.crash(1);
    assert!(report(&disk, true).is_whole());
    assert_eq!(times(&disk), [1]);
}

#[test]
fn what_is_written_of_an_entry() {
    let check = |payloads: Payloads, payload: &[u8], expected: &str| {
        let entry = Entry { payload: Some(payload), to: &[], why: None, ..entry(5, "a\"\n\u{202e}") };
        let text = String::from_utf8(spelled(&Policy::new(payloads, &REDACTED), &entry)).unwrap();
        let start = "\"at_ms\":5,\"topic\":\"main\",\"from\":\"scout\",\"kind\":\"a\\\"\\n\u{202e}\"";
        let rest = text.strip_prefix(start).unwrap();
        let rest =
            rest.strip_prefix(r#","verdict":"admitted","operation":"00000000000000000000000000000005""#);
        assert_eq!(rest, Some(expected));
        serde_json::from_str::<Recorded<'_>>(&format!("{{\"seq\":1,{text}}}")).unwrap();
    };
    check(Payloads::None, b"{}", "");
    check(
        Payloads::Full,
        b"{\n\"token\": \"x\", \"n\": 1.50}",
        r#","payload":{"token":"[redacted]","n":1.50}"#,
    );
    let of_braces = r#","payload_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a""#;
    check(Payloads::Digest, b" { } ", of_braces);
    let of_nothing =
        r#","payload_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#;
    check(Payloads::Full, b"", of_nothing);
    let long = format!("\"{}\"", "x".repeat(ENTRY_PAYLOAD_BYTES_MAX));
    let full = Policy::new(Payloads::Full, &REDACTED);
    let body = spelled(&full, &Entry { payload: Some(long.as_bytes()), ..entry(1, "a") });
    assert!(body.len() < 400);
    let longest = "\u{e4}".repeat(ENTRY_TEXT_BYTES_MAX);
    let body = spelled(&Policy::default(), &entry(1, &longest));
    assert!(body.len() < ENTRY_TEXT_BYTES_MAX + 400);
}

#[test]
fn queries() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(&Writer::open(dir.path()).unwrap(), &KEY, 1, Policy::default()).unwrap();
    for (at, kind) in ["chat", "mcp/request:tools/call:read_file", "system/welcome", "mcp/request", "x y"]
        .into_iter()
        .enumerate()
    {
        audit.reserve().unwrap().write(&entry(at as u64, kind));
    }
    audit.flush().unwrap();
    let check = |filter: Filter, expected: &[u64]| {
        let mut found = Vec::new();
        query(dir.path(), &filter, |entry, _| {
            found.push(entry.at_ms);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(found, expected, "{filter:?}");
    };
    let kinds = |text: &str| Filter { kinds: Some(Kinds::parse(text).unwrap()), ..Filter::default() };
    let who = |name: &str| Filter { participant: Some(name.into()), ..Filter::default() };
    check(Filter::default(), &[0, 1, 2, 3, 4]);
    check(kinds("mcp/request:tools/call:read_*"), &[1]);
    check(kinds("mcp/*"), &[1]);
    check(kinds("system/*"), &[2]);
    check(kinds("mcp/request"), &[1, 3]);
    check(kinds("x y"), &[4]);
    check(who("scout"), &[0, 1, 2, 3, 4]);
    check(who("files"), &[0, 1, 2, 3, 4]);
    check(who("other"), &[]);
    check(Filter { since_ms: Some(1), until_ms: Some(3), ..Filter::default() }, &[1, 2]);
    check(Filter { operation: Some(format!("{:032x}", 3)), ..Filter::default() }, &[3]);
    check(Filter { verdict: Some("refused".into()), ..Filter::default() }, &[]);
    check(Filter { topic: Some("main".into()), ..who("scout") }, &[0, 1, 2, 3, 4]);
    assert!(Kinds::parse("*").is_err());
}

#[test]
fn segments_and_head_have_golden_bytes() {
    let disk = Sim::default();
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
    assert_eq!(text(HEAD_FILE), slots.map(|slot| format!("{slot:<255}\n")).concat());
}
