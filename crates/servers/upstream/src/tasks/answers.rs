//! Answers about tasks that need no server, and answers of clients for the server of a task.

use model::{Answer, Form, Outcome, Payload, Refusal, RefusalCode, Request};
use wire::mcp::task::{self, TaskStatus};

use super::look::{self, AwaitsEnd, Failed};
use super::task::{KeptResult, LOST, ServerTask};

/// The refusal of a task that does not exist, or not for this caller.
pub fn unknown() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "there is no such task or proposal")
}

/// The answer to a request about a task whose result only the gateway has: it was completed at
/// once.
///
/// # Errors
/// The refusal of what such a task does not have.
pub fn of_kept(
    task: &ServerTask,
    kept: &KeptResult,
    method: &str,
    form: Form,
) -> Result<Answer, Refusal> {
    let body = match (form, method) {
        (_, "tasks/get") => task.kept_view(kept, |view| task::get(view, form)),
        (Form::Legacy, "tasks/result") => {
            return Ok(task::related_answer(&kept.answer, &task.public));
        }
        (Form::Legacy, "tasks/cancel") => return Err(not_cancelled("it is over")),
        (Form::Modern, "tasks/cancel" | "tasks/update") => task::acknowledged(),
        _ => return Err(unknown()),
    };
    Ok(task::answer(form, body))
}

/// The body of the answer to a request about a task whose session is gone.
///
/// # Errors
/// The refusal of what only its server could have done.
pub fn of_lost(task: &ServerTask, method: &str, form: Form) -> Result<Vec<u8>, Refusal> {
    match method {
        "tasks/get" => Ok(task.lost_view(form, |view| task::get(view, form))),
        _ if !task::has_list(form) => Ok(task::acknowledged()),
        "tasks/cancel" => {
            let over = match task.lost_view(form, |view| view.status(form)) {
                task::TaskStatus::Completed => "it is completed",
                task::TaskStatus::Cancelled => "it is cancelled",
                task::TaskStatus::Failed
                | task::TaskStatus::Working
                | task::TaskStatus::InputRequired => LOST,
            };
            Err(not_cancelled(over))
        }
        _ => Err(Refusal::new(RefusalCode::UpstreamDown, LOST)
            .hint("call the tool again if its outcome is still needed")),
    }
}

/// The refusal to cancel a task that is over (2025-11-25, "Cancelling a Task").
pub fn not_cancelled(over: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Malformed,
        format!("the task cannot be cancelled: {over}"),
    )
}

/// The answer to a request of a caller of 2025-11-25 about a modern task.
///
/// # Errors
/// Why there is none.
pub async fn of_modern(
    by: &impl AwaitsEnd,
    task: &ServerTask,
    method: &str,
) -> Result<Answer, Failed> {
    let body = match method {
        "tasks/get" if task.is_cancelled() => task.listed(),
        "tasks/get" => {
            let session = by.session(task).await?;
            task::to_legacy(look::look(&session, task).await?.raw(), &task.public)
        }
        "tasks/result" if task.is_cancelled() => return Err(look::cancelled().into()),
        "tasks/result" => {
            return Ok(task::related_answer(
                &look::wait(by, task).await?,
                &task.public,
            ));
        }
        "tasks/cancel" => {
            if task.is_cancelled() {
                return Err(not_cancelled("it is cancelled").into());
            }
            let session = by.session(task).await?;
            let now = look::look(&session, task).await?;
            if now.status.is_some_and(TaskStatus::is_over) {
                return Err(not_cancelled("it is over").into());
            }
            session.cancel_task(&task.origin.own).await;
            // The extension may cancel it later or never; here it is cancelled before the answer.
            task.cancel();
            task.listed()
        }
        _ => return Err(unknown().into()),
    };
    Ok(task::answer(Form::Legacy, body.unwrap_or_default()))
}

/// A client's answer to a question that belongs to a task, with the server's id of the task, which
/// a client of another form does not write.
pub fn of_client(task: &ServerTask, question: &Request, answer: Answer) -> Answer {
    let own = &task.origin.own;
    match task::related_to(&answer.payload).filter(|named| named.id == task.public) {
        Some(named) => Answer {
            payload: named.rename(&answer.payload, own),
            ..answer
        },
        None if answer.outcome == Outcome::Ok && task::related_to(&question.payload).is_some() => {
            match task::related(answer.payload.body_bytes(), own) {
                Ok(body) => Answer {
                    payload: Payload::relayed(Form::Legacy, body),
                    ..answer
                },
                Err(_) => answer,
            }
        }
        None => answer,
    }
}
