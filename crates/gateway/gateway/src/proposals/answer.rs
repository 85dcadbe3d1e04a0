//! Answers to callers that wait for a proposal: held calls, retries, built-in tools and
//! `tasks/result`.

use std::sync::Arc;

use model::method::CALL_TOOL;
use model::{Answer, Form, Outcome, ParticipantId, Refusal, RefusalCode};
use topic::End;
use wire::mcp::{input, relay, result::words, task};

use super::view::{View, noted};
use super::{announce, content::Waits};
use crate::incoming::{Names, Parks};
use crate::returns::{self, Why};
use crate::{call::Call, delivery, dispatch::Dispatch, live::ProposalView};

/// Answers a caller for now. The proposal goes on, and so does a held call, whose answer then
/// reaches the room alone.
pub(crate) fn park(dispatch: &Arc<Dispatch>, call: &Arc<Call>, proposal: &ProposalView) {
    let reply = call.answer_for_now();
    match for_now(dispatch, call, proposal) {
        Ok(answer) => reply.settle(&answer, &|_| None),
        Err(refusal) => reply.refuse(&refusal),
    }
}

/// The end of a held call that repeats a proposal: what the first call was answered for now.
pub(super) fn repeats(dispatch: &Dispatch, call: &Call, proposal: &ProposalView) -> End<Answer> {
    match for_now(dispatch, call, proposal) {
        Ok(answer) => End::Answered {
            outcome: Outcome::Ok,
            answer,
        },
        Err(refusal) => End::Failed(Box::new(refusal)),
    }
}

/// The answer for now to a call that waits for a proposal, by which its caller comes back.
fn for_now(dispatch: &Dispatch, call: &Call, proposal: &ProposalView) -> Result<Answer, Refusal> {
    let form = call.request.payload.form;
    let view = View::new(dispatch, proposal, form);
    let body = match (call.waits.get(), call.parks) {
        (Some(Waits::Tool), _) => Ok(words(&view.waiting(), false, form)),
        (Some(Waits::Result), _) => Err(Refusal::new(
            RefusalCode::Cancelled,
            "the gateway is about to stop",
        )
        .hint("ask again later")),
        (None, Parks::Task) => Ok(task::created(&view.task(), form, Some(&view.waiting()))),
        (None, Parks::Retry) => Ok(input::required(
            &[],
            &returns::seal(dispatch, call, Why::Held(proposal.id)),
        )),
        (None, Parks::Words) if call.request.calls_tool() => Ok(view.still_waiting()),
        (None, Parks::Words) => Err(Refusal::new(
            RefusalCode::CapabilityViolation,
            view.waiting(),
        )),
    };
    body.map(|body| delivery::own_answer(form, body))
}

/// Answers a caller with what the proposal came to.
pub(crate) fn report(dispatch: &Arc<Dispatch>, call: &Arc<Call>, proposal: &ProposalView) {
    let form = call.request.payload.form;
    let view = View::new(dispatch, proposal, form);
    let waits = call.waits.get();
    let method = match waits {
        Some(Waits::Result) => CALL_TOOL.name,
        Some(Waits::Tool) | None => call.request.method.as_str(),
    };
    let Some(end) = view.end(method) else {
        return park(dispatch, call, proposal);
    };
    let end = match waits {
        Some(Waits::Result) => end.map(|answer| related(&answer, form, view.id())),
        Some(Waits::Tool) | None => end,
    };
    match end {
        Ok(answer) => {
            // An answer of several servers has no one spelling of URIs.
            let server = match proposal.content.opened.to.as_slice() {
                [only] => ParticipantId::new(only)
                    .ok()
                    .filter(|_| call.names == Names::Public),
                _ => None,
            };
            delivery::reply_by(dispatch, call, &answer, server.as_ref());
        }
        Err(refusal) => call.reply().refuse(&refusal),
    }
}

/// Answers a call that carried out a proposal.
pub(crate) fn settle(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    answer: Answer,
    proposal: &ProposalView,
) {
    // The answer to an envelope is in the room anyway.
    if call.names == Names::Public {
        let server = call.delivered.get().map(|delivered| &delivered.server);
        announce::answered(dispatch, server, &answer, proposal);
    }
    delivery::settle(dispatch, call, noted(answer, proposal));
}

/// The answer to the call of a task, under the task's id (2025-11-25, `tasks/result`).
fn related(answer: &Answer, form: Form, id: &str) -> Answer {
    // The answer to another method would be converted otherwise.
    let converted = relay::convert_answer(answer, CALL_TOOL.name, form, &|_| None);
    task::related_answer(&converted, id)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::mcpx::payload;

    use super::*;

    #[test]
    fn a_result_names_its_task_and_an_error_does_not() {
        let meta =
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        let related = |answer: &Answer| super::related(answer, Form::Legacy, "t");
        let own = related(&delivery::own_answer(Form::Legacy, r#"{"content":[]}"#));
        assert_eq!(own.payload.body_bytes(), meta.as_bytes());
        let frame = r#"{"jsonrpc":"2.0","id":5,"result":{"content":[]}}"#;
        let of_server = payload::read_answer(Bytes::from_static(frame.as_bytes())).unwrap();
        assert_eq!(related(&of_server).payload.body_bytes(), meta.as_bytes());
        let frame = r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#;
        let failed = payload::read_answer(Bytes::from_static(frame.as_bytes())).unwrap();
        let error = failed.payload.body_bytes();
        assert_eq!(related(&failed).payload.body_bytes(), error);
    }
}
