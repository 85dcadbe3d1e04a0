//! The records of the journal, one JSON object a line. Must not know how lines are written or kept.

mod closed;
mod grant;
mod proposal;
mod session;

use serde::{Deserialize, Serialize};

pub use closed::ClosedProposals;
pub use grant::GrantChange;
pub use proposal::{DecidedProposal, Decision, EndedProposal, OpenedProposal};
pub use session::EndedSessions;

/// One thing that happened and must be known after a restart. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A token was issued (its hash, never the token).
    TokenIssued(IssuedToken),
    /// Every token of this name stopped being valid.
    TokenRevoked {
        /// The participant whose token it was.
        name: String,
        /// When, in Unix milliseconds.
        at_ms: u64,
    },
    /// A new sealing key; the newest is used, the one before it is still accepted.
    SealingKey(SealingKey),
    /// The key of the audit log's chain. There is one for the life of a data directory; the first one counts.
    AuditKey(SealingKey),
    /// Something was proposed and waits for a decision.
    ProposalOpened(OpenedProposal),
    /// A proposal was approved, rejected or withdrawn.
    ProposalDecided(DecidedProposal),
    /// A proposal expired, or what it proposed was run to its end.
    ProposalEnded(EndedProposal),
    /// Proposals that ended are from now on kept as digests only.
    ProposalsClosed(ClosedProposals),
    /// Capabilities were given to a participant or taken from it.
    GrantChanged(GrantChange),
    /// Every change of a participant's capabilities is forgotten: what is configured holds again.
    GrantsCleared {
        /// The participant.
        participant: String,
        /// Only the changes made for this topic; `None` is all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
        /// When, in Unix milliseconds.
        at_ms: u64,
    },
    /// Sessions were ended for good.
    SessionsEnded(EndedSessions),
}

/// A token that was issued by `portmoot token new` or the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// The participant that it makes of its bearer.
    pub name: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Capabilities as they were written; `None` takes those of the configuration, or a new participant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Topics that it may enter; `None` means the configuration's, or `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// When it was issued, in Unix milliseconds.
    pub created_ms: u64,
    /// When it stops being valid, in Unix milliseconds; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// A key for sealed states, or for the audit log's chain.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingKey {
    /// 32 bytes, as 64 hexadecimal digits.
    pub key: String,
    /// When it was made, in Unix milliseconds.
    pub created_ms: u64,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey").field("created_ms", &self.created_ms).finish_non_exhaustive()
    }
}
