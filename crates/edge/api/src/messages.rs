//! Messages into a room: `/api/v1/topics/{topic}/messages`, for scripts and webhooks.

use auth::Wire;
use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use gateway::{RoomMessage, SentMessage};
use model::{Refusal, RefusalCode};

use crate::calls::CallSite;
use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Body};

/// Sends a message into the room of a topic, as the caller: one envelope, admitted by the same
/// capabilities, limits and rate as one over its WebSocket, and part of the history.
///
/// A participant that may not come in over WebSocket (`wires`) sends none, unless the topic has the
/// tools of its room (`builtin`). Requests and decisions are no messages: call a tool with
/// `/api/v1/tools/{name}/call`, decide with `/api/v1/proposals/{id}/reject`.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/messages",
    params(("topic" = String, Path)),
    request_body = RoomMessage,
    responses((status = 200, body = SentMessage), (status = "4XX", body = Problem), (status = "5XX", body = Problem))
)]
pub(crate) async fn send(
    MessageSite(site): MessageSite,
    body: ApiResult<Body<RoomMessage>>,
) -> ApiResult<Json<SentMessage>> {
    let Body(message) = body?;
    let (dispatch, _) = &site.visitor;
    let by = site.requester();
    Ok(Json(dispatch.send_message(by, message).await?))
}

/// A caller with its link in the topic of the path.
pub(crate) struct MessageSite(CallSite);

impl FromRequestParts<Api> for MessageSite {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let named = Path::<String>::from_request_parts(parts, api).await;
        let Path(topic) =
            named.map_err(|_| Refusal::new(RefusalCode::Malformed, "this is no topic"))?;
        let site = CallSite::in_topic(parts, api, &topic).await?;
        let (dispatch, participant) = &site.visitor;
        // The tool `say` is the way into a room for those that may not come over a WebSocket.
        if participant.wires.contains(Wire::Ws) || dispatch.has_room_tools() {
            return Ok(Self(site));
        }
        let why = "you may not come into the room";
        let hint = "the operator limits it with `wires` of the participant";
        Err(Refusal::new(RefusalCode::Forbidden, why).hint(hint).into())
    }
}
