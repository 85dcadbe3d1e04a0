//! Records of proposals: opened, decided, ended.

use serde::{Deserialize, Serialize};

/// A proposal, with all that a reviewer needs to decide and the gateway needs to run it after a restart.
/// Source: MCPx v0.1 section 3.2; MCP calls that are held.
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
    /// Digest of the content that the reviewer sees, 64 hexadecimal digits. A decision is bound to it.
    pub digest: String,
    /// Whether the gateway holds a call that runs after approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// State that the proposer's door needs to run it after a restart, in the format of that door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Time of opening in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds.
    pub expires_ms: u64,
}

/// Decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
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
    /// The reviewer, or the proposer that withdrew it.
    pub by: String,
    /// The decision.
    pub decision: Decision,
    /// Reason for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
pub struct EndedProposal {
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
