//! Restart, disabling and enabling of servers: `/api/v1/servers/{name}/restart` and so on.

use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::{Path, State};
use control::Switch;
use identity::RESTART;
use model::{Refusal, RefusalCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Caller, Source};

/// Starts a server anew: its sessions and its process end first, and open calls are refused. Needs
/// `portmoot/restart`.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/restart",
    params(("name" = String, Path)),
    responses((status = 200, body = Switched), (status = "4XX", body = Problem))
)]
pub(crate) async fn restart(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    Path(name): Path<String>,
) -> ApiResult<Json<Switched>> {
    switch(api, by, source, name, Switch::Restart).await
}

/// Ends a server until it is enabled, or the gateway starts again. Needs `portmoot/restart`.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/disable",
    params(("name" = String, Path)),
    responses((status = 200, body = Switched), (status = "4XX", body = Problem))
)]
pub(crate) async fn disable(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    Path(name): Path<String>,
) -> ApiResult<Json<Switched>> {
    switch(api, by, source, name, Switch::Disable).await
}

/// Starts a server that was disabled. Needs `portmoot/restart`.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/enable",
    params(("name" = String, Path)),
    responses((status = 200, body = Switched), (status = "4XX", body = Problem))
)]
pub(crate) async fn enable(
    State(api): State<Api>,
    Caller(by): Caller,
    source: Source,
    Path(name): Path<String>,
) -> ApiResult<Json<Switched>> {
    switch(api, by, source, name, Switch::Enable).await
}

async fn switch(
    api: Api,
    by: Arc<Participant>,
    Source(address): Source,
    name: String,
    switch: Switch,
) -> ApiResult<Json<Switched>> {
    if switch == Switch::Enable {
        api.authorize_giving(&by, RESTART, None)?;
    } else {
        api.authorize(&by, RESTART, None)?;
    }
    let registry = Arc::clone(&api.registry);
    let server = name.clone();
    // A caller that leaves does not leave it half done.
    let done = tokio::spawn(async move { registry.switch(&server, switch, &by, address).await });
    let failed = |_| Refusal::new(RefusalCode::Internal, "the server could not be switched");
    done.await.map_err(failed)??;
    Ok(Json(Switched {
        server: name,
        enabled: switch != Switch::Disable,
    }))
}

/// A server that was restarted, disabled or enabled.
#[derive(Serialize, ToSchema)]
pub(crate) struct Switched {
    /// The server.
    pub server: String,
    /// Whether it is enabled now.
    pub enabled: bool,
}
