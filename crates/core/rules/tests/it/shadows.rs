//! Rules in shadow beside the same rules out of it: what one would have decided of a day is what it
//! would decide of it, whatever people decide.

use std::collections::BTreeMap;

use model::OperationId;
use proptest::prelude::*;
use rules::{
    CallRule, CallStage, PastCall, PastVerdict, RejectReason, RuleCharge, RuleDecision, RuleSet,
    RuledCall, RuledTool, ShadowedCall, Spent, SpentEvent, replay,
};

use crate::support::{DIGEST, NOON_MS, OwnedCall, participant};

const MINUTE_MS: u64 = 60_000;

/// One rule in shadow.
fn rule(decision: &str) -> CallRule {
    let of_approval = format!(
        "definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"2026-12-06T09:00:00Z\"\nuses = 6\n"
    );
    let more = if decision == "approve" {
        &of_approval
    } else {
        ""
    };
    let text = format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"{decision}\"\nshadow = true\n\
         kind = \"mcp/request:tools/call:create_issue\"\nto = \"github\"\nproposers = [\"scout\"]\n{more}\
         rate = \"5/h\"\nsum = [{{ of = \"/amount\", max = 130, within = \"2h\" }}]\n\
         [rule.when]\n\"/amount\" = {{ integer = [1, 100] }}\n"
    );
    let set = RuleSet::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    set.rules()[0].clone()
}

/// A call or proposal of a day, with what became of it.
#[derive(Debug, Clone)]
struct Happened {
    minutes: u64,
    amount: u64,
    verdict: PastVerdict,
}

fn happened() -> impl Strategy<Value = Happened> {
    let verdict = prop_oneof![
        4 => Just(PastVerdict::Approved),
        2 => Just(PastVerdict::Rejected(RejectReason::Unsaid)),
        1 => Just(PastVerdict::Expired),
        4 => Just(PastVerdict::Direct),
    ];
    let amount = prop::sample::select(&[1_u64, 7, 40, 60, 100, 101][..]);
    (0..40_u64, amount, verdict).prop_map(|(minutes, amount, verdict)| Happened {
        minutes,
        amount,
        verdict,
    })
}

/// A rule in shadow through a day.
struct Shadow {
    set: RuleSet,
    spent: Spent,
    would: BTreeMap<u128, RuleDecision>,
}

impl Shadow {
    fn take(&mut self, call: &RuledCall<'_>, verdict: PastVerdict) {
        let is_direct = verdict == PastVerdict::Direct;
        let stage = if is_direct {
            CallStage::Direct
        } else {
            CallStage::Proposed
        };
        assert!(self.set.decide(call, &self.spent, stage).is_none());
        assert!(self.set.charges(call, &self.spent, None).is_empty());
        let looks = self.set.shadows(call, &self.spent, stage);
        let mut events = Vec::new();
        for look in looks {
            let decision = look.decides.then_some(look.rule.decision);
            self.would.extend(decision.map(|it| (call.operation.0, it)));
            let charge = look.charge(call, &self.spent);
            events.extend(charge.map(SpentEvent::Charged));
            events.push(SpentEvent::Shadowed(ShadowedCall {
                rule: look.rule.name.clone(),
                operation: call.operation,
                stage,
                decision,
            }));
        }
        events.into_iter().for_each(|event| self.spent.apply(event));
        if is_direct || verdict == PastVerdict::Approved {
            let is_rejected = self.would.get(&call.operation.0) == Some(&RuleDecision::Reject);
            let charges = self.set.shadow_charges(call, &self.spent).into_iter();
            let counted: Vec<RuleCharge> = charges.filter(|_| !is_rejected).collect();
            let counted = counted.into_iter().map(SpentEvent::Charged);
            counted.for_each(|charge| self.spent.apply(charge));
        }
    }
}

proptest! {
    #[test]
    fn a_rule_in_shadow_would_decide_what_it_decides_out_of_it(
        decision in prop::sample::select(&["approve", "ask", "reject"][..]),
        day in prop::collection::vec(happened(), 1..60)
    ) {
        let rule = rule(decision);
        let mut shadow = Shadow {
            set: RuleSet::new([rule.clone()]).unwrap(),
            spent: Spent::default(),
            would: BTreeMap::new(),
        };
        let mut past = Vec::new();
        let mut at_ms = NOON_MS;
        for (one, operation) in day.iter().zip(1..) {
            at_ms += one.minutes * MINUTE_MS;
            let mut call = OwnedCall::new(&format!("{{\"amount\":{}}}", one.amount));
            (call.operation, call.at_ms) = (operation, at_ms);
            call.with(|call| {
                shadow.take(call, one.verdict);
                past.push(PastCall {
                    operation: OperationId(operation),
                    at_ms,
                    tool: RuledTool {
                        to: participant("github"),
                        method: "tools/call".into(),
                        target: "create_issue".into(),
                    },
                    definition: Some(DIGEST),
                    server: Some(DIGEST),
                    proposer: participant("scout"),
                    arguments: call.arguments.cloned().map_err(Clone::clone),
                    has_more: false,
                    verdict: one.verdict,
                    succeeded: one.verdict == PastVerdict::Approved,
                });
            });
        }
        let awake = RuleSet::new([rule.awake()]).unwrap();
        let replayed = replay(&awake, &past).decided.into_iter();
        let decided: BTreeMap<u128, RuleDecision> =
            replayed.map(|one| (one.operation.0, one.decision)).collect();
        prop_assert_eq!(&shadow.would, &decided);
        let tally = shadow.spent.shadow_tally(&rule.name);
        let of_proposals = tally.waiting + tally.left;
        let all = of_proposals + tally.held + tally.refused;
        prop_assert_eq!(usize::try_from(all).unwrap(), decided.len());
    }
}
