//! Health: `/healthz` and `/readyz`.

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::Api;

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "alive".into(), version: env!("CARGO_PKG_VERSION").into() })
}

/// Whether the gateway is ready for requests.
///
/// It is ready when no server is starting for the first time, and the audit log can be written.
#[utoipa::path(
    get,
    path = "/readyz",
    responses((status = 200, body = Ready), (status = 503, body = Ready))
)]
pub(crate) async fn readyz(State(api): State<Api>) -> (StatusCode, Json<Ready>) {
    let statuses = api.registry.upstreams().into_iter().map(|upstream| upstream.status());
    let not_ready = statuses.filter(|status| status.state != upstream::State::Ready);
    let mut starting = false;
    let servers = not_ready.map(|status| {
        starting |= status.state == upstream::State::Starting;
        let (name, state) = (status.name.to_string(), status.state.as_str().to_owned());
        ServerNotReady { name, state, reason: status.reason }
    });
    let servers: Vec<ServerNotReady> = servers.collect();
    let audit = (!api.registry.audit.is_available()).then(|| "unavailable".to_owned());
    let ready = !starting && audit.is_none();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Ready { ready, servers, audit }))
}

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
