//! Calls of the built-in tools: one implementation for calls of MCP clients and for requests in the room.
//!
//! The topic judges which MCP callers may use a tool; of a request in the room it judges only the kind.

use std::sync::Arc;

use model::{Capabilities, Form, GATEWAY, KindRef, OperationId, ParticipantId, Refusal, RefusalCode, Target};
use serde::Serialize;
use topic::BuiltinTool;
use wire::mcp::ListKind;
use wire::mcp::list::{Hints, render};

use super::{answer::spawn, arguments, definitions, held_tasks, messages, participants, reviews};
use crate::proposals::view::{View, tool_result, words};
use crate::{
    call::Call, delivery::finish, dispatch::Dispatch, live::ProposalView, proposals::content::Waits,
};
use access::config::BuiltIn;

/// Serves a call of a built-in tool. What a model can do something about is a result with `isError`, not a refusal.
pub(super) fn call(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let form = held_tasks::form_of(call);
    let Some(tool) = named(call) else { return finish(dispatch, call, Err(unknown())) };
    let body = match tool {
        BuiltinTool::WaitForProposal => match own(dispatch, call) {
            Ok(proposal) => return held_tasks::wait(dispatch, call, proposal.id, Waits::Tool),
            Err(refusal) => Err(refusal),
        },
        BuiltinTool::WithdrawProposal => return spawn(dispatch, call, withdraw),
        BuiltinTool::ListProposals => Ok(result(reviews::list(dispatch, call), form)),
        BuiltinTool::ShowProposal => Ok(result(reviews::show(dispatch, call), form)),
        BuiltinTool::ApproveProposal => return later(dispatch, call, reviews::approve),
        BuiltinTool::RejectProposal => return later(dispatch, call, reviews::reject),
        BuiltinTool::Say => return later(dispatch, call, messages::say),
        BuiltinTool::ReadMessages => return later(dispatch, call, messages::read),
        BuiltinTool::ListParticipants => Ok(result(participants::list(dispatch, call), form)),
    };
    finish(dispatch, call, body);
}

/// Serves a call of a tool concurrently.
fn later<F, T: Serialize>(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    serve: impl FnOnce(Arc<Dispatch>, Arc<Call>) -> F,
) where
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let form = held_tasks::form_of(call);
    spawn(dispatch, call, |dispatch, call| {
        let served = serve(dispatch, call);
        async move { Ok(result(served.await, form)) }
    });
}

async fn withdraw(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    let (id, reason) = (own(&dispatch, &call)?.id, arguments::text(&call.request, "reason"));
    let proposal = held_tasks::withdraw(&dispatch, &call, id, reason).await?;
    let form = held_tasks::form_of(&call);
    Ok(words(&View::new(&dispatch, &proposal, form).verdict(), false, form))
}

/// The tools that a participant could call in the room, as a list result.
pub(super) fn list_in_room(dispatch: &Dispatch, participant: &ParticipantId) -> Vec<u8> {
    let capabilities = dispatch.capabilities_of(participant);
    let items = definitions::all().filter(|(tool, _)| is_for(dispatch, &capabilities, *tool));
    render(ListKind::Tools, items.map(|(_, item)| (item, None)), None, &[], Hints::Legacy)
}

/// Whether the tool that a request in the room names exists for its sender.
pub(super) fn is_in_room(dispatch: &Dispatch, call: &Call) -> bool {
    let capabilities = || dispatch.capabilities_of(&call.link.participant.id);
    named(call).is_some_and(|tool| is_for(dispatch, &capabilities(), tool))
}

/// Whether a participant with these capabilities could call a tool in the room. Every room has proposals; its messages are kept
/// for readers only if that is configured.
fn is_for(dispatch: &Dispatch, capabilities: &Capabilities, tool: BuiltinTool) -> bool {
    let exists = match definitions::group(tool) {
        BuiltIn::Room => dispatch.with(|topic| topic.kept().readable),
        BuiltIn::Proposals | BuiltIn::Proxy | BuiltIn::SearchTools => true,
    };
    let may_request = || {
        KindRef::request("tools/call", Some(tool.name()))
            .is_ok_and(|kind| capabilities.admits(kind, &[GATEWAY]))
    };
    exists && tool.is_for(capabilities) && may_request()
}

/// The refusal of a tool that does not exist, or not for this caller.
pub(super) fn unknown() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no tool of this name")
}

/// The built-in tool that a call names.
fn named(call: &Call) -> Option<BuiltinTool> {
    match call.request.target.as_ref()? {
        Target::Tool(name) => BuiltinTool::of(name),
        Target::Prompt(_) | Target::Uri(_) | Target::Task(_) => None,
    }
}

/// The caller's own proposal that the argument `id` names.
fn own(dispatch: &Dispatch, call: &Call) -> Result<ProposalView, Refusal> {
    let id: Option<OperationId> = arguments::text(&call.request, "id").and_then(|id| id.parse().ok());
    held_tasks::own(dispatch, call, id)
}

/// The result of a tool: as data and as text, or the refusal in words.
fn result<T: Serialize>(end: Result<T, Refusal>, form: Form) -> Vec<u8> {
    let data = end.and_then(|end| {
        serde_json::to_string(&end)
            .map_err(|_| Refusal::new(RefusalCode::Internal, "the result cannot be written"))
    });
    let data = match data {
        Ok(data) => data,
        Err(refusal) => return words(&format!("{}: {refusal}", refusal.code), true, form),
    };
    tool_result(&data, false, form, |result| {
        result.raw("structuredContent", data.as_bytes());
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_data_and_text() {
        let read = |form| -> serde_json::Value {
            serde_json::from_slice(&result(Ok(json!({ "a": "\"" })), form)).unwrap()
        };
        let legacy = json!({
            "content": [{ "type": "text", "text": "{\"a\":\"\\\"\"}" }],
            "structuredContent": { "a": "\"" },
            "isError": false,
        });
        assert_eq!(read(Form::Legacy), legacy);
        let mut modern = legacy;
        modern["resultType"] = "complete".into();
        assert_eq!(read(Form::Modern), modern);
    }
}
