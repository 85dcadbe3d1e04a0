//! Records of capabilities given and taken while the gateway runs. Must not know what a capability means.

use serde::{Deserialize, Serialize};

/// A change of what a participant may do, beside what is configured.
/// Source: MCPx v0.1 section 4.4, `POST /admin/participants/{id}/capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantChange {
    /// Whose capabilities change.
    pub participant: String,
    /// In which topic; `None` is in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Capabilities given, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Capabilities taken, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Who changed them.
    pub by: String,
    /// Why, in the words of who changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// When the change ends and what was before holds again, in Unix milliseconds; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}
