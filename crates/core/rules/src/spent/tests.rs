use super::*;
use crate::charge::RULE_CHARGES_MAX;
use crate::window::DAY_MS;

fn charge(version: u32, operation: u128, at_ms: u64) -> RuleCharge {
    RuleCharge {
        rule: format!("r1.{version}").parse().unwrap(),
        operation: OperationId(operation),
        at_ms,
        is_use: true,
        amounts: Vec::new(),
        values: Vec::new(),
        keep_ms: 0,
    }
}

fn spent(events: impl IntoIterator<Item = SpentEvent>) -> Spent {
    let mut spent = Spent::default();
    events.into_iter().for_each(|event| spent.apply(event));
    spent
}

#[test]
fn a_use_counts_once_however_often_it_is_written() {
    let once = charge(1, 7, 5);
    let spent = spent([
        SpentEvent::Charged(once.clone()),
        SpentEvent::Charged(once.clone()),
    ]);
    assert_eq!(spent.uses(&once.rule), 1);
}

#[test]
fn a_decision_that_did_not_count_gives_its_use_back() {
    let (one, two) = (charge(1, 1, 5), charge(1, 2, 6));
    let name = one.rule.clone();
    let returned = SpentEvent::Returned(two.operation);
    let events = [
        SpentEvent::Charged(one),
        SpentEvent::Charged(two),
        returned.clone(),
        returned,
    ];
    assert_eq!(spent(events).uses(&name), 1);
}

#[test]
fn a_new_version_begins_its_budget_and_keeps_its_windows() {
    let (old, new) = (charge(1, 1, 5), charge(2, 2, 6));
    let (old_name, new_name) = (old.rule.clone(), new.rule.clone());
    let spent = spent([old, new, charge(1, 3, 7)].map(SpentEvent::Charged));
    assert_eq!(spent.uses(&new_name), 1);
    assert_eq!(spent.uses(&old_name), u32::MAX, "it does not come back");
    let hour = RuleWindow::parse("1h").unwrap();
    let counted = |without| {
        spent
            .in_window(&new_name.id, hour, 8, OperationId(without))
            .count()
    };
    // A late call of the old version lies in the windows, too.
    assert_eq!((counted(0), counted(2)), (3, 2));
}

#[test]
fn a_rule_that_counts_too_many_calls_is_full() {
    let most = u64::try_from(RULE_CHARGES_MAX).unwrap();
    let charges = |count: u64| {
        (1..=count).map(|at| RuleCharge {
            keep_ms: DAY_MS,
            ..charge(1, u128::from(at), at)
        })
    };
    let rule = charge(1, 1, 1).rule.id;
    let is_full = |count: u64, now_ms: u64| {
        spent(charges(count).map(SpentEvent::Charged)).is_full(&rule, now_ms)
    };
    assert!(!is_full(most, most));
    assert!(is_full(most + 1, most + 1) && is_full(most + 1, DAY_MS));
    assert!(!is_full(most + 1, DAY_MS + 1));
}

fn spotted(version: u32, operation: u128) -> SpentEvent {
    SpentEvent::Spotted {
        rule: charge(version, 1, 1).rule,
        operation: OperationId(operation),
    }
}

fn checked(operation: u128, end: SpotEnd) -> SpentEvent {
    SpentEvent::Checked {
        operation: OperationId(operation),
        end,
    }
}

#[test]
fn a_spot_check_takes_a_draw_and_no_use() {
    let name = charge(1, 1, 1).rule;
    let use_of = SpentEvent::Charged(charge(1, 1, 5));
    let mut drawn = spent([use_of, spotted(1, 2), spotted(1, 2)]);
    assert_eq!((drawn.draws(&name.id), drawn.uses(&name)), (2, 1));
    assert!(drawn.is_left(OperationId(2)) && !drawn.is_left(OperationId(1)));
    assert_eq!(drawn.spot_tally(&name), SpotTally::default());
    drawn.apply(checked(2, SpotEnd::Agreed));
    for late in [
        checked(2, SpotEnd::Disagreed),
        spotted(1, 2),
        checked(1, SpotEnd::Agreed),
    ] {
        drawn.apply(late);
    }
    assert!(!drawn.is_left(OperationId(2)) && drawn.was_checked(&name.id, OperationId(2)));
    let one = SpotTally {
        decided: 1,
        agreed: 1,
    };
    assert_eq!(drawn.spot_tally(&name), one);
    // The next version has a tally of its own, and the draws go on.
    drawn.apply(spotted(1, 3));
    drawn.apply(SpentEvent::Charged(charge(2, 4, 6)));
    drawn.apply(checked(3, SpotEnd::Disagreed));
    let next = charge(2, 1, 1).rule;
    assert_eq!(
        (drawn.spot_tally(&next), drawn.draws(&name.id)),
        (SpotTally::default(), 4)
    );
}

#[test]
fn a_spot_check_without_a_decision_is_owed() {
    let name = charge(1, 1, 1).rule;
    let seed = (0..)
        .map(|seed| [seed; 32])
        .find(|seed| !(0..4).any(|draw| is_spot_check(seed, &name.id, draw)))
        .unwrap();
    let mut drawn = spent([spotted(1, 2), checked(2, SpotEnd::Undecided)]);
    for operation in 3..9 {
        assert!(drawn.leaves_next(&seed, &name.id));
        drawn.apply(spotted(1, operation));
        // While it waits, others are used.
        assert!(!drawn.leaves_next(&seed, &name.id));
        assert_eq!(drawn.draws(&name.id), 1);
        drawn.apply(checked(operation, SpotEnd::Undecided));
    }
    assert_eq!(drawn.spot_tally(&name), SpotTally::default());
}

#[test]
fn what_a_journal_carries_folds_to_the_same() {
    let uses = (1..=12)
        .map(|at| SpentEvent::Charged(charge(1, at, 5 + u64::try_from(at).unwrap() * DAY_MS)));
    let ends = (1..=12).map(|at| SpentEvent::Ended {
        operation: OperationId(at),
        failed: at % 3 == 0,
    });
    let more = [
        SpentEvent::Charged(charge(2, 20, 30 * DAY_MS)),
        spotted(2, 21),
        checked(21, SpotEnd::Disagreed),
        spotted(2, 22),
        checked(22, SpotEnd::Undecided),
        spotted(2, 23),
        spotted(2, 24),
        checked(24, SpotEnd::Undecided),
        SpentEvent::Returned(OperationId(20)),
    ];
    let whole = spent(uses.chain(ends).chain(more));
    let carried = spent(whole.carried());
    assert_eq!(carried, whole);
    assert_eq!(carried.uses(&charge(1, 1, 1).rule), u32::MAX);
}

#[test]
fn charges_that_no_guard_needs_make_way_without_another_use() {
    let kept_long = RuleCharge {
        keep_ms: 3 * DAY_MS,
        ..charge(1, 2, 5)
    };
    let other: RuleName = "r2.1".parse().unwrap();
    let of_other = RuleCharge {
        rule: other.clone(),
        ..kept_long
    };
    let mut spent = spent([charge(1, 1, 5), of_other].map(SpentEvent::Charged));
    let mut charges_after = |now_ms| {
        spent.drop_old(now_ms);
        spent.carried_len() - spent.rules.len()
    };
    assert_eq!(charges_after(5 + DAY_MS), 2);
    assert_eq!(charges_after(6 + DAY_MS), 1);
    assert_eq!(charges_after(6 + 3 * DAY_MS), 0);
    assert_eq!(
        (spent.uses(&charge(1, 1, 5).rule), spent.uses(&other)),
        (1, 1)
    );
    // A clock that is set back does not make room in their windows.
    assert_eq!(spent.not_before(7), 6 + 3 * DAY_MS);
}

#[test]
fn the_latest_time_is_a_floor() {
    let spent = spent([SpentEvent::Charged(charge(1, 1, 50))]);
    assert_eq!((spent.not_before(49), spent.not_before(51)), (50, 51));
}

#[test]
fn the_last_outcomes_are_kept() {
    let uses = (1..=12).map(|at| SpentEvent::Charged(charge(1, at, 5)));
    let ends = (1..=12).map(|at| SpentEvent::Ended {
        operation: OperationId(at),
        failed: at < 5,
    });
    let rule = charge(1, 1, 1).rule;
    // The first two of the four failures made way.
    assert_eq!(spent(uses.chain(ends)).failures(&rule), 2);
}

#[test]
fn failures_are_those_of_one_version() {
    let failed = |operation| SpentEvent::Ended {
        operation: OperationId(operation),
        failed: true,
    };
    let [first, next] = [1, 2].map(|version| charge(version, 1, 1).rule);
    let uses = [charge(1, 1, 5), charge(1, 2, 5)].map(SpentEvent::Charged);
    let mut spent = spent(uses.into_iter().chain([failed(1)]));
    // The next version was not used yet.
    assert_eq!((spent.failures(&first), spent.failures(&next)), (1, 0));
    spent.apply(SpentEvent::Charged(charge(2, 3, 6)));
    // The end of a call that the version before has approved.
    spent.apply(failed(2));
    assert_eq!((spent.failures(&first), spent.failures(&next)), (0, 0));
    spent.apply(failed(3));
    assert_eq!(spent.failures(&next), 1);
}

#[test]
fn answered_calls_make_way_at_their_limit_those_of_the_proposer_with_most_first() {
    let answered = |operation: u128, proposer: &str| AnsweredCall {
        operation: OperationId(operation),
        proposer: ParticipantId::new(proposer).unwrap(),
        to: ParticipantId::new("bank").unwrap(),
        method: "tools/call".into(),
        target: "get".into(),
        values: Vec::new(),
        at_ms: 1,
    };
    let one = |operation| SpentEvent::Answered(answered(operation, "scout"));
    assert_eq!(spent([1, 2, 2].map(one)).answered.len(), 2);
    let mut full = spent([SpentEvent::Answered(answered(1, "dave"))]);
    let most = u128::try_from(ANSWERED_CALLS_MAX).unwrap();
    for operation in 2..=most {
        let call = answered(operation, "scout");
        full.answered.push("scout", 1, call);
    }
    full.apply(one(most + 1));
    let kept: Vec<u128> = full.answered.iter().map(|call| call.operation.0).collect();
    assert_eq!(kept.len(), ANSWERED_CALLS_MAX);
    assert_eq!(kept[..2], [1, 3]);
}
