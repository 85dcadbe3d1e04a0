//! Writer of tasks, in the form of either era.

use json::{JsonError, Object};
use model::{Form, Method, Notice, Payload};

use super::view::{OperationState, TaskView};
use crate::mcp::approval::{Remedy, write_denial};
use crate::mcp::meta;
use crate::mcp::result::set_within;
use crate::time::rfc3339;

/// The key of a `CreateTaskResult`'s `_meta` with the text that the model gets at once (2025-11-25,
/// "Model immediate response").
pub(super) const IMMEDIATE: &str = "io.modelcontextprotocol/model-immediate-response";

/// The result of a call that has become a task: nested in 2025-11-25, flat in the extension.
///
/// `immediate` is for the caller's model; only 2025-11-25 has a place for it.
#[must_use]
pub fn created(task: &TaskView<'_>, form: Form, immediate: Option<&str>) -> Vec<u8> {
    json::object(|result| match form {
        Form::Modern => {
            result.text("resultType", "task");
            write_task(result, task, Form::Modern);
            write_meta(result, task, None);
        }
        Form::Legacy => {
            result.object("task", |object| write_task(object, task, Form::Legacy));
            write_meta(result, task, immediate);
        }
    })
}

/// The result of `tasks/get`. In the extension it contains the questions, the result or the error.
#[must_use]
pub fn get(task: &TaskView<'_>, form: Form) -> Vec<u8> {
    json::object(|result| {
        match form {
            Form::Legacy => write_task(result, task, Form::Legacy),
            Form::Modern => {
                result.text("resultType", "complete");
                write_with_outcome(result, task);
            }
        }
        write_meta(result, task, None);
    })
}

/// Adds the text for the caller's model, and that the call is denied until it is approved.
fn write_meta(result: &mut Object<'_>, task: &TaskView<'_>, immediate: Option<&str>) {
    if immediate.is_none() && !task.awaits_approval {
        return;
    }
    result.object("_meta", |keys| {
        keys.optional_text(IMMEDIATE, immediate);
        if task.awaits_approval {
            write_denial(keys, Remedy::Task);
        }
    });
}

/// The params of `notifications/tasks/status` (2025-11-25) or `notifications/tasks` (extension).
#[must_use]
pub(crate) fn changed(task: &TaskView<'_>, form: Form) -> Vec<u8> {
    match form {
        Form::Legacy => legacy(task),
        Form::Modern => json::object(|params| write_with_outcome(params, task)),
    }
}

/// The notification of a task's state.
#[must_use]
pub fn notice(task: &TaskView<'_>, form: Form) -> Notice {
    let method = match form {
        Form::Legacy => "notifications/tasks/status",
        Form::Modern => "notifications/tasks",
    };
    let payload = Payload::body(form, changed(task, form));
    Notice {
        method: Method::Known(method),
        latest: None,
        payload,
    }
}

/// The result of `tasks/cancel`: in 2025-11-25 the task as it is now, which should be cancelled;
/// the extension acknowledges.
#[must_use]
pub fn cancelled(task: &TaskView<'_>, form: Form) -> Vec<u8> {
    match form {
        Form::Legacy => legacy(task),
        Form::Modern => acknowledged(),
    }
}

/// The result of `tasks/update` and `tasks/cancel` of the extension.
#[must_use]
pub fn acknowledged() -> Vec<u8> {
    br#"{"resultType":"complete"}"#.to_vec()
}

/// The result of `tasks/result`, or the params of any message that belongs to a task (2025-11-25):
/// `body` with the task's id in its `_meta`. All other members stay as they were.
///
/// # Errors
/// [`JsonError`] when `body` or its `_meta` is no object or has a member twice.
pub fn related(body: &[u8], task_id: &str) -> Result<Vec<u8>, JsonError> {
    let raw = json::object(|related| {
        related.text("taskId", task_id);
    });
    set_within(body, "_meta", meta::RELATED_TASK, &raw)
}

/// A tool of a list, marked as one whose calls may become tasks: `execution.taskSupport` is
/// `optional` (2025-11-25).
///
/// # Errors
/// [`JsonError`] when `tool` or its `execution` is no object or has a member twice.
pub fn offer(tool: &[u8]) -> Result<Vec<u8>, JsonError> {
    set_within(tool, "execution", "taskSupport", b"\"optional\"")
}

fn legacy(task: &TaskView<'_>) -> Vec<u8> {
    json::object(|object| write_task(object, task, Form::Legacy))
}

/// Adds the task as the extension writes it, with its questions, its result or its error.
fn write_with_outcome(object: &mut Object<'_>, task: &TaskView<'_>) {
    write_task(object, task, Form::Modern);
    match task.standing {
        OperationState::InputRequired(raw) => object.raw("inputRequests", raw),
        OperationState::Result(raw) => object.raw("result", raw),
        OperationState::Error(raw) => object.raw("error", raw),
        OperationState::Working | OperationState::Cancelled => return,
    };
}

/// Adds the members that both forms have; the times to live and to wait are named differently.
fn write_task(object: &mut Object<'_>, task: &TaskView<'_>, form: Form) {
    let (ttl, poll) = match form {
        Form::Legacy => ("ttl", "pollInterval"),
        Form::Modern => ("ttlMs", "pollIntervalMs"),
    };
    object
        .text("taskId", task.id)
        .text("status", task.status(form).as_str());
    object.optional_text("statusMessage", task.message);
    object
        .text("createdAt", &rfc3339(task.created_ms))
        .text("lastUpdatedAt", &rfc3339(task.updated_ms));
    match task.ttl_ms {
        Some(ms) => object.number(ttl, ms),
        None => object.null(ttl),
    };
    if let Some(ms) = task.poll_ms {
        object.number(poll, ms);
    }
}
