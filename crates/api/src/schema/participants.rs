//! Schemas of participants, grants and changes of capabilities.

use serde::{Deserialize, Serialize};
use store::Grant;
use utoipa::ToSchema;
use wire::time::rfc3339;

/// Participants, once for each topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParticipantList {
    /// By topic, then by id.
    pub participants: Vec<ParticipantEntry>,
}

/// A participant in a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParticipantEntry {
    /// Its id.
    pub id: String,
    /// The topic.
    pub topic: String,
    /// `caller` or `server`.
    pub role: String,
    /// Its connections and sessions in the topic; 0 if it is absent.
    pub links: usize,
    /// Its capabilities in the topic.
    pub capabilities: Vec<String>,
    /// Changes of its configured capabilities, for callers with `portmoot/grants`.
    pub grants: Vec<GrantEntry>,
}

/// A capability that was granted or revoked.
#[derive(Serialize, ToSchema)]
pub(crate) struct GrantEntry {
    /// The capability.
    pub capability: String,
    /// True if it was granted, false if it was revoked.
    pub given: bool,
    /// The topic; absent is all topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The participant that changed it.
    pub by: String,
    /// The reason that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was changed, RFC 3339.
    pub at: String,
    /// When the change expires, RFC 3339; absent is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl GrantEntry {
    /// A grant as the API shows it.
    pub(crate) fn of(grant: &Grant) -> Self {
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

/// Capabilities to grant and to revoke, all or none (MCPx v0.1, section 11.3).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapabilityChange {
    /// Capabilities to grant.
    #[serde(default)]
    pub add: Vec<String>,
    /// Capabilities to revoke, spelled as they are held.
    #[serde(default)]
    pub remove: Vec<String>,
    /// When the change expires, RFC 3339.
    pub expires: Option<String>,
    /// The same in seconds from now.
    pub expires_in_seconds: Option<u64>,
    /// The reason, for the record.
    pub reason: Option<String>,
}

/// A change that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapabilityChanged {
    /// The participant.
    pub participant_id: String,
    /// Its capabilities before, in the topic of the change or outside of topics.
    pub old_capabilities: Vec<String>,
    /// Its capabilities after.
    pub new_capabilities: Vec<String>,
    /// The participant that made the change.
    pub modified_by: String,
    /// When it was made, RFC 3339.
    pub modified_at: String,
    /// The topic, if the request named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// When the change expires, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}
