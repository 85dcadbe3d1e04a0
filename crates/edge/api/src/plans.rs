//! Plans: `/api/v1/plans`. A plan is several proposals, each at `/api/v1/proposals/{id}`; the first
//! one stands for it.

use axum::Json;
use axum::http::StatusCode;
use gateway::proposals::decide::unknown_proposal;
use gateway::proposals::plans::PlannedCall;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::calls::CallSite;
use crate::error::{ApiResult, Problem};
use crate::proposals::Proposal;
use crate::state::Body;

/// Proposes several calls of tools as one plan.
///
/// People decide about all of them at once. Approved, they run one after the other, each once, and the
/// plan stops at the first that fails. Answers with the first step, which stands for the plan: it is
/// approved, rejected and withdrawn under that id, and `steps` has the ids of all.
#[utoipa::path(
    post,
    path = "/api/v1/plans",
    params(("topic" = Option<String>, Query)),
    request_body = PlanToPropose,
    responses((status = 201, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn propose(
    site: CallSite,
    body: ApiResult<Body<PlanToPropose>>,
) -> ApiResult<(StatusCode, Json<Proposal>)> {
    let Body(PlanToPropose { steps }) = body?;
    let calls: Vec<PlannedCall> = steps.into_iter().map(PlannedCall::from).collect();
    let (dispatch, participant) = &site.visitor;
    let by = site.requester();
    let steps = dispatch.propose_plan(by, &calls).await?;
    let first = steps.first().ok_or_else(unknown_proposal)?;
    let shown = Proposal::seen(dispatch, participant, first);
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Calls of tools that are decided about as one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanToPropose {
    /// The calls, in the order in which they run: 2 to 16.
    steps: Vec<StepToPropose>,
}

/// One call of a plan.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StepToPropose {
    /// The name of the tool, as clients see it.
    name: String,
    /// Its arguments, an object; without it none.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Box<RawValue>>,
}

impl From<StepToPropose> for PlannedCall {
    fn from(StepToPropose { name, arguments }: StepToPropose) -> Self {
        let arguments = arguments.as_deref().map_or("{}", RawValue::get).to_owned();
        Self { name, arguments }
    }
}
