//! Approvers on traces of calls, side by side: the learner of rules, and what others have in its
//! place. `rules` prints prompts saved, false approvals, attack variants that pass, and questions.
//!
//! A trace has calls alone. What its approver would want is a hidden policy on tool and arguments
//! that we wrote before any run; each approver sees a decision of it only where it asks.

pub mod airline;
pub mod bfcl;
pub mod in_life;
pub mod learned;
pub mod literal;
pub mod plain;
pub mod synthetic;
pub mod trace;
pub mod tree;
pub mod variants;

use std::collections::BTreeSet;
use std::path::Path;

use crate::flags::Flags;
use in_life::LearnedInLife;
use learned::LearnedAtOnce;
use plain::{ExactRepeat, PrefixRule, ToolButton};
use trace::{EvaluatedTrace, TracedCall};
use tree::DecisionTree;

/// The latest approved calls, each once, whose variants are tried.
const VARIED_CALLS: usize = 150;

/// A way to approve calls by itself.
pub trait Approver {
    /// Its name in tables.
    fn name(&self) -> String;
    /// Whether it would approve the call at this place of the trace by itself.
    fn approves(&self, call: &TracedCall, at: usize) -> bool;
    /// Takes a call: one that it approved by itself, or one that was decided by hand.
    fn take(&mut self, call: &TracedCall, at: usize, by_itself: bool);
    /// Rules, buttons or leaves that approve at the end.
    fn rules(&self) -> usize;
    /// Questions to its author beside the prompts.
    fn questions(&self) -> usize;
}

/// The score of an approver on a trace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ApproverScore {
    /// Calls.
    pub calls: usize,
    /// Calls that were approved without a prompt.
    pub saved: usize,
    /// Those among them that the hidden policy rejects.
    pub wrong: usize,
    /// The place of the first call that was saved.
    pub first: Option<usize>,
    /// Hostile variants that were tried at the end.
    pub tried: usize,
    /// Those that would have been approved.
    pub passed: Vec<String>,
    /// Rules at the end.
    pub rules: usize,
    /// Questions to the author.
    pub questions: usize,
}

impl ApproverScore {
    /// The part of the calls that was saved, in percent.
    pub fn saved_percent(&self) -> f64 {
        self.saved as f64 * 100.0 / self.calls.max(1) as f64
    }

    /// The same less the questions.
    pub fn net_percent(&self) -> f64 {
        (self.saved as f64 - self.questions as f64) * 100.0 / self.calls.max(1) as f64
    }
}

/// Runs an approver over a trace, and then tries variants of what was approved.
pub fn score(approver: &mut dyn Approver, trace: &EvaluatedTrace) -> ApproverScore {
    let mut score = ApproverScore {
        calls: trace.calls.len(),
        ..ApproverScore::default()
    };
    for (at, call) in trace.calls.iter().enumerate() {
        let by_itself = approver.approves(call, at);
        approver.take(call, at, by_itself);
        if by_itself {
            score.saved += 1;
            score.wrong += usize::from(!call.is_approved);
            score.first.get_or_insert(at);
        }
    }
    for variant in varied(trace) {
        score.tried += 1;
        if approver.approves(&variant, trace.calls.len()) {
            let TracedCall {
                tool, arguments, ..
            } = variant;
            score.passed.push(format!("{tool} {arguments}"));
        }
    }
    score.rules = approver.rules();
    score.questions = approver.questions();
    score
}

/// The variants of the latest approved calls, each of which is taken once.
fn varied(trace: &EvaluatedTrace) -> Vec<TracedCall> {
    let mut seen = BTreeSet::new();
    let approved = trace.calls.iter().rev().filter(|call| call.is_approved);
    let each = approved.filter(|call| seen.insert((&call.agent, &call.tool, &call.arguments)));
    let calls = each.take(VARIED_CALLS);
    calls.flat_map(variants::variants).collect()
}

/// All approvers, ours first.
pub fn approvers() -> Vec<Box<dyn Approver>> {
    vec![
        Box::new(LearnedAtOnce::default()),
        Box::new(LearnedInLife::default()),
        Box::new(ToolButton::default()),
        Box::new(PrefixRule::default()),
        Box::new(ExactRepeat::after(1)),
        Box::new(ExactRepeat::after(3)),
        Box::new(DecisionTree::default()),
    ]
}

/// The traces that are there: recorded ones in copies of their repositories, and a synthetic one.
fn traces(flags: &Flags) -> Vec<EvaluatedTrace> {
    let dir = std::env::var("RULES_TRACES").unwrap_or_default();
    let dir = Path::new(flags.text("--traces", &dir)).to_owned();
    let recorded = [
        airline::airline(&dir.join("tau-bench")),
        bfcl::bfcl(&dir.join("gorilla")),
    ];
    let mut traces: Vec<EvaluatedTrace> = recorded.into_iter().flatten().collect();
    if traces.len() < 2 {
        eprintln!("not all recorded traces are in {}", dir.display());
    }
    traces.push(synthetic::synthetic(flags.get("--seed", 7)));
    traces
}

/// Evaluates all approvers on all traces, and prints a table for each trace.
pub fn run(flags: &Flags) {
    for trace in traces(flags) {
        print(&trace);
    }
}

fn print(trace: &EvaluatedTrace) {
    let rejected = trace.calls.iter().filter(|call| !call.is_approved).count();
    let tools: BTreeSet<_> = trace.calls.iter().map(|call| &call.tool).collect();
    println!(
        "\n{}: {} calls of {} tools, {rejected} to be rejected\n",
        trace.name,
        trace.calls.len(),
        tools.len()
    );
    println!(
        "| approver | saved | false | attack variants passed | first at call | rules | questions | saved less questions |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for mut approver in approvers() {
        let score = score(approver.as_mut(), trace);
        println!(
            "| {} | {:.1} % | {} | {} of {} | {} | {} | {} | {:.1} % |",
            approver.name(),
            score.saved_percent(),
            score.wrong,
            score.passed.len(),
            score.tried,
            score
                .first
                .map_or("-".to_owned(), |at| (at + 1).to_string()),
            score.rules,
            score.questions,
            score.net_percent(),
        );
    }
}

#[cfg(test)]
mod tests;
