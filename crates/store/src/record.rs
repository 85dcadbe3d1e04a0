//! Records of the journal: one JSON object per line.

mod closed;
mod proposal;

use serde::{Deserialize, Serialize};

pub use closed::ClosedProposals;
pub use proposal::{DecidedProposal, Decision, EndedProposal, OpenedProposal};

/// A fact that the gateway needs after a restart. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// An operator issued a token. The record holds its hash, never the token.
    TokenIssued(IssuedToken),
    /// An operator revoked every token of a participant.
    TokenRevoked {
        /// The participant.
        name: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// A new sealing key. The newest one seals; the one before it still opens.
    SealingKey(SealingKey),
    /// The key of the audit log's chain. A data directory has one for its whole life: the first one counts.
    AuditKey(SealingKey),
    /// A participant opened a proposal.
    ProposalOpened(OpenedProposal),
    /// A reviewer approved or rejected a proposal, or its proposer withdrew it.
    ProposalDecided(DecidedProposal),
    /// A proposal expired, or its operation completed or failed.
    ProposalEnded(EndedProposal),
    /// Ended proposals of which the journal keeps digests only.
    ProposalsClosed(ClosedProposals),
    /// An operator granted or revoked capabilities of a participant.
    GrantChanged(GrantChange),
    /// An operator removed every grant and revocation of a participant: its configured capabilities apply again.
    GrantsCleared {
        /// The participant.
        participant: String,
        /// Limits the removal to one topic; `None` is all topics.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// Sessions that no client can resume.
    SessionsEnded(EndedSessions),
}

/// A token that an operator issued with `portmoot token new` or the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// The participant that the token authenticates.
    pub name: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Capabilities as the operator wrote them; `None` means those of the configuration, or those of a new participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Topics that it may enter; `None` means those of the configuration, or `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Time of issue in Unix milliseconds.
    pub created_ms: u64,
    /// Time of expiry in Unix milliseconds; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// A key for sealed states or for the chain of the audit log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingKey {
    /// 32 bytes, as 64 hexadecimal digits.
    pub key: String,
    /// Time of creation in Unix milliseconds.
    pub created_ms: u64,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey").field("created_ms", &self.created_ms).finish_non_exhaustive()
    }
}

/// A change of the capabilities of a participant, in addition to its configured ones.
/// Source: MCPx v0.1 section 4.4, `POST /admin/participants/{id}/capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantChange {
    /// The participant.
    pub participant: String,
    /// The topic; `None` is all topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Granted capabilities, as the operator wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Revoked capabilities, as the operator wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The participant that changed them.
    pub by: String,
    /// Reason that this participant gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds, after which the change before applies again; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// Sessions that no client can resume, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSessions {
    /// One unique text for each session id, in the format of the gateway.
    pub marks: Vec<String>,
    /// Time of the record in Unix milliseconds.
    pub at_ms: u64,
    /// Time at which the last of these ids expires, in Unix milliseconds.
    pub until_ms: u64,
}
