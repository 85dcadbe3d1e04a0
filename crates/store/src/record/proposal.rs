//! Records of proposals: opened, decided, ended. Must not know who may decide, nor what a payload says.

use serde::{Deserialize, Serialize};

/// A proposal, with everything needed to show it to a reviewer and to run it after a restart.
/// Source: MCPx v0.1 section 3.2; MCP calls that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedProposal {
    /// The operation's id, 32 hexadecimal digits.
    pub id: String,
    /// The topic that it was made in.
    pub topic: String,
    /// Who proposed it.
    pub by: String,
    /// Whom its envelope names; empty for anybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The method that it proposes, such as `tools/call`.
    pub method: String,
    /// What the method is about, such as a tool's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The id of the envelope that carried it: what a fulfilling request names as its `correlation_id`.
    pub envelope: String,
    /// The era that `params` are written in, as the gateway names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The params as JSON text, byte for byte as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The definition of the tool that the reviewer is shown, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Digest of what is shown, 64 hexadecimal digits; a decision is bound to it.
    pub digest: String,
    /// Whether a call is held behind it that runs when it is approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// What the proposer's door needs to run it after a restart, in the door's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// When it was opened, in Unix milliseconds.
    pub at_ms: u64,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: u64,
}

/// What was decided about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run, once. Not over until its outcome is known.
    Approved,
    /// It will never run. Over.
    Rejected,
    /// Its proposer took it back. Over.
    Withdrawn,
}

/// A decision about a proposal. The first one counts; later ones are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedProposal {
    /// The proposal.
    pub id: String,
    /// Who decided.
    pub by: String,
    /// What.
    pub decision: Decision,
    /// Why, in words for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Digest of what the decider was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The params that run, as JSON text, where the decider has edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The id of the request envelope that fulfils it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
}

/// The end of a proposal: expired, completed or failed. The first end counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedProposal {
    /// The proposal.
    pub id: String,
    /// How it ended, as the gateway names the state: `completed`, `failed`, `expired`, ...
    pub state: String,
    /// Why, in words for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer as JSON text, kept for a proposer that asks later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
}
