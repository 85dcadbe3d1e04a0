//! Tools: `/api/v1/tools`.

use serde::Serialize;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use utoipa::ToSchema;

use axum::extract::{FromRequestParts, Path, Query};
use axum::{Json, http::request::Parts};
use gateway::Dispatch;
use identity::SERVERS;
use model::{Capabilities, ListKind, ParticipantId, Refusal, RefusalCode};
use upstream::{Manifest, today};
use wire::mcp::list::Item;
use wire::time::rfc3339;

use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, presented};

/// The topic if the request names none.
pub(crate) const DEFAULT_TOPIC: &str = "main";

/// The tools that the caller may call or propose in a topic.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    params(("topic" = Option<String>, Query)),
    responses((status = 200, body = Tools), (status = "4XX", body = Problem))
)]
pub(crate) async fn tools(
    Visitor {
        dispatch,
        caller,
        sees_servers,
    }: Visitor,
) -> Json<Tools> {
    Json(Tools {
        tools: visible(&dispatch, &caller, None, sees_servers),
    })
}

/// One of these tools.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}",
    params(("name" = String, Path), ("topic" = Option<String>, Query)),
    responses((status = 200, body = Tool), (status = "4XX", body = Problem))
)]
pub(crate) async fn tool(
    Visitor {
        dispatch,
        caller,
        sees_servers,
    }: Visitor,
    Path(name): Path<String>,
) -> ApiResult<Json<Tool>> {
    let mut found = visible(&dispatch, &caller, Some(&name), sees_servers)
        .into_iter()
        .next();
    if sees_servers && let Some(tool) = &mut found {
        tool.original = original(&dispatch, &caller.0, tool);
    }
    match found {
        Some(tool) => Ok(Json(tool)),
        None => {
            let message = format!("there is no tool `{name}`");
            let refusal = Refusal::new(RefusalCode::UnknownTarget, message)
                .hint("list them: portmoot tools ls");
            Err(refusal.into())
        }
    }
}

/// A caller in the topic of the query, after the first start of the topic's servers.
pub(crate) struct Visitor {
    dispatch: Arc<Dispatch>,
    /// The caller, with what it may do there now.
    caller: (ParticipantId, Arc<Capabilities>),
    /// Whether the caller sees servers, and so how they define what the configuration changes.
    sees_servers: bool,
}

impl FromRequestParts<Api> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Query(query) = Query::<HashMap<String, String>>::from_request_parts(parts, api).await?;
        let topic = query.get("topic").map_or(DEFAULT_TOPIC, String::as_str);
        let (dispatch, caller) = api.registry.member(presented(parts), topic, None)?;
        dispatch.wait_for_servers().await;
        let capabilities = api.registry.in_force(&caller, Some(dispatch.name()));
        let sees_servers = api.authorize(&caller, SERVERS, None).is_ok();
        Ok(Self {
            dispatch,
            caller: (caller.id.clone(), capabilities),
            sees_servers,
        })
    }
}

/// The tools that a caller with these capabilities may call or propose, under their public names;
/// with their uses for one who sees servers.
fn visible(
    dispatch: &Dispatch,
    (who, capabilities): &(ParticipantId, Arc<Capabilities>),
    name: Option<&str>,
    sees_servers: bool,
) -> Vec<Tool> {
    let snapshot = dispatch.with(|topic| topic.list_snapshot_of(who, capabilities));
    let manifests = manifests(dispatch, who);
    let mut items: HashMap<(&ParticipantId, &str), &Item> = HashMap::new();
    for (server, manifests) in &manifests {
        for item in manifests
            .iter()
            .flat_map(|manifest| &manifest.list(ListKind::Tools).items)
        {
            items.entry((server, item.key.as_str())).or_insert(item);
        }
    }
    let mut tools = Vec::new();
    for listing in &snapshot.list(ListKind::Tools) {
        if name.is_some_and(|name| listing.public != name) {
            continue;
        }
        let Some(item) = items.get(&(listing.upstream, &**listing.own)) else {
            continue;
        };
        let mut tool = Tool::of(item, &listing.public, listing.upstream, listing.held);
        if sees_servers {
            tool.uses = ToolUses::of(dispatch, listing.upstream, listing.own);
        }
        tools.push(tool);
    }
    tools
}

/// Definition by its server of a tool that the configuration changes.
fn original(dispatch: &Dispatch, who: &ParticipantId, tool: &Tool) -> Option<Original> {
    let server = dispatch.server(&ParticipantId::new(&tool.server).ok()?)?;
    let curation = server.upstream.spec().config.curation.as_deref()?;
    let manifests = server.manifests_for(who);
    let altered = manifests.iter().flat_map(|manifest| {
        manifest
            .tools
            .items
            .iter()
            .map(move |item| (manifest, item))
    });
    let public =
        |own: &str| topic::public_name(&server.upstream.spec().config.prefix, curation.name(own));
    let mut found = altered.filter(|(_, item)| public(&item.key) == tool.name);
    let (manifest, item) = found.next()?;
    let is_changed =
        manifest.altered.contains_key(&item.key) || curation.name(&item.key) != item.key;
    let definition = manifest.original(&item.key).filter(|_| is_changed)?;
    let preset = curation.presets(&item.key).iter();
    let preset =
        preset.filter_map(|(name, value)| Some((name.clone(), serde_json::from_str(value).ok()?)));
    let definition = serde_json::from_slice(&definition.raw).ok()?;
    Some(Original {
        definition,
        preset: preset.collect(),
    })
}

/// Lists of the servers of a topic to a participant, in the order of the configuration; the
/// gateway's own last.
fn manifests(dispatch: &Dispatch, who: &ParticipantId) -> Vec<(ParticipantId, Vec<Arc<Manifest>>)> {
    let servers = dispatch.servers();
    let listed = servers
        .iter()
        .map(|server| (server.id.clone(), server.manifests_for(who)));
    listed
        .chain([(ParticipantId::gateway(), vec![dispatch.own_manifest()])])
        .collect()
}

/// The tools that the caller may call or propose in a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tools {
    /// By server in the order of the configuration, then in the order of each server; the gateway's
    /// own last.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tool {
    /// Its public name.
    pub name: String,
    /// Its name for clients that accept letters, digits, `_` and `-` only, such as Claude Desktop,
    /// if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrow_name: Option<String>,
    /// Its server.
    pub server: String,
    /// A title for people. The server writes it: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description. The server writes it: untrusted.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(rename = "inputSchema")]
    pub input_schema: Option<Value>,
    /// JSON Schema of its structured result.
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How it may be called as a task, as its server lists it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// Whether the caller may only propose calls of it.
    pub held: bool,
    /// Hints about its effects. The server writes them: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Definition by its server, if the configuration changes that. Only in answers about one tool,
    /// for callers with `portmoot/servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// When it was called last, by any caller. Only for tools of configured servers, and for
    /// callers with `portmoot/servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<ToolUses>,
}

/// When a tool was called last.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolUses {
    /// The server's own name of it.
    pub own_name: String,
    /// The day from which on its calls are counted, such as `2026-11-27`, in UTC: the first on
    /// which the gateway saw it listed.
    pub counted_since: String,
    /// The day of the last call, in UTC; absent if there was none since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_call: Option<String>,
    /// The days since the last call, or since calls are counted.
    pub idle_days: u64,
}

impl ToolUses {
    fn of(dispatch: &Dispatch, server: &ParticipantId, own: &str) -> Option<Self> {
        let server = dispatch.server(server)?;
        // Calls of a server in the room are not counted: it is no configured one.
        if server.serves() {
            return None;
        }
        let found = server.upstream.tool_use(own)?;
        Some(Self {
            own_name: own.to_owned(),
            counted_since: date(found.since),
            last_call: found.last.map(date),
            idle_days: found.idle_days(today()),
        })
    }
}

/// A day, counted from 1970, as `2026-11-27`.
fn date(day: u64) -> String {
    let mut date = rfc3339(day.saturating_mul(24 * 3_600 * 1_000));
    date.truncate("2026-11-27".len());
    date
}

/// A tool as its server defines it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Original {
    /// The definition. The server writes it: untrusted.
    pub definition: Value,
    /// Arguments that every call of it has by configuration, with their values.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    #[schema(value_type = Object)]
    pub preset: serde_json::Map<String, Value>,
}

impl Tool {
    /// A tool as its server lists it, under its public name.
    pub(crate) fn of(item: &Item, public: &str, server: &ParticipantId, held: bool) -> Self {
        Self {
            name: public.to_owned(),
            narrow_name: topic::narrow_name(public),
            server: server.to_string(),
            title: text(item, "title"),
            description: text(item, "description"),
            input_schema: value(item, "inputSchema"),
            output_schema: value(item, "outputSchema"),
            execution: value(item, "execution"),
            held,
            annotations: value(item, "annotations"),
            original: None,
            uses: None,
        }
    }
}

/// A member of a definition.
fn value(item: &Item, key: &str) -> Option<Value> {
    serde_json::from_slice(&item.get(key)?).ok()
}

/// A member of a definition that is a text.
fn text(item: &Item, key: &str) -> Option<String> {
    Some(json::text(&item.get(key)?)?.into_owned())
}
