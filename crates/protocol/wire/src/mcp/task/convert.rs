//! Tasks between the forms: what a server wrote about a task, as a caller of the other form reads
//! it. Members that only one form has change or go; all others stay as they were written.

use bytes::Bytes;
use json::{MemberChange, Span};
use model::{Answer, Form, Method, Notice, Outcome, Payload, Request, Target};

use super::view::{OperationState, TaskStatus};
use super::write::IMMEDIATE;
use super::{EXTENSION, read};
use crate::mcp::code::MISSING_CAPABILITY;
use crate::mcp::{extensions, meta, relay};
use crate::rpc::ErrorObject;

/// Members of a modern task beside those of both forms.
const MODERN_ONLY: [&str; 4] = ["resultType", "inputRequests", "result", "error"];

/// A modern task (a result or the params of a notification) as an object of 2025-11-25, under this
/// id. A completed task whose tool failed is a failed one there.
#[must_use]
pub fn to_legacy(task: &[u8], id: &str) -> Option<Vec<u8>> {
    let status = match json::at(task, &["result", "isError"]) {
        Some(b"true") if status_of(task) == Some(TaskStatus::Completed) => Some(TaskStatus::Failed),
        _ => None,
    };
    let mut gone: Vec<MemberChange<'_>> = MODERN_ONLY.iter().map(|key| (*key, None)).collect();
    gone.push(("_meta", None));
    respelled(task, id, &MODERN_TIMES, &LEGACY_TIMES, status, gone)
}

/// A task of 2025-11-25 with the members of the extension, under this id. `end`: its questions, its
/// result or its error. A failed task with a result is a completed one there, and a task whose
/// questions are not known yet still works.
#[must_use]
pub fn to_modern(task: &[u8], id: &str, end: Option<OperationState<'_>>) -> Option<Vec<u8>> {
    let (key, raw, status) = match end {
        Some(OperationState::InputRequired(raw)) => {
            ("inputRequests", Some(raw), Some(TaskStatus::InputRequired))
        }
        Some(OperationState::Result(raw)) => ("result", Some(raw), Some(TaskStatus::Completed)),
        Some(OperationState::Error(raw)) => ("error", Some(raw), Some(TaskStatus::Failed)),
        Some(OperationState::Working) => ("result", None, Some(TaskStatus::Working)),
        Some(OperationState::Cancelled) => ("result", None, Some(TaskStatus::Cancelled)),
        None if status_of(task) == Some(TaskStatus::InputRequired) => {
            ("result", None, Some(TaskStatus::Working))
        }
        None => ("result", None, None),
    };
    let result = match raw {
        Some(raw) if key == "result" => Some(result_to_modern(raw).ok()?),
        Some(_) | None => None,
    };
    let end = (key, result.as_deref().or(raw));
    let changes = vec![end, ("_meta", None)];
    respelled(task, id, &LEGACY_TIMES, &MODERN_TIMES, status, changes)
}

/// A task as the result of `tasks/get`.
#[must_use]
pub fn got(task: &[u8], id: &str, end: Option<OperationState<'_>>) -> Option<Vec<u8>> {
    json::edited(
        &to_modern(task, id, end)?,
        &[("resultType", Some(b"\"complete\""))],
    )
    .ok()
}

/// The result of a call that has become a task, in the other form, under this id: nested in
/// 2025-11-25, flat in the extension.
#[must_use]
pub fn made_in(answer: &Answer, to: Form, id: &str) -> Option<Answer> {
    let body = answer.payload.body_bytes();
    let others = without_meta(json::at(body, &["_meta"]));
    let body = match to {
        Form::Legacy => json::object(|result| {
            if let Some(task) = to_legacy(body, id) {
                result.raw("task", &task);
            }
            if let Some(others) = &others {
                result.raw("_meta", others);
            }
        }),
        Form::Modern => {
            let task = to_modern(json::at(body, &["task"])?, id, None)?;
            let more = [
                ("resultType", Some(&b"\"task\""[..])),
                ("_meta", others.as_deref()),
            ];
            json::edited(&task, &more).ok()?
        }
    };
    Some(Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(to, body),
    })
}

/// A notification of a modern task's state, for clients of 2025-11-25.
#[must_use]
pub fn notice_to_legacy(notice: &Notice, id: &str) -> Option<Notice> {
    let payload = Payload::body(Form::Legacy, to_legacy(notice.payload.body_bytes(), id)?);
    Some(Notice {
        method: Method::Known("notifications/tasks/status"),
        latest: None,
        payload,
    })
}

/// A notification of a state of a task of 2025-11-25, for clients that know the extension.
#[must_use]
pub fn notice_to_modern(task: &[u8], id: &str, end: Option<OperationState<'_>>) -> Option<Notice> {
    let payload = Payload::body(Form::Modern, to_modern(task, id, end)?);
    Some(Notice {
        method: Method::Known("notifications/tasks"),
        latest: None,
        payload,
    })
}

/// End of a modern task, by the result of `tasks/get`: the answer that its call would have had.
/// `None` while it has none.
#[must_use]
pub fn end_of(task: &[u8]) -> Option<Answer> {
    let (outcome, key) = match status_of(task)? {
        TaskStatus::Completed => (Outcome::Ok, "result"),
        TaskStatus::Failed => (Outcome::Error, "error"),
        TaskStatus::Working | TaskStatus::InputRequired | TaskStatus::Cancelled => return None,
    };
    let body = Bytes::copy_from_slice(json::at(task, &[key])?);
    Some(Answer {
        outcome,
        payload: Payload::relayed(Form::Modern, body),
    })
}

/// The standing of a task of 2025-11-25 that has ended, by the answer to `tasks/result`.
#[must_use]
pub fn standing_of(answer: &Answer) -> OperationState<'_> {
    match answer.outcome {
        Outcome::Ok => OperationState::Result(answer.payload.body_bytes()),
        Outcome::Error | Outcome::Refused | Outcome::Cancelled => {
            OperationState::Error(answer.payload.body_bytes())
        }
    }
}

/// An answer with this result of a server, in this form.
#[must_use]
pub fn answer(form: Form, result: Vec<u8>) -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::relayed(form, result),
    }
}

/// The answer to `tasks/result` of 2025-11-25: that of the call, with the id of its task. An error
/// stays as it is.
#[must_use]
pub fn related_answer(answer: &Answer, id: &str) -> Answer {
    match super::related(answer.payload.body_bytes(), id) {
        Ok(body) if answer.outcome == Outcome::Ok => self::answer(answer.payload.form, body),
        Ok(_) | Err(_) => answer.clone(),
    }
}

/// The status that a task's object has.
#[must_use]
pub fn status_of(task: &[u8]) -> Option<TaskStatus> {
    json::at(task, &["status"])
        .and_then(json::text)?
        .parse()
        .ok()
}

/// Time to wait before the next look at a task, as its server says, in milliseconds.
#[must_use]
pub fn poll_ms(task: &[u8]) -> Option<u64> {
    let raw = json::at(task, &["pollIntervalMs"]).or_else(|| json::at(task, &["pollInterval"]))?;
    json::integer(raw).and_then(|ms| u64::try_from(ms).ok())
}

/// Whether a modern server refuses a call because its client does not know tasks.
#[must_use]
pub fn wants_extension(answer: &Answer) -> bool {
    let read = || {
        let error = ErrorObject::read(answer.payload.body_bytes())
            .filter(|error| error.code == MISSING_CAPABILITY)?;
        read::within(
            error.data?,
            &["requiredCapabilities", "extensions", EXTENSION],
        )
        .then_some(())
    };
    answer.outcome == Outcome::Error && read().is_some()
}

/// These modern capabilities with the extension of tasks.
#[must_use]
pub(crate) fn declared(capabilities: &[u8]) -> Vec<u8> {
    let all = extensions::with_tasks(json::at(capabilities, &["extensions"]));
    json::edited(capabilities, &[("extensions", Some(&all))])
        .unwrap_or_else(|_| capabilities.to_vec())
}

/// A request about a task under its server's id.
#[must_use]
pub fn request(method: &'static str, id: &str, form: Form) -> Request {
    let params = json::object(|params| {
        params.text("taskId", id);
    });
    let payload = Payload::body(form, params);
    Request {
        method: Method::Known(method),
        target: Some(Target::Task(id.into())),
        progress: None,
        payload,
    }
}

/// An answer or a notification without the task of 2025-11-25 to which it belongs; `None` if it
/// names none.
#[must_use]
pub fn unrelated(payload: &Payload) -> Option<Payload> {
    super::related_to(payload)?;
    let body = payload.body_bytes();
    let others = without_meta(json::at(body, &["_meta"]));
    let body = json::edited(body, &[("_meta", others.as_deref())]).ok()?;
    let mut splice = json::Splice::new();
    splice.replace(relay::span(payload.marks.body), &body);
    Some(relay::edited(payload, &splice))
}

/// A tool of a list without what it says about tasks of 2025-11-25; `None` if it says nothing.
#[must_use]
pub fn unmarked(tool: &[u8]) -> Option<Vec<u8>> {
    let execution = json::at(tool, &["execution"])?;
    json::at(execution, &["taskSupport"])?;
    let fewer = json::edited(execution, &[("taskSupport", None)]).ok()?;
    let is_empty = json::members(&fewer, Span::all(&fewer)).is_ok_and(|members| members.is_empty());
    json::edited(tool, &[("execution", (!is_empty).then_some(&*fewer))]).ok()
}

fn result_to_modern(result: &[u8]) -> Result<Vec<u8>, json::JsonError> {
    let meta = json::at(result, &["_meta"]);
    let others = without_meta(meta);
    let mut changes: Vec<MemberChange<'_>> = Vec::new();
    if json::at(result, &["resultType"]).is_none() {
        changes.push(("resultType", Some(b"\"complete\"")));
    }
    if meta.is_some() {
        changes.push(("_meta", others.as_deref()));
    }
    json::edited(result, &changes)
}

/// A `_meta` without the keys that only one form has; `None` if nothing is left.
fn without_meta(meta: Option<&[u8]>) -> Option<Vec<u8>> {
    let own = [
        meta::RELATED_TASK,
        IMMEDIATE,
        meta::SERVER_INFO,
        meta::SUBSCRIPTION_ID,
    ];
    let changes = own.map(|key| (key, None));
    let left = json::edited(meta?, &changes).ok()?;
    json::members(&left, Span::all(&left))
        .is_ok_and(|members| !members.is_empty())
        .then_some(left)
}

/// The members of a task that are times.
struct TimeKeys {
    ttl: &'static str,
    poll: &'static str,
}

const LEGACY_TIMES: TimeKeys = TimeKeys {
    ttl: "ttl",
    poll: "pollInterval",
};
const MODERN_TIMES: TimeKeys = TimeKeys {
    ttl: "ttlMs",
    poll: "pollIntervalMs",
};

/// A task under this id, with its times under other keys, and with these changes.
fn respelled(
    task: &[u8],
    id: &str,
    from: &TimeKeys,
    to: &TimeKeys,
    status: Option<TaskStatus>,
    more: Vec<MemberChange<'_>>,
) -> Option<Vec<u8>> {
    let members = json::members(task, Span::all(task)).ok()?;
    let id = json::quote(id);
    let status = status.map(|status| json::quote(status.as_str()));
    let ttl = members.get(from.ttl);
    let ttl = ttl.map_or(&b"null"[..], |member| member.raw);
    let mut changes = more;
    changes.push(("taskId", Some(id.as_bytes())));
    changes.extend(
        status
            .as_ref()
            .map(|status| ("status", Some(status.as_bytes()))),
    );
    changes.extend([(from.ttl, None), (to.ttl, Some(ttl)), (from.poll, None)]);
    let poll = members.get(from.poll);
    changes.extend(poll.map(|member| (to.poll, Some(member.raw))));
    json::edited(task, &changes).ok()
}

#[cfg(test)]
mod tests;
