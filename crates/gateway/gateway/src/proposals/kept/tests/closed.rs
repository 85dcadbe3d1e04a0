//! Tests of closed proposals: expiry, limits, order, selection by topic, compaction.

use std::fs;
use std::ops::Range;
use std::path::Path;

use store::{JournalWriter, Ledger, PeekedJournal};
use topic::CLOSED_PROPOSALS_MAX;

use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn closed(digests: Vec<(u64, u128)>) -> ProposalRecord {
    ProposalRecord::ProposalsClosed(ClosedProposals { digests })
}

/// Opens and ends other proposals with these numbers.
fn end_others(state: &mut KeptProposals, numbers: Range<usize>) {
    for number in numbers {
        let id = format!("other-{number}");
        state.apply(&opened(&id));
        state.apply(&ended(&id, "expired"));
    }
}

fn digests(state: &KeptProposals, now_ms: u64) -> Vec<u128> {
    state.closed(now_ms).map(|(_, digest)| digest).collect()
}

#[test]
fn the_digest_of_a_closed_proposal_is_kept_for_30_days_after_its_end() {
    use DecisionRecord::{Approved, Rejected, Withdrawn};
    let check = |end: &[ProposalRecord], ended_ms: u64| {
        let mut state = folded(&[&[opened("p")], end].concat());
        end_others(&mut state, 1..ENDED_PROPOSALS_MAX);
        assert!(
            state.get("p").is_some() && digests(&state, 0).is_empty(),
            "{end:?}"
        );
        end_others(&mut state, 0..1);
        assert!(state.get("p").is_none(), "{end:?}");
        let until_ms = ended_ms + 30 * DAY_MS;
        let expected = (until_ms, closed_digest("main", "envelope-p"));
        assert_eq!(
            state.closed(until_ms - 1).collect::<Vec<_>>(),
            [expected],
            "{end:?}"
        );
        assert_eq!(state.closed(until_ms).count(), 0, "{end:?}");
    };
    check(&[decided("p", Approved, "ana"), ended("p", "completed")], 3);
    check(&[decided("p", Rejected, "ana")], 2);
    check(
        &[decided("p", Withdrawn, "scout"), ended("p", "withdrawn")],
        2,
    );
    check(&[ended("p", "expired")], 3);
}

#[test]
fn proposals_that_are_closed_for_their_size_leave_digests_too() {
    let mut state = KeptProposals::default();
    for id in ["a", "b"] {
        let ProposalRecord::ProposalOpened(big) = opened(id) else {
            unreachable!()
        };
        let params = Some("x".repeat(ENDED_PROPOSALS_BYTES_MAX));
        state.apply(&ProposalRecord::ProposalOpened(OpenedProposal {
            params,
            ..big
        }));
        state.apply(&ended(id, "expired"));
    }
    assert_eq!(digests(&state, 0), [closed_digest("main", "envelope-a")]);
}

#[test]
fn the_oldest_digests_are_dropped_first() {
    let all: Vec<_> = (0..CLOSED_PROPOSALS_MAX as u128)
        .map(|number| (1000, number))
        .collect();
    let mut known = folded(&[closed(all)]);
    assert_eq!(known.closed(0).count(), CLOSED_PROPOSALS_MAX);
    known.apply(&closed(vec![(1000, u128::MAX)]));
    let found = digests(&known, 0);
    assert_eq!(found.len(), CLOSED_PROPOSALS_MAX);
    assert_eq!((found.first(), found.last()), (Some(&1), Some(&u128::MAX)));
}

#[test]
fn the_digest_of_a_reused_envelope_id_is_returned_once_with_its_latest_expiry() {
    let known = folded(&[closed(vec![(10, 7), (20, 8), (30, 7), (25, 9)])]);
    assert_eq!(
        known.closed(5).collect::<Vec<_>>(),
        [(20, 8), (25, 9), (30, 7)]
    );
    assert_eq!(known.closed(20).collect::<Vec<_>>(), [(25, 9), (30, 7)]);
}

#[test]
fn compaction_drops_expired_digests_and_keeps_all_others() {
    let mut known = folded(&[closed(
        (0..2500).map(|number| (number, number.into())).collect(),
    )]);
    end_others(&mut known, 0..ENDED_PROPOSALS_MAX + 700);
    let written = known.records(500);
    assert_eq!(written.len(), known.live());
    assert_eq!(folded(&written), known);
    let batches = written.iter().filter_map(|record| match record {
        ProposalRecord::ProposalsClosed(closed) => Some(closed.digests.len()),
        _ => None,
    });
    assert_eq!(batches.collect::<Vec<_>>(), [1000, 1000, 699]);
    let found = digests(&known, 0);
    assert_eq!(found[..1999], (501..2500).collect::<Vec<u128>>()[..]);
    let other = |number: usize| closed_digest("main", &format!("envelope-other-{number}"));
    assert!((0..700).all(|number| found.contains(&other(number))));
}

#[test]
fn the_digests_of_a_topic_are_selected() {
    let digest = |topic: &str, envelope: &str| closed_digest(topic, envelope);
    let all = vec![
        (10, digest("a", "1")),
        (20, digest("b", "1")),
        (30, digest("a", "2")),
        (40, digest("", "")),
    ];
    let known = folded(&[closed(all.clone())]);
    let of = |topic: &str, now_ms: u64| known.closed_in(topic, now_ms).collect::<Vec<_>>();
    assert_eq!(of("a", 0), [all[0], all[2]]);
    assert_eq!(of("a", 10), [all[2]]);
    assert_eq!(of("b", 0), [all[1]]);
    assert_eq!(of("", 0), [all[3]]);
    assert_eq!(of("c", 0), []);
    assert_eq!(known.closed(0).collect::<Vec<_>>(), all);
}

/// Time at which the proposals of a journal end: in the future, so that a compaction drops no
/// digest.
const END_MS: u64 = 4_000_000_000_000;

/// Opens and ends the proposals with these numbers, `batch` of them in one append.
fn end_all(journal: &Ledger<KeptProposals>, numbers: Range<usize>, batch: usize) {
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(batch) {
        let mut records = Vec::new();
        for number in numbers {
            let id = number.to_string();
            records.push(opened(&id));
            records.push(ended_at(&id, END_MS));
        }
        journal.append(&records).unwrap();
    }
}

fn ended_at(id: &str, at_ms: u64) -> ProposalRecord {
    ProposalRecord::ProposalEnded(EndRecord {
        id: id.into(),
        state: "completed".into(),
        reason: None,
        answer: None,
        at_ms,
    })
}

fn digests_on_disk(journal: &Ledger<KeptProposals>, now_ms: u64) -> Vec<u128> {
    journal.state(|kept| digests(kept, now_ms))
}

fn expected(numbers: Range<usize>) -> Vec<u128> {
    let mut all: Vec<_> = numbers
        .map(|number| closed_digest("main", &format!("envelope-{number}")))
        .collect();
    all.sort_unstable();
    all
}

fn open_at(dir: &Path) -> Ledger<KeptProposals> {
    JournalWriter::open(dir).unwrap().ledger().unwrap()
}

#[test]
fn digests_survive_every_compaction_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut end = 0;
    for more in [ENDED_PROPOSALS_MAX, 1, 1200, 1] {
        let journal = open_at(dir.path());
        end_all(&journal, end..end + more, 50);
        end += more;
        assert_eq!(
            digests_on_disk(&journal, END_MS),
            expected(0..end - ENDED_PROPOSALS_MAX)
        );
        let before = journal.state(KeptProposals::clone);
        drop(journal);
        let peeked = PeekedJournal::read(dir.path()).unwrap();
        assert_eq!(peeked.fold::<KeptProposals>().unwrap(), before);
    }
    let text = fs::read_to_string(dir.path().join("journal.jsonl")).unwrap();
    assert!(!text.contains("\"envelope-0\""), "only its digest is kept");
}

#[test]
fn a_hundred_thousand_digests_survive_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let end = ENDED_PROPOSALS_MAX + CLOSED_PROPOSALS_MAX + 100;
    let journal = open_at(dir.path());
    end_all(&journal, 0..end, 20_000);
    drop(journal);
    let journal = open_at(dir.path());
    assert_eq!(
        digests_on_disk(&journal, END_MS),
        expected(100..100 + CLOSED_PROPOSALS_MAX)
    );
    assert!(digests_on_disk(&journal, END_MS + CLOSED_PROPOSALS_KEPT_MS).is_empty());
}

#[test]
fn a_malformed_digest_is_no_record() {
    let check = |digest: &str, readable: bool| {
        let line = format!("{{\"record\":\"proposals_closed\",\"digests\":[[1,\"{digest}\"]]}}");
        let read = serde_json::from_str::<ProposalRecord>(&line);
        assert_eq!(read.is_ok(), readable, "{digest}");
    };
    check(&"0f".repeat(16), true);
    check(&"0f".repeat(15), false);
    check(&"0f".repeat(17), false);
    check(&format!("+{}", "0".repeat(31)), false);
    check(&"0g".repeat(16), false);
}
