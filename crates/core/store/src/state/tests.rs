//! Tests of the state: records of each kind, limits, and the records that compaction writes.

mod closed;

use proptest::prelude::*;

use super::*;
use crate::record::{
    ClosedProposals, DecidedProposal, Decision, EndedProposal, EndedSessions, GrantChange,
    OpenedProposal,
};

impl State {
    /// The unexpired digests of all topics.
    pub(crate) fn closed_proposals(&self, now_ms: u64) -> impl Iterator<Item = (u64, u128)> {
        self.proposals.closed.unexpired(now_ms, |_| true)
    }
}

fn token(name: &str) -> Record {
    Record::TokenIssued(IssuedToken {
        name: name.into(),
        sha256: "00".repeat(32),
        capabilities: None,
        topics: None,
        created_ms: 1,
        expires_ms: None,
        expired: false,
        incarnation: None,
    })
}

fn key(byte: &str) -> Record {
    Record::SealingKey(SealingKey {
        key: byte.repeat(32),
        created_ms: 2,
    })
}

#[test]
fn a_revocation_removes_every_token_of_the_participant() {
    let mut state = State::default();
    for record in [
        token("a"),
        token("b"),
        token("a"),
        Record::TokenRevoked {
            name: "a".into(),
            at_ms: 3,
        },
    ] {
        state.apply(&record);
    }
    let names: Vec<_> = state
        .tokens()
        .iter()
        .map(|token| token.name.as_str())
        .collect();
    assert_eq!(names, ["b"]);
}

#[test]
fn two_sealing_keys_are_kept_newest_first() {
    let mut state = State::default();
    for record in [key("aa"), key("bb"), key("cc")] {
        state.apply(&record);
    }
    let keys: Vec<_> = state
        .sealing_keys()
        .map(|key| key.key[..2].to_owned())
        .collect();
    assert_eq!(keys, ["cc", "bb"]);
}

#[test]
fn records_of_a_state_rebuild_it() {
    let mut state = State::default();
    for record in [key("aa"), token("a"), key("bb"), token("b")] {
        state.apply(&record);
    }
    let mut again = State::default();
    state.records().for_each(|record| again.apply(&record));
    assert_eq!(again, state);
    assert_eq!(state.records().count(), state.len());
}

fn opened(id: &str) -> Record {
    opened_by("scout", id)
}

fn opened_by(by: &str, id: &str) -> Record {
    Record::ProposalOpened(OpenedProposal {
        id: id.into(),
        topic: "main".into(),
        by: by.into(),
        to: vec!["files".into()],
        method: "tools/call".into(),
        context: Some("write_file".into()),
        envelope: format!("envelope-{id}"),
        era: None,
        params: Some("{\"name\":\"write_file\",\"n\":1.50}".into()),
        tool: None,
        digest: "ab".repeat(32),
        held: true,
        door: None,
        at_ms: 1,
        expires_ms: 300_001,
    })
}

fn decided(id: &str, decision: Decision, by: &str) -> Record {
    Record::ProposalDecided(DecidedProposal {
        id: id.into(),
        by: by.into(),
        decision,
        reason: None,
        digest: None,
        params: None,
        envelope: None,
        at_ms: 2,
    })
}

fn ended(id: &str, state: &str) -> Record {
    Record::ProposalEnded(EndedProposal {
        id: id.into(),
        state: state.into(),
        reason: None,
        answer: None,
        at_ms: 3,
    })
}

fn granted(
    topic: Option<&str>,
    capability: &str,
    given: bool,
    at_ms: u64,
    expires_ms: Option<u64>,
) -> Record {
    let list = vec![capability.to_owned()];
    let (added, removed) = if given {
        (list, vec![])
    } else {
        (vec![], list)
    };
    Record::GrantChanged(GrantChange {
        participant: "scout".into(),
        topic: topic.map(str::to_owned),
        added,
        removed,
        by: "ana".into(),
        reason: None,
        at_ms,
        expires_ms,
        configured: None,
    })
}

fn state(records: &[Record]) -> State {
    let mut state = State::default();
    records.iter().for_each(|record| state.apply(record));
    state
}

#[test]
fn a_proposal_ends_once_and_its_first_decision_counts() {
    use Decision::{Approved, Rejected, Withdrawn};
    let check = |records: &[Record], open: bool, by: Option<&str>, end: Option<&str>| {
        let state = state(&[&[opened("p")], records].concat());
        assert_eq!(
            state.open_proposals().count(),
            usize::from(open),
            "{records:?}"
        );
        let known = state.proposal("p").unwrap();
        assert_eq!(
            known.decided.as_ref().map(|decided| decided.by.as_str()),
            by,
            "{records:?}"
        );
        assert_eq!(
            known.ended.as_ref().map(|ended| ended.state.as_str()),
            end,
            "{records:?}"
        );
    };
    check(&[], true, None, None);
    check(&[opened("p")], true, None, None);
    check(&[decided("p", Approved, "ana")], true, Some("ana"), None);
    check(
        &[decided("p", Approved, "ana"), decided("p", Rejected, "bob")],
        true,
        Some("ana"),
        None,
    );
    check(
        &[decided("p", Approved, "ana"), ended("p", "completed")],
        false,
        Some("ana"),
        Some("completed"),
    );
    check(
        &[decided("p", Rejected, "ana"), decided("p", Approved, "bob")],
        false,
        Some("ana"),
        None,
    );
    check(
        &[decided("p", Withdrawn, "scout"), ended("p", "withdrawn")],
        false,
        Some("scout"),
        None,
    );
    check(
        &[ended("p", "expired"), decided("p", Approved, "ana")],
        false,
        None,
        Some("expired"),
    );
    check(
        &[ended("p", "expired"), ended("p", "failed"), opened("p")],
        false,
        None,
        Some("expired"),
    );
}

#[test]
fn the_last_ended_proposals_are_kept_in_full() {
    let mut state = State::default();
    for at in 0..ENDED_KEPT + 10 {
        state.apply(&opened(&at.to_string()));
        state.apply(&ended(&at.to_string(), "expired"));
    }
    assert_eq!(state.ended_proposals().count(), ENDED_KEPT);
    assert!(state.proposal("9").is_none());
    assert!(state.proposal("10").is_some());
    assert_eq!(state.closed_proposals(0).count(), 10);
    assert_eq!(
        state.len(),
        2 * ENDED_KEPT + 1,
        "one record holds all digests"
    );
}

#[test]
fn ended_proposals_hold_no_more_text_than_the_limit() {
    let mut state = State::default();
    for at in 0..5 {
        let Record::ProposalOpened(big) = opened(&at.to_string()) else {
            unreachable!()
        };
        let params = Some("x".repeat(ENDED_BYTES_MAX / 4));
        state.apply(&Record::ProposalOpened(OpenedProposal { params, ..big }));
        state.apply(&ended(&at.to_string(), "expired"));
    }
    assert_eq!(state.ended_proposals().count(), 4);
}

#[test]
fn ended_proposals_of_one_participant_push_out_no_others() {
    let mut state = State::default();
    let end = |state: &mut State, by: &str, id: &str, bytes: usize| {
        let Record::ProposalOpened(one) = opened_by(by, id) else {
            unreachable!()
        };
        state.apply(&Record::ProposalOpened(OpenedProposal {
            params: Some("x".repeat(bytes)),
            ..one
        }));
        state.apply(&ended(id, "expired"));
    };
    end(&mut state, "other", "a", 1);
    end(&mut state, "other", "b", 1);
    for number in 0..ENDED_KEPT + 8 {
        end(&mut state, "greedy", &number.to_string(), 1);
        // Guests have other names each time, and one share together.
        end(
            &mut state,
            &format!("anonymous-{number}"),
            &format!("guest {number}"),
            1,
        );
    }
    assert_eq!(state.ended_proposals().count(), ENDED_KEPT);
    (0..5).for_each(|number| {
        end(
            &mut state,
            "greedy",
            &format!("long {number}"),
            ENDED_BYTES_MAX / 2,
        )
    });
    assert!(state.proposal("a").is_some() && state.proposal("b").is_some());
    let mut again = State::default();
    state.records().for_each(|record| again.apply(&record));
    assert_eq!(again, state);
}

#[test]
fn the_earlier_change_applies_again_after_a_temporary_grant_expires() {
    let check = |records: &[Record], now_ms: u64, expected: &[(&str, bool)]| {
        let state = state(records);
        let applying = state.grants().filter(|grant| grant.applies(now_ms));
        let here =
            applying.filter(|grant| grant.topic.as_deref().is_none_or(|topic| topic == "main"));
        let found: Vec<_> = here
            .map(|grant| (grant.capability.as_str(), grant.granted))
            .collect();
        assert_eq!(found, expected, "{records:?} at {now_ms}");
    };
    let (taken, for_an_hour) = (
        granted(None, "chat", false, 1, None),
        granted(None, "chat", true, 2, Some(100)),
    );
    check(std::slice::from_ref(&taken), 5, &[("chat", false)]);
    check(
        &[taken.clone(), for_an_hour.clone()],
        99,
        &[("chat", false), ("chat", true)],
    );
    check(
        &[taken.clone(), for_an_hour.clone()],
        100,
        &[("chat", false)],
    );
    check(&[for_an_hour.clone(), taken.clone()], 5, &[("chat", false)]);
    check(
        &[for_an_hour.clone(), granted(None, "x", true, 200, None)],
        0,
        &[("x", true)],
    );
    check(&[granted(Some("other"), "chat", true, 1, None)], 5, &[]);
    let both = [
        granted(Some("main"), "chat", false, 1, None),
        granted(None, "chat", true, 2, None),
    ];
    check(&both, 5, &[("chat", true), ("chat", false)]);
    let cleared = |topic: Option<&str>| Record::GrantsCleared {
        participant: "scout".into(),
        topic: topic.map(str::to_owned),
        at_ms: 9,
    };
    check(
        &[&both[..], &[cleared(Some("main"))]].concat(),
        10,
        &[("chat", true)],
    );
    check(&[&both[..], &[cleared(None)]].concat(), 10, &[]);
}

#[test]
fn what_has_expired_on_record_stays_expired_whatever_the_clock_says_later() {
    let temporary = |end| granted(None, "chat", true, 2, Some(end));
    let issued = |name: &str, end| match token(name) {
        Record::TokenIssued(issued) => Record::TokenIssued(IssuedToken {
            expires_ms: end,
            ..issued
        }),
        other => other,
    };
    let lasting = granted(None, "x", true, 1, None);
    let tokens = [
        issued("a", Some(100)),
        issued("b", Some(101)),
        issued("c", None),
    ];
    let mut known = state(&[&tokens[..], &[lasting, temporary(100)]].concat());
    assert_eq!(
        (known.has_expired(99), known.has_expired(100)),
        (false, true)
    );
    known.apply(&Record::Expired { at_ms: 100 });
    assert_eq!(
        (known.has_expired(100), known.has_expired(101)),
        (false, true)
    );
    for _ in 0..2 {
        let expired: Vec<bool> = known.tokens().iter().map(|token| token.expired).collect();
        assert_eq!(expired, [true, false, false]);
        assert_eq!(
            known
                .grants()
                .map(|grant| grant.capability.as_str())
                .collect::<Vec<_>>(),
            ["x"]
        );
        known = state(&known.records().collect::<Vec<_>>());
    }
    // What is granted after the clock was set back begins anew.
    known.apply(&temporary(50));
    assert_eq!(known.grants().count(), 2);
}

fn sessions_ended(count: usize, at_ms: u64, until_ms: u64) -> Record {
    sessions_ended_of(None, count, at_ms, until_ms)
}

fn sessions_ended_of(by: Option<&str>, count: usize, at_ms: u64, until_ms: u64) -> Record {
    let marks = (0..count)
        .map(|number| format!("{at_ms} {number}"))
        .collect();
    Record::SessionsEnded(EndedSessions {
        marks,
        by: by.map(str::to_owned),
        at_ms,
        until_ms,
    })
}

fn marks(state: &State, now_ms: u64) -> Vec<&str> {
    state.ended_sessions(now_ms).map(|(_, mark)| mark).collect()
}

#[test]
fn ended_sessions_are_kept_until_their_ids_expire() {
    let one = state(&[sessions_ended(2, 1, 100)]);
    assert_eq!(marks(&one, 99), ["1 0", "1 1"]);
    assert_eq!(one.ended_sessions(100).count(), 0);
    let later = state(&[sessions_ended(2, 1, 100), sessions_ended(1, 100, 200)]);
    assert_eq!((marks(&later, 0), later.len()), (vec!["100 0"], 1));
}

#[test]
fn ended_sessions_are_bounded() {
    let mut known = state(&[
        sessions_ended(1, 1, 100),
        sessions_ended(ENDED_SESSIONS_KEPT - 1, 2, 100),
    ]);
    assert_eq!(known.ended_sessions(3).count(), ENDED_SESSIONS_KEPT);
    known.apply(&sessions_ended(1, 3, 100));
    assert_eq!(known.ended_sessions(3).count(), ENDED_SESSIONS_KEPT);
    assert_eq!(known.ended_sessions(3).next(), Some(("", "2 0")));
}

#[test]
fn ended_sessions_of_one_participant_push_out_no_others() {
    let mut known = state(&[sessions_ended_of(Some("other"), 3, 1, 100)]);
    for round in 2..80 {
        known.apply(&sessions_ended_of(Some("greedy"), 1024, round, 100));
    }
    assert_eq!(
        known
            .ended_sessions(3)
            .filter(|(by, _)| *by == "other")
            .count(),
        3
    );
    assert_eq!(
        known.ended_sessions(3).count(),
        3 + ENDED_SESSIONS_KEPT / 1024 * 1024 - 1024
    );
}

fn created(by: &str, id: &str, created_ms: u64, until_ms: u64) -> Record {
    let [id, topic, by] = [id, "main", by].map(str::to_owned);
    Record::TaskCreated(CreatedTask {
        id,
        topic,
        by,
        created_ms,
        until_ms,
    })
}

#[test]
fn tasks_are_kept_until_they_expire() {
    let one = state(&[created("ada", "a", 1, 100), created("bob", "b", 2, 50)]);
    let ids = |topic: &str, now_ms| {
        one.tasks_in(topic, now_ms)
            .map(|task| &*task.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("main", 49), ["a", "b"]);
    assert_eq!(
        (ids("main", 50), ids("main", 100), ids("other", 1)),
        (vec!["a"], vec![], vec![])
    );
    let later = state(&[created("ada", "a", 1, 100), created("bob", "b", 100, 200)]);
    assert_eq!((later.tasks_in("main", 0).count(), later.len()), (1, 1));
}

#[test]
fn tasks_of_one_participant_push_out_no_others() {
    let mut known = state(&[
        created("other", "first", 1, 100),
        created("anonymous-1", "guest", 1, 100),
    ]);
    for at in 0..TASKS_KEPT + 5 {
        known.apply(&created("greedy", &at.to_string(), 2, 100));
    }
    assert_eq!(known.tasks_in("main", 3).count(), TASKS_KEPT);
    assert_eq!(
        known
            .tasks_in("main", 3)
            .filter(|task| task.by != "greedy")
            .count(),
        2
    );
    assert_eq!(known.len(), TASKS_KEPT);
    // All guests together are one of those that have something.
    for at in 0..TASKS_KEPT {
        known.apply(&created(&format!("anonymous-{at}"), "guest", 2, 100));
    }
    let of = |by: &str| {
        known
            .tasks_in("main", 3)
            .filter(|task| task.by.starts_with(by))
            .count()
    };
    assert_eq!((of("other"), of("greedy")), (1, TASKS_KEPT / 2 - 1));
}

fn any_record() -> impl Strategy<Value = Record> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let decision = prop::sample::select(vec![
        Decision::Approved,
        Decision::Rejected,
        Decision::Withdrawn,
    ]);
    let topic = prop::sample::select(vec![None, Some("main"), Some("other")]);
    prop_oneof![
        id.clone().prop_map(opened),
        (id.clone(), decision).prop_map(|(id, decision)| decided(id, decision, "ana")),
        id.clone().prop_map(|id| ended(id, "completed")),
        (
            topic.clone(),
            id.clone(),
            any::<bool>(),
            prop::option::of(1..40_u64)
        )
            .prop_map(|(topic, capability, given, end)| granted(topic, capability, given, 0, end)),
        topic.prop_map(|topic| Record::GrantsCleared {
            participant: "scout".into(),
            topic: topic.map(str::to_owned),
            at_ms: 0,
        }),
        id.clone().prop_map(token),
        (0..60_u64).prop_map(|at_ms| Record::Expired { at_ms }),
        (0..60_u64, 1..20_u64).prop_map(|(at_ms, ttl)| created("ada", "t", at_ms, at_ms + ttl)),
        (0..60_u64, 0..3_usize).prop_map(|(at_ms, count)| sessions_ended(count, at_ms, at_ms + 20)),
        prop::collection::vec((any::<u64>(), any::<u128>()), 0..4)
            .prop_map(|digests| Record::ProposalsClosed(ClosedProposals { digests })),
        id.clone().prop_map(|byte| Record::AuditKey(SealingKey {
            key: byte.into(),
            created_ms: 0
        })),
        id.prop_map(|name| Record::TokenRevoked {
            name: name.into(),
            at_ms: 0
        }),
    ]
}

proptest! {
    #[test]
    fn compacted_records_rebuild_the_same_state(records in prop::collection::vec(any_record(), 0..60)) {
        let mut before = State::default();
        for (at, record) in records.into_iter().enumerate() {
            let at_ms = at as u64;
            before.apply(&match record {
                Record::GrantChanged(change) => Record::GrantChanged(GrantChange { at_ms, ..change }),
                other => other,
            });
        }
        let written: Vec<Record> = before.records().collect();
        prop_assert_eq!(written.len(), before.len());
        prop_assert_eq!(state(&written), before);
    }
}
