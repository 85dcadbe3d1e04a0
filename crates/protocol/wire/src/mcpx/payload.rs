//! Payloads of MCPx envelopes: JSON-RPC in the legacy form.

use bytes::Bytes;
use json::Span;
use model::{Answer, Form, Outcome, Refusal, RefusalCode, Request};

use super::{NESTING_MAX, is_too_deep};
use crate::mcp::{Era, refusal, relay};
use crate::rpc::{self, Id, Message};

/// The members of modern params that hold a user's answers, and the state that belongs to them.
const USER_ANSWERS: [&str; 2] = ["inputResponses", "requestState"];
/// The state of a task, and the type of a result, in which the client's user is asked first.
const INPUT_REQUIRED: &str = "input_required";

/// A request that the gateway writes, with a placeholder id.
#[must_use]
pub fn request(method: &str, params: Option<&[u8]>) -> Bytes {
    rpc::request(&Id::number(1), method, params)
}

/// A proposal (MCPx v0.1, section 3.2).
#[must_use]
pub fn proposal(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    json::object(|payload| {
        payload.text("method", method);
        if let Some(params) = params {
            payload.raw("params", params);
        }
    })
}

/// The answer to a request of this id, or of a placeholder id.
#[must_use]
pub fn answer(answer: &Answer, method: &str, id: Option<&Id>) -> Bytes {
    let any = Id::number(1);
    relay::encode_answer(answer, method, Form::Legacy, id.unwrap_or(&any), &|_| None).frame
}

/// Payload of an answer as rooms carry it: an answer that is nested too deep for an envelope is an
/// error instead.
#[must_use]
pub fn room_answer(answer: &Answer, method: &str, id: Option<&Id>) -> Bytes {
    let payload = self::answer(answer, method, id);
    if !is_too_deep(&payload) {
        return payload;
    }
    let why = format!("the answer is nested deeper than {NESTING_MAX}, which rooms do not carry");
    refused(&Refusal::new(RefusalCode::UpstreamFailed, why), method, id)
}

/// The refusal of a request of this id.
#[must_use]
pub fn refused(refusal: &Refusal, method: &str, id: Option<&Id>) -> Bytes {
    refusal::encode(refusal, Era::Legacy, method, None).answer(id)
}

/// The error that answers an envelope whose kind and payload differ, under the JSON-RPC id that the
/// payload has.
#[must_use]
pub fn mismatch(why: &str, payload: Bytes) -> Bytes {
    let id = Message::id_in(payload);
    rpc::error(
        id.as_ref(),
        rpc::code::INVALID_REQUEST,
        &format!("kind and payload differ: {why}"),
        None,
    )
}

/// The answer in a payload.
#[must_use]
pub fn read_answer(payload: Bytes) -> Option<Answer> {
    let message = Message::read(payload).ok()?;
    message.result().or(message.error())?;
    Some(relay::decode_answer(&message, Form::Legacy))
}

/// A client's request as the members of a topic see it: under the server's own name, without the
/// answers of the client's user.
#[must_use]
pub fn mirrored_request(request: &Request, own: Option<&str>) -> Option<Bytes> {
    let params = relay::legacy_params(request, own)?;
    let params = json::edited(params.as_bytes(), &USER_ANSWERS.map(|key| (key, None))).ok()?;
    Some(self::request(request.method.as_str(), Some(&params)))
}

/// Whether an answer asks the client's user something first: in itself (2026-07-28, `resultType`),
/// or in the task that it describes (tasks extension, `inputRequests` and `status`).
#[must_use]
pub fn asks_for_input(answer: &Answer, method: &str) -> bool {
    // What the gateway itself asks for has no words of a client's user in it.
    if answer.payload.form == Form::Legacy
        || answer.outcome != Outcome::Ok
        || answer.payload.is_fitted
    {
        return false;
    }
    let result = answer.payload.body_bytes();
    let text = |key: &str| json::at(result, &[key]).and_then(json::text);
    let asks = |requests: &[u8]| {
        let empty = json::members(requests, Span::all(requests)).is_ok_and(|all| all.is_empty());
        requests != b"null" && !empty
    };
    text("resultType").as_deref() == Some(INPUT_REQUIRED)
        || json::at(result, &["inputRequests"]).is_some_and(asks)
        || method.starts_with("tasks/") && text("status").as_deref() == Some(INPUT_REQUIRED)
}
