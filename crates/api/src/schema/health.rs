//! Schemas of health and readiness.

use serde::Serialize;
use utoipa::ToSchema;

/// Health of the process.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `alive`.
    pub status: String,
    /// The version of Portmoot.
    pub version: String,
}

/// Readiness of the gateway.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    /// False while a server is starting for the first time, and while the audit log cannot be written.
    pub ready: bool,
    /// The servers that are not ready.
    pub servers: Vec<ServerNotReady>,
    /// `unavailable` while the audit log cannot be written: acts that must be recorded are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,
}

/// A server that is not ready.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerNotReady {
    /// Its name.
    pub name: String,
    /// `starting`, `degraded` or `down`.
    pub state: String,
    /// Why it is not ready.
    pub reason: Option<String>,
}
