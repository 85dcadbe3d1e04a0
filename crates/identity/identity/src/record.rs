//! Records of access in the journal: who may come in, and what may be done.

mod login;

use serde::{Deserialize, Serialize};
use store::SealingKey;

pub use login::{Consent, Family, RenewedFamily, client_digest};

/// A fact about tokens, grants or sign-ins that the gateway needs after a restart. Times are Unix
/// milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum AccessRecord {
    /// The operator or a participant issued a token. The record holds its hash, never the token.
    TokenIssued(IssuedToken),
    /// The operator or a participant revoked every token of a participant.
    TokenRevoked {
        /// The participant.
        name: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The operator or a participant granted or revoked capabilities of a participant.
    GrantChanged(GrantChange),
    /// Every grant and revocation of a participant ended, cleared or with its tokens: its
    /// configured capabilities apply again.
    GrantsCleared {
        /// The participant.
        participant: String,
        /// Limits the removal to one topic; `None` is all topics.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The clock has passed the ends of tokens, grants or sign-ins: what had ended by this time
    /// stays ended, wherever the clock is set.
    Expired {
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The key of the gateway's own authorization server. A data directory has one for its whole
    /// life: the first one counts.
    LoginKey(SealingKey),
    /// A client got the first refresh token of a family.
    FamilyBegun(Family),
    /// A client got the next refresh token of a family.
    FamilyRenewed(RenewedFamily),
    /// A family ended before its time: revoked, or one of its tokens was used twice.
    FamilyEnded {
        /// Id of the family.
        id: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// A participant consented that a client acts as the participant.
    ConsentGiven(Consent),
    /// All consents of a participant to one client ended.
    ConsentWithdrawn {
        /// The participant.
        participant: String,
        /// SHA-256 of the client's id, 64 hexadecimal digits.
        client: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
}

/// A token that was issued with `portmoot token new` or the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// The participant that the token authenticates.
    pub name: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Capabilities as its issuer wrote them; `None` means those of the configuration, or those of
    /// a new participant.
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
    /// Whether it has expired, on record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// Incarnation of the bearer's name: made with the first token, kept by those that replace it,
    /// another one after a revocation. Tokens of older journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
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
    /// Granted capabilities, as their author wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Revoked capabilities, as their author wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The participant that changed them.
    pub by: String,
    /// Reason that this participant gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds, after which the change before applies again; `None` is
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Whether the participant was a configured one, and not one that had a token only. `None` in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<bool>,
}
