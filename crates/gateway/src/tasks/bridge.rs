//! Requests about a task whose server speaks the other form, and about a task whose result only the gateway has.

use std::sync::Arc;

use model::{Answer, Form, Refusal};
use upstream::CallEvents;
use upstream::tasks::{Kept, Task};
use wire::mcp::task::{self, Status};

use super::look::{self, Failed};
use super::relay::{not_cancelled, unknown};
use crate::{call::Call, dispatch::Dispatch};

/// Whether a request about this task is not for its server as it is.
pub(crate) fn takes(call: &Call, task: &Task) -> bool {
    task.kept.is_some() || task.origin.form != call.request.payload.form
}

/// Serves a request about a task.
pub(crate) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>, task: &Arc<Task>) {
    let (dispatch, call, task) = (Arc::clone(dispatch), Arc::clone(call), Arc::clone(task));
    if let Some(kept) = &task.kept {
        return call.done(of_kept(&call, &task, kept));
    }
    tokio::spawn(async move {
        let done = match task.origin.form {
            Form::Legacy => at_legacy(&dispatch, &call, &task).await,
            Form::Modern => at_modern(&dispatch, &call, &task).await,
        };
        let done = match done {
            Ok(answer) => Ok(answer),
            Err(failed) => failed.into(),
        };
        call.done(done);
    });
}

/// A task whose result only the gateway has: it was completed at once.
fn of_kept(call: &Call, task: &Task, kept: &Kept) -> Result<Answer, Refusal> {
    let form = call.request.payload.form;
    let body = match (form, call.request.method.as_str()) {
        (_, "tasks/get") => task.kept_view(kept, |view| task::get(view, form)),
        (Form::Legacy, "tasks/result") => return Ok(task::related_answer(&kept.answer, &task.public)),
        (Form::Legacy, "tasks/cancel") => return Err(not_cancelled("it is over")),
        (Form::Modern, "tasks/cancel" | "tasks/update") => task::acknowledged(),
        _ => return Err(unknown()),
    };
    Ok(task::answer(form, &body))
}

/// A request of a modern caller about a task of 2025-11-25.
async fn at_legacy(dispatch: &Arc<Dispatch>, call: &Call, task: &Task) -> Result<Answer, Failed> {
    let form = Form::Modern;
    let session = look::session_of(dispatch, call, task).await?;
    let body = match call.request.method.as_str() {
        "tasks/get" => {
            let now = look::look(&session, task).await?;
            let end = look::end_of(&session, task, &now).await?;
            task::got(now.raw(), &task.public, end.as_ref().map(task::standing_of)).unwrap_or_default()
        }
        // The extension acknowledges, whether the task was over or not.
        "tasks/cancel" => {
            session.cancel_task(&task.origin.own).await;
            task::acknowledged()
        }
        "tasks/update" => task::acknowledged(),
        _ => return Err(unknown().into()),
    };
    Ok(task::answer(form, &body))
}

/// A request of a caller of 2025-11-25 about a modern task.
async fn at_modern(dispatch: &Arc<Dispatch>, call: &Call, task: &Task) -> Result<Answer, Failed> {
    let body = match call.request.method.as_str() {
        "tasks/get" if task.is_cancelled() => task.listed(),
        "tasks/get" => {
            let session = look::session_of(dispatch, call, task).await?;
            task::to_legacy(look::look(&session, task).await?.raw(), &task.public)
        }
        "tasks/result" if task.is_cancelled() => return Err(look::cancelled().into()),
        "tasks/result" => {
            task.awaited_by(call.id);
            return Ok(task::related_answer(&look::wait(dispatch, call, task).await?, &task.public));
        }
        "tasks/cancel" => {
            if task.is_cancelled() {
                return Err(not_cancelled("it is cancelled").into());
            }
            let session = look::session_of(dispatch, call, task).await?;
            let now = look::look(&session, task).await?;
            if now.status.is_some_and(Status::is_over) {
                return Err(not_cancelled("it is over").into());
            }
            session.cancel_task(&task.origin.own).await;
            // The extension may cancel it later or never; here it is cancelled before the answer.
            task.cancel();
            task.listed()
        }
        _ => return Err(unknown().into()),
    };
    Ok(task::answer(Form::Legacy, &body.unwrap_or_default()))
}
