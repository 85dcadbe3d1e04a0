//! Routes of the API.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Router, http::header};
use control::Registry;
use identity::AccessJournal;
use model::{Refusal, RefusalCode};
use signin::{Connect, SignIn};

use crate::{
    accounts, audit, audit_calls, brakes, calls, config_file::ConfigFile, configured,
    console_codes, console_codes::ConsoleCodes, document, error::ApiError, health, logins,
    messages, metrics, participants, pins, plans, proposal_list, proposals, rights, rule_adding,
    rule_offers, rules, schemas, servers, state::Api, switches, tokens, tools,
};

/// The router of all routes. Any other path answers 404 with a hint.
pub fn router(
    registry: &Arc<Registry>,
    access: &Arc<AccessJournal>,
    sign_in: Option<Arc<SignIn>>,
    connect: &Arc<Connect>,
    file: Option<Arc<ConfigFile>>,
    codes: &Arc<ConsoleCodes>,
) -> Router {
    let schemas =
        |router: Router<Api>, path: &&'static str| router.route(path, post(schemas::answer));
    let registry_routes = registry::METHODS.iter().fold(Router::new(), schemas);
    Router::new()
        .merge(registry_routes)
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/audit", get(audit::entries))
        .route("/api/v1/audit/verify", get(audit::check))
        .route("/api/v1/audit/calls", get(audit_calls::calls))
        .route("/api/v1/audit/calls/{id}", get(audit_calls::timeline))
        .route("/api/v1/servers", get(servers::servers))
        .route(
            "/api/v1/servers/{name}",
            get(servers::server)
                .put(configured::put)
                .delete(configured::remove),
        )
        .route("/api/v1/servers/{name}/logs", get(servers::logs))
        .route("/api/v1/servers/{name}/restart", post(switches::restart))
        .route("/api/v1/servers/{name}/disable", post(switches::disable))
        .route("/api/v1/servers/{name}/enable", post(switches::enable))
        .route("/api/v1/accounts", get(accounts::accounts))
        .route(
            "/api/v1/servers/{name}/login",
            get(accounts::callback).post(accounts::begin),
        )
        .route(
            "/api/v1/servers/{name}/login/complete",
            post(accounts::complete),
        )
        .route(
            "/api/v1/servers/{name}/login/device",
            post(accounts::begin_device),
        )
        .route(
            "/api/v1/servers/{name}/login/device/{id}",
            post(accounts::poll_device),
        )
        .route("/api/v1/servers/{name}/logout", post(accounts::logout))
        .route("/api/v1/servers/{name}/key", post(accounts::enter_key))
        .route("/api/v1/connect-code", post(accounts::connect_code))
        .route(
            "/api/v1/console-codes",
            post(console_codes::console_code).layer(Extension(Arc::clone(codes))),
        )
        .route("/api/v1/pins", get(pins::pins))
        .route(
            "/api/v1/pins/{server}",
            get(pins::of_server).delete(pins::reset),
        )
        .route("/api/v1/pins/{server}/approve", post(pins::approve))
        .route("/api/v1/tools", get(tools::tools))
        .route("/api/v1/tools/{name}", get(tools::tool))
        .route("/api/v1/tools/{name}/call", post(calls::call))
        .route("/api/v1/results/{id}", get(calls::kept_result))
        .route("/api/v1/tokens", get(tokens::tokens).post(tokens::issue))
        .route("/api/v1/tokens/{name}", delete(tokens::revoke))
        .route("/api/v1/tokens/{name}/rotate", post(tokens::rotate))
        .route("/api/v1/logins", post(logins::one_time_code))
        .route("/api/v1/clients", get(logins::clients))
        .route("/api/v1/clients/{client}", delete(logins::revoke_client))
        .route("/api/v1/consents", get(logins::consents))
        .route(
            "/api/v1/consents/{client}",
            delete(logins::withdraw_consent),
        )
        .route("/api/v1/participants", get(participants::participants))
        .route("/api/v1/participants/{id}/can", get(rights::can))
        .route(
            "/api/v1/participants/{id}/grants",
            post(participants::grant).delete(participants::clear),
        )
        .route(
            "/admin/participants/{id}/capabilities",
            post(participants::promote),
        )
        .route("/api/v1/plans", post(plans::propose))
        .route("/api/v1/proposals", get(proposal_list::proposals))
        .route("/api/v1/proposals/{id}", get(proposals::proposal))
        .route("/api/v1/proposals/{id}/approve", post(proposals::approve))
        .route("/api/v1/proposals/{id}/reject", post(proposals::reject))
        .route("/api/v1/proposals/{id}/claim", post(proposals::claim))
        .route("/api/v1/proposals/{id}/extend", post(proposals::extend))
        .route("/api/v1/proposals/{id}/amend", post(proposals::amend))
        .route("/api/v1/proposals/{id}/withdraw", post(proposals::withdraw))
        .route("/api/v1/proposals/{id}/rules", get(rules::explain))
        .route("/api/v1/topics/{topic}/messages", post(messages::send))
        .route(
            "/api/v1/topics/{topic}/participants/{id}/pause",
            post(brakes::pause),
        )
        .route(
            "/api/v1/topics/{topic}/participants/{id}/resume",
            post(brakes::resume),
        )
        .route("/api/v1/proposals/{id}/like", post(rule_adding::like))
        .route(
            "/api/v1/topics/{topic}/rules",
            get(rules::rules).post(rule_adding::add),
        )
        .route("/api/v1/topics/{topic}/rules/replay", post(rules::replay))
        .route(
            "/api/v1/topics/{topic}/rules/offers",
            get(rule_offers::offers),
        )
        .route(
            "/api/v1/topics/{topic}/rules/offers/{digest}/accept",
            post(rule_offers::accept),
        )
        .route(
            "/api/v1/topics/{topic}/rules/offers/{digest}/dismiss",
            post(rule_offers::dismiss),
        )
        .route(
            "/api/v1/topics/{topic}/rules/{rule}/end",
            post(rule_offers::end),
        )
        .fallback(unknown_path)
        .with_state(Api::new(registry, access, sign_in, connect, file))
}

async fn openapi() -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        document::document(),
    )
        .into_response()
}

async fn unknown_path() -> ApiError {
    Refusal::new(RefusalCode::UnknownTarget, "no such page")
        .hint("MCP is at /mcp, the API at /api/v1/")
        .into()
}
