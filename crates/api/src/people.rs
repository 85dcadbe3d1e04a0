//! Who takes part, what they may do, and how that is changed: `/api/v1/participants` and MCPx's own endpoint
//! (MCPx v0.1, section 11.3). Must not know how a change is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use model::{Capability, ParticipantId, Refusal, RefusalCode, TopicName};
use serde::Deserialize;
use utoipa::OpenApi as _;
use wire::time::{read_rfc3339, rfc3339};

use crate::pages::{Page, Pages, lost};
use crate::schema::{CapabilityChange, CapabilityChanged, GrantShown, PersonShown, PersonsShown};
use gateway::admin::grants::Change;
use gateway::is_guest;
use gateway::Dispatch;
use platform::unix_ms;

const GRANTS: &str = "portmoot/grants";

/// What an address may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Where {
    topic: Option<String>,
}

/// `GET /api/v1/participants[?topic=]`: whoever is in the topics that one may enter. Who holds `portmoot/grants` also sees
/// who could be there, and what was granted.
async fn list(
    State(pages): State<Pages>,
    headers: HeaderMap,
    place: Result<Query<Where>, QueryRejection>,
) -> Page<Json<PersonsShown>> {
    let who = pages.who(&headers)?;
    let mut pumps = match named(place)? {
        Some(topic) => vec![pages.registry.enter(topic.as_str(), &who)?],
        None => {
            let all = pages.registry.topics().into_iter();
            all.filter(|dispatch| pages.registry.may_enter(&who, dispatch.name())).collect()
        }
    };
    pumps.sort_by(|one, other| one.name().as_str().cmp(other.name().as_str()));
    let mut participants = Vec::new();
    for dispatch in pumps {
        let all = pages.holds(&who, GRANTS, Some(dispatch.name()));
        participants.extend(persons(&pages, &dispatch, all).into_values());
    }
    Ok(Json(PersonsShown { participants }))
}

fn persons(pages: &Pages, dispatch: &Dispatch, all: bool) -> BTreeMap<String, PersonShown> {
    let topic = dispatch.name().to_string();
    let texts = |held: &model::Capabilities| held.iter().map(|one| one.as_str().to_owned()).collect();
    let (grants, now_ms) = (pages.registry.grants(), unix_ms());
    let granted = |id: &ParticipantId| -> Vec<GrantShown> {
        let here = |grant: &&store::Grant| grant.topic.as_ref().is_none_or(|of| *of == topic);
        let own = grants.of(id, now_ms).filter(|_| all).filter(here);
        own.map(GrantShown::of).collect()
    };
    let mut persons = BTreeMap::new();
    for (id, links, server, capabilities) in dispatch.present() {
        let person = PersonShown {
            id: id.to_string(),
            topic: topic.clone(),
            role: if server { "server" } else { "caller" }.into(),
            links,
            capabilities: texts(&capabilities),
            grants: granted(&id),
        };
        persons.insert(person.id.clone(), person);
    }
    for known in pages.registry.everybody().iter().filter(|_| all) {
        if persons.contains_key(known.id.as_str()) || !pages.registry.may_enter(known, dispatch.name()) {
            continue;
        }
        let person = PersonShown {
            id: known.id.to_string(),
            topic: topic.clone(),
            role: "caller".into(),
            links: 0,
            capabilities: texts(&pages.registry.in_force(known, Some(dispatch.name()))),
            grants: granted(&known.id),
        };
        persons.insert(person.id.clone(), person);
    }
    persons
}

/// `POST /admin/participants/{id}/capabilities`.
async fn promote(
    state: State<Pages>,
    headers: HeaderMap,
    id: Path<String>,
    place: Result<Query<Where>, QueryRejection>,
    wish: Result<Json<CapabilityChange>, JsonRejection>,
) -> Page<Json<CapabilityChanged>> {
    grant(state, headers, id, place, wish).await
}

/// `POST /api/v1/participants/{id}/grants`.
async fn grant(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(id): Path<String>,
    place: Result<Query<Where>, QueryRejection>,
    wish: Result<Json<CapabilityChange>, JsonRejection>,
) -> Page<Json<CapabilityChanged>> {
    let topic = named(place)?;
    let by = pages.may_in(&headers, GRANTS, topic.as_ref())?;
    if let Some(topic) = &topic {
        pages.registry.enter(topic.as_str(), &by)?;
    }
    let Json(wish) = wish.map_err(|no| Refusal::new(RefusalCode::Malformed, no.body_text()))?;
    let change = Change {
        participant: participant(&id)?,
        topic: topic.clone(),
        expires_ms: expiry(&wish)?,
        add: wish.add,
        remove: wish.remove,
        reason: wish.reason,
    };
    let (granting, asker) = (Arc::clone(&pages.granting), Arc::clone(&by));
    let expires_ms = change.expires_ms;
    let made = tokio::task::spawn_blocking(move || granting.change(&change, &asker)).await;
    let changed = made.map_err(|_| lost())??;
    let texts = |held: &model::Capabilities| held.iter().map(Capability::to_string).collect();
    Ok(Json(CapabilityChanged {
        participant_id: id,
        old_capabilities: texts(&changed.before),
        new_capabilities: texts(&changed.now),
        modified_by: by.id.to_string(),
        modified_at: seconds(changed.at_ms),
        topic: topic.map(|topic| topic.to_string()),
        expires_at: expires_ms.map(rfc3339),
    }))
}

/// `DELETE /api/v1/participants/{id}/grants`.
async fn clear(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(id): Path<String>,
    place: Result<Query<Where>, QueryRejection>,
) -> Page<StatusCode> {
    let topic = named(place)?;
    let by = pages.may_in(&headers, GRANTS, topic.as_ref())?;
    if let Some(topic) = &topic {
        pages.registry.enter(topic.as_str(), &by)?;
    }
    let (granting, id) = (Arc::clone(&pages.granting), participant(&id)?);
    let made = tokio::task::spawn_blocking(move || granting.clear(&id, topic.as_ref(), &by)).await;
    made.map_err(|_| lost())??;
    Ok(StatusCode::NO_CONTENT)
}

fn named(place: Result<Query<Where>, QueryRejection>) -> Result<Option<TopicName>, Refusal> {
    let Query(place) = place.map_err(|no| Refusal::new(RefusalCode::Malformed, no.body_text()))?;
    let Some(topic) = place.topic else { return Ok(None) };
    let named = TopicName::new(&topic);
    named.map(Some).map_err(|error| Refusal::new(RefusalCode::Malformed, format!("no topic: {error}")))
}

fn participant(id: &str) -> Result<ParticipantId, Refusal> {
    let known = ParticipantId::new(id).ok().filter(|id| !is_guest(id));
    known.ok_or_else(|| {
        let message = format!("there is no participant `{}` to grant to", id.escape_debug());
        Refusal::new(RefusalCode::UnknownTarget, message).hint("list them: portmoot participants ls")
    })
}

fn expiry(wish: &CapabilityChange) -> Result<Option<u64>, Refusal> {
    let malformed = |message: &str| Refusal::new(RefusalCode::Malformed, message.to_owned());
    match (&wish.expires, wish.expires_in_seconds) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(malformed("`expires` and `expires_in_seconds` are one setting")),
        (Some(text), None) => read_rfc3339(text).map(Some).ok_or_else(|| {
            malformed("`expires` must be a time of RFC 3339").hint("such as 2026-07-28T12:30:00Z")
        }),
        (None, Some(seconds)) => Ok(Some(unix_ms().saturating_add(seconds.saturating_mul(1_000)))),
    }
}

/// As the document prints moments: whole seconds.
fn seconds(at_ms: u64) -> String {
    rfc3339(at_ms).split('.').next().unwrap_or_default().to_owned() + "Z"
}

/// What the routes are, for the document; the functions are never called.
mod paths {
    #![allow(dead_code)]
    use crate::schema::{CapabilityChange, CapabilityChanged, PersonsShown, Problem};
    use utoipa::OpenApi;

    #[utoipa::path(get, path = "/api/v1/participants", params(("topic" = Option<String>, Query)),
        responses((status = 200, body = PersonsShown), (status = "4XX", body = Problem)))]
    fn participants() {}
    #[utoipa::path(post, path = "/api/v1/participants/{id}/grants", request_body = CapabilityChange,
        params(("id" = String, Path), ("topic" = Option<String>, Query)),
        responses((status = 200, body = CapabilityChanged), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
    fn grant() {}
    #[utoipa::path(delete, path = "/api/v1/participants/{id}/grants",
        params(("id" = String, Path), ("topic" = Option<String>, Query)),
        responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
    fn clear() {}
    #[utoipa::path(post, path = "/admin/participants/{id}/capabilities", request_body = CapabilityChange,
        params(("id" = String, Path), ("topic" = Option<String>, Query)),
        responses((status = 200, body = CapabilityChanged), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
    fn promote() {}

    #[derive(OpenApi)]
    #[openapi(paths(participants, grant, clear, promote))]
    pub(super) struct Document;
}

/// This part of the OpenAPI document.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    paths::Document::openapi()
}

/// These pages.
pub(super) fn router() -> Router<Pages> {
    Router::new()
        .route("/api/v1/participants", get(list))
        .route("/api/v1/participants/{id}/grants", post(grant).delete(clear))
        .route("/admin/participants/{id}/capabilities", post(promote))
}
