//! `/api/v1/proposals`: what waits for a decision, and deciding. Must not know how anything is carried out.

use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use model::{OperationId, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};
use wire::time::rfc3339;

use crate::pages::{Page, Pages};
use crate::schema::Problem;
use gateway::ProposalView;
use gateway::proposals::decide::{Choice, digest, unknown_proposal};
use gateway::Dispatch;

/// What somebody proposed.
#[derive(Serialize, ToSchema)]
pub(super) struct Proposal {
    /// Its id.
    id: String,
    /// The topic that it was made in.
    topic: String,
    /// `pending`, `running`, `completed`, `failed`, `rejected`, `withdrawn` or `expired`.
    state: String,
    /// Who proposed it.
    by: String,
    /// Who is to carry it out.
    to: Vec<String>,
    /// The method.
    method: String,
    /// What it is about, such as the tool's own name.
    context: Option<String>,
    /// The envelope that proposed it: a request that fulfils it names this as its `correlation_id`.
    envelope: String,
    /// The params, as they were written.
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    #[schema(value_type = Option<Object>)]
    tool: Option<Box<RawValue>>,
    /// What an approval is bound to.
    digest: String,
    /// Whether a call waits for it.
    held: bool,
    /// When it was made.
    at: String,
    /// When it expires, unless it is decided before.
    expires: String,
    /// Who decided.
    decided_by: Option<String>,
    /// The params that ran, where they were edited.
    #[schema(value_type = Option<Object>)]
    edited: Option<Box<RawValue>>,
    /// Why, in words.
    reason: Option<String>,
    /// What it led to: a JSON-RPC answer.
    #[schema(value_type = Option<Object>)]
    answer: Option<Box<RawValue>>,
}

/// All proposals that one may see.
#[derive(Serialize, ToSchema)]
pub(super) struct Proposals {
    /// The oldest first.
    proposals: Vec<Proposal>,
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Approval {
    /// The digest of what was shown.
    digest: String,
    /// Other arguments for the tool.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Box<RawValue>>,
}

/// A rejection or withdrawal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct No {
    /// Why, in words for the proposer.
    reason: Option<String>,
}

pub(super) fn router() -> Router<Pages> {
    Router::new()
        .route("/api/v1/proposals", get(list))
        .route("/api/v1/proposals/{id}", get(show))
        .route("/api/v1/proposals/{id}/approve", post(approve))
        .route("/api/v1/proposals/{id}/reject", no(|reason| Choice::Reject { reason }))
        .route("/api/v1/proposals/{id}/withdraw", no(|reason| Choice::Withdraw { reason }))
}

impl Proposal {
    fn of(id: OperationId, case: &Case) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let opened = &case.opened;
        let decided = case.decided.as_ref();
        let answer = case.answer.as_ref().and_then(|answer| std::str::from_utf8(answer).ok());
        Self {
            id: id.to_string(),
            topic: opened.topic.clone(),
            state: case.state.as_str().to_owned(),
            by: opened.by.clone(),
            to: opened.to.clone(),
            method: opened.method.clone(),
            context: opened.context.clone(),
            envelope: opened.envelope.clone(),
            params: opened.params.as_deref().and_then(raw),
            tool: opened.tool.as_deref().and_then(raw),
            digest: opened.digest.clone(),
            held: opened.held,
            at: rfc3339(opened.at_ms),
            expires: rfc3339(opened.expires_ms),
            decided_by: decided.map(|decided| decided.by.clone()),
            edited: decided.and_then(|decided| decided.params.as_deref()).and_then(raw),
            reason: case.reason.clone(),
            answer: answer.and_then(raw),
        }
    }
}

/// The topics that somebody may enter, and what they are there.
fn open_to(pages: &Pages, who: &Participant) -> Vec<(Arc<Dispatch>, Arc<Participant>)> {
    let mut topics = pages.registry.topics();
    topics.retain(|dispatch| pages.registry.may_enter(who, dispatch.name()));
    topics.sort_by(|one, other| one.name().cmp(other.name()));
    topics.into_iter().map(|dispatch| (Arc::clone(&dispatch), pages.registry.there(who, dispatch.name()))).collect()
}

async fn list(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, String>>,
) -> Page<Json<Proposals>> {
    let who = pages.who(&headers)?;
    let topic = query.get("topic");
    let all = query.get("all").is_some_and(|all| all == "true");
    let mut proposals = Vec::new();
    for (dispatch, who) in open_to(&pages, &who) {
        if topic.is_none_or(|topic| topic == dispatch.name().as_str()) {
            proposals.extend(dispatch.proposals(&who, all, Proposal::of));
        }
    }
    Ok(Json(Proposals { proposals }))
}

/// A proposal that one may see, its topic, and what one is there.
fn find(
    pages: &Pages,
    who: &Participant,
    id: &str,
) -> Result<(Arc<Dispatch>, Arc<Participant>, OperationId), Refusal> {
    let id: OperationId = id.parse().map_err(|_| unknown_proposal())?;
    let found = open_to(pages, who).into_iter().find(|(dispatch, who)| dispatch.shows(id, who));
    let (dispatch, who) = found.ok_or_else(unknown_proposal)?;
    Ok((dispatch, who, id))
}

async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Page<Json<Proposal>> {
    let who = pages.who(&headers)?;
    shown(&pages, &who, &id)
}

fn shown(pages: &Pages, who: &Participant, id: &str) -> Page<Json<Proposal>> {
    let (dispatch, _, id) = find(pages, who, id)?;
    let shown = dispatch.case(id, |case| Proposal::of(id, case));
    Ok(Json(shown.ok_or_else(unknown_proposal)?))
}

async fn approve(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Result<Json<Approval>, JsonRejection>,
) -> Page<Json<Proposal>> {
    let Json(Approval { digest: text, arguments }) = body.map_err(unread)?;
    let arguments = arguments.map(|raw| raw.get().to_owned());
    decide(&pages, &headers, &id, Choice::Approve { digest: digest(&text)?, arguments }).await
}

/// A rejection or a withdrawal.
fn no(choose: fn(Option<String>) -> Choice) -> MethodRouter<Pages> {
    post(
        async move |State(pages): State<Pages>,
                    headers: HeaderMap,
                    Path(id): Path<String>,
                    body: Result<Json<No>, JsonRejection>| {
            let Json(No { reason }) = body.map_err(unread)?;
            decide(&pages, &headers, &id, choose(reason)).await
        },
    )
}

fn unread(no: JsonRejection) -> Refusal {
    Refusal::new(RefusalCode::Malformed, no.body_text())
}

async fn decide(pages: &Pages, headers: &HeaderMap, id: &str, choice: Choice) -> Page<Json<Proposal>> {
    let who = pages.who(headers)?;
    let number: OperationId = id.parse().map_err(|_| unknown_proposal())?;
    // Whether it may be seen is the topic's affair: a decision about one that may not be is recorded there.
    let mut topics = open_to(pages, &who).into_iter();
    let found = topics.find(|(dispatch, _)| dispatch.case(number, |_| ()).is_some());
    let (dispatch, there) = found.ok_or_else(unknown_proposal)?;
    dispatch.decide(&there, number, choice).await?;
    shown(pages, &who, id)
}

/// What the routes are, for the document; the functions are never called.
mod paths {
    #![allow(dead_code)]
    use crate::proposals::{Approval, No, OpenApi, Problem, Proposal, Proposals};

    #[utoipa::path(get, path = "/api/v1/proposals", params(("topic" = Option<String>, Query), ("all" = Option<bool>, Query)),
        responses((status = 200, body = Proposals), (status = "4XX", body = Problem)))]
    fn proposals() {}
    #[utoipa::path(get, path = "/api/v1/proposals/{id}", params(("id" = String, Path)),
        responses((status = 200, body = Proposal), (status = "4XX", body = Problem)))]
    fn proposal() {}
    #[utoipa::path(post, path = "/api/v1/proposals/{id}/approve", params(("id" = String, Path)), request_body = Approval,
        responses((status = 200, body = Proposal), (status = "4XX", body = Problem)))]
    fn approve() {}
    #[utoipa::path(post, path = "/api/v1/proposals/{id}/reject", params(("id" = String, Path)), request_body = No,
        responses((status = 200, body = Proposal), (status = "4XX", body = Problem)))]
    fn reject() {}
    #[utoipa::path(post, path = "/api/v1/proposals/{id}/withdraw", params(("id" = String, Path)), request_body = No,
        responses((status = 200, body = Proposal), (status = "4XX", body = Problem)))]
    fn withdraw() {}

    #[derive(OpenApi)]
    #[openapi(paths(proposals, proposal, approve, reject, withdraw))]
    pub(super) struct Document;
}

/// This part of the OpenAPI document.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    paths::Document::openapi()
}
