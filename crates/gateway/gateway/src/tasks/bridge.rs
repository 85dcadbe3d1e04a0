//! Requests about a task whose server speaks the other form, and about a task whose result only the
//! gateway has.

use std::sync::Arc;

use model::{Answer, Form};
use upstream::CallEvents;
use upstream::tasks::ServerTask;
use upstream::tasks::answers;
use upstream::tasks::look::{self, Failed};
use wire::mcp::task::{self, OperationState, TaskStatus};

use super::awaiting;
use super::waiting::{Waiting, session_of};
use crate::{call::Call, dispatch::Dispatch};

/// Whether a request about this task is not for its server as it is.
pub(crate) fn takes(call: &Call, task: &ServerTask) -> bool {
    task.kept.is_some() || task.origin.form != call.request.payload.form
}

/// Serves a request about a task.
pub(crate) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>, task: &Arc<ServerTask>) {
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    let task = Arc::clone(task);
    if let Some(kept) = &task.kept {
        return call.done(answers::of_kept(
            &task,
            kept,
            call.request.method.as_str(),
            call.request.payload.form,
        ));
    }
    tokio::spawn(async move {
        let done = match task.origin.form {
            Form::Legacy => at_legacy(&dispatch, &call, &task).await,
            Form::Modern => {
                answers::of_modern(
                    &Waiting(&dispatch, &call),
                    &task,
                    call.request.method.as_str(),
                )
                .await
            }
        };
        let done = match done {
            Ok(answer) => Ok(answer),
            Err(failed) => failed.into(),
        };
        call.done(done);
    });
}

/// A request of a modern caller about a task of 2025-11-25.
async fn at_legacy(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    task: &Arc<ServerTask>,
) -> Result<Answer, Failed> {
    let form = Form::Modern;
    let session = session_of(dispatch, call, task).await?;
    let body = match call.request.method.as_str() {
        "tasks/get" => {
            let now = look::look(&session, task).await?;
            let end = look::end_of(&session, task, &now).await?;
            let asked = awaiting::questions(dispatch, task).filter(|_| end.is_none());
            if asked.is_none() && now.status == Some(TaskStatus::InputRequired) {
                // Its server asks only where the result is awaited.
                awaiting::begin(dispatch, call.requester(), task);
            }
            let standing = end.as_ref().map(task::standing_of);
            let standing = standing.or(asked.as_deref().map(OperationState::InputRequired));
            task::got(now.raw(), &task.public, standing).unwrap_or_default()
        }
        // The extension acknowledges, whether the task was over or not.
        "tasks/cancel" => {
            session.cancel_task(&task.origin.own).await;
            task::acknowledged()
        }
        "tasks/update" => {
            awaiting::answer(dispatch, &call.request, task)?;
            task::acknowledged()
        }
        _ => return Err(answers::unknown().into()),
    };
    Ok(task::answer(form, body))
}
