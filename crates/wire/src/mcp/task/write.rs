//! Writing tasks.
//!
//! It must not know requests.

use json::{JsonError, ObjectEdit, Span, Splice, quote, write_member};

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
    match era {
        Era::Modern => object(&[flat(task, era, b"\"resultType\":\"task\",".to_vec())]),
        Era::Legacy => {
            let mut out = Vec::new();
            write_member(&mut out, "task", &legacy(task));
            if let Some(text) = immediate {
                out.push(b',');
                write_member(&mut out, "_meta", &object(&[member(IMMEDIATE, quote(text).as_bytes())]));
            }
            object(&[out])
        }
    }
}

/// The result of `tasks/get`. In the extension it has the questions, the result or the error with it.
#[must_use]
pub fn get(task: &Task<'_>, era: Era) -> Vec<u8> {
    match era {
        Era::Legacy => legacy(task),
        Era::Modern => object(&[detailed(task, b"\"resultType\":\"complete\",".to_vec())]),
    }
}

/// The params of `notifications/tasks/status` (2025-11-25) or `notifications/tasks` (extension).
#[must_use]
pub fn changed(task: &Task<'_>, era: Era) -> Vec<u8> {
    match era {
        Era::Legacy => legacy(task),
        Era::Modern => object(&[detailed(task, Vec::new())]),
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
    let tasks: Vec<Vec<u8>> = tasks.into_iter().map(|task| legacy(&task)).collect();
    let mut out = member("tasks", &[b"[", &*tasks.join(&b','), b"]"].concat());
    if let Some(cursor) = next_cursor {
        out.push(b',');
        write_member(&mut out, "nextCursor", quote(cursor).as_bytes());
    }
    object(&[out])
}

/// The result of `tasks/result`, or the params of any message that belongs to a task (2025-11-25): `body` with the task's
/// id in its `_meta`. All else stays as it was.
///
/// # Errors
/// [`JsonError`] when `body` or its `_meta` is no object or has a member twice.
pub fn related(body: &[u8], task_id: &str) -> Result<Vec<u8>, JsonError> {
    let raw = object(&[member("taskId", quote(task_id).as_bytes())]);
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
        None => ObjectEdit::new(&members).set(outer, &object(&[member(key, raw)])).finish(&mut splice),
    }
    Ok(splice.apply_within(body, Span::all(body)))
}

fn legacy(task: &Task<'_>) -> Vec<u8> {
    object(&[flat(task, Era::Legacy, Vec::new())])
}

/// The task with what came of it, after `head`.
fn detailed(task: &Task<'_>, head: Vec<u8>) -> Vec<u8> {
    let mut out = flat(task, Era::Modern, head);
    let more = match task.standing {
        Standing::InputRequired(raw) => Some(("inputRequests", raw)),
        Standing::Result(raw) => Some(("result", raw)),
        Standing::Error(raw) => Some(("error", raw)),
        Standing::Working | Standing::Cancelled => None,
    };
    if let Some((key, raw)) = more {
        out.push(b',');
        write_member(&mut out, key, raw);
    }
    out
}

/// The members that both forms have, after `head`; the times to live and to wait are named differently.
fn flat(task: &Task<'_>, era: Era, head: Vec<u8>) -> Vec<u8> {
    let (ttl, poll) = match era {
        Era::Legacy => ("ttl", "pollInterval"),
        Era::Modern => ("ttlMs", "pollIntervalMs"),
    };
    let text = |text: &str| quote(text).into_bytes();
    let mut members = vec![
        ("taskId", text(task.id)),
        ("status", text(task.status(era).as_str())),
        ("createdAt", text(&rfc3339(task.created_ms))),
        ("lastUpdatedAt", text(&rfc3339(task.updated_ms))),
        (ttl, task.ttl_ms.map_or_else(|| b"null".to_vec(), |ms| ms.to_string().into_bytes())),
    ];
    if let Some(message) = task.message {
        members.insert(2, ("statusMessage", text(message)));
    }
    if let Some(ms) = task.poll_ms {
        members.push((poll, ms.to_string().into_bytes()));
    }
    let members: Vec<Vec<u8>> = members.iter().map(|(key, raw)| member(key, raw)).collect();
    [head, members.join(&b',')].concat()
}

fn member(key: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + raw.len() + 3);
    write_member(&mut out, key, raw);
    out
}

fn object(inside: &[Vec<u8>]) -> Vec<u8> {
    [b"{", &*inside.concat(), b"}"].concat()
}
