//! Calls of tools: `/api/v1/tools/{name}/call`; results that were too large for their callers:
//! `/api/v1/results/{id}`. Both are requests of their participant as any other: admitted, held and
//! recorded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use auth::Wire;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use control::{CallerLinks, Visitor};
use gateway::{AwaitedCall, Call, Incoming, Link, Parks, Reply, Requester, Respell};
use json::Object;
use model::{Answer, Form, OperationId, Outcome, Refusal, RefusalCode};
use platform::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use telemetry::trace::CallerTrace;
use tokio::sync::oneshot;
use topic::Logs;
use upstream::ClientProfile;
use utoipa::ToSchema;
use wire::mcp::{Version, large, relay};
use wire::rpc::ErrorObject;

use crate::error::{ApiError, ApiResult, Problem};
use crate::state::{Api, Body, address, presented};
use crate::tools::DEFAULT_TOPIC;

const METHOD: &str = "tools/call";

/// Calls a tool, and answers with its result: the object that an MCP client gets, with `content`
/// and, if the tool failed, `isError`.
///
/// A call that the caller may only propose waits for a decision: the answer is 202, at once, with
/// the proposal, whose state and answer are at `/api/v1/proposals/{id}`. The server cannot ask the
/// caller anything meanwhile.
#[utoipa::path(
    post,
    path = "/api/v1/tools/{name}/call",
    params(("name" = String, Path), ("topic" = Option<String>, Query)),
    request_body = ToolCall,
    responses(
        (status = 200, body = serde_json::Value, description = "The result of the tool, as its server wrote it: untrusted."),
        (status = 202, body = HeldCall, headers(("Location" = String, description = "The proposal."))),
        (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn call(
    site: CallSite,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: ApiResult<Body<ToolCall>>,
) -> ApiResult<Response> {
    let Body(ToolCall { arguments }) = body?;
    let arguments = arguments.as_deref().map_or("{}", RawValue::get);
    if !json::is_object(arguments.as_bytes()) {
        return Err(Refusal::new(RefusalCode::Malformed, "`arguments` must be an object").into());
    }
    let mut incoming = incoming(METHOD, |params| {
        params
            .text("name", &name)
            .raw("arguments", arguments.as_bytes());
    })?;
    incoming.trace = trace(&headers);
    let result = site.answer_to(incoming).await?;
    if let Some(proposal) = site.waits(&result) {
        let place = format!("/api/v1/proposals/{proposal}");
        let message = format!("the call waits for a decision: GET {place}");
        let held = HeldCall {
            proposal: proposal.to_string(),
            message,
        };
        return Ok((
            StatusCode::ACCEPTED,
            [(header::LOCATION, place)],
            Json(held),
        )
            .into_response());
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], result).into_response())
}

/// Reads a result of a tool that was too large for its caller (`result_bytes_max`), as the resource
/// `portmoot://results/{id}`: a page, a part, or the places of a text in it.
///
/// Only its caller can read it, in its topic, for an hour.
#[utoipa::path(
    get,
    path = "/api/v1/results/{id}",
    params(
        ("id" = String, Path),
        ("topic" = Option<String>, Query),
        ("page" = Option<usize>, Query, description = "A page of its text, from 1 on; without another parameter the first."),
        ("part" = Option<usize>, Query, description = "A part that is no text, from 1 on."),
        ("search" = Option<String>, Query, description = "A text to find."),
        ("from" = Option<usize>, Query, description = "With `search`: the byte at which the search begins.")
    ),
    responses(
        (status = 200, body = serde_json::Value, description = "The result of `resources/read`: an object with `contents`. A server wrote it: untrusted."),
        (status = "4XX", body = Problem)
    )
)]
pub(crate) async fn kept_result(
    site: CallSite,
    Path(id): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
) -> ApiResult<Response> {
    let asked = query.iter().filter(|(key, _)| key != "topic");
    let uri = large::uri_of(
        &id,
        asked.map(|(key, value)| (key.as_str(), value.as_str())),
    );
    let incoming = incoming("resources/read", |params| {
        params.text("uri", &uri);
    })?;
    let result = site.answer_to(incoming).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], result).into_response())
}

/// A call of a tool.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    /// The arguments, an object; without it none.
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Box<RawValue>>,
}

/// A call that waits for a decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct HeldCall {
    /// The id of its proposal.
    pub proposal: String,
    /// A sentence that says where the decision and the answer will be.
    pub message: String,
}

/// A caller with its link in the topic of the query.
pub(crate) struct CallSite {
    pub(crate) visitor: Visitor,
    pub(crate) link: Arc<Link>,
    address: Option<IpAddr>,
}

impl FromRequestParts<Api> for CallSite {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Query(query) = Query::<HashMap<String, String>>::from_request_parts(parts, api).await?;
        let topic = query.get("topic").map_or(DEFAULT_TOPIC, String::as_str);
        Self::in_topic(parts, api, topic).await
    }
}

impl CallSite {
    /// The caller of a request with its link in a topic.
    pub(crate) async fn in_topic(parts: &mut Parts, api: &Api, topic: &str) -> ApiResult<Self> {
        let visitor = api
            .registry
            .member(presented(parts), topic, Some(Wire::Mcp))?;
        let links = Extension::<Arc<dyn CallerLinks>>::from_request_parts(parts, api).await;
        let links = links
            .map_err(|_| Refusal::new(RefusalCode::Internal, "no door is in front of the API"))?;
        let link = links.of(&visitor)?;
        let address = address(parts);
        Ok(Self {
            visitor,
            link,
            address,
        })
    }
}

impl CallSite {
    /// The caller of its request.
    pub(crate) fn requester(&self) -> Requester<'_> {
        let by = self.link.requester(&self.visitor.1);
        by.at(self.address)
    }

    /// Makes a request, and waits for its result.
    async fn answer_to(&self, incoming: Incoming) -> Result<Bytes, Refusal> {
        let (dispatch, _) = &self.visitor;
        let by = self.requester();
        dispatch.wait_for_target(by, &incoming.request).await;
        let (answered, answer) = oneshot::channel();
        let reply = Arc::new(HttpReply(Mutex::new(Some(answered))));
        let call = dispatch.request(by, incoming, reply);
        match AwaitedCall::new(dispatch, call).answer(answer).await {
            Some(answer) => answer,
            None => Err(Refusal::new(
                RefusalCode::Cancelled,
                "the call was cancelled",
            )),
        }
    }

    /// The proposal of this caller that a result names, if it stands for a call that waits.
    fn waits(&self, result: &[u8]) -> Option<OperationId> {
        let kind = json::text(json::at(result, &["resultType"])?)?;
        let id: OperationId = json::text(json::at(result, &["taskId"])?)?.parse().ok()?;
        let (dispatch, participant) = &self.visitor;
        let proposed = dispatch.with(|topic| topic.proposal(id))?;
        (kind == "task" && proposed.content.opened.by == participant.id.as_str()).then_some(id)
    }
}

/// The trace that the headers of a call name, if they name one.
fn trace(headers: &HeaderMap) -> Option<Box<CallerTrace>> {
    let all = |name: &str| {
        let values = headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes)
    };
    CallerTrace::of_headers(all("traceparent"), all("tracestate")).map(Box::new)
}

/// A request as a modern client sends it that declares nothing, but gets a task if a call waits for
/// a decision.
fn incoming(
    method: &'static str,
    write: impl FnOnce(&mut Object<'_>),
) -> Result<Incoming, Refusal> {
    let params = json::object(|params| {
        write(params);
        params.object("_meta", |meta| {
            meta.text(
                "io.modelcontextprotocol/protocolVersion",
                Version::NEWEST.as_str(),
            );
            meta.object("io.modelcontextprotocol/clientCapabilities", |_| {});
        });
    });
    let request = relay::request_of(method, Some(&params), Form::Modern)
        .map_err(|why| Refusal::new(RefusalCode::Malformed, why.message))?;
    let client = ClientProfile {
        version: Version::NEWEST,
        ..gateway::plain_client()
    };
    let plain = Incoming::plain(request, None);
    Ok(Incoming {
        client: Some(client),
        // One answer is all that the caller reads: there is no stream for log messages.
        logs: Logs::None,
        parks: Parks::Task,
        ..plain
    })
}

/// The reply of a call: its result, or why there is none.
struct HttpReply(Mutex<Option<oneshot::Sender<Result<Bytes, Refusal>>>>);

impl HttpReply {
    fn send(&self, answer: Result<Bytes, Refusal>) {
        if let Some(answered) = self.0.lock().take() {
            // A caller that has left needs none.
            let _ = answered.send(answer);
        }
    }
}

impl Reply for HttpReply {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        let method = call.request.method.as_str();
        let converted = relay::convert_answer(answer, method, call.link.form, respell);
        let has_room = call
            .link
            .held
            .get()
            .is_none_or(|held| held.has_room(converted.payload.bytes.len()));
        self.send(if has_room {
            result(&converted)
        } else {
            Err(Refusal::new(
                RefusalCode::Overloaded,
                "too many answers wait to be read",
            ))
        });
    }

    fn refuse(&self, _: &Call, refusal: &Refusal) {
        self.send(Err(refusal.clone()));
    }

    fn abandon(&self, _: &Call) {
        *self.0.lock() = None;
    }
}

/// The result in an answer, or its error as a refusal.
fn result(answer: &Answer) -> Result<Bytes, Refusal> {
    if answer.outcome == Outcome::Ok {
        return Ok(answer.payload.to_body());
    }
    let why = ErrorObject::read(answer.payload.body_bytes()).map_or_else(
        || "the server's answer cannot be read".to_owned(),
        |error| {
            format!(
                "the server answered with the error {}: {}",
                error.code, error.message
            )
        },
    );
    Err(Refusal::new(RefusalCode::UpstreamFailed, why))
}
