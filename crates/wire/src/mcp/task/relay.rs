//! Tasks of servers as they pass through: where their ids lie in a message, what it tells of them, and what a server says
//! that it can do with tasks.
//!
//! It must not know whose task it is, nor under which id a caller knows it.

use bytes::Bytes;
use json::{Members, ObjectEdit, Span, Splice, quote};

use super::view::Status;
use super::{EXTENSION, read};
use crate::mcp::{Era, Params, meta};
use crate::rpc::{Message, Shape};
use crate::time::read_rfc3339;

/// A task's id in a message, and the place of its text (with the quotes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The id.
    pub id: String,
    /// Where it lies in the frame.
    pub span: Span,
}

impl Named {
    /// Writes another id in its place.
    pub fn respell(&self, id: &str, splice: &mut Splice) {
        splice.replace(self.span, quote(id).as_bytes());
    }
}

/// What a message tells of a server's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Which task.
    pub named: Named,
    /// Where the object with its members lies in the frame.
    pub task: Span,
    /// How far it is, where that is a state of the protocol.
    pub status: Option<Status>,
    /// When it began, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// For how long it is kept from its beginning, in milliseconds; `None` without such a bound.
    pub ttl_ms: Option<u64>,
}

/// The task that this answer says a call has become: nested in 2025-11-25, flat in the extension.
#[must_use]
pub fn made(answer: &Message, era: Era) -> Option<Glimpse> {
    answer.result()?;
    let (frame, body) = (answer.frame(), answer.body_span()?);
    let members = json::members(frame, body).ok()?;
    match era {
        Era::Legacy => glimpse_at(frame, members.get("task")?.span),
        Era::Modern => {
            let kind = members.get("resultType").and_then(|kind| json::text(kind.raw))?;
            (kind == "task").then(|| of_members(&members, body)).flatten()
        }
    }
}

/// The task of which this message tells: an answer to `tasks/get` or `tasks/cancel`, or a notification of a task's state.
#[must_use]
pub fn glimpse(message: &Message) -> Option<Glimpse> {
    match message.shape() {
        Shape::Error | Shape::Request => None,
        Shape::Result | Shape::Notification => glimpse_at(message.frame(), message.body_span()?),
    }
}

/// The task to which a request, notification or result of 2025-11-25 says that it belongs, in its `_meta`.
#[must_use]
pub fn related_to(message: &Message) -> Option<Named> {
    let frame = message.frame();
    let body = message.body_span().filter(|_| message.shape() != Shape::Error)?;
    // Most messages belong to no task: that is seen without reading them. Whoever escapes the key is not understood.
    memchr::memmem::find(body.of(frame), meta::RELATED_TASK.as_bytes())?;
    let about = json::members(frame, body).ok()?.get("_meta")?.span;
    let task = json::members(frame, about).ok()?.get(meta::RELATED_TASK)?.span;
    named(&json::members(frame, task).ok()?)
}

/// A task of 2025-11-25 as it was told, under another id. `None` when it is no object with a `taskId`.
#[must_use]
pub fn renamed(task: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut splice = Splice::new();
    named(&json::members(task, Span::all(task)).ok()?)?.respell(id, &mut splice);
    Some(splice.apply_within(task, Span::all(task)))
}

/// Whether a tool of a list says that its calls may become tasks (2025-11-25, "Tool-Level Negotiation").
#[must_use]
pub fn supported_by(tool: &[u8]) -> bool {
    let support = || {
        let execution = json::members(tool, Span::all(tool)).ok()?.get("execution")?.span;
        let support = json::members(tool, execution).ok()?.get("taskSupport").map(|support| support.raw)?;
        json::text(support).map(|support| support == "optional" || support == "required")
    };
    support().unwrap_or(false)
}

/// Whether a server of 2025-11-25 with these capabilities (raw) takes `task` in calls of tools.
#[must_use]
pub fn serves_calls(capabilities: &[u8]) -> bool {
    read::within(capabilities, &["tasks", "requests", "tools", "call"])
}

/// A request without `task` in its params; `None` if it has none.
#[must_use]
pub fn without_task(params: &Params<'_>) -> Option<Message> {
    params.get("task")?;
    let mut splice = Splice::new();
    let mut edit = params.edit();
    edit.remove("task").finish(&mut splice);
    Message::read(params.message().edited(&splice)).ok()
}

/// A modern request of a client that does not declare the extension any more; `None` if it did not declare it.
#[must_use]
pub fn without_extension(params: &Params<'_>) -> Option<Message> {
    let raw = params.client_capabilities()?;
    super::declares(raw).then_some(())?;
    let members = json::members(raw, Span::all(raw)).ok()?;
    let extensions = json::members(raw, members.get("extensions")?.span).ok()?;
    let mut splice = Splice::new();
    ObjectEdit::new(&extensions).remove(EXTENSION).finish(&mut splice);
    let fewer = splice.apply(&Bytes::copy_from_slice(raw));
    let mut splice = Splice::new();
    params.edit().set_meta(meta::CLIENT_CAPABILITIES, &fewer).finish(&mut splice);
    Message::read(params.message().edited(&splice)).ok()
}

fn glimpse_at(frame: &[u8], task: Span) -> Option<Glimpse> {
    of_members(&json::members(frame, task).ok()?, task)
}

fn of_members(members: &Members<'_>, task: Span) -> Option<Glimpse> {
    let text = |key: &str| members.get(key).and_then(|member| json::text(member.raw));
    let ttl = members.get("ttl").or_else(|| members.get("ttlMs"));
    Some(Glimpse {
        named: named(members)?,
        task,
        status: text("status").and_then(|status| Status::parse(&status)),
        created_ms: text("createdAt").and_then(|at| read_rfc3339(&at)),
        ttl_ms: ttl.and_then(|ttl| json::integer(ttl.raw)).and_then(|ms| u64::try_from(ms).ok()),
    })
}

fn named(members: &Members<'_>) -> Option<Named> {
    let member = members.get("taskId")?;
    Some(Named { id: json::text(member.raw)?.into_owned(), span: member.span })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn result(raw: &str) -> Message {
        message(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#))
    }

    #[test]
    fn what_has_become_a_task_is_found_in_its_eras_place() {
        let task = r#""taskId":"t\u0031","status":"working","createdAt":"1970-01-01T00:00:02Z""#;
        let (legacy, modern) = (
            result(&format!(r#"{{"task":{{{task},"ttl":60000}}}}"#)),
            result(&format!(r#"{{"resultType":"task",{task},"ttlMs":null}}"#)),
        );
        let found = made(&legacy, Era::Legacy).unwrap();
        assert_eq!((found.named.id.as_str(), found.status), ("t1", Some(Status::Working)));
        assert_eq!((found.created_ms, found.ttl_ms), (Some(2_000), Some(60_000)));
        assert_eq!(
            made(&modern, Era::Modern).map(|found| (found.named.id, found.ttl_ms)),
            Some(("t1".into(), None))
        );
        assert_eq!((made(&legacy, Era::Modern), made(&modern, Era::Legacy)), (None, None));
        for raw in [
            r#"{"content":[]}"#,
            r#"{"resultType":"complete","taskId":"t"}"#,
            r#"{"task":{"taskId":1}}"#,
            "[]",
        ] {
            let answer = result(raw);
            assert_eq!((made(&answer, Era::Legacy), made(&answer, Era::Modern)), (None, None), "{raw}");
        }
        let mut splice = Splice::new();
        found.named.respell("mine", &mut splice);
        assert!(
            String::from_utf8_lossy(&legacy.edited(&splice)).contains(r#"{"task":{"taskId":"mine","status""#)
        );
    }

    #[test]
    fn what_is_told_of_a_task_is_read() {
        let told = message(
            r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"completed","ttl":1.5}}"#,
        );
        let found = glimpse(&told).unwrap();
        assert_eq!(
            (found.named.id.as_str(), found.status, found.ttl_ms),
            ("t", Some(Status::Completed), None)
        );
        let raw = found.task.of(told.frame());
        assert_eq!(
            renamed(raw, "x\"").map(|task| String::from_utf8(task).unwrap()).as_deref(),
            Some(r#"{"taskId":"x\"","status":"completed","ttl":1.5}"#)
        );
        assert_eq!(glimpse(&result(r#"{"taskId":"t","status":"new"}"#)).unwrap().status, None);
        assert_eq!(glimpse(&result("{}")), None);
        assert_eq!((renamed(b"[]", "x"), renamed(b"{}", "x")), (None, None));
    }

    #[test]
    fn what_belongs_to_a_task_is_found_by_its_meta() {
        let meta = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
        for (text, found) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{{meta}}}}}"#),
                true,
            ),
            (format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{meta}}}}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],{meta}}}}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{{meta}}}]}}}}"#), false),
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"m","data":{{{meta}}}}}}}"#),
                false,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(), false),
        ] {
            assert_eq!(
                related_to(&message(&text)).map(|named| named.id),
                found.then(|| "t".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_servers_can_do_with_tasks_is_read() {
        for (tool, expect) in [
            (r#"{"name":"a"}"#, false),
            (r#"{"execution":{"taskSupport":"forbidden"}}"#, false),
            (r#"{"execution":{"taskSupport":"optional"}}"#, true),
            (r#"{"execution":{"taskSupport":"required"}}"#, true),
            (r#"{"execution":[]}"#, false),
        ] {
            assert_eq!(supported_by(tool.as_bytes()), expect, "{tool}");
        }
        let ours = format!(r#"{{"tasks":{}}}"#, super::super::LEGACY_ABILITIES);
        assert!(serves_calls(ours.as_bytes()));
        assert!(serves_calls(br#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#));
        assert!(!serves_calls(br#"{"tasks":{"requests":{"tools":{}}}}"#));
    }

    #[test]
    fn a_request_loses_what_would_make_it_a_task() {
        let call = |params: &str| {
            message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
        };
        let asks = call(r#"{"name":"a","task":{"ttl":1}}"#);
        let plain = without_task(&Params::read(&asks).unwrap()).unwrap();
        assert_eq!(plain.frame(), call(r#"{"name":"a"}"#).frame());
        assert!(without_task(&Params::read(&plain).unwrap()).is_none());

        let declares = |extensions: &str| {
            let caps = format!(r#"{{"elicitation":{{}},"extensions":{{{extensions}}}}}"#);
            call(&format!(
                r#"{{"name":"a","_meta":{{"io.modelcontextprotocol/clientCapabilities":{caps}}}}}"#
            ))
        };
        let (tasks, ui) = (r#""io.modelcontextprotocol/tasks":{}"#, r#""io.modelcontextprotocol/ui":{}"#);
        let both = declares(&format!("{tasks},{ui}"));
        let fewer = without_extension(&Params::read(&both).unwrap()).unwrap();
        assert_eq!(fewer.frame(), declares(ui).frame());
        assert!(without_extension(&Params::read(&fewer).unwrap()).is_none());
    }
}
