//! Tools: `/api/v1/tools`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use gateway::Dispatch;
use model::{Capabilities, ListKind, ParticipantId, Refusal, RefusalCode};
use upstream::Manifest;
use wire::mcp::list::Item;

use crate::bearer::bearer;
use crate::error::ApiResult;
use crate::schema::{Problem, Tool, Tools};
use crate::state::Api;

/// The topic if the request names none.
const DEFAULT_TOPIC: &str = "main";

/// The tools that the caller may call or propose in a topic.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    params(("topic" = Option<String>, Query)),
    responses((status = 200, body = Tools), (status = "4XX", body = Problem))
)]
pub(crate) async fn tools(
    State(api): State<Api>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, String>>,
) -> ApiResult<Json<Tools>> {
    Ok(Json(Tools { tools: listed(&api, &headers, &query, None).await? }))
}

/// One of these tools.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}",
    params(("name" = String, Path), ("topic" = Option<String>, Query)),
    responses((status = 200, body = Tool), (status = "4XX", body = Problem))
)]
pub(crate) async fn tool(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> ApiResult<Json<Tool>> {
    let found = listed(&api, &headers, &query, Some(&name)).await?.into_iter().next();
    let unknown = || {
        Refusal::new(RefusalCode::UnknownTarget, format!("there is no tool `{name}`"))
            .hint("list them: portmoot tools ls")
    };
    Ok(Json(found.ok_or_else(unknown)?))
}

/// The tools of the topic in the query, or the one of this public name. Waits for servers that are starting.
async fn listed(
    api: &Api,
    headers: &HeaderMap,
    query: &HashMap<String, String>,
    name: Option<&str>,
) -> ApiResult<Vec<Tool>> {
    let topic = query.get("topic").map_or(DEFAULT_TOPIC, String::as_str);
    let (dispatch, caller) = api.registry.member(bearer(headers), topic)?;
    dispatch.wait_for_servers().await;
    let capabilities = api.registry.in_force(&caller, Some(dispatch.name()));
    Ok(visible(&dispatch, &capabilities, name))
}

/// The tools that a caller with these capabilities may call or propose, under their public names.
fn visible(dispatch: &Dispatch, capabilities: &Arc<Capabilities>, name: Option<&str>) -> Vec<Tool> {
    let snapshot = dispatch.with(|topic| topic.list_snapshot_of(capabilities));
    let manifests: Vec<(ParticipantId, Vec<Arc<Manifest>>)> =
        dispatch.servers().iter().map(|server| (server.id.clone(), server.manifests())).collect();
    let mut items: HashMap<(&ParticipantId, &str), &Item> = HashMap::new();
    for (server, manifests) in &manifests {
        for item in manifests.iter().flat_map(|manifest| &manifest.list(ListKind::Tools).items) {
            items.entry((server, item.key.as_str())).or_insert(item);
        }
    }
    let listings = snapshot.list(ListKind::Tools);
    let wanted = listings.iter().filter(|listing| name.is_none_or(|name| listing.public == name));
    let tool = |listing: &topic::Listing<'_>| {
        let item = items.get(&(listing.upstream, &**listing.own))?;
        Some(Tool::of(item, &listing.public, listing.upstream))
    };
    wanted.filter_map(tool).collect()
}
