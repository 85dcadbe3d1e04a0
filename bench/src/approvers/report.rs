//! Tables of scores, as Markdown.

use std::collections::BTreeSet;

use super::in_life::LearnedInLife;
use super::synthetic::{POLICY_CHANGES_AT, TOOLS_CHANGE_AT, Twist, twisted};
use super::trace::EvaluatedTrace;
use super::variants::AttackRow;
use super::{ApproverScore, gate, score};

/// The most variants that are printed of those which passed.
const PRINTED_MAX: usize = 20;

/// Prints the tables of a trace: the approvers, and the attacks by row.
pub fn print(trace: &EvaluatedTrace, scores: &[(String, ApproverScore)]) {
    let rejected = trace.calls.iter().filter(|call| !call.is_approved).count();
    let tools: BTreeSet<_> = trace.calls.iter().map(|call| &call.tool).collect();
    println!(
        "\n{}: {} calls of {} tools, {rejected} to be rejected\n",
        trace.name,
        trace.calls.len(),
        tools.len()
    );
    println!(
        "| approver | saved | false | attack variants passed | first at call (day) | rules | questions | saved per question | saved less questions | rules beyond the policy |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, score) in scores {
        println!("| {name} | {} |", cells(score).join(" | "));
    }
    print_attacks(scores);
}

fn cells(score: &ApproverScore) -> Vec<String> {
    let first = score
        .first
        .map(|at| format!("{} ({})", at + 1, score.first_day));
    let saved = score.whole.saved as f64;
    let per_question = match score.questions {
        0 => "-".to_owned(),
        some => format!("{:.1}", saved / some as f64),
    };
    let area = &score.area;
    let beyond = match (area.rules, area.reaching) {
        (0, _) => "-".to_owned(),
        (all, 0) => format!("0 of {all}"),
        (all, some) => format!("{some} of {all}, by {:.1} %", area.worst_percent),
    };
    vec![
        format!("{:.1} %", score.whole.saved_percent()),
        score.whole.wrong.to_string(),
        format!("{} of {}", score.passed.len(), score.tried_variants()),
        first.unwrap_or("-".to_owned()),
        score.rules.to_string(),
        score.questions.to_string(),
        per_question,
        format!("{:.1} %", score.net_percent()),
        beyond,
    ]
}

/// Prints the variants that passed by row, and some of those that passed our rules.
fn print_attacks(scores: &[(String, ApproverScore)]) {
    let names: Vec<&str> = scores.iter().map(|(name, _)| name.as_str()).collect();
    println!(
        "\n| attack, variants passed | tried | {} |",
        names.join(" | ")
    );
    println!("|---|---|{}", "---|".repeat(names.len()));
    for row in AttackRow::ALL {
        let tried = scores.first().and_then(|(_, score)| score.tried.get(&row));
        let passed = scores
            .iter()
            .map(|(_, score)| score.passed_of(row).to_string());
        let passed: Vec<String> = passed.collect();
        println!(
            "| {row} | {} | {} |",
            tried.unwrap_or(&0),
            passed.join(" | ")
        );
    }
    let ours = scores.iter().filter(|(_, score)| score.area.rules > 0);
    for (name, score) in ours {
        for (row, call) in score.passed.iter().take(PRINTED_MAX) {
            println!("passed {name}: {row}: {call}");
        }
    }
}

/// Evaluates our rules, as the gateway runs them, on synthetic traces with reasons beside the arguments, erring reviewers and
/// changes, and prints a table. Returns the aims that they miss.
pub fn print_twists(seed: u64, looks: u64) -> Vec<String> {
    println!("\nsynthetic, seed {seed}, with twists\n");
    println!("| twist | saved | false | saved (false) by fifths of the trace |");
    println!("|---|---|---|---|");
    let mut missed = Vec::new();
    for (name, twist) in twists() {
        let trace = twisted(seed, twist);
        let mut ours = LearnedInLife::looking(looks);
        let score = score(&mut ours, &trace, 0);
        print_twist(&name, &score);
        missed.extend(gate::missed_beside(&score).map(|miss| format!("{name}: {miss}")));
    }
    missed
}

fn print_twist(name: &str, score: &ApproverScore) {
    let parts = score.parts.iter();
    let parts = parts.map(|part| format!("{:.0} % ({})", part.saved_percent(), part.wrong));
    let parts: Vec<String> = parts.collect();
    println!(
        "| {name} | {:.1} % | {} | {} |",
        score.whole.saved_percent(),
        score.whole.wrong,
        parts.join(", "),
    );
}

fn twists() -> Vec<(String, Twist)> {
    let with = |name: String, change: fn(&mut Twist, u64), percent| {
        let mut twist = Twist::default();
        change(&mut twist, percent);
        (name, twist)
    };
    let coin: fn(&mut Twist, u64) = |twist, percent| twist.coin = percent;
    let mistakes: fn(&mut Twist, u64) = |twist, percent| twist.mistakes = percent;
    let mut all = vec![("none".to_owned(), Twist::default())];
    for percent in [1, 5] {
        all.push(with(
            format!("{percent} % rejected at random"),
            coin,
            percent,
        ));
    }
    for percent in [2, 5] {
        let name = format!("the reviewer errs in {percent} %");
        all.push(with(name, mistakes, percent));
    }
    let changes = format!(
        "the policy changes at {POLICY_CHANGES_AT} %, two definitions at {TOOLS_CHANGE_AT} %"
    );
    all.push(with(changes, |twist, _| twist.changes = true, 0));
    all
}
