//! Tests of closed proposals: expiry, limits, order, selection by topic, compaction.

use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn closed(digests: Vec<(u64, u128)>) -> Record {
    Record::ProposalsClosed(ClosedProposals { digests })
}

/// Opens and ends other proposals with these numbers.
fn end_others(state: &mut State, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let id = format!("other-{number}");
        state.apply(&opened(&id));
        state.apply(&ended(&id, "expired"));
    }
}

fn digests(state: &State, now_ms: u64) -> Vec<u128> {
    state
        .closed_proposals(now_ms)
        .map(|(_, digest)| digest)
        .collect()
}

#[test]
fn the_digest_of_a_closed_proposal_is_kept_for_30_days_after_its_end() {
    use Decision::{Approved, Rejected, Withdrawn};
    let check = |end: &[Record], ended_ms: u64| {
        let mut state = state(&[&[opened("p")], end].concat());
        end_others(&mut state, 1..ENDED_KEPT);
        assert!(
            state.proposal("p").is_some() && digests(&state, 0).is_empty(),
            "{end:?}"
        );
        end_others(&mut state, 0..1);
        assert!(state.proposal("p").is_none(), "{end:?}");
        let until_ms = ended_ms + 30 * DAY_MS;
        let expected = (until_ms, closed_digest("main", "envelope-p"));
        assert_eq!(
            state.closed_proposals(until_ms - 1).collect::<Vec<_>>(),
            [expected],
            "{end:?}"
        );
        assert_eq!(state.closed_proposals(until_ms).count(), 0, "{end:?}");
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
    let mut state = State::default();
    for id in ["a", "b"] {
        let Record::ProposalOpened(big) = opened(id) else {
            unreachable!()
        };
        let params = Some("x".repeat(ENDED_BYTES_MAX));
        state.apply(&Record::ProposalOpened(OpenedProposal { params, ..big }));
        state.apply(&ended(id, "expired"));
    }
    assert_eq!(digests(&state, 0), [closed_digest("main", "envelope-a")]);
}

#[test]
fn the_oldest_digests_are_dropped_first() {
    let all: Vec<_> = (0..CLOSED_PROPOSALS_MAX as u128)
        .map(|number| (1000, number))
        .collect();
    let mut known = state(&[closed(all)]);
    assert_eq!(known.closed_proposals(0).count(), CLOSED_PROPOSALS_MAX);
    known.apply(&closed(vec![(1000, u128::MAX)]));
    let found = digests(&known, 0);
    assert_eq!(found.len(), CLOSED_PROPOSALS_MAX);
    assert_eq!((found.first(), found.last()), (Some(&1), Some(&u128::MAX)));
}

#[test]
fn the_digest_of_a_reused_envelope_id_is_returned_once_with_its_latest_expiry() {
    let known = state(&[closed(vec![(10, 7), (20, 8), (30, 7), (25, 9)])]);
    assert_eq!(
        known.closed_proposals(5).collect::<Vec<_>>(),
        [(20, 8), (25, 9), (30, 7)]
    );
    assert_eq!(
        known.closed_proposals(20).collect::<Vec<_>>(),
        [(25, 9), (30, 7)]
    );
}

#[test]
fn compaction_drops_expired_digests_and_keeps_all_others() {
    let mut known = state(&[closed(
        (0..2500).map(|number| (number, number.into())).collect(),
    )]);
    end_others(&mut known, 0..ENDED_KEPT + 700);
    known.drop_expired(500);
    let written: Vec<Record> = known.records().collect();
    assert_eq!(written.len(), known.len());
    assert_eq!(state(&written), known);
    let batches = written.iter().filter_map(|record| match record {
        Record::ProposalsClosed(closed) => Some(closed.digests.len()),
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
    let known = state(&[closed(all.clone())]);
    let of =
        |topic: &str, now_ms: u64| known.closed_proposals_in(topic, now_ms).collect::<Vec<_>>();
    assert_eq!(of("a", 0), [all[0], all[2]]);
    assert_eq!(of("a", 10), [all[2]]);
    assert_eq!(of("b", 0), [all[1]]);
    assert_eq!(of("", 0), [all[3]]);
    assert_eq!(of("c", 0), []);
    assert_eq!(known.closed_proposals(0).collect::<Vec<_>>(), all);
}
