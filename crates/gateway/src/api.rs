//! `/api/v1` for the CLI and scripts, and the pages for machines that watch: `/healthz`, `/readyz`, `/metrics`.
//!
//! Owns the REST spelling. Who asks is found out as everywhere else, and asked for the gateway's own capabilities
//! (`portmoot/servers`, `portmoot/tokens`, `portmoot/grants`). Must not know how anything works that it shows.

mod metrics;
mod pages;
mod people;
mod proposals;
mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use model::{Refusal, RefusalCode};
use wire::mcp::ListKind;

use pages::{No, Page, Pages, lost};
use schema::{Health, NewToken, Ready, Server, Servers, Token, TokenMade, TokensShown, Tool, Tools, Waiting};
use upstream::State as UpstreamState;

use crate::caller::Caller;
use crate::gate::Gate;
use crate::office::{Granting, Office, Tokens};
use crate::pump::Pump;
use crate::tokens::TokenRequest;

/// The OpenAPI document, as it stands in `docs/openapi.json`.
pub fn document() -> String {
    let mut document = schema::document();
    document.merge(people::document());
    document.merge(proposals::document());
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The pages' router.
pub fn router(gate: &Arc<Gate>, office: &Arc<Office>) -> Router {
    let tokens = Arc::new(Tokens { office: Arc::clone(office), gate: Arc::clone(gate) });
    let granting = Arc::new(Granting { office: Arc::clone(office), gate: Arc::clone(gate) });
    let pages = Pages { gate: Arc::clone(gate), tokens, granting };
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(show_metrics))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/servers", get(servers))
        .route("/api/v1/servers/{name}", get(server))
        .route("/api/v1/tools", get(tools))
        .route("/api/v1/tools/{name}", get(tool))
        .route("/api/v1/tokens", get(list_tokens).post(issue))
        .route("/api/v1/tokens/{name}", delete(revoke))
        .merge(proposals::router())
        .merge(people::router())
        .fallback(|| async {
            No(
                StatusCode::NOT_FOUND,
                Refusal::new(RefusalCode::UnknownTarget, "no such page")
                    .hint("MCP is at /mcp, the API at /api/v1/"),
            )
        })
        .with_state(pages)
}

async fn healthz() -> Json<Health> {
    Json(Health { status: "alive".into(), version: env!("CARGO_PKG_VERSION").into() })
}

/// Ready when no server is still starting for the first time, and what must be recorded can be. What is degraded or down is told, by name and state only.
async fn readyz(State(pages): State<Pages>) -> (StatusCode, Json<Ready>) {
    let states = pages.gate.upstreams().into_iter().map(|upstream| upstream.status());
    let waiting: Vec<Waiting> = states
        .filter(|status| status.state != UpstreamState::Ready)
        .map(|status| Waiting {
            name: status.name.to_string(),
            state: status.state.as_str().into(),
            reason: status.reason,
        })
        .collect();
    let starting = waiting.iter().any(|waiting| waiting.state == UpstreamState::Starting.as_str());
    let audit = (!pages.gate.audit().is_available()).then(|| "unavailable".to_owned());
    let ready = !starting && audit.is_none();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Ready { ready, servers: waiting, audit }))
}

async fn show_metrics(State(pages): State<Pages>, headers: HeaderMap) -> Page<Response> {
    // Names of servers and counts only; still nobody's business where tokens are asked for.
    let who = pages.who(&headers)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], metrics::render(&pages.gate, &who)).into_response())
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

async fn servers(State(pages): State<Pages>, headers: HeaderMap) -> Page<Json<Servers>> {
    let who = pages.may(&headers, "portmoot/servers")?;
    Ok(Json(Servers { servers: all_servers(&pages, &who) }))
}

async fn server(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Page<Json<Server>> {
    let who = pages.may(&headers, "portmoot/servers")?;
    // Of a participant that serves in several topics, where it is.
    let named = all_servers(&pages, &who).into_iter().filter(|server| server.name == name);
    let found = named.min_by_key(|server| server.state == UpstreamState::Down.as_str());
    let found = found.ok_or_else(|| {
        Refusal::new(RefusalCode::UnknownTarget, format!("there is no server `{name}`"))
            .hint("list them: portmoot servers ls")
    })?;
    Ok(Json(found))
}

/// The configured servers, then the participants that serve, once for each topic that may be known.
fn all_servers(pages: &Pages, who: &Participant) -> Vec<Server> {
    let mut servers: Vec<Server> =
        pages.gate.upstreams().iter().map(|upstream| Server::of(upstream, None)).collect();
    let mut topics = pages.gate.topics();
    topics.retain(|pump| pages.gate.may_know(who, pump.name()));
    topics.sort_by(|one, other| one.name().as_str().cmp(other.name().as_str()));
    for pump in topics {
        let serving = pump.servers();
        servers.extend(serving.iter().map(|upstream| Server::of(upstream, Some(pump.name().as_str()))));
    }
    servers
}

async fn tools(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, String>>,
) -> Page<Json<Tools>> {
    let topic = query.get("topic").map_or("main", String::as_str);
    let (pump, caller) = pages.visit(&headers, topic)?;
    pump.wait_for_servers().await;
    Ok(Json(Tools { tools: seen(&pump, &caller, |_| true) }))
}

async fn tool(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Page<Json<Tool>> {
    let topic = query.get("topic").map_or("main", String::as_str);
    let (pump, caller) = pages.visit(&headers, topic)?;
    pump.wait_for_servers().await;
    let found = seen(&pump, &caller, |public| public == name).into_iter().next();
    let unknown = || {
        Refusal::new(RefusalCode::UnknownTarget, format!("there is no tool `{name}`"))
            .hint("list them: portmoot tools ls")
    };
    Ok(Json(found.ok_or_else(unknown)?))
}

/// The tools that a caller sees, under their public names.
fn seen(pump: &Pump, caller: &Caller, wanted: impl Fn(&str) -> bool) -> Vec<Tool> {
    let seats = pump.seats();
    pump.with(|topic| {
        let listings = topic.list(caller.link(), topic::ListKind::Tools);
        let tool = |listing: &topic::Listing<'_>| {
            let seat = seats.iter().find(|seat| seat.id == *listing.upstream)?;
            let manifest = seat.upstream.manifest();
            let list = manifest.list(ListKind::Tools);
            let item = list.items.iter().find(|item| item.key == **listing.own)?;
            let text =
                |key: &str| item.get(key).and_then(|raw| json::text(&raw).map(|text| text.into_owned()));
            let raw = |key: &str| item.get(key).and_then(|raw| serde_json::from_slice(&raw).ok());
            Some(Tool {
                name: listing.public.to_string(),
                server: listing.upstream.to_string(),
                title: text("title"),
                description: text("description"),
                input_schema: raw("inputSchema"),
                output_schema: raw("outputSchema"),
                annotations: raw("annotations"),
            })
        };
        listings.iter().filter(|listing| wanted(&listing.public)).filter_map(tool).collect()
    })
}

async fn list_tokens(State(pages): State<Pages>, headers: HeaderMap) -> Page<Json<TokensShown>> {
    pages.may(&headers, "portmoot/tokens")?;
    let tokens = pages.tokens.office.issued().iter().map(Token::of).collect();
    Ok(Json(TokensShown { tokens }))
}

async fn issue(
    State(pages): State<Pages>,
    headers: HeaderMap,
    wish: Result<Json<NewToken>, JsonRejection>,
) -> Page<(StatusCode, Json<TokenMade>)> {
    let by = pages.may(&headers, "portmoot/tokens")?;
    let Json(wish) = wish.map_err(|no| Refusal::new(RefusalCode::Malformed, no.body_text()))?;
    let request = TokenRequest {
        name: wish.name,
        capabilities: wish.capabilities,
        topics: wish.topics,
        lifetime_ms: wish.lifetime_ms,
    };
    let tokens = Arc::clone(&pages.tokens);
    let made =
        tokio::task::spawn_blocking(move || tokens.issue(&by.id, request)).await.map_err(|_| lost())?;
    let (token, issued) = made?;
    Ok((StatusCode::CREATED, Json(TokenMade { shown: Token::of(&issued), token })))
}

async fn revoke(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Page<StatusCode> {
    let by = pages.may(&headers, "portmoot/tokens")?;
    let tokens = Arc::clone(&pages.tokens);
    tokio::task::spawn_blocking(move || tokens.revoke(&by.id, &name)).await.map_err(|_| lost())??;
    Ok(StatusCode::NO_CONTENT)
}
