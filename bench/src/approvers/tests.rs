//! The learner on synthetic traces, beside what others have, with the aims of the bench.

use super::*;
use synthetic::{Twist, synthetic, twisted};

/// Calls that are drawn inside of each rule: fewer than the bench draws.
const AREA: usize = 100;

#[test]
fn rules_save_prompts_and_approve_nothing_false() {
    // With fewer looks than in the bench: each of them learns anew.
    evaluate(7, ours(1));
}

#[test]
fn rules_save_prompts_and_approve_nothing_false_on_another_trace() {
    evaluate(2026, vec![Box::new(LearnedAtOnce::default())]);
}

/// The name of the folder with copies of the repositories that have the recorded traces.
const TRACES: &str = "RULES_TRACES";

/// The gate of a release. Nothing is fetched: a run without the traces has the synthetic ones alone.
#[test]
fn rules_meet_their_aims_on_the_recorded_traces() {
    let Some(dir) = std::env::var_os(TRACES) else {
        eprintln!("no recorded traces: {TRACES} names no folder");
        return;
    };
    let dir = Path::new(&dir);
    let recorded = [
        airline::airline(&dir.join("tau-bench"), TRACE_DAYS),
        bfcl::bfcl(&dir.join("gorilla"), TRACE_DAYS),
    ];
    for trace in recorded {
        let trace = trace.expect("a folder of recorded traces has both");
        for mut one in ours(LOOKS_A_DAY) {
            let score = score(one.as_mut(), &trace, AREA);
            let missed: Vec<String> = gate::missed(&score).collect();
            assert!(
                missed.is_empty(),
                "{}, {}: {missed:?}",
                trace.name,
                one.name()
            );
            assert!(score.tried_variants() > 0, "{}", trace.name);
        }
    }
}

/// Learns on the trace of a seed, and compares with the others.
fn evaluate(seed: u64, ours: Vec<Box<dyn Approver>>) {
    let trace = synthetic(seed);
    let mut saved = 0;
    for mut one in ours {
        let ours = score(one.as_mut(), &trace, AREA);
        let missed: Vec<String> = gate::missed(&ours).collect();
        assert!(missed.is_empty(), "{seed}, {}: {missed:?}", one.name());
        assert!(ours.tried_variants() > 1_000, "{seed}");
        assert!(
            ours.area.rules > 0 && ours.area.reaching == 0,
            "{seed}: {:?}",
            ours.area
        );
        saved = saved.max(ours.whole.saved);
    }
    // What the others approve is false, or less.
    let button = score(&mut ToolButton::default(), &trace, 0);
    assert!(button.whole.wrong > 100 && !button.passed.is_empty());
    let prefix = score(&mut PrefixRule::default(), &trace, 0);
    assert!(prefix.whole.wrong > 0 && !prefix.passed.is_empty());
    let tree = score(&mut DecisionTree::default(), &trace, 0);
    assert!(tree.whole.wrong > 0 && !tree.passed.is_empty());
    let repeat = score(&mut ExactRepeat::after(3), &trace, 0);
    assert!(repeat.whole.saved < saved && repeat.whole.wrong == 0);
}

#[test]
fn a_reason_beside_the_arguments_is_bounded_by_quarantine_and_budgets() {
    // One of a hundred calls is rejected for no reason that arguments show.
    let twist = Twist {
        coin: 1,
        ..Twist::default()
    };
    let trace = twisted(7, twist);
    let ours = score(&mut LearnedInLife::looking(1), &trace, 0);
    assert_eq!(gate::missed_beside(&ours), None, "{ours:?}");
}
