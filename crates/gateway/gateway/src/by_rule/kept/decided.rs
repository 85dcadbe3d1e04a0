//! Decisions as evidence in the journal, and how each is written as JSON.

use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId};
use rules::{Arguments, EvidenceWeight, PastVerdict, Pointer, RuleEvidence, RuleName, RuledTool};
use serde::{Deserialize, Serialize};

use crate::as_text;

/// A decision about a proposal, or its expiry or withdrawal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenDecision", into = "WrittenDecision")]
pub(crate) struct DecidedCall {
    /// Its topic.
    pub(crate) topic: String,
    /// The decision.
    pub(crate) decision: Arc<RuleEvidence>,
}

#[derive(Serialize, Deserialize)]
struct WrittenDecision {
    topic: String,
    #[serde(with = "as_text")]
    operation: OperationId,
    at_ms: u64,
    to: String,
    method: String,
    target: String,
    #[serde(
        with = "as_text::optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    definition: Option<Digest>,
    #[serde(
        with = "as_text::optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    server: Option<Digest>,
    proposer: String,
    by: String,
    #[serde(
        with = "as_text::optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    rule: Option<RuleName>,
    #[serde(with = "as_text")]
    verdict: PastVerdict,
    #[serde(with = "as_text")]
    weight: EvidenceWeight,
    /// As canonical JSON text.
    arguments: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redacted: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_more: bool,
}

impl From<DecidedCall> for WrittenDecision {
    fn from(DecidedCall { topic, decision }: DecidedCall) -> Self {
        let redacted = decision.redacted.iter();
        Self {
            topic,
            operation: decision.operation,
            at_ms: decision.at_ms,
            to: decision.tool.to.to_string(),
            method: decision.tool.method.to_string(),
            target: decision.tool.target.to_string(),
            definition: decision.definition,
            server: decision.server,
            proposer: decision.proposer.to_string(),
            by: decision.by.to_string(),
            rule: decision.rule.clone(),
            verdict: decision.verdict,
            weight: decision.weight,
            arguments: decision.arguments.text().to_owned(),
            redacted: redacted
                .map(|pointer| pointer.as_str().to_owned())
                .collect(),
            has_more: decision.has_more,
        }
    }
}

impl TryFrom<WrittenDecision> for DecidedCall {
    type Error = String;

    fn try_from(written: WrittenDecision) -> Result<Self, String> {
        let arguments = Arguments::read(written.arguments.as_bytes());
        let redacted: Result<Vec<Pointer>, String> = written
            .redacted
            .iter()
            .map(|pointer| Pointer::parse(pointer).map_err(|error| error.to_string()))
            .collect();
        let decision = RuleEvidence {
            operation: written.operation,
            at_ms: written.at_ms,
            tool: RuledTool {
                to: participant(&written.to)?,
                method: written.method.into(),
                target: written.target.into(),
            },
            definition: written.definition,
            server: written.server,
            proposer: participant(&written.proposer)?,
            by: participant(&written.by)?,
            rule: written.rule,
            verdict: written.verdict,
            weight: written.weight,
            arguments: arguments.map_err(|error| error.to_string())?,
            redacted: redacted?,
            has_more: written.has_more,
        };
        Ok(Self {
            topic: written.topic,
            decision: Arc::new(decision),
        })
    }
}

pub(super) fn participant(name: &str) -> Result<ParticipantId, String> {
    ParticipantId::new(name).map_err(|error| error.to_string())
}
