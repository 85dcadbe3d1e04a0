//! Servers of the configuration file: `PUT` and `DELETE` of `/api/v1/servers/{name}`.

use std::net::IpAddr;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use identity::CONFIGURE;
use model::{Refusal, RefusalCode};
use serde::Serialize;
use serde_json::{Map, Value};
use setup::NewEntry;
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::entry;
use utoipa::ToSchema;

use crate::config_file::{Done, Wish};
use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Body, Caller, address, presented};

/// The keys of a server in the order in which a person writes them; all others follow.
const ORDER: [&str; 8] = [
    "type", "command", "args", "cwd", "env", "url", "headers", "prefix",
];

/// Adds a server to the configuration file, or changes it. Needs the operator key.
///
/// The body has the keys of `[servers.NAME]`. The file is checked and written as the command
/// `portmoot add` does, and the gateway takes it over before it answers; if it cannot, the file
/// stays as it was. With `If-None-Match: *` no server is replaced.
#[utoipa::path(
    put,
    path = "/api/v1/servers/{name}",
    params(("name" = String, Path), ("If-None-Match" = Option<String>, Header)),
    request_body(content = serde_json::Value, description = "The keys of the server, such as `command` and `args`, or `url`."),
    responses(
        (status = 200, body = ConfiguredServer, description = "The server was there before."),
        (status = 201, body = ConfiguredServer, description = "The server is new."),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn put(
    State(api): State<Api>,
    operator: Operator,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: ApiResult<Body<Map<String, Value>>>,
) -> ApiResult<(StatusCode, Json<ConfiguredServer>)> {
    let new = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|etag| etag == "*");
    api.registry.refuse_paused(&operator.by.id, None)?;
    // A stranger does not learn what is wrong with the body.
    let body = operator
        .is_operator
        .then_some(body)
        .transpose()?
        .map(|Body(keys)| keys);
    let fields = ordered(body.unwrap_or_default());
    let notes = notes(&fields);
    let (was_there, shown) = changed(api, operator, name, Wish::Put { fields, new }, notes).await?;
    Ok((
        if was_there {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        },
        Json(shown),
    ))
}

/// Takes a server out of the configuration file. Needs the operator key.
///
/// The gateway ends it before it answers. Its account, pins and log stay for a server of the same
/// name.
#[utoipa::path(
    delete,
    path = "/api/v1/servers/{name}",
    params(("name" = String, Path)),
    responses(
        (status = 200, body = ConfiguredServer),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    operator: Operator,
    Path(name): Path<String>,
) -> ApiResult<Json<ConfiguredServer>> {
    let (_, shown) = changed(api, operator, name, Wish::Remove, Vec::new()).await?;
    Ok(Json(shown))
}

/// A server of the configuration file.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConfiguredServer {
    /// The server.
    pub server: String,
    /// The configuration file.
    pub file: String,
    /// Whether the file was changed; false if it said the same before.
    pub changed: bool,
    /// Sentences for the operator about keys that have no effect, or a surprising one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A caller, and whether it has shown the operator key. To be the local user is not enough: where
/// callers need no token every program of the machine is.
pub(crate) struct Operator {
    pub(crate) by: Arc<Participant>,
    pub(crate) is_operator: bool,
    /// The address of the request.
    pub(crate) address: Option<IpAddr>,
}

impl FromRequestParts<Api> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Caller(by) = Caller::from_request_parts(parts, api).await?;
        let key = presented(parts).bearer;
        Ok(Self {
            by,
            is_operator: key.is_some_and(|key| api.access.is_operator_key(key)),
            address: address(parts),
        })
    }
}

/// Makes a change, and records how it ended.
async fn changed(
    api: Api,
    Operator {
        by,
        is_operator,
        address,
    }: Operator,
    name: String,
    wish: Wish,
    notes: Vec<String>,
) -> ApiResult<(bool, ConfiguredServer)> {
    let permit = api.registry.audit.reserve_of(&by.id)?;
    let permit = permit.from_address(address);
    let failed = |_| Refusal::new(RefusalCode::Internal, "the change was interrupted");
    // A caller that leaves does not leave it half done.
    let done = tokio::spawn(async move {
        let word = if matches!(wish, Wish::Remove) {
            "removed"
        } else {
            "configured"
        };
        if !is_operator {
            let refusal = no_operator();
            let from = by.id.as_str();
            let why = format!("{}: {word}", refusal.code.as_str());
            let refused = entry(None, from, CONFIGURE, RecordedVerdict::Refused);
            // It costs its sender little.
            api.registry.audit.write_counted(
                permit,
                &AuditEntry {
                    to: &[&name],
                    why: Some(&why),
                    ..refused
                },
            );
            return Err(refusal);
        }
        let end = try_change(&api, &name, wish).await;
        permit.write_change((CONFIGURE, &name, None), by.id.as_str(), word, &end);
        let file = api
            .file
            .as_ref()
            .map(|file| file.shown())
            .unwrap_or_default();
        end.map(|Done { was_there, changed }| {
            (
                was_there,
                ConfiguredServer {
                    server: name,
                    file,
                    changed,
                    notes,
                },
            )
        })
    });
    Ok(done.await.map_err(failed)??)
}

async fn try_change(api: &Api, name: &str, wish: Wish) -> Result<Done, Refusal> {
    let Some(file) = &api.file else {
        let refusal = Refusal::new(
            RefusalCode::Unsupported,
            "this gateway has no configuration file to change",
        );
        return Err(refusal.hint("start it with `portmoot serve --config FILE`"));
    };
    setup::check_name(name).map_err(|why| {
        let message = format!(
            "`{}` cannot be the name of a server: {why}",
            name.escape_debug()
        );
        Refusal::new(RefusalCode::Malformed, message)
    })?;
    if let Wish::Put { fields, .. } = &wish
        && let Some((key, _)) = fields.iter().find(|(_, value)| value.is_null())
    {
        let message = format!("`{}` is null", key.escape_debug());
        return Err(Refusal::new(RefusalCode::Malformed, message).hint("leave it out"));
    }
    let in_force = api
        .registry
        .config()
        .servers
        .iter()
        .any(|server| server.name.as_str() == name);
    file.change(name, wish, in_force).await
}

fn no_operator() -> Refusal {
    Refusal::new(RefusalCode::CapabilityViolation, "changes of the configured servers need the operator key").hint(
        "send `Authorization: Bearer KEY`; the key is the file operator.key in the gateway's data directory, which its user alone can read",
    )
}

/// The keys in the order in which a person writes them.
fn ordered(keys: Map<String, Value>) -> NewEntry {
    let mut fields: NewEntry = keys.into_iter().collect();
    fields.sort_by_key(|(key, _)| {
        ORDER
            .iter()
            .position(|known| known == key)
            .unwrap_or(ORDER.len())
    });
    fields
}

/// Says which variables, headers and parameters are in the file as they were sent though they look
/// like secrets.
fn notes(fields: &NewEntry) -> Vec<String> {
    let pairs = fields
        .iter()
        .filter(|(key, _)| ["env", "headers", "query"].contains(&key.as_str()));
    let pairs = pairs.filter_map(|(_, value)| value.as_object()).flatten();
    let secret = pairs.filter(|(name, value)| {
        value
            .as_str()
            .is_some_and(|value| setup::is_secret(name, value))
    });
    let note = |(name, _): (&String, &Value)| {
        let name = name.escape_debug();
        format!(
            "{name} is in the file as it was sent; to keep it out, send ${{NAME}} and set that variable where the gateway starts"
        )
    };
    secret.map(note).collect()
}
