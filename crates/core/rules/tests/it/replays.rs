//! The largest trial: as many rules of one tool as there may be, on as many decisions as are kept.

use model::OperationId;
use rules::{
    Arguments, EVIDENCE_MAX, EVIDENCE_MS, PastCall, PastVerdict, ReplayStanding, RuleSet,
    RuledTool, TOOL_RULES_MAX, replay,
};

use crate::support::{DIGEST, NOON_MS, participant};

/// A rule for one amount in so many, twelve times an hour.
fn rule(at: usize) -> String {
    format!(
        "[[rule]]\nid = \"r{at}\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"2026-12-06T09:00:00Z\"\n\
         uses = 10000\nrate = \"12/h\"\nsum = [{{ of = \"/amount\", max = 100000, within = \"1d\" }}]\n\
         [rule.when]\n\"/amount\" = {{ equals = {at} }}\n\"/to\" = {{ one_of = [\"acme\", \"bolt\"] }}\n"
    )
}

#[test]
fn all_rules_of_a_tool_are_tried_on_all_decisions_that_are_kept() {
    let text: String = (0..TOOL_RULES_MAX).map(rule).collect();
    let rules = RuleSet::parse(&text).unwrap();
    let step_ms = EVIDENCE_MS / u64::try_from(EVIDENCE_MAX).unwrap();
    let past = (0..EVIDENCE_MAX).map(|at| PastCall {
        operation: OperationId(u128::try_from(at).unwrap()),
        at_ms: NOON_MS - EVIDENCE_MS + u64::try_from(at).unwrap() * step_ms,
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(DIGEST),
        server: Some(DIGEST),
        proposer: participant("scout"),
        arguments: Arguments::read(
            format!(
                "{{\"amount\":{},\"to\":\"acme\"}}",
                at % (2 * TOOL_RULES_MAX)
            )
            .as_bytes(),
        ),
        has_more: false,
        verdict: PastVerdict::Approved,
        succeeded: true,
    });
    let found = replay(&rules, past);
    assert_eq!(usize::try_from(found.proposals).unwrap(), EVIDENCE_MAX);
    let whole_rounds = EVIDENCE_MAX / (2 * TOOL_RULES_MAX) * TOOL_RULES_MAX;
    let rest = (EVIDENCE_MAX % (2 * TOOL_RULES_MAX)).min(TOOL_RULES_MAX);
    assert_eq!(found.count(ReplayStanding::Agrees), whole_rounds + rest);
}
