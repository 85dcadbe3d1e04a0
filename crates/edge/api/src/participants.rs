//! Participants and their capabilities: `/api/v1/participants`, and the endpoint of MCPx v0.1,
//! section 11.3.

use identity::Grant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

use auth::{Participant, Wire};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::{Json, http::StatusCode, http::request::Parts};
use gateway::{Dispatch, Topic};
use identity::GRANTS;
use identity::grants::{GrantRequest, Grants};
use model::{Capabilities, Capability, ParticipantId, Refusal, RefusalCode, TopicName};
use platform::unix_ms;
use topic::Brake;
use wire::time::{read_rfc3339, rfc3339};

use crate::brakes::Pause;
use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Body, Caller, Source, blocking};

/// The query of all these routes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicQuery {
    topic: Option<String>,
}

/// The topic in the query.
pub(crate) struct InTopic(pub(crate) Option<TopicName>);

impl FromRequestParts<Api> for InTopic {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Query(TopicQuery { topic }) = Query::from_request_parts(parts, api).await?;
        let named = topic.map(|topic| TopicName::new(&topic)).transpose();
        Ok(Self(named.map_err(|error| {
            malformed(&format!("`topic` is not a topic's name: {error}"))
        })?))
    }
}

/// A caller with `portmoot/grants`, in the topic of the query or outside of topics.
pub(crate) struct Granter {
    by: Arc<Participant>,
    topic: Option<TopicName>,
}

impl FromRequestParts<Api> for Granter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let InTopic(topic) = InTopic::from_request_parts(parts, api).await?;
        let Caller(by) = Caller::from_request_parts(parts, api).await?;
        api.authorize(&by, GRANTS, topic.as_ref())?;
        if let Some(topic) = &topic {
            api.registry.enter(topic.as_str(), &by)?;
        }
        Ok(Self { by, topic })
    }
}

/// The participants in the topics that the caller may enter.
///
/// A caller with `portmoot/grants` also gets absent participants that may enter, and grants.
#[utoipa::path(
    get,
    path = "/api/v1/participants",
    params(("topic" = Option<String>, Query)),
    responses((status = 200, body = ParticipantList), (status = "4XX", body = Problem))
)]
pub(crate) async fn participants(
    State(api): State<Api>,
    Caller(caller): Caller,
    InTopic(topic): InTopic,
) -> ApiResult<Json<ParticipantList>> {
    let topics = match topic {
        Some(topic) => vec![api.registry.enter(topic.as_str(), &caller)?],
        None => api
            .registry
            .sorted_topics(|topic| api.registry.may_enter(&caller, topic)),
    };
    let mut participants = Vec::new();
    for dispatch in topics {
        let may_grant = api.holds(&caller, GRANTS, Some(dispatch.name()));
        participants.extend(entries(&api, &dispatch, may_grant).into_values());
    }
    Ok(Json(ParticipantList { participants }))
}

/// The participants of a topic by id: those that are present, and all that may enter it if the
/// caller `may_grant`.
fn entries(api: &Api, dispatch: &Dispatch, may_grant: bool) -> BTreeMap<String, ParticipantEntry> {
    let name = dispatch.name();
    let clients = if may_grant {
        clients(dispatch)
    } else {
        BTreeMap::new()
    };
    // Once, so that all entries show the same state.
    let grants = may_grant.then(|| api.registry.grants());
    let granted = |id: &ParticipantId| {
        let grants = grants.as_deref();
        grants.map_or_else(Vec::new, |grants| granted(grants, name, id))
    };
    let paused = brakes(dispatch);
    let mut entries = BTreeMap::new();
    for one in dispatch.with(Topic::participants) {
        let id = &one.person.id;
        let entry = ParticipantEntry {
            id: id.to_string(),
            topic: name.to_string(),
            role: if one.serves { "server" } else { "caller" }.into(),
            links: one.links,
            clients: clients.get(id).cloned().unwrap_or_default(),
            paused: paused.get(id).map(Pause::of),
            capabilities: texts(&one.person.capabilities),
            grants: granted(id),
        };
        entries.insert(id.to_string(), entry);
    }
    // Who else may come is for those alone who grant.
    if !may_grant {
        return entries;
    }
    for absent in api.registry.everybody() {
        let id = &absent.id;
        if entries.contains_key(id.as_str()) || !api.registry.may_enter(&absent, name) {
            continue;
        }
        let entry = ParticipantEntry {
            id: id.to_string(),
            topic: name.to_string(),
            role: "caller".into(),
            links: 0,
            clients: clients.get(id).cloned().unwrap_or_default(),
            paused: paused.get(id).map(Pause::of),
            capabilities: texts(&api.registry.in_force(&absent, Some(name))),
            grants: granted(id),
        };
        entries.insert(id.to_string(), entry);
    }
    entries
}

/// The participants of a topic that are paused.
fn brakes(dispatch: &Dispatch) -> BTreeMap<ParticipantId, Brake> {
    dispatch.with(|topic| {
        let all = topic.brakes();
        all.map(|(id, brake)| (id.clone(), brake.clone())).collect()
    })
}

/// The grants of a participant that count in a topic.
fn granted(grants: &Grants, topic: &TopicName, id: &ParticipantId) -> Vec<GrantEntry> {
    grants
        .of(id, unix_ms())
        .filter(|grant| {
            // Without a topic it counts in all.
            grant.topic.as_ref().is_none_or(|one| one == topic.as_str())
        })
        .map(GrantEntry::of)
        .collect()
}

/// The most clients of a participant that are named.
const CLIENTS_NAMED_MAX: usize = 16;
/// The longest name of a client that is shown whole, in characters.
const CLIENT_CHARS_MAX: usize = 64;

/// The names that the clients of a topic's callers give themselves, by participant.
fn clients(dispatch: &Dispatch) -> BTreeMap<ParticipantId, Vec<String>> {
    let mut all: BTreeMap<ParticipantId, Vec<String>> = BTreeMap::new();
    for (_, link, id) in dispatch.with(Topic::links) {
        let client = match link.wire {
            Wire::Mcp | Wire::Proto => client(link.client.client_info.as_deref()),
            Wire::Ws => Some("room".to_owned()),
        };
        all.entry(id).or_default().extend(client);
    }
    all.into_iter()
        .map(|(id, names)| (id, named(names)))
        .collect()
}

/// Name and version of a client, as its `Implementation` object has them.
fn client(info: Option<&[u8]>) -> Option<String> {
    let info: Value = serde_json::from_slice(info?).ok()?;
    let name = info.get("name").and_then(Value::as_str).unwrap_or_default();
    let version = info.get("version").and_then(Value::as_str);
    let whole = format!("{name} {}", version.unwrap_or_default());
    let shown: String = whole.trim().chars().take(CLIENT_CHARS_MAX).collect();
    (!shown.is_empty()).then_some(shown)
}

/// Each name once, and not too many of them.
fn named(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names.truncate(CLIENTS_NAMED_MAX);
    names
}

/// Changes the capabilities of a participant. Needs `portmoot/grants`.
///
/// The endpoint of MCPx v0.1, section 11.3; the same as `/api/v1/participants/{id}/grants`.
#[utoipa::path(
    post,
    path = "/admin/participants/{id}/capabilities",
    request_body = CapabilityChange,
    params(("id" = String, Path), ("topic" = Option<String>, Query)),
    responses(
        (status = 200, body = CapabilityChanged),
        (status = "4XX", body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(crate) async fn promote(
    state: State<Api>,
    granter: Granter,
    source: Source,
    id: Path<String>,
    change: Body<CapabilityChange>,
) -> ApiResult<Json<CapabilityChanged>> {
    grant(state, granter, source, id, change).await
}

/// Changes the capabilities of a participant. Needs `portmoot/grants`.
#[utoipa::path(
    post,
    path = "/api/v1/participants/{id}/grants",
    request_body = CapabilityChange,
    params(("id" = String, Path), ("topic" = Option<String>, Query)),
    responses(
        (status = 200, body = CapabilityChanged),
        (status = "4XX", body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(crate) async fn grant(
    State(api): State<Api>,
    Granter { by, topic }: Granter,
    Source(source): Source,
    Path(id): Path<String>,
    Body(change): Body<CapabilityChange>,
) -> ApiResult<Json<CapabilityChanged>> {
    let expires_ms = expiry(&change)?;
    let request = GrantRequest {
        participant: participant_of(&id)?,
        topic: topic.clone(),
        add: change.add,
        remove: change.remove,
        expires_ms,
        reason: change.reason,
    };
    let admin = api.admin.from_address(source);
    let author = Arc::clone(&by);
    let changed = blocking(move || admin.grant(&request, &author)).await?;
    Ok(Json(CapabilityChanged {
        participant_id: id,
        old_capabilities: texts(&changed.before),
        new_capabilities: texts(&changed.now),
        modified_by: by.id.to_string(),
        modified_at: whole_seconds(changed.at_ms),
        topic: topic.map(|topic| topic.to_string()),
        expires_at: expires_ms.map(rfc3339),
    }))
}

/// Removes the changes of a participant's capabilities, all or those for one topic. Needs
/// `portmoot/grants`.
///
/// Its configured capabilities apply again.
#[utoipa::path(
    delete,
    path = "/api/v1/participants/{id}/grants",
    params(("id" = String, Path), ("topic" = Option<String>, Query)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn clear(
    State(api): State<Api>,
    Granter { by, topic }: Granter,
    Source(source): Source,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    let admin = api.admin.from_address(source);
    let id = participant_of(&id)?;
    blocking(move || admin.clear_grants(&id, topic.as_ref(), &by)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn texts(capabilities: &Capabilities) -> Vec<String> {
    capabilities.iter().map(Capability::to_string).collect()
}

pub(crate) fn participant_of(id: &str) -> Result<ParticipantId, Refusal> {
    let known = ParticipantId::new(id).ok().filter(|id| !id.is_guest());
    known.ok_or_else(|| {
        let message = format!(
            "there is no participant `{}` to grant to",
            id.escape_debug()
        );
        Refusal::new(RefusalCode::UnknownTarget, message)
            .hint("list them: portmoot participants ls")
    })
}

fn expiry(change: &CapabilityChange) -> Result<Option<u64>, Refusal> {
    match (&change.expires, change.expires_in_seconds) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(malformed(
            "`expires` and `expires_in_seconds` are one setting",
        )),
        (Some(text), None) => read_rfc3339(text).map(Some).ok_or_else(|| {
            malformed("`expires` must be a time of RFC 3339").hint("such as 2026-07-28T12:30:00Z")
        }),
        (None, Some(seconds)) => Ok(Some(
            unix_ms().saturating_add(seconds.saturating_mul(1_000)),
        )),
    }
}

fn malformed(message: &str) -> Refusal {
    Refusal::new(RefusalCode::Malformed, message.to_owned())
}

/// A time in whole seconds, as MCPx prints it.
fn whole_seconds(at_ms: u64) -> String {
    rfc3339(at_ms)
        .split('.')
        .next()
        .unwrap_or_default()
        .to_owned()
        + "Z"
}

/// Participants, once for each topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParticipantList {
    /// By topic, then by id.
    pub participants: Vec<ParticipantEntry>,
}

/// A participant in a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct ParticipantEntry {
    /// Its id.
    pub id: String,
    /// The topic.
    pub topic: String,
    /// `caller` or `server`.
    pub role: String,
    /// Its connections and sessions in the topic; 0 if it is absent.
    pub links: usize,
    /// Names and versions that its clients give themselves, each once and at most 16; `room` is a
    /// connection to the room. For callers with `portmoot/grants`.
    pub clients: Vec<String>,
    /// Its pause, if it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Its capabilities in the topic.
    pub capabilities: Vec<String>,
    /// Changes of its configured capabilities, for callers with `portmoot/grants`.
    pub grants: Vec<GrantEntry>,
}

/// A capability that was granted or revoked.
#[derive(Serialize, ToSchema)]
pub(crate) struct GrantEntry {
    /// The capability.
    pub capability: String,
    /// True if it was granted, false if it was revoked.
    pub given: bool,
    /// The topic; absent is all topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The participant that changed it.
    pub by: String,
    /// The reason that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was changed, RFC 3339.
    pub at: String,
    /// When the change expires, RFC 3339; absent is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl GrantEntry {
    /// A grant as the API shows it.
    pub(crate) fn of(grant: &Grant) -> Self {
        Self {
            capability: grant.capability.clone(),
            given: grant.granted,
            topic: grant.topic.clone(),
            by: grant.by.clone(),
            reason: grant.reason.clone(),
            at: rfc3339(grant.at_ms),
            expires: grant.expires_ms.map(rfc3339),
        }
    }
}

/// Capabilities to grant and to revoke, all or none (MCPx v0.1, section 11.3).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapabilityChange {
    /// Capabilities to grant.
    #[serde(default)]
    pub add: Vec<String>,
    /// Capabilities to revoke, spelled as they are held.
    #[serde(default)]
    pub remove: Vec<String>,
    /// When the change expires, RFC 3339.
    pub expires: Option<String>,
    /// The same in seconds from now.
    pub expires_in_seconds: Option<u64>,
    /// The reason, for the record.
    pub reason: Option<String>,
}

/// A change that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapabilityChanged {
    /// The participant.
    pub participant_id: String,
    /// Its capabilities before, in the topic of the change or outside of topics.
    pub old_capabilities: Vec<String>,
    /// Its capabilities after.
    pub new_capabilities: Vec<String>,
    /// The participant that made the change.
    pub modified_by: String,
    /// When it was made, RFC 3339.
    pub modified_at: String,
    /// The topic, if the request named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// When the change expires, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_named_up_to_a_number_and_a_length() {
        assert_eq!(
            client(Some(br#"{"name":"claude-code","version":"2.1"}"#)).unwrap(),
            "claude-code 2.1"
        );
        assert_eq!(client(Some(br#"{"name":"x"}"#)).unwrap(), "x");
        assert_eq!(
            (client(Some(b"{}")), client(Some(b"no JSON")), client(None)),
            (None, None, None)
        );
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(CLIENT_CHARS_MAX + 1));
        assert_eq!(
            client(Some(long.as_bytes())).unwrap().len(),
            CLIENT_CHARS_MAX
        );
        let many = (0..=CLIENTS_NAMED_MAX)
            .map(|number| format!("{number:02}"))
            .collect();
        assert_eq!(named(many).len(), CLIENTS_NAMED_MAX);
        assert_eq!(named(vec!["a".to_owned(), "a".to_owned()]), ["a"]);
    }
}
