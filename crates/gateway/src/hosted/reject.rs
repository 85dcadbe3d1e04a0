//! The tool by which a participant of a room says no to a proposal: MCPx has no word for it.
//!
//! Must not know how a decision is written down or told.

use std::sync::Arc;

use model::OperationId;
use wire::mcp::Params;
use wire::rpc::Message;

use super::reply::Reply;
use crate::caller::Caller;
use crate::own::argument;
use crate::pump::{Choice, Pump};
use crate::views::words;

/// The tool's name.
pub(super) const TOOL: &str = "reject_proposal";
/// The tools that the gateway's own participant has in a room, as a list result.
pub(super) const TOOLS: &[u8] = br#"{"tools":[{"name":"reject_proposal","title":"Reject a proposal","description":"Says no to what another has proposed. Whoever could make the call may do so.","inputSchema":{"type":"object","properties":{"proposal":{"type":"string","description":"The id of the envelope that proposed it."},"reason":{"type":"string","description":"Why, in words for the proposer."}},"required":["proposal"]}}]}"#;

/// Rejects the proposal that the arguments name.
pub(super) fn reject(pump: &Arc<Pump>, caller: &Arc<Caller>, message: &Message, reply: Reply) {
    let Ok(params) = Params::read(message) else { return };
    let named = argument(&params, "proposal").unwrap_or_default();
    let id = pump.proposal_of(&named).or_else(|| named.parse::<OperationId>().ok());
    let choice = Choice::Reject { reason: argument(&params, "reason").filter(|reason| !reason.is_empty()) };
    let (pump, caller, message) = (Arc::clone(pump), Arc::clone(caller), message.clone());
    tokio::spawn(async move {
        let decided = match id {
            Some(id) => pump.decide(caller.participant(), id, choice).await,
            None => Err(crate::desk::unknown_proposal()),
        };
        let (said, is_error) = match decided {
            Ok(()) => ("The proposal is rejected.".to_owned(), false),
            Err(refusal) => (refusal.to_string(), true),
        };
        reply.result(&message, &words(&said, is_error));
    });
}
