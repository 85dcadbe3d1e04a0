//! Mirror: an MCP client's call as its topic's watchers see it (docs/configuration.md, `mcp_calls`).

use bytes::Bytes;
use model::{OperationId, Outcome, ParticipantId};
use platform::unix_ms;
use topic::Mirrored;
use wire::mcpx::{self, Draft, Head, KIND_BYTES_MAX, kind_of, mirror, payload};
use wire::time::rfc3339;

use crate::context::Context;
use crate::live::Live;
use access::config::McpCalls;

/// The verdict that watchers see with a call.
const ADMITTED: &str = "admitted";
/// The verdict of an answer that asks the client's user something: watchers do not see it.
const INPUT_REQUIRED: &str = "input_required";

/// Encodes one envelope when its turn comes.
pub(crate) type Encoder = Box<dyn FnOnce() -> Option<Bytes> + Send>;

/// The encoder of a mirrored call or its end, and the bytes that it holds until then. The call's envelope has the operation's
/// id.
pub(crate) fn encoder(mirrored: Mirrored<Live>, shown: McpCalls, context: &Context) -> (usize, Encoder) {
    let full = shown == McpCalls::Full;
    let payload = match &mirrored.end {
        None => mirrored.call.request.payload.bytes.len(),
        Some((_, answer)) => answer.as_ref().map_or(0, |answer| answer.payload.bytes.len()),
    };
    let (at_ms, id) = (unix_ms(), context.operation());
    (payload, Box::new(move || encode(&mirrored, full, id, at_ms)))
}

fn encode(mirrored: &Mirrored<Live>, full: bool, id: OperationId, at_ms: u64) -> Option<Bytes> {
    let request = &mirrored.call.request;
    let target = request.target.as_ref().and_then(model::Target::context);
    let call = MirroredCall {
        id: mirrored.operation,
        method: request.method.as_str(),
        context: mirrored.own.as_deref().or(target),
        ts: rfc3339(at_ms),
    };
    let Some((outcome, answer)) = &mirrored.end else {
        let whole = full.then(|| payload::mirrored_request(request, mirrored.own.as_deref())).flatten();
        let payload = whole.unwrap_or_else(|| mirror::request(call.method, call.context(), ADMITTED));
        return call.envelope(Head::Request, mirrored.operation, [&mirrored.from, &mirrored.to], &payload);
    };
    let asks = answer.as_ref().is_some_and(|answer| payload::asks_for_input(answer, call.method));
    let verdict = match outcome {
        _ if asks => INPUT_REQUIRED,
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Refused => "refused",
        Outcome::Cancelled => "cancelled",
    };
    let whole = answer.as_ref().filter(|_| full && !asks);
    let payload = match whole {
        Some(answer) => payload::answer(answer, call.method, None),
        None => mirror::response(*outcome == Outcome::Ok, verdict),
    };
    // An end that is no answer of the server comes from the gateway.
    let gateway = ParticipantId::gateway();
    let from = match outcome {
        Outcome::Ok | Outcome::Error => &mirrored.to,
        Outcome::Refused | Outcome::Cancelled => &gateway,
    };
    call.envelope(Head::Response, id, [from, &mirrored.from], &payload)
}

struct MirroredCall<'a> {
    id: OperationId,
    method: &'a str,
    /// The target under the server's own name.
    context: Option<&'a str>,
    ts: String,
}

impl MirroredCall<'_> {
    fn envelope(
        &self,
        head: Head,
        id: OperationId,
        [from, to]: [&ParticipantId; 2],
        payload: &[u8],
    ) -> Option<Bytes> {
        let kind = kind_of(head, self.method, self.context()).ok()?;
        let (id, correlation) = (id.to_string(), self.id.to_string());
        Some(mcpx::envelope(&Draft {
            id: &id,
            ts: Some(&self.ts),
            from: from.as_str(),
            to: &[to.as_str()],
            kind: &kind,
            correlation_id: (head == Head::Response).then_some(correlation.as_str()),
            payload,
        }))
    }

    /// The target, if a kind has room for it.
    fn context(&self) -> Option<&str> {
        let head = Head::Response.as_str().len() + self.method.len() + 2;
        self.context.filter(|context| head + context.len() <= KIND_BYTES_MAX)
    }
}
