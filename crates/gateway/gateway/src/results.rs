//! Results of tools that are too large for their callers: kept in memory for a while, and read by
//! their callers alone.
//!
//! A caller has a limit if its participant or its topic has one (`result_bytes_max`). A longer
//! result is kept in the topic for its caller, who gets its first page and a link
//! ([`wire::mcp::large`]). Reading it needs no capability, as it was the caller's before; for all
//! others, the next bearer of the caller's name among them, it does not exist.

pub(crate) mod asked;
pub(crate) mod store;

use std::sync::Arc;

use model::method::GET_TASK;
use model::{Answer, Outcome, ParticipantId, Payload, Refusal, RefusalCode, Request, Target};
use topic::Cause;
use wire::mcp::large::{self, Cut, LIMIT_BYTES_MIN, ResultReceiver, ResultRequest, URI};
use wire::mcp::{Version, relay};

use crate::call::{Answering, Call};
use crate::{dispatch::Dispatch, link::Respell};
use asked::asked_id;

/// The answer that a caller gets in place of this one, if this one is too large for it: its first
/// page, and where the rest is.
#[inline]
pub(crate) fn cut(
    dispatch: &Arc<Dispatch>,
    reply: &Answering<'_>,
    answer: &Answer,
    respell: &Respell<'_>,
) -> Option<Answer> {
    // No limit is lower: most answers end here.
    if answer.payload.bytes.len() <= LIMIT_BYTES_MIN {
        return None;
    }
    cut_long(dispatch, reply, answer, respell)
}

fn cut_long(
    dispatch: &Arc<Dispatch>,
    reply: &Answering<'_>,
    answer: &Answer,
    respell: &Respell<'_>,
) -> Option<Answer> {
    let caller = reply.request();
    let participant = &caller.link.participant.id;
    let limit = dispatch.result_limit(participant)?;
    let method = caller.request.method.as_str();
    let is_result = answer.outcome == Outcome::Ok && caller.request.method.facts().has_tool_result;
    if !is_result || reply.is_away() || answer.payload.bytes.len() <= limit {
        return None;
    }
    let form = caller.link.form;
    let shown = caller.shown_answer(answer);
    let converted = relay::convert_answer(&shown, method, form, respell);
    let result = converted.payload.body_bytes();
    if converted.outcome != Outcome::Ok || result.len() <= limit {
        return None;
    }
    let id = Dispatch::secret_id().to_string();
    let links = caller.client().version >= Version::V2025_06_18;
    let cut = |result: &[u8]| {
        let Cut { result, kept } = large::cut(
            result,
            ResultReceiver {
                limit,
                id: &id,
                links,
            },
        )?;
        Some((result, kept))
    };
    let (body, kept) = if method == GET_TASK.name {
        large::in_task(result, cut)?
    } else {
        cut(result)?
    };
    dispatch
        .results
        .keep(&id, owner(dispatch, participant), participant, kept);
    Some(Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(form, body),
    })
}

/// Whether a request reads a result that is kept for its caller.
pub(crate) fn is_own(dispatch: &Dispatch, participant: &ParticipantId, request: &Request) -> bool {
    let id = asked_id(request);
    id.is_some_and(|id| {
        dispatch
            .results
            .find(id, &owner(dispatch, participant))
            .is_some()
    })
}

/// The answer to `resources/read` of a kept result.
///
/// # Errors
/// The refusal of what is not kept for this caller, or does not exist of it.
pub(crate) fn read(dispatch: &Dispatch, call: &Call) -> Result<Vec<u8>, Refusal> {
    let uri = call
        .request
        .target
        .as_ref()
        .map(Target::as_str)
        .unwrap_or_default();
    let owner = owner(dispatch, &call.link.participant.id);
    let found =
        asked_id(&call.request).and_then(|id| Some((id, dispatch.results.find(id, &owner)?)));
    let Some((id, kept)) = found else {
        return Err(*topic::request_refusal(
            Cause::Unknown,
            Some(topic::PublicTarget::Uri(uri)),
        ));
    };
    let malformed = |why: String| {
        Refusal::new(RefusalCode::Malformed, why)
            .hint(format!("read {URI}{id}?page=1, or {URI}{id}?search=TEXT"))
    };
    let asked = ResultRequest::of(uri).map_err(malformed)?;
    kept.read(id, &asked, call.request.payload.form)
        .map_err(malformed)
}

/// The participant as its results know it: the next bearer of an issued name is another one.
fn owner(dispatch: &Dispatch, participant: &ParticipantId) -> String {
    dispatch
        .context
        .sealer
        .incarnations()
        .bearer(participant.as_str())
        .into_owned()
}
