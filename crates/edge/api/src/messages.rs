//! Messages into a room: `/api/v1/topics/{topic}/messages`, for scripts and webhooks.

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use gateway::{RoomMessage, SentMessage};
use model::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::calls::CallSite;
use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Body};

/// Sends a message into the room of a topic, as the caller: one envelope, admitted by the same
/// capabilities, limits and rate as one over its WebSocket, and part of the history.
///
/// Requests and decisions are no messages: call a tool with `/api/v1/tools/{name}/call`, decide
/// with `/api/v1/proposals/{id}/reject`.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/messages",
    params(("topic" = String, Path)),
    request_body = Message,
    responses((status = 200, body = Sent), (status = "4XX", body = Problem), (status = "5XX", body = Problem))
)]
pub(crate) async fn send(
    MessageSite(site): MessageSite,
    body: ApiResult<Body<Message>>,
) -> ApiResult<Json<Sent>> {
    let Body(message) = body?;
    let (dispatch, participant) = &site.visitor;
    let by = site.link.requester(participant);
    let sent = dispatch.send_message(by, message.into()).await?;
    Ok(Json(sent.into()))
}

/// A caller with its link in the topic of the path.
pub(crate) struct MessageSite(CallSite);

impl FromRequestParts<Api> for MessageSite {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let named = Path::<String>::from_request_parts(parts, api).await;
        let Path(topic) =
            named.map_err(|_| Refusal::new(RefusalCode::Malformed, "this is no topic"))?;
        CallSite::in_topic(parts, api, &topic).await.map(Self)
    }
}

/// A message: a `text`, or a `payload` with its `kind`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// The text of a chat message.
    pub text: Option<String>,
    /// The kind; without it `chat`.
    pub kind: Option<String>,
    /// The payload, an object.
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Box<RawValue>>,
    /// The addressees; without any it is for all participants.
    #[serde(default)]
    pub to: Vec<String>,
    /// The id of the envelope that it is about.
    pub correlation_id: Option<String>,
}

impl From<Message> for RoomMessage {
    fn from(message: Message) -> Self {
        let Message {
            text,
            kind,
            payload,
            to,
            correlation_id,
        } = message;
        Self {
            text,
            kind,
            payload,
            to,
            correlation_id,
        }
    }
}

/// A message that was sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sent {
    /// The id of its envelope.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its addressees.
    pub to: Vec<String>,
    /// The addressees that are not in the topic: they do not get it.
    pub absent: Vec<String>,
}

impl From<SentMessage> for Sent {
    fn from(sent: SentMessage) -> Self {
        let SentMessage {
            id,
            kind,
            to,
            absent,
        } = sent;
        Self {
            id,
            kind,
            to,
            absent,
        }
    }
}
