//! The learner on synthetic traces, beside what others have.

use super::*;
use synthetic::{synthetic, synthetic_with_coin};

#[test]
fn rules_save_prompts_and_approve_nothing_false() {
    evaluate(7);
}

#[test]
fn rules_save_prompts_and_approve_nothing_false_on_another_trace() {
    evaluate(2026);
}

/// Learns on the trace of a seed, and compares with the others.
fn evaluate(seed: u64) {
    let trace = synthetic(seed);
    let ours = score(&mut LearnedAtOnce::default(), &trace);
    assert_eq!((ours.wrong, &ours.passed[..]), (0, &[][..]), "{seed}");
    assert!(ours.saved_percent() >= 50.0, "{seed}: {ours:?}");
    assert!(ours.tried > 1_000 && ours.questions < 160, "{ours:?}");
    // What the others approve is false, or less.
    let button = score(&mut ToolButton::default(), &trace);
    assert!(button.wrong > 100 && !button.passed.is_empty());
    let prefix = score(&mut PrefixRule::default(), &trace);
    assert!(prefix.wrong > 0 && !prefix.passed.is_empty());
    let tree = score(&mut DecisionTree::default(), &trace);
    assert!(tree.wrong > 0 && !tree.passed.is_empty());
    let repeat = score(&mut ExactRepeat::after(3), &trace);
    assert!(repeat.saved < ours.saved && repeat.wrong == 0);
}

#[test]
fn a_coin_beside_the_arguments_is_bounded_by_quarantine_and_budgets() {
    let trace = synthetic_with_coin(99, 5);
    let ours = score(&mut LearnedAtOnce::with_budgets(), &trace);
    // Five of a hundred calls are rejected for no reason that arguments show.
    assert!(
        ours.wrong * 100 < ours.calls && ours.wrong * 10 < ours.saved,
        "{ours:?}"
    );
}
