//! What serves a caller's own proposals: waiting for one, and taking one back. Whose proposal it is the caller asks first.
//!
//! Must not know how the wish came in.

use bytes::Bytes;
use model::{Era, OperationId, Refusal, RefusalCode};
use wire::rpc::{self, Id};

use crate::caller::Caller;
use crate::desk::unknown_proposal;
use crate::pump::{Choice, Pump};
use crate::views;

/// What whoever names a task is answered that is not there for it, whosever it is.
pub(crate) fn unknown_task() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "there is no such task or proposal")
}

/// A proposal, if it is this caller's own.
///
/// # Errors
/// What another's is answered with too: that there is none.
pub(super) fn owned(pump: &Pump, caller: &Caller, id: Option<OperationId>) -> Result<OperationId, Refusal> {
    let own = id.filter(|id| pump.is_proposer(*id, caller.participant().id.as_str()));
    own.ok_or_else(unknown_task)
}

/// Waits a while, then answers with what it came to, or how it stands.
pub(super) async fn wait(pump: &Pump, id: OperationId, request: &Id, era: Era) -> Result<Bytes, Refusal> {
    pump.wait_for(id).await;
    if let Some(end) = pump.end_of(id, request, "tools/call", era) {
        return Ok(end);
    }
    let waits = pump.view(id, |view| views::words_in(&view.waiting(), false, era));
    waits.map(|result| rpc::result(request, &result)).ok_or_else(unknown_proposal)
}

/// Takes it back.
pub(super) async fn withdraw(
    pump: &Pump,
    caller: &Caller,
    id: OperationId,
    reason: Option<String>,
) -> Result<(), Refusal> {
    pump.decide(caller.participant(), id, Choice::Withdraw { reason }).await
}

/// Takes it back, and answers in words.
pub(super) async fn withdrawn(
    pump: &Pump,
    caller: &Caller,
    id: OperationId,
    reason: Option<String>,
    request: &Id,
) -> Result<Bytes, Refusal> {
    withdraw(pump, caller, id, reason).await?;
    let said = pump.view(id, |view| views::words_in(&view.verdict(), false, caller.era()));
    said.map(|result| rpc::result(request, &result)).ok_or_else(unknown_proposal)
}
