//! A rule, and decisions, for the tests of this crate.

use model::{Digest, OperationId, ParticipantId};

use crate::arguments::Arguments;
use crate::evidence::{EvidenceWeight, PastVerdict, RejectReason, RuleEvidence, RuledTool};
use crate::parse::parse_rules;
use crate::rule::CallRule;
use crate::window::DAY_MS;

/// The 27th of November 2026, 12:00 UTC, in milliseconds since 1970.
pub(crate) const NOON_MS: u64 = 1_795_780_800_000;
/// A rejection without a reason.
pub(crate) const REJECTED: PastVerdict = PastVerdict::Rejected(RejectReason::Unsaid);

/// A rule of `ann` that approves calls of the tool `t` of the server `s` five times, until the 6th of
/// December 2026, 09:00 UTC, with these lines of TOML as its conditions.
pub(crate) fn approving(id: &str, proposer: &str, when: &str) -> CallRule {
    let digest = "ab".repeat(32);
    let text = format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"approve\"\nkind = \"mcp/request:tools/call:t\"\n\
         to = \"s\"\nproposers = [\"{proposer}\"]\ndefinition = \"{digest}\"\nserver = \"{digest}\"\n\
         expires = \"2026-12-06T09:00:00Z\"\nuses = 5\n[rule.when]\n{when}\n"
    );
    parse_rules(&text).unwrap().remove(0)
}

/// A participant of this name.
pub(crate) fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

/// The decision of this number, ten on each day: `ann` approves deliberately that `scout` calls `pay` of
/// `bank` with these arguments.
pub(crate) fn approval(number: u64, arguments: &str) -> RuleEvidence {
    RuleEvidence {
        operation: OperationId(u128::from(number)),
        at_ms: NOON_MS + number * DAY_MS / 10,
        tool: RuledTool {
            to: participant("bank"),
            method: "tools/call".into(),
            target: "pay".into(),
        },
        definition: Some(Digest([1; 32])),
        server: Some(Digest([2; 32])),
        proposer: participant("scout"),
        by: participant("ann"),
        rule: None,
        verdict: PastVerdict::Approved,
        weight: EvidenceWeight::Deliberate,
        arguments: Arguments::read(arguments.as_bytes()).unwrap(),
        redacted: Vec::new(),
        has_more: false,
    }
}
