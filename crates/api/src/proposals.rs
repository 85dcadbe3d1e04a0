//! Proposals and decisions: `/api/v1/proposals`.

use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use axum::Json;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use gateway::Dispatch;
use gateway::proposals::decide::{Choice, digest, unknown_proposal};
use model::OperationId;

use crate::error::{ApiError, ApiResult};
use crate::schema::{Approval, Problem, Proposal, ProposalList, Rejection};
use crate::state::{Api, Body, Caller};

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
    Caller(caller): Caller,
    Query(query): Query<HashMap<String, String>>,
) -> Json<ProposalList> {
    let wanted = query.get("topic");
    let all = query.get("all").is_some_and(|all| all == "true");
    let mut proposals = Vec::new();
    for (dispatch, caller) in api.topics_of(&caller) {
        if wanted.is_none_or(|topic| topic == dispatch.name().as_str()) {
            let visible = dispatch.with(|topic| topic.proposals(&caller.id, &caller.capabilities, all));
            proposals.extend(visible.iter().map(Proposal::of));
        }
    }
    Json(ProposalList { proposals })
}

/// One proposal that the caller may see.
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{id}",
    params(("id" = String, Path)),
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn proposal(Review { dispatch, caller, id }: Review) -> ApiResult<Json<Proposal>> {
    let found = dispatch.with(|topic| {
        let may_see = topic.may_see_proposal(id, &caller.id, &caller.capabilities);
        topic.proposal(id).filter(|_| may_see)
    });
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
    review: Review,
    Body(Approval { digest: shown, arguments }): Body<Approval>,
) -> ApiResult<Json<Proposal>> {
    let arguments = arguments.map(|raw| raw.get().to_owned());
    review.decide(Choice::Approve { digest: digest(&shown)?, arguments }).await
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
    review: Review,
    Body(Rejection { reason }): Body<Rejection>,
) -> ApiResult<Json<Proposal>> {
    review.decide(Choice::Reject { reason }).await
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
    review: Review,
    Body(Rejection { reason }): Body<Rejection>,
) -> ApiResult<Json<Proposal>> {
    review.decide(Choice::Withdraw { reason }).await
}

/// A proposal that the request names, in its topic, and the caller with its capabilities there. Whether the caller may see it is
/// not known yet: a decision about a proposal that it may not see is refused, and recorded, where the proposal is.
pub(crate) struct Review {
    dispatch: Arc<Dispatch>,
    caller: Arc<Participant>,
    id: OperationId,
}

impl FromRequestParts<Api> for Review {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Caller(caller) = Caller::from_request_parts(parts, api).await?;
        let named = Path::<String>::from_request_parts(parts, api).await.ok();
        let id: Option<OperationId> = named.and_then(|Path(id)| id.parse().ok());
        let id = id.ok_or_else(unknown_proposal)?;
        let has = |dispatch: &Dispatch| dispatch.with(|topic| topic.proposed(id).is_some());
        let found = api.topics_of(&caller).into_iter().find(|(dispatch, _)| has(dispatch));
        let (dispatch, caller) = found.ok_or_else(unknown_proposal)?;
        Ok(Self { dispatch, caller, id })
    }
}

impl Review {
    /// Decides, and returns the proposal as it is then.
    async fn decide(self, choice: Choice) -> ApiResult<Json<Proposal>> {
        let Self { dispatch, caller, id } = self;
        dispatch.decide(id, &caller.id, Some(&caller.capabilities), choice).await?;
        let decided = dispatch.with(|topic| topic.proposal(id));
        Ok(Json(Proposal::of(&decided.ok_or_else(unknown_proposal)?)))
    }
}
