//! Emergency brakes: `/api/v1/topics/{topic}/participants/{id}/pause` and `/resume`.

use axum::Json;
use axum::extract::{Path, State};
use gateway::brakes::Braking;
use model::{PAUSE, ParticipantId, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use topic::Brake;
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Body, Caller, Source};

/// Pauses a participant of a topic. Needs `portmoot/pause` there.
///
/// Until it is resumed, all that it could do directly waits for the decision of another participant, and
/// it decides nothing; a restart changes nothing of that. Calls that it has begun go on.
/// It need not be in the topic. No participant pauses itself.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/participants/{id}/pause",
    params(("topic" = String, Path), ("id" = String, Path)),
    request_body = PauseReason,
    responses(
        (status = 200, body = Pause),
        (status = "4XX", body = Problem),
        (status = 503, body = Problem, description = "With the code `log_unavailable` it is paused, until the gateway ends.")
    )
)]
pub(crate) async fn pause(
    State(api): State<Api>,
    Caller(caller): Caller,
    Source(address): Source,
    Path((topic, id)): Path<(String, String)>,
    Body(PauseReason { reason }): Body<PauseReason>,
) -> ApiResult<Json<Pause>> {
    let dispatch = api.registry.enter(&topic, &caller)?;
    api.authorize_about(&caller, PAUSE, Some(dispatch.name()), &[&id])?;
    let participant = ParticipantId::new(&id).map_err(|_| unknown(&id))?;
    let reason = reason.filter(|reason| !reason.is_empty());
    let brake = dispatch
        .pause(Braking {
            by: caller.id.clone(),
            participant,
            reason,
            address,
        })
        .await?;
    Ok(Json(Pause::of(&brake)))
}

/// Resumes a participant of a topic that is paused. Needs `portmoot/pause` there.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/participants/{id}/resume",
    params(("topic" = String, Path), ("id" = String, Path)),
    request_body = PauseReason,
    responses((status = 200, body = Resumed), (status = "4XX", body = Problem), (status = 503, body = Problem))
)]
pub(crate) async fn resume(
    State(api): State<Api>,
    Caller(caller): Caller,
    Source(address): Source,
    Path((topic, id)): Path<(String, String)>,
    Body(PauseReason { reason }): Body<PauseReason>,
) -> ApiResult<Json<Resumed>> {
    let dispatch = api.registry.enter(&topic, &caller)?;
    api.authorize_about(&caller, PAUSE, Some(dispatch.name()), &[&id])?;
    let participant = ParticipantId::new(&id).map_err(|_| unknown(&id))?;
    let braking = Braking {
        by: caller.id.clone(),
        participant,
        reason: reason.filter(|reason| !reason.is_empty()),
        address,
    };
    dispatch.resume_paused(braking).await?;
    Ok(Json(Resumed {
        participant: id,
        topic,
    }))
}

fn unknown(id: &str) -> Refusal {
    let message = format!("there is no participant `{}` here", id.escape_debug());
    Refusal::new(RefusalCode::UnknownTarget, message).hint("list them: portmoot participants ls")
}

/// Why a participant is paused or resumed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseReason {
    /// The reason, in words, at most 1000 bytes.
    pub reason: Option<String>,
}

/// The pause of a participant.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pause {
    /// The participant that paused it.
    pub by: String,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when, RFC 3339.
    pub since: String,
}

impl Pause {
    /// A pause as the API shows it.
    pub(crate) fn of(brake: &Brake) -> Self {
        Self {
            by: brake.by.to_string(),
            reason: brake.reason.as_deref().map(str::to_owned),
            since: rfc3339(brake.since_ms),
        }
    }
}

/// A participant that was resumed.
#[derive(Serialize, ToSchema)]
pub(crate) struct Resumed {
    /// Its id.
    pub participant: String,
    /// The topic.
    pub topic: String,
}
