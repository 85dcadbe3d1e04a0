//! Calls and rules for tests.

use model::{Digest, KindRef, OperationId, ParticipantId};
use rules::{Arguments, EvidenceWeight, PastVerdict, RuleEvidence, RuleSet, RuledCall, RuledTool};

/// The digest of every definition and configuration here.
pub(crate) const DIGEST: Digest = Digest([0xAB; 32]);
/// The 27th of November 2026, 12:00 UTC, a Friday.
pub(crate) const NOON_MS: u64 = 1_795_780_800_000;

/// A day in milliseconds.
const DAY_MS: u64 = 24 * 3_600_000;

pub(crate) fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

/// A call with all that it borrows.
#[derive(Debug, Clone)]
pub(crate) struct OwnedCall {
    pub(crate) operation: u128,
    pub(crate) proposer: ParticipantId,
    pub(crate) to: ParticipantId,
    pub(crate) kind: String,
    pub(crate) arguments: String,
    pub(crate) beside: Vec<String>,
    pub(crate) definition: Option<Digest>,
    pub(crate) server: Option<Digest>,
    pub(crate) at_ms: u64,
}

impl OwnedCall {
    pub(crate) fn new(arguments: &str) -> Self {
        Self {
            operation: 1,
            proposer: participant("scout"),
            to: participant("github"),
            kind: "mcp/request:tools/call:create_issue".to_owned(),
            arguments: arguments.to_owned(),
            beside: Vec::new(),
            definition: Some(DIGEST),
            server: Some(DIGEST),
            at_ms: NOON_MS,
        }
    }

    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&RuledCall<'_>) -> T) -> T {
        let beside: Vec<&str> = self.beside.iter().map(String::as_str).collect();
        let arguments = Arguments::read(self.arguments.as_bytes());
        use_it(&RuledCall {
            operation: OperationId(self.operation),
            proposer: &self.proposer,
            to: &self.to,
            kind: KindRef::parse(&self.kind).unwrap(),
            arguments: arguments.as_ref(),
            beside: &beside,
            definition: self.definition,
            server: self.server,
            at_ms: self.at_ms,
        })
    }
}

/// An approving rule with these conditions.
pub(crate) fn approving(when: &str) -> RuleSet {
    let text = format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:create_issue\"\nto = \"github\"\nproposers = [\"scout\"]\n\
         definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"2026-12-06T09:00:00Z\"\nuses = 33\n\
         [rule.when]\n{when}\n"
    );
    RuleSet::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The decision of this number, twelve on each day: `ann` approves deliberately that `scout` calls
/// `create_issue` of `github` with these arguments.
pub(crate) fn approval(number: u64, arguments: &str) -> RuleEvidence {
    RuleEvidence {
        operation: OperationId(u128::from(number)),
        at_ms: NOON_MS + number * DAY_MS / 12,
        tool: RuledTool {
            to: participant("github"),
            method: "tools/call".into(),
            target: "create_issue".into(),
        },
        definition: Some(DIGEST),
        server: Some(DIGEST),
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
