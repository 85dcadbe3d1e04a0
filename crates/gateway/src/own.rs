//! What the gateway's own participant does for an MCP caller: its proposals as tasks, and its own tools.
//!
//! Tasks serve what the caller itself has proposed; what is another's answers as unknown. Must not know doors.

mod arguments;
mod mine;
mod reviews;
pub(crate) mod shelf;
mod shown;
mod talk;
pub(crate) mod tools;

use std::sync::Arc;

use bytes::Bytes;
use model::{Era, OperationId, Refusal, RefusalCode};
use topic::BuiltinTool;
use wire::mcp::task::{self, ACKNOWLEDGED};
use wire::mcp::{Params, Target};
use wire::rpc::{self, Message};

use crate::caller::{Caller, Open};
use crate::operation::Operation;
use crate::pump::{Pump, unknown_method};
use crate::stream::Stream;
use crate::views;
pub(crate) use mine::unknown_task;

/// Whether a request is for one of the tools that serve a caller's own proposals, listed or not.
pub(crate) fn serves_own(params: &Params<'_>) -> bool {
    let serves = |tool| matches!(tool, BuiltinTool::WaitForProposal | BuiltinTool::WithdrawProposal);
    params.method() == "tools/call" && tools::named(params).is_some_and(serves)
}

/// Answers a request that was admitted and is for the gateway itself.
pub(crate) fn answer(pump: &Arc<Pump>, operation: &Arc<Operation>, params: &Params<'_>) {
    let (pump, operation, message) = (Arc::clone(pump), Arc::clone(operation), params.message().clone());
    if !is_ours(&message) {
        return pump.answer_here(&operation, Err(unknown_method(message.method())));
    }
    tokio::spawn(async move {
        let end = serve(&pump, &operation, &message).await;
        pump.answer_here(&operation, end);
    });
}

fn is_ours(message: &Message) -> bool {
    message.method().starts_with("tasks/") || message.method() == "tools/call"
}

async fn serve(pump: &Arc<Pump>, operation: &Arc<Operation>, message: &Message) -> Result<Bytes, Refusal> {
    if message.method() == "tools/call" {
        return tools::call(pump, &operation.caller, message).await;
    }
    let params =
        Params::read(message).map_err(|wrong| Refusal::new(RefusalCode::Malformed, wrong.message))?;
    let (caller, request) = (&operation.caller, &operation.request);
    let era = caller.era();
    if message.method() == "tasks/list" {
        return Ok(rpc::result(request, &pump.task_list(caller, &params).await?));
    }
    if let Some(task) = operation.about() {
        return pump.about_lost(task, operation);
    }
    let id = mine::owned(pump, caller, named(&params))?;
    let result = match message.method() {
        "tasks/get" => pump.view(id, |view| task::get(&view.task(), era)),
        "tasks/result" => return outcome(pump, operation, id).await,
        "tasks/cancel" => {
            mine::withdraw(pump, caller, id, None).await?;
            match era {
                Era::Legacy => pump.view(id, |view| task::legacy_cancelled(&view.task())),
                Era::Modern => Some(ACKNOWLEDGED.into()),
            }
        }
        "tasks/update" => Some(ACKNOWLEDGED.into()),
        method => return Err(unknown_method(method)),
    };
    result.map(|result| rpc::result(request, &result)).ok_or_else(crate::desk::unknown_proposal)
}

/// The proposal that a request names as a task.
fn named(params: &Params<'_>) -> Option<OperationId> {
    match params.target()? {
        Target::Task(id) => id.parse().ok(),
        Target::Name(_) | Target::Uri(_) => None,
    }
}

/// Exactly what the call would have been answered, once it is over (2025-11-25, "tasks/result").
async fn outcome(pump: &Pump, operation: &Operation, id: OperationId) -> Result<Bytes, Refusal> {
    loop {
        pump.wait_for(id).await;
        if operation.is_over() || pump.is_stopping() {
            return Err(Refusal::new(RefusalCode::Cancelled, "the request was cancelled"));
        }
        let Some(end) = pump.end_of(id, &operation.request, "tools/call", operation.caller.era()) else {
            continue;
        };
        let Ok(message) = Message::read(end.clone()) else { return Ok(end) };
        let related = message.result().map(|result| task::related(result, &id.to_string()));
        return Ok(match related {
            Some(Ok(result)) => rpc::result(&operation.request, &result),
            Some(Err(_)) | None => end,
        });
    }
}

/// A modern caller comes back with the state that it was given: it goes on waiting. Closing the stream takes its proposal
/// back.
pub(crate) fn resume(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    params: &Params<'_>,
    out: &Arc<Stream>,
) -> Option<Arc<dyn Open>> {
    let message = params.message();
    let state = json::text(params.get("requestState")?.raw)?.into_owned();
    let id = views::open(pump.ground().sealer(), caller.participant().id.as_str(), &state)?;
    let request = message.id()?.clone();
    let waiting = Arc::new(Waiting { pump: Arc::clone(pump), caller: Arc::clone(caller), id });
    let (pump, out, method) = (Arc::clone(pump), Arc::clone(out), message.method().to_owned());
    tokio::spawn(async move {
        pump.wait_for(id).await;
        let end = pump.end_of(id, &request, &method, Era::Modern);
        out.answer(end.unwrap_or_else(|| rpc::result(&request, &views::retry(&state))));
    });
    Some(waiting)
}

/// A retry that waits.
struct Waiting {
    pump: Arc<Pump>,
    caller: Arc<Caller>,
    id: OperationId,
}

impl Open for Waiting {
    fn cancel(&self) {
        if self.pump.is_stopping() {
            return;
        }
        let (pump, caller, id) = (Arc::clone(&self.pump), Arc::clone(&self.caller), self.id);
        tokio::spawn(async move {
            let why = Some("its caller has stopped waiting".to_owned());
            if let Err(refusal) = mine::withdraw(&pump, &caller, id, why).await {
                tracing::debug!(%refusal, "a proposal was over before it could be withdrawn");
            }
        });
    }

    fn refuse(&self, _: &Refusal) {}

    fn take_back(&self) {}
}
