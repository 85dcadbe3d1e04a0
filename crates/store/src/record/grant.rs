//! Records of capabilities that operators grant and revoke while the gateway runs.

use serde::{Deserialize, Serialize};

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
