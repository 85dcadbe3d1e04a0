use super::*;
use crate::evidence::RejectReason;

const NOON_MS: u64 = 1_795_780_800_000;
const DIGEST: Digest = Digest([0xAB; 32]);

fn past(operation: u128, arguments: &str, verdict: PastVerdict) -> PastCall {
    PastCall {
        operation: OperationId(operation),
        at_ms: NOON_MS + u64::try_from(operation).unwrap() * 1000,
        tool: RuledTool {
            to: ParticipantId::new("bank").unwrap(),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(DIGEST),
        server: Some(DIGEST),
        proposer: ParticipantId::new("scout").unwrap(),
        arguments: Arguments::read(arguments.as_bytes()),
        has_more: false,
        verdict,
        succeeded: true,
    }
}

fn set(lines: &str, more: &str) -> RuleSet {
    let head = format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\nkind = \"mcp/request:tools/call:pay\"\n\
         to = \"bank\"\nproposers = [\"scout\"]\ndefinition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\n\
         expires = \"2026-12-06T09:00:00Z\"\n{lines}\n[rule.when]\n\"/amount\" = {{ integer = [1, 100] }}\n{more}"
    );
    RuleSet::parse(&head).unwrap_or_else(|error| panic!("{error}\n{head}"))
}

const REJECTED: PastVerdict = PastVerdict::Rejected(RejectReason::Unsaid);

#[test]
fn a_replay_counts_what_a_rule_would_have_decided() {
    let calls = [
        past(1, r#"{"amount":5}"#, PastVerdict::Approved),
        past(2, r#"{"amount":50}"#, PastVerdict::Approved),
        past(3, r#"{"amount":99}"#, REJECTED),
        past(4, r#"{"amount":100}"#, PastVerdict::Expired),
        past(5, r#"{"amount":101}"#, PastVerdict::Approved),
        past(6, r#"{"amount":300}"#, REJECTED),
        past(7, r#"{"amount":7}"#, PastVerdict::Direct),
    ];
    let found = replay(&set("uses = 33", ""), &calls);
    assert_eq!(
        found.words(),
        "would have answered 4 of 6 proposals, would have contradicted 1, would have decided 1 that were left undecided"
    );
    assert_eq!(found.direct, 1);
    let contradicted = found
        .decided
        .iter()
        .find(|one| one.standing() == ReplayStanding::Contradicts);
    assert_eq!(contradicted.unwrap().operation, OperationId(3));
}

#[test]
fn a_replay_spends_budgets_as_the_past_would_have() {
    let calls: Vec<PastCall> = (1..=9)
        .map(|at| past(at, r#"{"amount":40}"#, PastVerdict::Approved))
        .collect();
    let answered = |set: &RuleSet| replay(set, &calls).count(ReplayStanding::Agrees);
    assert_eq!(answered(&set("uses = 33", "")), 9);
    assert_eq!(answered(&set("uses = 3", "")), 3);
    assert_eq!(answered(&set("uses = 33\nrate = \"5/h\"", "")), 5);
    let sum = "uses = 33\nsum = [{ of = \"/amount\", max = 100, within = \"1d\" }]";
    assert_eq!(answered(&set(sum, "")), 2);
}

#[test]
fn rules_that_tighten_are_replayed_on_direct_calls() {
    let more = "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\nkind = \"mcp/request:tools/call:pay\"\n\
        proposers = [\"*\"]\n[rule.when]\n\"/amount\" = { integer = [500, 999999] }\n\
        [[rule]]\nid = \"r3\"\nauthor = \"ann\"\ndecision = \"ask\"\nkind = \"mcp/request:tools/call:pay\"\n\
        proposers = [\"*\"]\n[rule.when]\n\"/amount\" = { integer = [200, 499] }";
    let calls = [
        past(1, r#"{"amount":50}"#, PastVerdict::Direct),
        past(2, r#"{"amount":250}"#, PastVerdict::Direct),
        past(3, r#"{"amount":500}"#, PastVerdict::Direct),
        past(4, r#"{"amount":5e2}"#, PastVerdict::Direct),
    ];
    let found = replay(&set("uses = 33", more), &calls);
    assert_eq!(
        found.words(),
        "would have answered 0 of 0 proposals, would have contradicted 0, \
         would have refused 2 calls that were made, would have asked about 1 calls that were made"
    );
}

#[test]
fn a_replay_equals_what_the_rules_then_do() {
    // The same calls come again, one by one, and the rules are in force.
    let rules = set(
        "uses = 7\nrate = \"12/h\"\nsum = [{ of = \"/amount\", max = 300, within = \"1d\" }]",
        "",
    );
    let calls: Vec<PastCall> = (1..60_u128)
        .map(|at| {
            let amount = (at * 37) % 120;
            let verdict = if at % 5 == 0 {
                REJECTED
            } else {
                PastVerdict::Approved
            };
            past(at, &format!("{{\"amount\":{amount}}}"), verdict)
        })
        .collect();
    let replayed = replay(&rules, &calls);
    let mut spent = Spent::default();
    let mut decided = Vec::new();
    for past in &calls {
        let call = RuledCall {
            operation: past.operation,
            proposer: &past.proposer,
            to: &past.tool.to,
            kind: KindRef::parse("mcp/request:tools/call:pay").unwrap(),
            arguments: past.arguments.as_ref(),
            beside: &[],
            definition: past.definition,
            server: past.server,
            at_ms: past.at_ms,
        };
        if let Some(answer) = rules.decide(&call, &spent, CallStage::Proposed) {
            decided.push(past.operation);
            for charge in rules.charges(&call, &spent, Some(answer.name())) {
                spent.apply(SpentEvent::Charged(charge));
            }
        }
    }
    let replayed: Vec<OperationId> = replayed.decided.iter().map(|one| one.operation).collect();
    assert!(!decided.is_empty());
    assert_eq!(replayed, decided);
}
