//! Writer of tasks, in the form of either era.

use json::{JsonError, Object, ObjectEdit, Span, Splice};

use super::view::{Standing, Task};
use crate::mcp::{Era, meta};
use crate::time::rfc3339;

/// What answers `tasks/update` and `tasks/cancel` of the extension: that it was heard.
pub const ACKNOWLEDGED: &str = r#"{"resultType":"complete"}"#;
/// Under this key of a `CreateTaskResult`'s `_meta` stands what the model may be told at once (2025-11-25, "Model
/// immediate response").
const IMMEDIATE: &str = "io.modelcontextprotocol/model-immediate-response";

/// The result that says a call has become a task: nested in 2025-11-25, flat in the extension.
///
/// `immediate` is for the caller's model; only 2025-11-25 has a place for it.
#[must_use]
pub fn created(task: &Task<'_>, era: Era, immediate: Option<&str>) -> Vec<u8> {
    json::object(|result| match era {
        Era::Modern => {
            result.text("resultType", "task");
            write_task(result, task, era);
        }
        Era::Legacy => {
            result.object("task", |object| write_task(object, task, era));
            if let Some(text) = immediate {
                result.object("_meta", |keys| {
                    keys.text(IMMEDIATE, text);
                });
            }
        }
    })
}

/// The result of `tasks/get`. In the extension it has the questions, the result or the error with it.
#[must_use]
pub fn get(task: &Task<'_>, era: Era) -> Vec<u8> {
    match era {
        Era::Legacy => legacy(task),
        Era::Modern => json::object(|result| {
            result.text("resultType", "complete");
            write_with_outcome(result, task);
        }),
    }
}

/// The params of `notifications/tasks/status` (2025-11-25) or `notifications/tasks` (extension).
#[must_use]
pub fn changed(task: &Task<'_>, era: Era) -> Vec<u8> {
    match era {
        Era::Legacy => legacy(task),
        Era::Modern => json::object(|params| write_with_outcome(params, task)),
    }
}

/// The result of `tasks/cancel` in 2025-11-25: the task as it is now, which should be cancelled. The extension has
/// [`ACKNOWLEDGED`].
#[must_use]
pub fn legacy_cancelled(task: &Task<'_>) -> Vec<u8> {
    legacy(task)
}

/// The result of `tasks/list` (2025-11-25 only).
#[must_use]
pub fn legacy_list<'t>(tasks: impl IntoIterator<Item = Task<'t>>, next_cursor: Option<&str>) -> Vec<u8> {
    json::object(|result| {
        result.array("tasks", |array| {
            for task in tasks {
                array.object(|object| write_task(object, &task, Era::Legacy));
            }
        });
        result.optional_text("nextCursor", next_cursor);
    })
}

/// The result of `tasks/result`, or the params of any message that belongs to a task (2025-11-25): `body` with the task's
/// id in its `_meta`. All else stays as it was.
///
/// # Errors
/// [`JsonError`] when `body` or its `_meta` is no object or has a member twice.
pub fn related(body: &[u8], task_id: &str) -> Result<Vec<u8>, JsonError> {
    let raw = json::object(|related| {
        related.text("taskId", task_id);
    });
    set_within(body, "_meta", meta::RELATED_TASK, &raw)
}

/// A tool of a list, marked as one whose calls may become tasks: `execution.taskSupport` is `optional` (2025-11-25).
///
/// # Errors
/// [`JsonError`] when `tool` or its `execution` is no object or has a member twice.
pub fn offer(tool: &[u8]) -> Result<Vec<u8>, JsonError> {
    set_within(tool, "execution", "taskSupport", b"\"optional\"")
}

/// Sets one member of the object that stands under `outer`, which is made if it is not there.
fn set_within(body: &[u8], outer: &str, key: &str, raw: &[u8]) -> Result<Vec<u8>, JsonError> {
    let members = json::members(body, Span::all(body))?;
    let mut splice = Splice::new();
    match members.get(outer).filter(|there| there.raw != b"null") {
        Some(there) => {
            let inner = json::members(body, there.span)?;
            ObjectEdit::new(&inner).set(key, raw).finish(&mut splice);
        }
        None => {
            let made = json::object(|inner| {
                inner.raw(key, raw);
            });
            ObjectEdit::new(&members).set(outer, &made).finish(&mut splice);
        }
    }
    Ok(splice.apply_within(body, Span::all(body)))
}

fn legacy(task: &Task<'_>) -> Vec<u8> {
    json::object(|object| write_task(object, task, Era::Legacy))
}

/// Adds the task as the extension writes it, with its questions, its result or its error.
fn write_with_outcome(object: &mut Object<'_>, task: &Task<'_>) {
    write_task(object, task, Era::Modern);
    match task.standing {
        Standing::InputRequired(raw) => object.raw("inputRequests", raw),
        Standing::Result(raw) => object.raw("result", raw),
        Standing::Error(raw) => object.raw("error", raw),
        Standing::Working | Standing::Cancelled => return,
    };
}

/// Adds the members that both forms have; the times to live and to wait are named differently.
fn write_task(object: &mut Object<'_>, task: &Task<'_>, era: Era) {
    let (ttl, poll) = match era {
        Era::Legacy => ("ttl", "pollInterval"),
        Era::Modern => ("ttlMs", "pollIntervalMs"),
    };
    object.text("taskId", task.id).text("status", task.status(era).as_str());
    object.optional_text("statusMessage", task.message);
    object.text("createdAt", &rfc3339(task.created_ms)).text("lastUpdatedAt", &rfc3339(task.updated_ms));
    match task.ttl_ms {
        Some(ms) => object.number(ttl, ms),
        None => object.null(ttl),
    };
    if let Some(ms) = task.poll_ms {
        object.number(poll, ms);
    }
}
