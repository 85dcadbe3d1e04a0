//! What rules cost: one proposed call before several rules of its tool, and a replay of as many
//! decisions as a topic keeps.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rules::{
    Arguments, CallRule, CallStage, Conditions, EVIDENCE_MAX, LikeCall, LikeTerms, PastCall,
    RuleEvidence, RuleId, RuleName, RuleSet, Spent, TOOL_RULES_MAX, like, replay,
};

use crate::approvers::learned::{AUTHOR, evidence_of, with_ruled};
use crate::approvers::trace::{BEGUN_MS, DAY_MS, DEFINITION, TracedCall, participant};

/// The numbers of rules that are tried.
const RULES: [usize; 3] = [1, 8, TOOL_RULES_MAX];
/// The least time for which one call is judged again and again.
const JUDGED: Duration = Duration::from_millis(300);

/// Prints both tables.
pub fn run() {
    let calls: Vec<TracedCall> = (0..EVIDENCE_MAX).map(call).collect();
    let decisions: Vec<RuleEvidence> = calls
        .iter()
        .enumerate()
        .map(|(at, call)| evidence_of(call, at))
        .collect();
    let past: Vec<PastCall> = decisions.iter().map(PastCall::from).collect();
    println!(
        "| rules of one tool | a call: none matches, us | a call: the last one matches, us | {EVIDENCE_MAX} decisions replayed, ms |"
    );
    println!("|---|---|---|---|");
    for count in RULES {
        let rules = rules_of(&calls, count);
        let missed = judged(&rules, &calls[TOOL_RULES_MAX]);
        let matched = judged(&rules, &calls[count - 1]);
        let begun = Instant::now();
        let replayed = replay(&rules, &past);
        let took = begun.elapsed();
        assert_eq!(replayed.proposals as usize, past.len());
        println!(
            "| {count} | {:.2} | {:.2} | {:.0} |",
            micros(missed),
            micros(matched),
            took.as_secs_f64() * 1_000.0
        );
    }
    println!(
        "\nReading the arguments of a call alone: {:.2} us.",
        micros(read(&calls[0]))
    );
}

/// A payment; the first [`TOOL_RULES_MAX`] are of different receivers.
fn call(at: usize) -> TracedCall {
    let receiver = at % (2 * TOOL_RULES_MAX);
    let arguments = format!(
        r#"{{"amount":{},"currency":"EUR","to":{{"iban":"DE{receiver:020}","name":"Receiver {receiver}"}},"reference":"invoice of the month","urgent":false}}"#,
        at % 500 + 1
    );
    let mut call = TracedCall::new("scout", "bank", "pay", arguments);
    call.at_ms = BEGUN_MS + at as u64 * 60_000;
    call
}

/// Rules that approve the like of the first calls, of any amount, each with a rate and a sum to keep.
fn rules_of(calls: &[TracedCall], count: usize) -> RuleSet {
    let rules = calls[..count].iter().enumerate().map(|(at, call)| {
        let arguments = call.read();
        let tests = rules::parse_conditions(r#""/amount" = { integer = [1, 500] }"#);
        like_rule(call, &arguments, tests.unwrap_or_default(), at)
    });
    RuleSet::new(rules).unwrap_or_else(|error| panic!("{error}"))
}

fn like_rule(call: &TracedCall, arguments: &Arguments, tests: Conditions, at: usize) -> CallRule {
    let like_call = LikeCall {
        tool: call.ruled_tool(),
        definition: DEFINITION,
        server: DEFINITION,
        proposer: &participant(&call.agent),
        arguments,
    };
    let id = RuleId::new(&format!("r{at}")).unwrap_or_else(|error| panic!("{error}"));
    let terms = LikeTerms {
        name: RuleName { id, version: 1 },
        author: participant(AUTHOR),
        expires_ms: BEGUN_MS + 29 * DAY_MS,
        uses: 9_999,
        destructive: false,
        tests,
    };
    like(&like_call, &terms).unwrap_or_else(|error| panic!("{error}"))
}

/// The time that one call takes before rules, its arguments read anew.
fn judged(rules: &RuleSet, call: &TracedCall) -> Duration {
    let spent = Spent::default();
    each(|| {
        with_ruled(call, 0, |ruled| {
            black_box(rules.decide(ruled, &spent, CallStage::Proposed).is_some())
        })
    })
}

fn read(call: &TracedCall) -> Duration {
    each(|| with_ruled(call, 0, |ruled| black_box(ruled.arguments.is_ok())))
}

/// The mean time of an act that is repeated.
fn each(mut act: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    let mut times = 0;
    while begun.elapsed() < JUDGED {
        for _ in 0..100 {
            act();
        }
        times += 100;
    }
    begun.elapsed() / times
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}
