//! What is shown of participants, and how a change of their capabilities is spelled. Must not know where values come from.

use serde::{Deserialize, Serialize};
use store::Grant;
use utoipa::ToSchema;
use wire::time::rfc3339;

/// Participants, each once a topic.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PersonsShown {
    /// By topic, then by id.
    pub participants: Vec<PersonShown>,
}

/// A participant in a topic.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PersonShown {
    /// Who.
    pub id: String,
    /// Where.
    pub topic: String,
    /// `caller` or `server`.
    pub role: String,
    /// Connections and sessions that it has in the topic; 0 when it is not there.
    pub links: usize,
    /// What it may do there now.
    pub capabilities: Vec<String>,
    /// What was given and taken beside what is configured, for those who hold `portmoot/grants`.
    pub grants: Vec<GrantShown>,
}

/// A capability that was given or taken.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct GrantShown {
    /// Which.
    pub capability: String,
    /// Given, or else taken.
    pub given: bool,
    /// Only in this topic; absent is in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Who changed it.
    pub by: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When, RFC 3339.
    pub at: String,
    /// When it ends, RFC 3339; absent is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl GrantShown {
    /// A grant as it is shown.
    pub fn of(grant: &Grant) -> Self {
        Self {
            capability: grant.capability.clone(),
            given: grant.granted,
            topic: grant.topic.clone(),
            by: grant.by.clone(),
            reason: grant.reason.clone(),
            at: rfc3339(grant.at_ms),
            expires: grant.expires_ms.map(rfc3339),
        }
    }
}

/// Capabilities to give and to take; all of it, or nothing (MCPx v0.1, section 11.3).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CapabilityChange {
    /// To give.
    #[serde(default)]
    pub add: Vec<String>,
    /// To take, spelled as they are held.
    #[serde(default)]
    pub remove: Vec<String>,
    /// When the change ends, RFC 3339.
    pub expires: Option<String>,
    /// The same, from now.
    pub expires_in_seconds: Option<u64>,
    /// Why.
    pub reason: Option<String>,
}

/// A change that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct CapabilityChanged {
    /// Whose capabilities.
    pub participant_id: String,
    /// Before, in the topic if one was named.
    pub old_capabilities: Vec<String>,
    /// After.
    pub new_capabilities: Vec<String>,
    /// Who changed them.
    pub modified_by: String,
    /// When, RFC 3339.
    pub modified_at: String,
    /// The topic, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// When the change ends, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}
