//! Proposals and decisions: `/api/v1/proposals`.

use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use gateway::Dispatch;
use gateway::proposals::decide::{Choice, digest, unknown_proposal};
use model::{OperationId, Refusal};

use crate::error::ApiResult;
use crate::schema::{Approval, Problem, Proposal, ProposalList, Rejection};
use crate::state::Api;

/// The proposals that the caller may see: its own, and those whose request it could make.
///
/// With `all=true` including those that have ended.
#[utoipa::path(
    get,
    path = "/api/v1/proposals",
    params(("topic" = Option<String>, Query), ("all" = Option<bool>, Query)),
    responses((status = 200, body = ProposalList), (status = "4XX", body = Problem))
)]
pub(crate) async fn proposals(
    State(api): State<Api>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, String>>,
) -> ApiResult<Json<ProposalList>> {
    let caller = api.caller(&headers)?;
    let wanted = query.get("topic");
    let all = query.get("all").is_some_and(|all| all == "true");
    let mut proposals = Vec::new();
    for (dispatch, caller) in api.topics_of(&caller) {
        if wanted.is_none_or(|topic| topic == dispatch.name().as_str()) {
            let visible = dispatch.with(|topic| topic.proposals(&caller.id, &caller.capabilities, all));
            proposals.extend(visible.iter().map(Proposal::of));
        }
    }
    Ok(Json(ProposalList { proposals }))
}

/// One proposal that the caller may see.
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{id}",
    params(("id" = String, Path)),
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn proposal(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<Json<Proposal>> {
    let caller = api.caller(&headers)?;
    let id = parse(&id)?;
    let visible = |(dispatch, caller): (Arc<Dispatch>, Arc<Participant>)| {
        dispatch.with(|topic| {
            let may_see = topic.may_see_proposal(id, &caller.id, &caller.capabilities);
            topic.proposal(id).filter(|_| may_see)
        })
    };
    let found = api.topics_of(&caller).into_iter().find_map(visible);
    Ok(Json(Proposal::of(&found.ok_or_else(unknown_proposal)?)))
}

/// Approves a proposal: the proposed request runs once, for its proposer.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/approve",
    params(("id" = String, Path)),
    request_body = Approval,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn approve(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Result<Json<Approval>, JsonRejection>,
) -> ApiResult<Json<Proposal>> {
    let Json(approval) = body?;
    let arguments = approval.arguments.map(|raw| raw.get().to_owned());
    decide(&api, &headers, &id, Choice::Approve { digest: digest(&approval.digest)?, arguments }).await
}

/// Rejects a proposal: it never runs.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/reject",
    params(("id" = String, Path)),
    request_body = Rejection,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn reject(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Result<Json<Rejection>, JsonRejection>,
) -> ApiResult<Json<Proposal>> {
    let Json(Rejection { reason }) = body?;
    decide(&api, &headers, &id, Choice::Reject { reason }).await
}

/// Withdraws a proposal of the caller's own.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/withdraw",
    params(("id" = String, Path)),
    request_body = Rejection,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn withdraw(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Result<Json<Rejection>, JsonRejection>,
) -> ApiResult<Json<Proposal>> {
    let Json(Rejection { reason }) = body?;
    decide(&api, &headers, &id, Choice::Withdraw { reason }).await
}

async fn decide(api: &Api, headers: &HeaderMap, id: &str, choice: Choice) -> ApiResult<Json<Proposal>> {
    let caller = api.caller(headers)?;
    let id = parse(id)?;
    // A decision about a proposal that the caller may not see is refused, and recorded, where the proposal is.
    let has = |dispatch: &Dispatch| dispatch.with(|topic| topic.proposed(id).is_some());
    let found = api.topics_of(&caller).into_iter().find(|(dispatch, _)| has(dispatch));
    let (dispatch, caller) = found.ok_or_else(unknown_proposal)?;
    dispatch.decide(id, &caller.id, Some(&caller.capabilities), choice).await?;
    let decided = dispatch.with(|topic| topic.proposal(id));
    Ok(Json(Proposal::of(&decided.ok_or_else(unknown_proposal)?)))
}

fn parse(id: &str) -> Result<OperationId, Refusal> {
    id.parse().map_err(|_| unknown_proposal())
}
