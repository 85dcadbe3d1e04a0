//! Health: `/healthz` and `/readyz`.

use axum::{Json, extract::State, http::StatusCode, http::request::Parts};
use identity::SERVERS;
use serde::Serialize;
use upstream::ServerState;
use utoipa::ToSchema;

use crate::state::{Api, presented};

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health {
        status: "alive".into(),
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Whether the gateway is ready for requests.
///
/// It is ready when no server is starting for the first time, and the audit log can be written.
/// Callers with `portmoot/servers` learn the names of the servers that are not ready, others their
/// number.
#[utoipa::path(
    get,
    path = "/readyz",
    responses((status = 200, body = Ready), (status = 503, body = Ready))
)]
pub(crate) async fn readyz(State(api): State<Api>, parts: Parts) -> (StatusCode, Json<Ready>) {
    // A wrong token shows as little as none, and is recorded.
    let presented = presented(&parts);
    let caller = match presented.bearer {
        Some(_) => api.registry.asker(presented, "for readiness").ok(),
        None => api.registry.sender(presented),
    };
    let may_name = caller.is_some_and(|caller| api.holds(&caller, SERVERS, None));
    let upstreams = api.registry.upstreams();
    // One that starts again is listed, and a call waits for it.
    let starting = upstreams.iter().any(|upstream| !upstream.has_settled());
    let mut servers: Vec<ServerNotReady> = Vec::new();
    let mut servers_need_login = 0;
    for upstream in &upstreams {
        let status = upstream.status();
        if status.state.is_ready() {
            continue;
        }
        if status.state == ServerState::NeedsLogin {
            servers_need_login += 1;
        }
        servers.push(ServerNotReady {
            name: status.name.to_string(),
            state: status.state.as_str().to_owned(),
            reason: status.reason,
            cause: status.cause,
        });
    }
    let mut issuers: Vec<IssuerNotReady> = Vec::new();
    for (name, issuer) in api.registry.bearers.issuers() {
        let condition = issuer.condition();
        if let Some(why) = condition.why() {
            issuers.push(IssuerNotReady {
                name,
                state: condition.as_str().to_owned(),
                reason: Some(why.to_owned()),
            });
        }
    }
    let audit = (!api.registry.audit.is_available()).then(|| "unavailable".to_owned());
    let ready = !starting && audit.is_none();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(Ready {
            ready,
            servers_not_ready: servers.len(),
            servers_need_login,
            servers: may_name.then_some(servers),
            issuers_not_ready: issuers.len(),
            issuers: may_name.then_some(issuers),
            audit,
        }),
    )
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
    /// False while a server is starting for the first time, and while the audit log cannot be
    /// written.
    pub ready: bool,
    /// How many servers are not ready.
    pub servers_not_ready: usize,
    /// How many of them wait for a person: a sign-in, a client, or another configuration.
    pub servers_need_login: usize,
    /// These servers, for callers with `portmoot/servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<ServerNotReady>>,
    /// How many issuers of access tokens could not be asked the last time. The gateway is ready
    /// without them: it knows the tokens that it has checked.
    pub issuers_not_ready: usize,
    /// These issuers, for callers with `portmoot/servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuers: Option<Vec<IssuerNotReady>>,
    /// `unavailable` while the audit log cannot be written: requests that must be recorded are
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,
}

/// A server that is not ready.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerNotReady {
    /// Its name.
    pub name: String,
    /// `starting`, `degraded`, `down` or `needs_login`.
    pub state: String,
    /// Why it is not ready.
    pub reason: Option<String>,
    /// The cause of its last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// An issuer of access tokens that could not be asked the last time.
#[derive(Serialize, ToSchema)]
pub(crate) struct IssuerNotReady {
    /// Its name.
    pub name: String,
    /// `stale` (its keys from before are used) or `unreachable` (there are none).
    pub state: String,
    /// Why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
