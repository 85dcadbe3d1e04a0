//! A replay beside the rules themselves when the same calls come again, one by one, as the contract of
//! the crate says: suspended first, then decided, charged, answered.

use std::collections::BTreeMap;

use model::OperationId;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rules::{
    Arguments, CallStage, PastCall, PastVerdict, RejectReason, RuleDecision, RuleName, RuleSet,
    RuledCall, RuledTool, Spent, SpentEvent, Surrounding, SuspendCause, ToolTraits, replay,
    suspends,
};

use crate::support::{DIGEST, NOON_MS, OwnedCall, participant};

const MINUTE_MS: u64 = 60_000;

/// A rule about payments.
#[derive(Debug, Clone)]
struct Drawn {
    decision: RuleDecision,
    amounts: (i64, i64),
    receivers: Vec<&'static str>,
    uses: u32,
    /// Its end, in hours from noon.
    hours: u64,
    during: Option<&'static str>,
    rate: Option<u32>,
    sum: Option<u32>,
    count: Option<u32>,
    is_after: bool,
}

impl Drawn {
    fn text(&self, at: usize) -> String {
        let mut text = format!(
            "[[rule]]\nid = \"r{at}\"\nauthor = \"ann\"\ndecision = \"{}\"\n\
             kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\n",
            self.decision.as_str()
        );
        if self.decision == RuleDecision::Approve {
            let end = chrono_end(self.hours);
            text += &format!(
                "proposers = [\"scout\"]\ndefinition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\n\
                 expires = \"{end}\"\nuses = {}\n",
                self.uses
            );
        } else {
            text += "proposers = [\"*\"]\n";
        }
        let mut line = |line: Option<String>| text.extend(line.map(|line| line + "\n"));
        line(self.during.map(|during| format!("during = \"{during}\"")));
        line(self.rate.map(|rate| format!("rate = \"{rate}/h\"")));
        line(
            self.sum
                .map(|max| format!("sum = [{{ of = \"/amount\", max = {max}, within = \"1d\" }}]")),
        );
        line(
            self.count
                .map(|max| format!("count = [{{ same = \"/to\", max = {max}, within = \"5h\" }}]")),
        );
        line(self.is_after.then(|| {
            "after = [{ kind = \"mcp/request:tools/call:look_up\", to = \"bank\", \
             same = { \"/to\" = \"/who\" }, within = \"3h\" }]"
                .to_owned()
        }));
        let (low, high) = self.amounts;
        let receivers = &self.receivers;
        text + &format!(
            "[rule.when]\n\"/amount\" = {{ integer = [{low}, {high}] }}\n\"/to\" = {{ one_of = {receivers:?} }}\n"
        )
    }
}

/// A time so many hours from noon of the 27th of November 2026, as rules write it.
fn chrono_end(hours: u64) -> String {
    let hours = 12 + hours;
    let (day, hour) = (27 + hours / 24, hours % 24);
    match day {
        ..=30 => format!("2026-11-{day}T{hour:02}:00:00Z"),
        _ => format!("2026-12-{:02}T{hour:02}:00:00Z", day - 30),
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let decision = prop_oneof![
        3 => Just(RuleDecision::Approve),
        1 => Just(RuleDecision::Reject),
        1 => Just(RuleDecision::Ask),
    ];
    let amounts = (0..90_i64, 5..100_i64).prop_map(|(low, span)| (low, low + span));
    let receivers = prop::sample::subsequence(&["acme", "bolt", "corp"][..], 1..=3);
    let during = prop::option::weighted(
        0.3,
        prop::sample::select(
            &[
                "Mon-Sun 08:00-18:00 UTC",
                "Fri,Sat 00:00-24:00 UTC",
                "Mon-Fri 06:00-22:00 +02:00",
            ][..],
        ),
    );
    let limits = (1..20_u32, 1..150_u64, during);
    let guards = (
        prop::option::weighted(0.3, 1..4_u32),
        prop::option::weighted(0.3, 20..400_u32),
        prop::option::weighted(0.3, 1..4_u32),
        prop::bool::weighted(0.25),
    );
    (decision, amounts, receivers, limits, guards).prop_map(
        |(decision, amounts, receivers, (uses, hours, during), (rate, sum, count, is_after))| {
            Drawn {
                decision,
                amounts,
                receivers,
                uses,
                hours,
                during,
                rate,
                sum,
                count,
                is_after,
            }
        },
    )
}

fn set(drawn: &[Drawn]) -> RuleSet {
    let text: String = drawn
        .iter()
        .enumerate()
        .map(|(at, one)| one.text(at))
        .collect();
    RuleSet::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A call of the past, so many minutes after the one before.
#[derive(Debug, Clone)]
struct DrawnCall {
    minutes: u64,
    by: &'static str,
    tool: &'static str,
    arguments: String,
    verdict: PastVerdict,
    succeeded: bool,
    has_more: bool,
}

fn call() -> impl Strategy<Value = DrawnCall> {
    let receiver = || prop::sample::select(&["acme", "bolt", "corp", "Acme"][..]);
    let amount = prop_oneof![
        9 => (0..120_i64).prop_map(|amount| amount.to_string()),
        1 => prop::sample::select(&["1e1", "-3", "7.0", "\"7\""][..]).prop_map(str::to_owned),
    ];
    let payment = (amount, receiver())
        .prop_map(|(amount, to)| ("pay", format!("{{\"amount\":{amount},\"to\":\"{to}\"}}")));
    let look_up = receiver().prop_map(|who| ("look_up", format!("{{\"who\":\"{who}\"}}")));
    let verdict = prop_oneof![
        5 => Just(PastVerdict::Approved),
        2 => Just(PastVerdict::Rejected(RejectReason::Unsaid)),
        1 => Just(PastVerdict::Expired),
        1 => Just(PastVerdict::Withdrawn),
        2 => Just(PastVerdict::Direct),
    ];
    let by = prop::sample::select(&["scout", "scout", "scout", "dave"][..]);
    let odds = (prop::bool::weighted(0.9), prop::bool::weighted(0.05));
    (
        0..100_u64,
        by,
        prop_oneof![4 => payment, 1 => look_up],
        verdict,
        odds,
    )
        .prop_map(
            |(minutes, by, (tool, arguments), verdict, (succeeded, has_more))| DrawnCall {
                minutes,
                by,
                tool,
                arguments,
                verdict,
                succeeded,
                has_more,
            },
        )
}

fn past(drawn: &[DrawnCall]) -> Vec<PastCall> {
    let mut at_ms = NOON_MS;
    let mut operation = 0;
    let each = drawn.iter().map(|one| {
        at_ms += one.minutes * MINUTE_MS;
        operation += 1;
        PastCall {
            operation: OperationId(operation),
            at_ms,
            tool: RuledTool {
                to: participant("bank"),
                method: "tools/call".into(),
                target: one.tool.into(),
            },
            definition: Some(DIGEST),
            server: Some(DIGEST),
            proposer: participant(one.by),
            arguments: Arguments::read(one.arguments.as_bytes()),
            has_more: one.has_more,
            verdict: one.verdict,
            succeeded: one.succeeded,
        }
    });
    each.collect()
}

/// A decision of a rule about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decided {
    operation: OperationId,
    rule: RuleName,
    decision: RuleDecision,
}

/// The rules in force, and what they have done since.
struct Again {
    set: RuleSet,
    spent: Spent,
    decided: Vec<Decided>,
    causes: Vec<SuspendCause>,
}

impl Again {
    /// A call comes again. Where no rule decides it, people do as they did.
    fn takes(&mut self, drawn: &DrawnCall, past: &PastCall) {
        let mut call = OwnedCall::new(&drawn.arguments);
        call.operation = past.operation.0;
        call.proposer = past.proposer.clone();
        call.to = past.tool.to.clone();
        call.kind = format!("mcp/request:tools/call:{}", drawn.tool);
        call.beside = drawn
            .has_more
            .then(|| "_meta".to_owned())
            .into_iter()
            .collect();
        call.at_ms = past.at_ms;
        let is_made = matches!(past.verdict, PastVerdict::Approved | PastVerdict::Direct);
        call.with(|call| {
            self.suspend(call);
            let stage = match past.verdict {
                PastVerdict::Direct => CallStage::Direct,
                _ => CallStage::Proposed,
            };
            let answer = self.set.decide(call, &self.spent, stage);
            let decided = answer.map(|answer| Decided {
                operation: past.operation,
                rule: answer.name().clone(),
                decision: answer.decision(),
            });
            self.decided.extend(decided.clone());
            match decided {
                Some(Decided {
                    rule,
                    decision: RuleDecision::Approve,
                    ..
                }) => {
                    self.runs(call, Some(&rule), drawn.succeeded);
                }
                Some(Decided {
                    decision: RuleDecision::Reject,
                    ..
                }) => {}
                _ if is_made => self.runs(call, None, drawn.succeeded),
                _ => {}
            }
        });
    }

    fn suspend(&mut self, call: &RuledCall<'_>) {
        let mut gone = Vec::new();
        for rule in self.set.of_kind(call.kind) {
            let around = Surrounding {
                now_ms: call.at_ms,
                since_ms: NOON_MS,
                definition: call.definition,
                server: call.server,
                author_may: true,
                replaced: None,
                traits: ToolTraits {
                    harmless: true,
                    ..ToolTraits::default()
                },
            };
            if rule.is_between(call.proposer, call.to)
                && let Some(cause) = suspends(rule, &self.spent, &around)
            {
                gone.push(rule.name.clone());
                self.causes.push(cause);
            }
        }
        self.set = self.set.without(&gone);
    }

    fn runs(&mut self, call: &RuledCall<'_>, by: Option<&RuleName>, succeeds: bool) {
        for charge in self.set.charges(call, &self.spent, by) {
            self.spent.apply(SpentEvent::Charged(charge));
        }
        // A result that is an error is an answer, and no failure.
        let operation = call.operation;
        self.spent.apply(SpentEvent::Ended {
            operation,
            failed: false,
        });
        if let Some(answered) = self.set.remembers(call).filter(|_| succeeds) {
            self.spent.apply(SpentEvent::Answered(answered));
        }
        // As after a restart on a journal that was made smaller.
        if operation.0.is_multiple_of(7) {
            let mut kept = Spent::default();
            self.spent
                .carried()
                .into_iter()
                .for_each(|event| kept.apply(event));
            self.spent = kept;
        }
    }
}

fn again(rules: &[Drawn], calls: &[DrawnCall]) -> Again {
    let mut again = Again {
        set: set(rules),
        spent: Spent::default(),
        decided: Vec::new(),
        causes: Vec::new(),
    };
    for (drawn, past) in calls.iter().zip(past(calls)) {
        again.takes(drawn, &past);
    }
    again
}

fn replayed(rules: &[Drawn], calls: &[DrawnCall]) -> Vec<Decided> {
    let found = replay(&set(rules), past(calls));
    let decided = found.decided.into_iter().map(|one| Decided {
        operation: one.operation,
        rule: one.rule,
        decision: one.decision,
    });
    decided.collect()
}

/// Less than the seven days after which an unused rule is suspended.
fn calls() -> impl Strategy<Value = Vec<DrawnCall>> {
    prop::collection::vec(call(), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_says_of_each_call_what_the_rules_do_when_it_comes_again(
        rules in prop::collection::vec(drawn(), 1..6), calls in calls()
    ) {
        prop_assert_eq!(replayed(&rules, &calls), again(&rules, &calls).decided);
    }
}

#[test]
fn the_replayed_rules_decide_in_every_way_and_come_to_their_ends() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..200 {
        let all = (prop::collection::vec(drawn(), 1..6), calls());
        let (rules, calls) = all.new_tree(&mut runner).unwrap().current();
        let again = again(&rules, &calls);
        for one in &again.decided {
            let past = &calls[usize::try_from(one.operation.0).unwrap() - 1];
            let stage = if past.verdict == PastVerdict::Direct {
                "a call"
            } else {
                "a proposal"
            };
            let rule = one.rule.id.to_string()[1..].parse::<usize>().unwrap();
            let rule = &rules[rule];
            let guards = [
                ("during", rule.during.is_some()),
                ("rate", rule.rate.is_some()),
                ("sum", rule.sum.is_some()),
                ("count", rule.count.is_some()),
                ("after", rule.is_after),
            ];
            for (guard, _) in guards.iter().filter(|(_, is_there)| *is_there) {
                *seen
                    .entry(format!("{} with {guard}", one.decision.as_str()))
                    .or_default() += 1;
            }
            *seen
                .entry(format!("{} {stage}", one.decision.as_str()))
                .or_default() += 1;
        }
        for cause in &again.causes {
            *seen.entry(cause.as_str().to_owned()).or_default() += 1;
        }
    }
    let mut expected: Vec<String> = ["approve", "reject", "ask"]
        .iter()
        .flat_map(|decision| {
            ["during", "rate", "sum", "count", "after"]
                .map(|guard| format!("{decision} with {guard}"))
        })
        .collect();
    expected.extend(
        [
            "approve a proposal",
            "reject a proposal",
            "reject a call",
            "ask a proposal",
            "ask a call",
            "budget_spent",
            "expired",
        ]
        .map(str::to_owned),
    );
    let never: Vec<&String> = expected
        .iter()
        .filter(|name| seen.get(*name).is_none_or(|count| *count < 5))
        .collect();
    assert!(never.is_empty(), "never: {never:?} of {seen:#?}");
}
