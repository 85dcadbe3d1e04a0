//! Mirror: an MCP client's call as its topic's watchers see it (docs/configuration.md,
//! `mcp_calls`).

use bytes::Bytes;
use model::{OperationId, Outcome, ParticipantId};
use platform::unix_ms;
use topic::Mirrored;
use wire::mcpx::{self, Draft, Head, KIND_BYTES_MAX, is_too_deep, kind_of, mirror, payload};
use wire::time::rfc3339;

use crate::{context::Context, live::Live};
use topic::section::McpCalls;

/// The verdict that watchers see with a call.
const ADMITTED: &str = "admitted";
/// The verdict of an answer that asks the client's user something: watchers do not see it.
const INPUT_REQUIRED: &str = "input_required";

/// Encodes one envelope when its turn comes.
pub(crate) type Encoder = Box<dyn FnOnce() -> Option<Bytes> + Send>;

/// The encoder of a mirrored call or its end, and the bytes that it holds until then. The call's
/// envelope has the operation's id.
pub(crate) fn encoder(
    mirrored: Mirrored<Live>,
    shown: McpCalls,
    context: &Context,
) -> (usize, Encoder) {
    let full = shown == McpCalls::Full;
    let payload = match &mirrored.end {
        None => mirrored.call.request.payload.bytes.len(),
        Some((_, answer)) => answer
            .as_ref()
            .map_or(0, |answer| answer.payload.bytes.len()),
    };
    // Taken now, not when the envelope is encoded: time and ids keep the order of the calls.
    let at_ms = unix_ms();
    let id = context.operation();
    (
        payload,
        Box::new(move || encode(&mirrored, full, id, at_ms)),
    )
}

fn encode(mirrored: &Mirrored<Live>, full: bool, id: OperationId, at_ms: u64) -> Option<Bytes> {
    let Mirrored {
        operation,
        from,
        to,
        call,
        own,
        end,
    } = mirrored;
    let request = &call.request;
    let method = call.request.method.as_str();
    let own = own.as_deref();
    let shown = |request: &model::Request| payload::mirrored_request(request, own);
    // The target under the server's own name, if a kind has room for it.
    let context = own.or_else(|| request.target.as_ref().and_then(model::Target::context));
    let head_len = Head::Response.as_str().len() + method.len() + 2;
    let context = context.filter(|context| head_len + context.len() <= KIND_BYTES_MAX);
    let gateway = ParticipantId::gateway();
    let (head, id, [from, to], payload) = match end {
        None => {
            let whole = full.then(|| shown(call.shown().ok()?)).flatten();
            let whole = whole.filter(|payload| !is_too_deep(payload));
            let payload = whole.unwrap_or_else(|| mirror::request(method, context, ADMITTED));
            (Head::Request, *operation, [from, to], payload)
        }
        Some((outcome, answer)) => {
            let asks = answer
                .as_ref()
                .is_some_and(|answer| payload::asks_for_input(answer, method));
            let verdict = match outcome {
                _ if asks => INPUT_REQUIRED,
                Outcome::Ok => "ok",
                Outcome::Error => "error",
                Outcome::Refused => "refused",
                Outcome::Cancelled => "cancelled",
            };
            let whole = answer.as_ref().filter(|_| full && !asks);
            let whole =
                whole.map(|answer| payload::answer(&call.shown_answer(answer), method, None));
            let whole = whole.filter(|payload| !is_too_deep(payload));
            let payload =
                whole.unwrap_or_else(|| mirror::response(*outcome == Outcome::Ok, verdict));
            // An end that is no answer of the server comes from the gateway.
            let sender = match outcome {
                Outcome::Ok | Outcome::Error => to,
                Outcome::Refused | Outcome::Cancelled => &gateway,
            };
            (Head::Response, id, [sender, from], payload)
        }
    };
    let kind = kind_of(head, method, context).ok()?;
    let id = id.to_string();
    let correlation = operation.to_string();
    let ts = rfc3339(at_ms);
    Some(mcpx::envelope(&Draft {
        id: &id,
        ts: Some(&ts),
        from: from.as_str(),
        to: &[to.as_str()],
        kind: &kind,
        correlation_id: (head == Head::Response).then_some(correlation.as_str()),
        payload: &payload,
    }))
}
