//! Tasks of servers in relayed messages: places of their ids, reported states.

use std::sync::LazyLock;

use json::{Members, Span, Splice, quote};
use memchr::memmem::Finder;
use model::{Answer, Coding, Form, Outcome, Payload};

use super::view::TaskStatus;
use crate::mcp::{meta, relay};
use crate::rpc::{Message, MessageKind};
use crate::time::read_rfc3339;

/// A task's id in a message, and the place of its text (with the quotes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMention {
    /// The id.
    pub id: String,
    /// Its place in the frame.
    pub span: Span,
}

impl TaskMention {
    /// The payload with another id in its place.
    #[must_use]
    pub fn rename(&self, payload: &Payload, id: &str) -> Payload {
        let mut splice = Splice::new();
        self.replace(id, &mut splice);
        relay::edited(payload, &splice)
    }

    fn replace(&self, id: &str, splice: &mut Splice) {
        splice.replace(self.span, quote(id).as_bytes());
    }
}

/// A server's task as a message reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// The task's id.
    pub named: TaskMention,
    /// The place of the object with its members in the frame.
    pub task: Span,
    /// Its status, if the protocol defines it.
    pub status: Option<TaskStatus>,
    /// Its creation, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// The time for which it is kept from its creation, in milliseconds; `None` without a bound.
    pub ttl_ms: Option<u64>,
}

/// The task that a call has become, by its answer: nested in 2025-11-25, flat in the extension.
#[must_use]
pub fn made(answer: &Answer) -> Option<TaskReport> {
    // Most answers are none: a search finds that without a parse. A name with escapes is not
    // recognised.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"task\""));
    NAME.find(answer.payload.body_bytes())?;
    if answer.outcome != Outcome::Ok {
        return None;
    }
    let (frame, body) = body_of_server(&answer.payload)?;
    let members = json::members(frame, body).ok()?;
    match answer.payload.form {
        Form::Legacy => report_at(frame, members.get("task")?.span),
        Form::Modern => {
            let kind = members
                .get("resultType")
                .and_then(|kind| json::text(kind.raw))?;
            (kind == "task")
                .then(|| of_members(&members, body))
                .flatten()
        }
    }
}

/// The report on a task in this payload: a result of `tasks/get` or `tasks/cancel`, or a
/// notification of a task's state.
#[must_use]
pub fn report(payload: &Payload) -> Option<TaskReport> {
    let (frame, body) = body_of_server(payload)?;
    report_at(frame, body)
}

/// The task to which a request, notification or result of 2025-11-25 belongs, by its `_meta`.
#[must_use]
pub fn related_to(payload: &Payload) -> Option<TaskMention> {
    // Most payloads belong to no task: a search finds that without a parse.
    may_be_related(payload.body_bytes()).then_some(())?;
    let (frame, body) = body_of_server(payload)?;
    related_at(frame, body)
}

/// The task of a message that was read, by its `_meta`.
#[must_use]
pub fn related_in(message: &Message) -> Option<TaskMention> {
    if message.shape() == MessageKind::Error {
        return None;
    }
    related_at(message.frame(), message.body_span()?)
}

/// The bytes of a payload and the place of its body, unless the gateway wrote that: it names its own
/// tasks.
fn body_of_server(payload: &Payload) -> Option<(&[u8], Span)> {
    let is_servers = !payload.is_fitted && payload.coding == Coding::Json;
    is_servers.then(|| (&*payload.bytes, relay::span(payload.marks.body)))
}

fn related_at(frame: &[u8], body: Span) -> Option<TaskMention> {
    // A key with escapes is not recognised.
    may_be_related(body.of(frame)).then_some(())?;
    let about = json::members(frame, body).ok()?.get("_meta")?.span;
    let task = json::members(frame, about)
        .ok()?
        .get(meta::RELATED_TASK)?
        .span;
    named(&json::members(frame, task).ok()?)
}

/// Whether a message can name the task that it belongs to. The end of the key is searched for:
/// short texts are found quicker.
fn may_be_related(raw: &[u8]) -> bool {
    static KEY_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("/related-task\""));
    KEY_END.find(raw).is_some()
}

/// A task of 2025-11-25 as its server wrote it, under another id. `None` when it is no object with
/// a `taskId`.
#[must_use]
pub fn renamed(task: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut splice = Splice::new();
    named(&json::members(task, Span::all(task)).ok()?)?.replace(id, &mut splice);
    Some(splice.apply_to(task))
}

fn report_at(frame: &[u8], task: Span) -> Option<TaskReport> {
    of_members(&json::members(frame, task).ok()?, task)
}

fn of_members(members: &Members<'_>, task: Span) -> Option<TaskReport> {
    let text = |key: &str| members.get(key).and_then(|member| json::text(member.raw));
    let ttl = members.get("ttl").or_else(|| members.get("ttlMs"));
    Some(TaskReport {
        named: named(members)?,
        task,
        status: text("status").and_then(|status| status.parse().ok()),
        created_ms: text("createdAt").and_then(|at| read_rfc3339(&at)),
        ttl_ms: ttl
            .and_then(|ttl| json::integer(ttl.raw))
            .and_then(|ms| u64::try_from(ms).ok()),
    })
}

fn named(members: &Members<'_>) -> Option<TaskMention> {
    let member = members.get("taskId")?;
    Some(TaskMention {
        id: json::text(member.raw)?.into_owned(),
        span: member.span,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn payload(text: &str, form: Form) -> Payload {
        relay::read_again(Bytes::copy_from_slice(text.as_bytes()), form)
    }

    fn result(raw: &str, form: Form) -> Answer {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#);
        Answer {
            outcome: model::Outcome::Ok,
            payload: payload(&text, form),
        }
    }

    #[test]
    fn the_task_of_an_answer_is_found_in_either_form() {
        let task = r#""taskId":"t\u0031","status":"working","createdAt":"1970-01-01T00:00:02Z""#;
        let (legacy, modern) = (
            format!(r#"{{"task":{{{task},"ttl":60000}}}}"#),
            format!(r#"{{"resultType":"task",{task},"ttlMs":null}}"#),
        );
        let answer = result(&legacy, Form::Legacy);
        let found = made(&answer).unwrap();
        assert_eq!(
            (found.named.id.as_str(), found.status),
            ("t1", Some(TaskStatus::Working))
        );
        assert_eq!(
            (found.created_ms, found.ttl_ms),
            (Some(2_000), Some(60_000))
        );
        assert_eq!(
            made(&result(&modern, Form::Modern)).map(|found| (found.named.id, found.ttl_ms)),
            Some(("t1".into(), None))
        );
        assert_eq!(
            (
                made(&result(&legacy, Form::Modern)),
                made(&result(&modern, Form::Legacy))
            ),
            (None, None)
        );
        for raw in [
            r#"{"content":[]}"#,
            r#"{"resultType":"complete","taskId":"t"}"#,
            r#"{"task":{"taskId":1}}"#,
            "[]",
        ] {
            let none = [Form::Legacy, Form::Modern].map(|form| made(&result(raw, form)));
            assert_eq!(none, [None, None], "{raw}");
        }
        let renamed = found.named.rename(&answer.payload, "mine");
        assert!(
            String::from_utf8_lossy(renamed.body_bytes())
                .starts_with(r#"{"task":{"taskId":"mine","status""#)
        );
    }

    #[test]
    fn reports_of_a_task_are_read() {
        let sent = payload(
            r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"completed","ttl":1.5}}"#,
            Form::Legacy,
        );
        let found = report(&sent).unwrap();
        assert_eq!(
            (found.named.id.as_str(), found.status, found.ttl_ms),
            ("t", Some(TaskStatus::Completed), None)
        );
        let raw = found.task.of(&sent.bytes);
        assert_eq!(
            renamed(raw, "x\"")
                .map(|task| String::from_utf8(task).unwrap())
                .as_deref(),
            Some(r#"{"taskId":"x\"","status":"completed","ttl":1.5}"#)
        );
        let of = |raw: &str| report(&result(raw, Form::Legacy).payload);
        assert_eq!(of(r#"{"taskId":"t","status":"new"}"#).unwrap().status, None);
        assert_eq!(of("{}"), None);
        assert_eq!((renamed(b"[]", "x"), renamed(b"{}", "x")), (None, None));
    }

    #[test]
    fn related_messages_are_found_by_their_meta() {
        let meta = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
        for (text, found) in [
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{{meta}}}}}"#
                ),
                true,
            ),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{meta}}}}}"#
                ),
                true,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],{meta}}}}}"#),
                true,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{{meta}}}]}}}}"#),
                false,
            ),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"m","data":{{{meta}}}}}}}"#
                ),
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
                false,
            ),
        ] {
            assert_eq!(
                related_to(&payload(&text, Form::Legacy)).map(|named| named.id),
                found.then(|| "t".to_owned()),
                "{text}"
            );
        }
    }
}
