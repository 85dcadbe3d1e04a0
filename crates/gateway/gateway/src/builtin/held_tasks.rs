//! Tasks that the gateway itself answers for: proposals as their proposers' tasks, and tasks whose
//! server session is gone.

use std::sync::Arc;

use model::{Form, OperationId, Refusal, RefusalCode, Target};
use upstream::tasks::answers;
use wire::mcp::task;

use super::reviews;
use crate::delivery::{finish, spawn, unknown_method};
use crate::live::{Event, ProposalView};
use crate::proposals::decide::{Choice, unknown_proposal};
use crate::{call::Call, dispatch::Dispatch, proposals::content::Waits, proposals::view::View};

/// Serves `tasks/get`, `tasks/result`, `tasks/cancel` and `tasks/update`.
pub(super) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let method = call.request.method.as_str();
    if let Some(task) = call.task.about() {
        return finish(
            dispatch,
            call,
            answers::of_lost(task, method, call.request.payload.form),
        );
    }
    let id = match &call.request.target {
        Some(Target::Task(id)) => id.parse().ok(),
        Some(Target::Tool(_) | Target::Prompt(_) | Target::Uri(_)) | None => None,
    };
    let proposal = match own(dispatch, call, id) {
        Ok(proposal) => proposal,
        Err(refusal) => return finish(dispatch, call, Err(refusal)),
    };
    let form = call.request.payload.form;
    let body = match method {
        "tasks/get" => task::get(&View::new(dispatch, &proposal, form).task(), form),
        "tasks/update" => task::acknowledged(),
        // The answer is exactly the answer of the call (2025-11-25, "tasks/result").
        "tasks/result" => return wait(dispatch, call, proposal.id, Waits::Result),
        "tasks/cancel" => {
            let id = proposal.id;
            return spawn(dispatch, call, move |dispatch, call| async move {
                let proposal = match withdraw(&dispatch, &call, id, None).await {
                    // It is decided already: the extension acknowledges that, too.
                    Err(refusal)
                        if form == Form::Modern && refusal.code == RefusalCode::Conflict =>
                    {
                        return Ok(task::acknowledged());
                    }
                    withdrawn => withdrawn?,
                };
                Ok(task::cancelled(
                    &View::new(&dispatch, &proposal, form).task(),
                    form,
                ))
            });
        }
        method => return finish(dispatch, call, Err(unknown_method(method))),
    };
    finish(dispatch, call, Ok(body));
}

/// The caller's own proposal of this id.
///
/// # Errors
/// A refusal, which does not say whether there is no such proposal, another participant made it, or
/// the call's access token is not good for it.
pub(super) fn own(
    dispatch: &Dispatch,
    call: &Call,
    id: Option<OperationId>,
) -> Result<ProposalView, Refusal> {
    let by = &call.link.participant.id;
    let narrowing = call.narrowing();
    let own = id.and_then(|id| dispatch.with(|topic| topic.own_proposal(id, by, narrowing)));
    own.ok_or_else(answers::unknown)
}

/// Makes a call wait until a proposal is over.
pub(super) fn wait(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    proposal: OperationId,
    waits: Waits,
) {
    let until_ms = match waits {
        Waits::Tool => Some(dispatch.hold_until_ms()),
        Waits::Result => None,
    };
    // A call is served once.
    let _ = call.waits.set(waits);
    // A step from inside the effect that delivered the call: from here on it is the topic that waits.
    dispatch.take(Event::Wait {
        operation: call.id,
        proposal,
        until_ms,
    });
}

/// Withdraws the caller's own proposal, and returns it as it is then.
pub(super) async fn withdraw(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    id: OperationId,
    reason: Option<String>,
) -> Result<ProposalView, Refusal> {
    let by = reviews::deciding_caller(call);
    dispatch.decide(id, by, Choice::Withdraw { reason }).await?;
    dispatch
        .with(|topic| topic.own_proposal(id, by.id, by.narrowing))
        .ok_or_else(unknown_proposal)
}
