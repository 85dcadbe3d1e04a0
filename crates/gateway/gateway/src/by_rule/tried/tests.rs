//! Rules tried on decisions that the journal of a topic has.

use model::Digest;
use rules::{Arguments, EvidenceWeight, Pointer, RejectReason, parse_rules};
use store::recorder::Recorder;

use super::*;
use crate::by_rule::kept::{DecidedCall, RuleRecord};
use crate::by_rule::tests::Stage;
use crate::fixture::{OPENED, context, settings};

const DIGEST: Digest = Digest([0xAB; 32]);
const REJECTED: PastVerdict = PastVerdict::Rejected(RejectReason::Unsaid);
const MAY_PAY: &str = "mcp/request:tools/call:pay";

fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

/// A decision of ann's about a payment of scout's.
fn decision(operation: u128, amount: u64, verdict: PastVerdict) -> RuleEvidence {
    RuleEvidence {
        operation: OperationId(operation),
        at_ms: 1_795_780_800_000 + u64::try_from(operation).unwrap(),
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(DIGEST),
        server: Some(DIGEST),
        proposer: participant("scout"),
        by: participant("ann"),
        rule: None,
        verdict,
        weight: EvidenceWeight::Hasty,
        arguments: Arguments::read(format!("{{\"amount\":{amount}}}").as_bytes()).unwrap(),
        redacted: Vec::new(),
        has_more: false,
    }
}

fn stage(decisions: impl IntoIterator<Item = RuleEvidence>) -> Stage {
    let record = |decision: RuleEvidence| {
        RuleRecord::Decided(DecidedCall {
            topic: "main".into(),
            decision: decision.into(),
        })
    };
    let records: Vec<RuleRecord> = decisions.into_iter().map(record).collect();
    Stage::restarted(&[], &records)
}

fn approving(lines: &str) -> String {
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"bo\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"2026-12-20T09:00:00Z\"\n\
         {lines}\n[rule.when]\n\"/amount\" = {{ integer = [1, 100] }}\n"
    )
}

fn tightening(id: &str, decision: &str, amount: u64) -> String {
    format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"bo\"\ndecision = \"{decision}\"\n\
         kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
         [rule.when]\n\"/amount\" = {{ equals = {amount} }}\n"
    )
}

/// Tries rules as a participant with these capabilities.
fn tried(stage: &Stage, who: &str, may: &Capabilities, text: &str) -> TriedRules {
    let id = participant(who);
    let reader = PastReader {
        id: &id,
        capabilities: may,
        address: None,
    };
    let rules = parse_rules(text).unwrap();
    stage.dispatch.try_rules(&rules, reader, 0).unwrap()
}

fn caps(may: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(may.iter().copied()).unwrap())
}

#[tokio::test]
async fn each_rule_is_counted_by_what_became_of_its_proposals() {
    let by = |one: RuleEvidence, by: &str, rule: Option<&str>| RuleEvidence {
        by: participant(by),
        rule: rule.map(|rule| rule.parse().unwrap()),
        ..one
    };
    let approved = PastVerdict::Approved;
    let stage = stage([
        decision(1, 5, approved),
        decision(2, 6, approved),
        by(decision(3, 7, approved), "bo", None),
        by(decision(4, 8, approved), "ann", Some("r9.1")),
        decision(5, 9, REJECTED),
        decision(6, 10, PastVerdict::Expired),
        decision(7, 11, PastVerdict::Withdrawn),
        decision(8, 500, approved),
        decision(9, 501, approved),
        decision(10, 502, REJECTED),
    ]);
    let rules = [
        tightening("r3", "ask", 502),
        approving("uses = 9"),
        tightening("r2", "reject", 500),
    ];
    let found = tried(&stage, "ann", &caps(&[MAY_PAY]), &rules.concat());
    let words: Vec<String> = found.rules.iter().map(TriedRule::words).collect();
    assert_eq!(
        words,
        [
            "would have left 1 proposal to people",
            "would have approved 2 proposals that you approved by hand, 1 that others approved, \
             1 that rules approved, 1 that was rejected, 1 that expired, 1 that was withdrawn",
            "would have rejected 0 proposals that were rejected, 1 that you approved by hand",
        ]
    );
    let ids = |all: &[OperationId]| -> Vec<u128> { all.iter().map(|one| one.0).collect() };
    let [_, approves, rejects] = &found.rules[..] else {
        panic!("{found:?}")
    };
    assert_eq!(ids(&approves.decided), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ids(&approves.contradicted), [5]);
    assert_eq!(ids(&rejects.contradicted), [8]);
    assert_eq!(approves.tally.total(), 7);
    assert_eq!(
        found.replay.words(),
        "would have answered 8 of 10 proposals, would have contradicted 2, \
         would have decided 2 that were left undecided"
    );
}

#[tokio::test]
async fn a_participant_has_rules_tried_on_what_it_may_see() {
    let of_dave = RuleEvidence {
        proposer: participant("dave"),
        ..decision(2, 6, REJECTED)
    };
    let own = decision(OPENED.0, 7, PastVerdict::Expired);
    // The name alone makes no proposal its own: it may have had another bearer.
    let stage = stage([decision(1, 5, PastVerdict::Approved), of_dave, own]);
    let check = |who: &str, may: &Capabilities, expect: u32| {
        let found = tried(&stage, who, may, &approving("uses = 9"));
        assert_eq!(found.replay.proposals, expect, "{who} {may:?}");
    };
    check("ann", &caps(&[MAY_PAY]), 3);
    check("ann", &caps(&["mcp/*"]), 3);
    check("ann", &caps(&["mcp/request:tools/call:get"]), 0);
    check("ann", &caps(&["mcp/proposal:*", "chat"]), 0);
    check("ann", &Capabilities::default(), 0);
    check("scout", &caps(&["mcp/proposal:*"]), 1);
    // A token that is good for less.
    check("ann", &caps(&["mcp/*"]).within(&caps(&["chat"])), 0);
    check("ann", &caps(&["mcp/*"]).within(&caps(&[MAY_PAY])), 3);
    check(
        "scout",
        &caps(&["mcp/proposal:*"]).within(&caps(&["chat"])),
        0,
    );
}

#[tokio::test]
async fn a_rule_is_not_tried_where_it_names_what_is_not_kept() {
    let secret = RuleEvidence {
        arguments: Arguments::read(br#"{"amount":5,"pin":"[redacted]"}"#).unwrap(),
        redacted: vec![Pointer::parse("/pin").unwrap()],
        ..decision(1, 5, REJECTED)
    };
    let stage = stage([secret, decision(2, 6, PastVerdict::Approved)]);
    let check = |more: &str, proposals: u32, left_out: usize| {
        let text = approving("uses = 9") + more;
        let found = tried(&stage, "ann", &caps(&[MAY_PAY]), &text);
        assert_eq!(
            (found.replay.proposals, found.left_out),
            (proposals, left_out)
        );
    };
    check("", 2, 0);
    check("\"/pin\" = { equals = 1234 }\n", 1, 1);
    // A rule about another tool has no say.
    let other = "[[rule]]\nid = \"r2\"\nauthor = \"bo\"\ndecision = \"reject\"\n\
                 kind = \"mcp/request:tools/call:get\"\nproposers = [\"*\"]\n\
                 [rule.when]\n\"/pin\" = { equals = 1234 }\n";
    check(other, 2, 0);
}

#[tokio::test]
async fn rules_are_tried_on_the_decisions_since_a_time_and_not_for_ever() {
    let all: Vec<RuleEvidence> = (1..=5)
        .map(|at| decision(at, 5, PastVerdict::Approved))
        .collect();
    let third_ms = all[2].at_ms;
    let stage = stage(all);
    let rules = parse_rules(&approving("uses = 9")).unwrap();
    let (id, capabilities) = (participant("ann"), caps(&[MAY_PAY]));
    let reader = PastReader {
        id: &id,
        capabilities: &capabilities,
        address: None,
    };
    let dispatch = &stage.dispatch;
    let since = dispatch.try_rules(&rules, reader, third_ms).unwrap();
    assert_eq!(since.replay.proposals, 3);
    let late = dispatch.try_within(&rules, reader, 0, Duration::ZERO);
    assert_eq!(late.unwrap_err().code, RefusalCode::Overloaded);
    let none = dispatch.try_within(&rules, reader, u64::MAX, Duration::ZERO);
    assert_eq!(none.unwrap().replay.proposals, 0);
}

#[tokio::test]
async fn to_try_a_rule_spends_nothing_of_it() {
    let stage = stage((1..=5).map(|at| decision(at, 5, PastVerdict::Approved)));
    let text = approving("uses = 3");
    let rules = parse_rules(&text).unwrap();
    stage.dispatch.put_rules_in_force(&rules);
    let book = || stage.dispatch.rules.lock().book.clone();
    let before = book();
    for _ in 0..2 {
        let found = tried(&stage, "ann", &caps(&[MAY_PAY]), &text);
        assert_eq!(found.rules[0].tally.approved_by_you, 3);
    }
    assert_eq!(book(), before);
    assert_eq!(before.spent.uses(&rules[0].name), 0);
}

#[tokio::test]
async fn without_a_journal_there_is_no_past() {
    let dispatch = Dispatch::new(
        settings(),
        context(),
        Recorder::default(),
        None,
        Box::new(|_| None),
        crate::run::run,
    );
    let reader = PastReader {
        id: &participant("ann"),
        capabilities: &caps(&["mcp/*"]),
        address: None,
    };
    let none = dispatch.try_rules(&[], reader, 0).unwrap_err();
    assert_eq!(none.code, RefusalCode::UnknownTarget);
}
