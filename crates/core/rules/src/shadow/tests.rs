use crate::fixture::{NOON_MS, approving, participant};
use crate::{
    Arguments, CallStage, RuleSet, RuledCall, ShadowedCall, Spent, SpentEvent, parse_rules,
};
use model::KindRef;

use super::*;

const UP_TO_100: &str = "\"/amount\" = { integer = [1, 100] }";

fn shadow(rule: CallRule) -> CallRule {
    CallRule {
        shadow: true,
        ..rule
    }
}

fn tightening(id: &str, decision: &str, more: &str) -> CallRule {
    let text = format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"{decision}\"\nshadow = true\n\
         kind = \"mcp/request:tools/call:t\"\nproposers = [\"scout\"]\n{more}\n"
    );
    parse_rules(&text).unwrap().remove(0)
}

/// A call of scout's with this amount.
fn of_amount<T>(operation: u128, amount: u64, use_it: impl FnOnce(&RuledCall<'_>) -> T) -> T {
    let arguments = Arguments::read(format!("{{\"amount\":{amount}}}").as_bytes());
    let digest = Some(model::Digest([0xAB; 32]));
    use_it(&RuledCall {
        operation: OperationId(operation),
        proposer: &participant("scout"),
        to: &participant("s"),
        kind: KindRef::parse("mcp/request:tools/call:t").unwrap(),
        arguments: arguments.as_ref(),
        beside: &[],
        definition: digest,
        server: digest,
        at_ms: NOON_MS,
    })
}

/// The looks at a proposal, as pairs of a rule and whether it would decide.
fn looks(set: &RuleSet, spent: &Spent, amount: u64) -> Vec<(String, bool)> {
    of_amount(1, amount, |call| {
        let looks = set.shadows(call, spent, CallStage::Proposed);
        let pair = |look: &ShadowLook<'_>| (look.rule.name.to_string(), look.decides);
        looks.iter().map(pair).collect()
    })
}

#[test]
fn a_rule_in_shadow_decides_nothing_and_would_decide_as_if_it_were_in_force() {
    let rule = approving("r1", "scout", UP_TO_100);
    let spent = Spent::default();
    let awake = RuleSet::new([rule.clone()]).unwrap();
    let asleep = RuleSet::new([shadow(rule)]).unwrap();
    assert!(asleep.has_shadows() && !awake.has_shadows());
    for (amount, decides) in [(100, true), (101, false)] {
        of_amount(1, amount, |call| {
            let decide = |set: &RuleSet| set.decide(call, &spent, CallStage::Proposed).is_some();
            assert_eq!((decide(&awake), decide(&asleep)), (decides, false));
        });
        assert_eq!(
            looks(&asleep, &spent, amount),
            [("r1.1".to_owned(), decides)]
        );
        assert!(looks(&awake, &spent, amount).is_empty());
    }
}

#[test]
fn a_rule_in_shadow_has_the_place_that_it_would_have_among_those_in_force() {
    let earlier = CallRule {
        expires_ms: Some(NOON_MS + 60_000),
        ..approving("r2", "scout", UP_TO_100)
    };
    let later = approving("r1", "scout", UP_TO_100);
    let spent = Spent::default();
    for (asleep, awake, decides) in [(&earlier, &later, true), (&later, &earlier, false)] {
        let set = RuleSet::new([shadow(asleep.clone()), awake.clone()]).unwrap();
        let expected = [(asleep.name.to_string(), decides)];
        assert_eq!(looks(&set, &spent, 7), expected);
        // The one in force decides all the same.
        let decided = of_amount(1, 7, |call| {
            let answer = set.decide(call, &spent, CallStage::Proposed);
            answer.map(|answer| answer.name().to_string())
        });
        assert_eq!(decided, Some(awake.name.to_string()));
    }
}

#[test]
fn rules_in_shadow_tighten_nothing_and_are_asked_about_direct_calls() {
    let asking = tightening(
        "r1",
        "ask",
        "[rule.when]\n\"/amount\" = { integer = [101, 999] }",
    );
    let set = RuleSet::new([asking.clone(), shadow(approving("r2", "scout", UP_TO_100))]).unwrap();
    let kind = KindRef::parse("mcp/request:tools/call:t").unwrap();
    assert!(!set.tightens() && !set.tightens_kind(kind));
    assert!(set.looks_at_direct() && set.shadows_direct(kind));
    assert!(!set.shadows_direct(KindRef::parse("mcp/request:tools/call:u").unwrap()));
    of_amount(1, 200, |call| {
        let spent = Spent::default();
        assert_eq!(set.decide(call, &spent, CallStage::Direct), None);
        let [look] = set
            .shadows(call, &spent, CallStage::Direct)
            .try_into()
            .unwrap();
        assert_eq!((look.rule, look.decides), (&asking, true));
        assert_eq!(look.charge(call, &spent), None, "it has no budget");
    });
    let approving = RuleSet::new([shadow(approving("r2", "scout", UP_TO_100))]).unwrap();
    assert!(!approving.looks_at_direct());
}

#[test]
fn a_rule_in_shadow_counts_what_runs_and_those_in_force_do_not_count_for_it() {
    let asking = tightening("r1", "ask", "rate = \"2/h\"");
    let set = RuleSet::new([asking.clone()]).unwrap();
    let mut spent = Spent::default();
    let mut would = Vec::new();
    for operation in 1..5 {
        of_amount(operation, 7, |call| {
            assert_eq!(set.charges(call, &spent, None), []);
            let looks = set.shadows(call, &spent, CallStage::Direct);
            would.push(looks[0].decides);
            for charge in set.shadow_charges(call, &spent) {
                spent.apply(SpentEvent::Charged(charge));
            }
        });
    }
    assert_eq!(would, [false, false, true, true]);
}

fn looked(operation: u128, version: u32, decision: Option<RuleDecision>) -> SpentEvent {
    SpentEvent::Shadowed(ShadowedCall {
        rule: format!("r1.{version}").parse().unwrap(),
        operation: OperationId(operation),
        stage: CallStage::Proposed,
        decision,
    })
}

fn ended(operation: u128, end: ShadowEnd) -> SpentEvent {
    SpentEvent::ShadowEnded {
        operation: OperationId(operation),
        end,
    }
}

#[test]
fn looks_are_counted_once_by_what_became_of_the_proposal() {
    let approve = Some(RuleDecision::Approve);
    let ends = ShadowEnd::ALL.into_iter().zip(1..);
    let mut events = vec![
        looked(8, 1, None),
        looked(9, 1, None),
        looked(9, 1, approve),
    ];
    events.extend([looked(9, 1, None), ended(8, ShadowEnd::Approved)]);
    for (end, operation) in ends {
        events.extend([looked(operation, 1, approve), ended(operation, end)]);
    }
    let mut spent = Spent::default();
    // A journal may have each twice.
    for event in events.iter().chain(&events) {
        spent.apply(event.clone());
    }
    let name = "r1.1".parse().unwrap();
    let tally = spent.shadow_tally(&name);
    let expected = ShadowTally {
        proposals: 7,
        waiting: 1,
        approved: 1,
        edited: 1,
        rejected: 1,
        by_rules: 1,
        undecided: 1,
        ..ShadowTally::default()
    };
    assert_eq!(tally, expected);
    assert_eq!(
        tally.words(RuleDecision::Approve),
        "would have answered 6 of 7 proposals, 2 of them otherwise than people, 1 that rules decided, 1 that were left undecided"
    );
    assert_eq!(tally.otherwise(RuleDecision::Reject), 2);
    assert!(spent.is_shadowed(OperationId(9)) && !spent.is_shadowed(OperationId(1)));
    let of = spent.shadows_of(OperationId(1));
    assert_eq!(
        (&of[0].rule, of[0].decision),
        (&name, RuleDecision::Approve)
    );
    assert!(spent.shadows_of(OperationId(8)).is_empty());
    let mut carried = Spent::default();
    spent
        .carried()
        .into_iter()
        .for_each(|event| carried.apply(event));
    assert_eq!(carried, spent);
    // The next version begins anew, and the end of what the one before looked at is not its own.
    spent.apply(looked(10, 2, None));
    spent.apply(ended(9, ShadowEnd::Rejected));
    let next = spent.shadow_tally(&"r1.2".parse().unwrap());
    assert_eq!((next.proposals, next.rejected), (1, 0));
    assert_eq!(spent.shadow_tally(&name), ShadowTally::default());
}

#[test]
fn no_more_ends_are_remembered_than_are_kept() {
    let mut looks = ShadowLooks::default();
    let mark = ShadowMark {
        version: 1,
        decision: Some(RuleDecision::Ask),
    };
    let most = u128::try_from(SHADOWS_KEPT).unwrap();
    for operation in 0..=most {
        looks.run(OperationId(operation), mark, 1);
    }
    assert_eq!(looks.ended.len(), SHADOWS_KEPT);
    assert_eq!(looks.mark(OperationId(0)), None);
    assert_eq!(looks.tally(1).held, u32::try_from(most).unwrap() + 1);
    assert_eq!(
        looks.tally(1).words(RuleDecision::Ask),
        "would have left 0 of 0 proposals to people, would have held 129 calls that ran"
    );
}

#[test]
fn the_ends_read_as_they_are_written() {
    for end in ShadowEnd::ALL {
        assert_eq!(end.to_string().parse(), Ok(end));
    }
    assert_eq!("agreed".parse::<ShadowEnd>(), Err(NoShadowEnd));
}
