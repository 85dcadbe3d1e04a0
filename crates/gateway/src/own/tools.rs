//! The gateway's own tools: one implementation behind two doors, calls of MCP clients and envelopes in the room.
//!
//! Owns which tool does what, and how its result is written. Who may use it at all was judged before (`topic::BuiltinTool`).
//! Must not know doors.

use std::sync::Arc;

use bytes::Bytes;
use json::quote;
use model::{Era, GATEWAY, KindRef, OperationId, Refusal, RefusalCode};
use serde::Serialize;
use topic::BuiltinTool;
use wire::mcp::list::{Hints, render};
use wire::mcp::{ListKind, Params, Target};
use wire::rpc::{self, Message};

use super::{arguments, mine, reviews, shelf, talk};
use crate::caller::Caller;
use crate::config::BuiltIn;
use crate::pump::Pump;
use crate::views;

/// The tool that a call names, if it is one of ours.
pub(super) fn named(params: &Params<'_>) -> Option<BuiltinTool> {
    match params.target()? {
        Target::Name(name) => BuiltinTool::of(name),
        Target::Uri(_) | Target::Task(_) => None,
    }
}

/// Answers a call of one of our tools.
///
/// # Errors
/// What is answered as an error of the protocol. What a model can do something about is a result.
pub(crate) async fn call(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    message: &Message,
) -> Result<Bytes, Refusal> {
    let params =
        Params::read(message).map_err(|wrong| Refusal::new(RefusalCode::Malformed, wrong.message))?;
    let (Some(tool), Some(request)) = (named(&params), message.id()) else { return Err(unknown()) };
    let era = caller.era();
    let result = match tool {
        BuiltinTool::WaitForProposal => {
            return mine::wait(pump, own(pump, caller, &params)?, request, era).await;
        }
        BuiltinTool::WithdrawProposal => {
            let (id, reason) = (own(pump, caller, &params)?, arguments::text(&params, "reason"));
            return mine::withdrawn(pump, caller, id, reason, request).await;
        }
        BuiltinTool::ListProposals => written(reviews::list(pump, caller, &params), era),
        BuiltinTool::ShowProposal => written(reviews::show(pump, caller, &params), era),
        BuiltinTool::ApproveProposal => written(reviews::approve(pump, caller, &params).await, era),
        BuiltinTool::RejectProposal => written(reviews::reject(pump, caller, &params).await, era),
        BuiltinTool::Say => written(talk::say(pump, caller, &params).await, era),
        BuiltinTool::ReadMessages => written(talk::read(pump, caller, &params).await, era),
        BuiltinTool::ListParticipants => written(talk::participants(pump, caller, &params), era),
    };
    Ok(rpc::result(request, &result))
}

/// The tools that a participant of the room could call there, by name of the gateway's own participant: as a list result.
pub(crate) fn in_room(pump: &Pump, caller: &Caller) -> Vec<u8> {
    let items = shelf::all().filter(|(tool, _)| is_for(pump, caller, *tool)).map(|(_, item)| (item, None));
    render(ListKind::Tools, items, None, &[], Hints::Legacy)
}

/// Whether a participant of the room could call a tool there. Proposals are part of every room; what was said is kept for
/// readers only where that is configured.
pub(crate) fn is_for(pump: &Pump, caller: &Caller, tool: BuiltinTool) -> bool {
    let there = match shelf::group(tool) {
        BuiltIn::Room => pump.room().end().is_some(),
        BuiltIn::Proposals | BuiltIn::Proxy | BuiltIn::SearchTools => true,
    };
    let capabilities = pump.capabilities_of(&caller.participant().id);
    let may_ask = || {
        KindRef::request("tools/call", Some(tool.name()))
            .is_ok_and(|kind| capabilities.admits(kind, &[GATEWAY]))
    };
    there && tool.is_for(&capabilities) && may_ask()
}

/// The refusal of a tool that is not there, or not for this caller.
pub(crate) fn unknown() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no tool of this name")
}

/// The caller's own proposal that the arguments name.
fn own(pump: &Pump, caller: &Caller, params: &Params<'_>) -> Result<OperationId, Refusal> {
    let id = arguments::text(params, "id").and_then(|id| id.parse().ok());
    mine::owned(pump, caller, id)
}

/// A tool's result: as data and as text, or in words why there is none.
fn written<T: Serialize>(end: Result<T, Refusal>, era: Era) -> Vec<u8> {
    let json = end.and_then(|end| {
        serde_json::to_string(&end)
            .map_err(|_| Refusal::new(RefusalCode::Internal, "no result could be made"))
    });
    let json = match json {
        Ok(json) => json,
        Err(refusal) => return views::words_in(&format!("{}: {refusal}", refusal.code), true, era),
    };
    let kind = if era == Era::Modern { ",\"resultType\":\"complete\"" } else { "" };
    let text = quote(&json);
    format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{json},\"isError\":false{kind}}}"
    )
    .into_bytes()
}
