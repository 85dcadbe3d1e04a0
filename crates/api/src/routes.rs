//! Routes of the API, and their OpenAPI document.

use std::sync::Arc;

use access::AccessJournal;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Router, http::header};
use control::Registry;
use model::{Refusal, RefusalCode};
use signin::{Connect, SignIn};
use utoipa::OpenApi;

use crate::{
    accounts, error::ApiError, health, logins, metrics, participants, pins, proposals, rights, schemas,
    servers, state::Api, switches,
};
use crate::{tokens, tools};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Portmoot",
        description = "The API of a running gateway, as the command `portmoot` uses it."
    ),
    paths(
        health::healthz,
        health::readyz,
        metrics::metrics,
        servers::servers,
        servers::server,
        servers::logs,
        switches::restart,
        switches::disable,
        switches::enable,
        accounts::accounts,
        accounts::callback,
        accounts::begin,
        accounts::complete,
        accounts::begin_device,
        accounts::poll_device,
        accounts::logout,
        accounts::connect_code,
        pins::pins,
        pins::of_server,
        pins::approve,
        pins::reset,
        tools::tools,
        tools::tool,
        tokens::tokens,
        tokens::issue,
        tokens::rotate,
        tokens::revoke,
        logins::one_time_code,
        logins::clients,
        logins::revoke_client,
        logins::consents,
        logins::withdraw_consent,
        participants::participants,
        rights::can,
        participants::grant,
        participants::clear,
        participants::promote,
        proposals::proposals,
        proposals::proposal,
        proposals::approve,
        proposals::reject,
        proposals::withdraw,
    )
)]
struct Document;

/// The OpenAPI document, byte for byte as in `docs/openapi.json`.
pub fn document() -> String {
    // The document has only strings as keys, which JSON can always hold.
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The router of all routes. Any other path answers 404 with a hint.
pub fn router(
    registry: &Arc<Registry>,
    access: &Arc<AccessJournal>,
    sign_in: Option<Arc<SignIn>>,
    connect: &Arc<Connect>,
) -> Router {
    let schemas = |router: Router<Api>, path: &&'static str| router.route(path, post(schemas::answer));
    let registry_routes = registry::METHODS.iter().fold(Router::new(), schemas);
    Router::new()
        .merge(registry_routes)
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/servers", get(servers::servers))
        .route("/api/v1/servers/{name}", get(servers::server))
        .route("/api/v1/servers/{name}/logs", get(servers::logs))
        .route("/api/v1/servers/{name}/restart", post(switches::restart))
        .route("/api/v1/servers/{name}/disable", post(switches::disable))
        .route("/api/v1/servers/{name}/enable", post(switches::enable))
        .route("/api/v1/accounts", get(accounts::accounts))
        .route("/api/v1/servers/{name}/login", get(accounts::callback).post(accounts::begin))
        .route("/api/v1/servers/{name}/login/complete", post(accounts::complete))
        .route("/api/v1/servers/{name}/login/device", post(accounts::begin_device))
        .route("/api/v1/servers/{name}/login/device/{id}", post(accounts::poll_device))
        .route("/api/v1/servers/{name}/logout", post(accounts::logout))
        .route("/api/v1/connect-code", post(accounts::connect_code))
        .route("/api/v1/pins", get(pins::pins))
        .route("/api/v1/pins/{server}", get(pins::of_server).delete(pins::reset))
        .route("/api/v1/pins/{server}/approve", post(pins::approve))
        .route("/api/v1/tools", get(tools::tools))
        .route("/api/v1/tools/{name}", get(tools::tool))
        .route("/api/v1/tokens", get(tokens::tokens).post(tokens::issue))
        .route("/api/v1/tokens/{name}", delete(tokens::revoke))
        .route("/api/v1/tokens/{name}/rotate", post(tokens::rotate))
        .route("/api/v1/logins", post(logins::one_time_code))
        .route("/api/v1/clients", get(logins::clients))
        .route("/api/v1/clients/{client}", delete(logins::revoke_client))
        .route("/api/v1/consents", get(logins::consents))
        .route("/api/v1/consents/{client}", delete(logins::withdraw_consent))
        .route("/api/v1/participants", get(participants::participants))
        .route("/api/v1/participants/{id}/can", get(rights::can))
        .route("/api/v1/participants/{id}/grants", post(participants::grant).delete(participants::clear))
        .route("/admin/participants/{id}/capabilities", post(participants::promote))
        .route("/api/v1/proposals", get(proposals::proposals))
        .route("/api/v1/proposals/{id}", get(proposals::proposal))
        .route("/api/v1/proposals/{id}/approve", post(proposals::approve))
        .route("/api/v1/proposals/{id}/reject", post(proposals::reject))
        .route("/api/v1/proposals/{id}/withdraw", post(proposals::withdraw))
        .fallback(unknown_path)
        .with_state(Api::new(registry, access, sign_in, connect))
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

async fn unknown_path() -> ApiError {
    Refusal::new(RefusalCode::UnknownTarget, "no such page")
        .hint("MCP is at /mcp, the API at /api/v1/")
        .into()
}
