//! Approvers on traces of calls, side by side: the learner of rules, and what others have in its
//! place. `rules` prints prompts saved, false approvals, attack variants that pass, and questions, and
//! fails where our rules miss their aims.
//!
//! A trace has calls alone. What its approver would want is a hidden policy on tool and arguments
//! that we wrote before any run; each approver sees a decision of it only where it asks.

pub mod airline;
pub mod area;
pub mod bfcl;
pub mod gate;
pub mod in_life;
pub mod learned;
pub mod literal;
pub mod plain;
pub mod report;
pub mod synthetic;
pub mod trace;
pub mod tree;
pub mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rules::CallRule;

use crate::flags::Flags;
use area::{AREA_CALLS, RuleArea, area_outside};
use in_life::{LOOKS_A_DAY, LearnedInLife};
use learned::LearnedAtOnce;
use plain::{ExactRepeat, PrefixRule, ToolButton};
use trace::{BEGUN_MS, DAY_MS, EvaluatedTrace, TRACE_DAYS, TracedCall};
use tree::DecisionTree;
use variants::{AttackRow, AttackVariant};

/// The latest approved calls, each once, whose variants are tried.
const VARIED_CALLS: usize = 150;
/// The parts of a trace that are scored apart.
pub const TRACE_PARTS: usize = 5;

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
    /// The rules that its author has accepted, if it has rules on arguments.
    fn accepted(&self) -> &[CallRule] {
        &[]
    }
}

/// The score of an approver on one part of a trace.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PartScore {
    /// Calls.
    pub calls: usize,
    /// Calls that were approved without a prompt.
    pub saved: usize,
    /// Calls that were approved without a prompt and that the hidden policy rejects.
    pub wrong: usize,
}

/// The score of an approver on a trace.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ApproverScore {
    /// The whole trace.
    pub whole: PartScore,
    /// Its parts, which are equally long.
    pub parts: [PartScore; TRACE_PARTS],
    /// The place of the first call that was saved.
    pub first: Option<usize>,
    /// The day of that call, from 0.
    pub first_day: u64,
    /// Hostile variants that were tried at the end, by row.
    pub tried: BTreeMap<AttackRow, usize>,
    /// Variants that it would have approved.
    pub passed: Vec<(AttackRow, String)>,
    /// Rules at the end.
    pub rules: usize,
    /// Questions to the author.
    pub questions: usize,
    /// Rules that the author accepted, beside the hidden policy.
    pub area: RuleArea,
}

impl PartScore {
    fn take(&mut self, call: &TracedCall, by_itself: bool) {
        self.calls += 1;
        self.saved += usize::from(by_itself);
        self.wrong += usize::from(by_itself && !call.is_approved);
    }

    /// The part of the calls that was saved, in percent.
    pub fn saved_percent(&self) -> f64 {
        self.saved as f64 * 100.0 / self.calls.max(1) as f64
    }
}

impl ApproverScore {
    /// The part of the calls that was saved, less one call for each question, in percent.
    pub fn net_percent(&self) -> f64 {
        let net = self.whole.saved as f64 - self.questions as f64;
        net * 100.0 / self.whole.calls.max(1) as f64
    }

    /// The variants of a row that it would have approved.
    pub fn passed_of(&self, row: AttackRow) -> usize {
        self.passed.iter().filter(|(of, _)| *of == row).count()
    }

    /// All variants that were tried.
    pub fn tried_variants(&self) -> usize {
        self.tried.values().sum()
    }
}

/// Runs an approver over a trace, tries variants of what was approved, and draws so many calls inside of
/// each of its rules.
pub fn score(approver: &mut dyn Approver, trace: &EvaluatedTrace, area: usize) -> ApproverScore {
    let mut score = ApproverScore::default();
    for (at, call) in trace.calls.iter().enumerate() {
        let by_itself = approver.approves(call, at);
        approver.take(call, at, by_itself);
        score.whole.take(call, by_itself);
        score.parts[at * TRACE_PARTS / trace.calls.len()].take(call, by_itself);
        if by_itself && score.first.is_none() {
            score.first = Some(at);
            score.first_day = (call.at_ms - BEGUN_MS) / DAY_MS;
        }
    }
    for AttackVariant { row, call } in varied(trace) {
        *score.tried.entry(row).or_default() += 1;
        if approver.approves(&call, trace.calls.len()) {
            let TracedCall {
                tool, arguments, ..
            } = call;
            score.passed.push((row, format!("{tool} {arguments}")));
        }
    }
    score.rules = approver.rules();
    score.questions = approver.questions();
    score.area = area_outside(approver.accepted(), trace.policy, area);
    score
}

/// The variants of the latest approved calls, each of which is taken once.
fn varied(trace: &EvaluatedTrace) -> Vec<AttackVariant> {
    let mut seen = BTreeSet::new();
    let approved = trace.calls.iter().rev().filter(|call| call.is_approved);
    let each = approved.filter(|call| seen.insert((&call.agent, &call.tool, &call.arguments)));
    let calls = each.take(VARIED_CALLS);
    let mut all: Vec<AttackVariant> = calls.flat_map(variants::variants).collect();
    for variant in &mut all {
        variant.call.at_ms = trace.end_ms();
    }
    all
}

/// Our approvers, which have to meet their aims, with an author that looks so many times a day.
pub fn ours(looks: u64) -> Vec<Box<dyn Approver>> {
    vec![
        Box::new(LearnedAtOnce::default()),
        Box::new(LearnedInLife::looking(looks)),
    ]
}

/// The approvers of others.
pub fn others() -> Vec<Box<dyn Approver>> {
    vec![
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
    let days = flags.get("--days", TRACE_DAYS);
    let recorded = [
        airline::airline(&dir.join("tau-bench"), days),
        bfcl::bfcl(&dir.join("gorilla"), days),
    ];
    let mut traces: Vec<EvaluatedTrace> = recorded.into_iter().flatten().collect();
    if traces.len() < 2 {
        eprintln!("not all recorded traces are in {}", dir.display());
    }
    traces.push(synthetic::synthetic(flags.get("--seed", 7)));
    traces
}

/// Evaluates all approvers on all traces, and prints tables for each trace. Returns the aims that our
/// rules miss.
pub fn run(flags: &Flags) -> Vec<String> {
    let area = flags.get("--area", AREA_CALLS);
    let looks = flags.get("--looks", LOOKS_A_DAY);
    let mut missed = Vec::new();
    for trace in traces(flags) {
        let scored = |mut one: Box<dyn Approver>| (one.name(), score(one.as_mut(), &trace, area));
        let ours: Vec<_> = ours(looks).into_iter().map(scored).collect();
        let others: Vec<_> = others().into_iter().map(scored).collect();
        for (name, score) in &ours {
            let misses = gate::missed(score);
            missed.extend(misses.map(|miss| format!("{}, {name}: {miss}", trace.name)));
        }
        let all: Vec<_> = ours.into_iter().chain(others).collect();
        report::print(&trace, &all);
    }
    let seed = flags.get("--seed", 7);
    missed.extend(report::print_twists(seed, looks));
    missed
}

#[cfg(test)]
mod tests;
