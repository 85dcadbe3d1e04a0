//! Records of proposals in the journal, and how each is written as JSON.

use model::OperationId;
use rules::RuleName;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use topic::PlanPlace;

use crate::as_text;

/// A fact about proposals that the gateway needs after a restart. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum ProposalRecord {
    /// A participant opened a proposal.
    ProposalOpened(OpenedProposal),
    /// A participant opened a plan. One record has all its steps: the plan is there whole, or not at
    /// all.
    PlanOpened(OpenedPlan),
    /// A reviewer approved a proposal that needs the approvals of others too.
    ProposalApproved(ApprovalRecord),
    /// A reviewer gave more time to decide about a proposal.
    ProposalExtended(ExtensionRecord),
    /// The proposer of a proposal replaced its arguments.
    ProposalAmended(AmendmentRecord),
    /// A reviewer approved or rejected a proposal, or its proposer withdrew it.
    ProposalDecided(DecidedProposal),
    /// A proposal expired, or its operation completed or failed.
    ProposalEnded(EndRecord),
    /// Ended proposals of which the journal keeps digests only.
    ProposalsClosed(ClosedProposals),
}

/// A proposal, with all that a reviewer needs to decide and the gateway needs to run it after a
/// restart. Source: MCPx v0.1 section 3.2; MCP calls that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedProposal {
    /// Operation id, 32 hexadecimal digits.
    pub id: String,
    /// Topic of the proposal.
    pub topic: String,
    /// The proposer.
    pub by: String,
    /// Recipients of its envelope; empty means every participant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The proposed method, such as `tools/call`.
    pub method: String,
    /// Target of the method, such as the name of a tool at its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Id of its envelope; a request that fulfils the proposal has it as `correlation_id`.
    pub envelope: String,
    /// Era in which `params` are written, under the name that the gateway uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// Params as JSON text, byte for byte as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// Definition of the tool as the reviewer sees it, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Digest of the content that the reviewer sees, 64 hexadecimal digits. A decision is bound to
    /// it.
    pub digest: String,
    /// Whether the gateway holds a call that runs after approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// State that the proposer's door needs to run it after a restart, in the format of that door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// The number of participants that must approve it, if it is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<usize>,
    /// The number of times that the proposer replaced the arguments: `params` are the last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub amendments: usize,
    /// Its place in a plan, if it is a step of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRecord>,
    /// Time of opening in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds.
    pub expires_ms: u64,
}

/// A plan with all its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedPlan {
    /// The steps, in their order.
    pub steps: Vec<OpenedProposal>,
}

/// The place of a proposal in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Ids of all steps, in their order. A decision is about the first.
    pub steps: Vec<String>,
    /// The number of the step; the first is 1.
    pub step: usize,
}

impl PlanRecord {
    /// The place as the topic has it; `None` if it cannot be read.
    pub(crate) fn place(&self) -> Option<PlanPlace> {
        let ids = self.steps.iter().map(|id| id.parse().ok());
        let steps: Vec<OperationId> = ids.collect::<Option<_>>()?;
        Some(PlanPlace {
            plan: *steps.first()?,
            at: self.step.checked_sub(1)?,
            steps: steps.into(),
        })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl OpenedProposal {
    /// Whether more than one participant must approve it.
    pub(crate) fn needs_several(&self) -> bool {
        self.approvals.is_some_and(|approvals| approvals > 1)
    }
}

/// One of several approvals that a proposal needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// Id of the proposal.
    pub id: String,
    /// The reviewer: of a rule, its author.
    pub by: String,
    /// The rule that approved, with its version.
    #[serde(
        with = "as_text::optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub rule: Option<RuleName>,
    /// Digest of what was approved.
    pub digest: String,
    /// The params that the proposal has from now on, as JSON text, if the reviewer changed them:
    /// approvals of before are void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The reviewer's note for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// More time to decide about a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionRecord {
    /// Id of the proposal.
    pub id: String,
    /// The reviewer.
    pub by: String,
    /// Its expiry from now on, in Unix milliseconds.
    pub expires_ms: u64,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// Other arguments of a proposal, by its proposer: approvals of before are void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmendmentRecord {
    /// Id of the proposal.
    pub id: String,
    /// The params that it has from now on, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// Digest of what reviewers see from now on.
    pub digest: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// Decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRecord {
    /// A reviewer approved it: it runs once, and ends with its outcome.
    Approved,
    /// A reviewer rejected it, which ends it.
    Rejected,
    /// Its proposer withdrew it, which ends it.
    Withdrawn,
}

/// A decision about a proposal. The first one counts; later ones have no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedProposal {
    /// Id of the proposal.
    pub id: String,
    /// The reviewer, `rules`, or the proposer that withdrew it.
    pub by: String,
    /// The rule that decided, with its version.
    #[serde(
        with = "as_text::optional",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub rule: Option<RuleName>,
    /// The author of the rule, on whose authority it decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The decision.
    pub decision: DecisionRecord,
    /// Reason for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reviewer's note for the proposer, of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The reason that the reviewer chose from the list, by its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Digest of the content that the reviewer saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The params that run, as JSON text, if the reviewer edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// Id of the request envelope that fulfils it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// The end of a proposal: expired, completed or failed. The first end counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Id of the proposal.
    pub id: String,
    /// Final state, under the name that the gateway uses: `completed`, `failed`, `expired`, ...
    pub state: String,
    /// Reason for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Answer as JSON text, for a proposer that asks later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// Digests of ended proposals, oldest first. One record holds many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedProposals {
    /// For each proposal the time until which the journal keeps the digest, in Unix milliseconds,
    /// and the digest ([`closed_digest`](super::closed_digest)), 32 hexadecimal digits on disk.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub digests: Vec<(u64, u128)>,
}

fn write<S: Serializer>(digests: &[(u64, u128)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        digests
            .iter()
            .map(|(until_ms, digest)| (until_ms, format!("{digest:032x}"))),
    )
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, u128)>, D::Error> {
    let texts = Vec::<(u64, String)>::deserialize(deserializer)?;
    let parse = |(until_ms, text): (u64, String)| {
        let is_digest = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = is_digest
            .then(|| u128::from_str_radix(&text, 16).ok())
            .flatten();
        digest
            .map(|digest| (until_ms, digest))
            .ok_or_else(|| D::Error::custom("a digest has 32 hexadecimal digits"))
    };
    texts.into_iter().map(parse).collect()
}
