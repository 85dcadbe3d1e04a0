//! Tests of looks: over segments, within bounds, at places that do not exist.

use std::sync::Arc;

use super::super::chain::Chain;
use super::super::writer::{LogWriter, Rotation};
use super::super::{AuditEntry, Policy, RecordedVerdict};
use super::*;
use crate::tests::sim::SimDisk;

const KEY: [u8; 32] = [7; 32];

/// A log of so many entries in segments of about this many bytes; each has its number as its time.
fn log(entries: u64, segment_bytes: u64) -> (SimDisk, Files) {
    let disk = SimDisk::default();
    let files = Files {
        segments: Arc::new(disk.clone()),
        heads: Arc::new(disk.clone()),
    };
    let chain = Chain::new(&KEY);
    let rotation = Rotation {
        bytes_max: segment_bytes,
        age_max_ms: None,
        begun: None,
    };
    let mut log = LogWriter::open(files.clone(), chain, false, 0, rotation).unwrap();
    for number in 1..=entries {
        log.write(std::iter::once(&*body(number, "chat"))).unwrap();
    }
    (disk, files)
}

fn body(number: u64, why: &str) -> Vec<u8> {
    let entry = AuditEntry {
        at_ms: number,
        why: Some(why),
        ..crate::recorder::entry(Some("main"), "scout", "chat", RecordedVerdict::Admitted)
    };
    let mut body = Vec::new();
    entry.write_members(&mut body, &Policy::default().apply(None));
    body
}

/// The times of a look backward, at most so many entries, and where it ended.
fn back_from(
    files: &Files,
    before: Option<LogPlace>,
    bytes_max: u64,
    most: usize,
) -> (Vec<u64>, LookEnd) {
    let mut seen = Vec::new();
    let end = back(files, before, bytes_max, &mut |one| {
        if seen.len() == most {
            return ControlFlow::Break(());
        }
        seen.push(one.entry.at_ms);
        ControlFlow::Continue(())
    });
    (seen, end.unwrap())
}

/// All times by looks of at most so many entries and bytes, one after the other.
fn pages_back(files: &Files, bytes_max: u64, most: usize) -> Vec<u64> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let (seen, end) = back_from(files, before, bytes_max, most);
        all.extend(seen);
        before = end.next;
        if before.is_none() {
            return all;
        }
    }
}

#[test]
fn pages_backward_have_every_entry_once_newest_first() {
    let (_, files) = log(40, 2_000);
    assert!(files.firsts().unwrap().len() > 2);
    let expected: Vec<u64> = (1..=40).rev().collect();
    for (bytes_max, most) in [(LOOK_BYTES_MAX, 100), (LOOK_BYTES_MAX, 7), (1, 3), (1, 100)] {
        assert_eq!(
            pages_back(&files, bytes_max, most),
            expected,
            "{bytes_max} {most}"
        );
    }
    let (_, end) = back_from(&files, None, 1, 100);
    assert!(end.is_cut && end.next.is_some(), "{end:?}");
    let (_, end) = back_from(&files, None, LOOK_BYTES_MAX, 7);
    assert!(!end.is_cut && end.next.is_some(), "{end:?}");
}

#[test]
fn a_look_forward_goes_on_where_one_backward_ended() {
    let (_, files) = log(40, 2_000);
    let (_, end) = back_from(&files, None, LOOK_BYTES_MAX, 15);
    let place = end.next.unwrap();
    let forward_from = |place: LogPlace, bytes_max: u64| {
        let mut seen = Vec::new();
        let end = forward(&files, place, bytes_max, &mut |one| {
            seen.push(one.entry.at_ms);
            ControlFlow::Continue(())
        });
        (seen, end.unwrap())
    };
    let (seen, end) = forward_from(place, LOOK_BYTES_MAX);
    assert_eq!(seen, (26..=40).collect::<Vec<u64>>());
    assert_eq!(end, LookEnd::OF_LOG);
    let (mut all, mut at) = (Vec::new(), Some(place));
    while let Some(place) = at {
        let (seen, end) = forward_from(place, 1);
        all.extend(seen);
        at = end.next;
    }
    assert_eq!(all, seen);
    // The place of an entry is before it.
    let mut places = Vec::new();
    let mut note = |one: SeenEntry<'_>| {
        places.push((one.entry.at_ms, one.place));
        ControlFlow::Continue(())
    };
    back(&files, None, LOOK_BYTES_MAX, &mut note).unwrap();
    for (at_ms, place) in places {
        assert_eq!(forward_from(place, LOOK_BYTES_MAX).0.first(), Some(&at_ms));
    }
}

#[test]
fn lines_that_are_longer_than_a_chunk_or_than_a_look_do_not_stop_it() {
    let (disk, files) = log(3, 1 << 30);
    let segment = super::super::files::name(1);
    let long = "x".repeat(CHUNK_BYTES as usize);
    let filler = format!("{{\"no entry\":\"{long}{long}{long}\"}}\n");
    disk.tamper(&segment, |text| {
        let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        text.splice(first..first, filler.bytes());
        text.extend_from_slice(b"{\"torn");
    });
    assert_eq!(pages_back(&files, LOOK_BYTES_MAX, 100), [3, 2, 1]);
    assert_eq!(pages_back(&files, 1, 100), [3, 2, 1]);
}

#[test]
fn a_place_that_is_none_shows_no_part_of_an_entry() {
    let (disk, files) = log(3, 1 << 30);
    let length = disk.bytes(&super::super::files::name(1)).len() as u64;
    for bytes in (0..length + 9).step_by(3) {
        let place = Some(LogPlace { segment: 1, bytes });
        let (seen, _) = back_from(&files, place, LOOK_BYTES_MAX, 100);
        assert!(
            [&[3, 2, 1][..], &[2, 1], &[1], &[]].contains(&&*seen),
            "{bytes}"
        );
    }
    let far = Some(LogPlace {
        segment: u64::MAX,
        bytes: 1,
    });
    assert_eq!(back_from(&files, far, LOOK_BYTES_MAX, 100).0, [3, 2, 1]);
    for text in [
        "",
        "1",
        "1-",
        "-1",
        "1-+1",
        "1-2-3",
        "99999999999999999999-1",
        "a-b",
    ] {
        assert_eq!(text.parse::<LogPlace>(), Err(ParsePlaceError), "{text}");
    }
    let place = LogPlace {
        segment: 7,
        bytes: 9,
    };
    assert_eq!(place.to_string().parse(), Ok(place));
}

#[test]
fn a_look_reads_so_many_bytes_and_the_next_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("audit");
    std::fs::create_dir(&folder).unwrap();
    let (disk, _) = log(3, 1 << 30);
    let text = disk.bytes(&super::super::files::name(1));
    let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // Between the first entry and the others lie as many bytes as one look reads.
    let line = [&[b'x'; 65_535][..], b"\n"].concat();
    let filler = line.repeat(usize::try_from(LOOK_BYTES_MAX).unwrap() / line.len());
    let all = [&text[..first], &filler, &text[first..]].concat();
    std::fs::write(folder.join(super::super::files::name(1)), all).unwrap();
    let seen = |before| {
        let mut seen = Vec::new();
        let end = look_back(dir.path(), before, |one| {
            seen.push(one.entry.at_ms);
            ControlFlow::Continue(())
        });
        (seen, end.unwrap())
    };
    let (newest, end) = seen(None);
    assert_eq!(newest, [3, 2]);
    assert!(end.is_cut, "{end:?}");
    assert_eq!(seen(end.next), (vec![1], LookEnd::OF_LOG));
    let begin = LogPlace {
        segment: 1,
        bytes: 0,
    };
    let on = look_on(dir.path(), begin, |_| ControlFlow::Continue(())).unwrap();
    assert!(on.is_cut && on.next.is_some(), "{on:?}");
}
