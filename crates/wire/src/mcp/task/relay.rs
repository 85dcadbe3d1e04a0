//! Tasks of servers in relayed messages: places of their ids, reported states, declared support.

use std::sync::LazyLock;

use json::{Members, Span, Splice, quote};
use memchr::memmem::Finder;
use model::{Answer, Form, Payload, Refusal, RefusalCode, Request};

use super::view::Status;
use super::{EXTENSION, read};
use crate::mcp::{Params, meta, relay};
use crate::rpc::{Message, Shape};
use crate::time::read_rfc3339;

/// A task's id in a message, and the place of its text (with the quotes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The id.
    pub id: String,
    /// Its place in the frame.
    pub span: Span,
}

impl Named {
    /// The payload with another id in its place.
    #[must_use]
    pub fn rename(&self, payload: &Payload, id: &str) -> Payload {
        let mut splice = Splice::new();
        self.replace(id, &mut splice);
        relay::read_again(splice.apply(&payload.bytes), payload.form)
    }

    fn replace(&self, id: &str, splice: &mut Splice) {
        splice.replace(self.span, quote(id).as_bytes());
    }
}

/// A server's task as a message reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// The task's id.
    pub named: Named,
    /// The place of the object with its members in the frame.
    pub task: Span,
    /// Its status, if the protocol defines it.
    pub status: Option<Status>,
    /// Its creation, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// The time for which it is kept from its creation, in milliseconds; `None` without a bound.
    pub ttl_ms: Option<u64>,
}

/// The task that a call has become, by its answer: nested in 2025-11-25, flat in the extension.
#[must_use]
pub fn made(answer: &Answer) -> Option<TaskReport> {
    // Most answers are none: a search finds that without a parse. A name with escapes is not recognised.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"task\""));
    NAME.find(answer.payload.body_bytes())?;
    let message = Message::read(answer.payload.bytes.clone()).ok()?;
    message.result()?;
    let (frame, body) = (message.frame(), message.body_span()?);
    let members = json::members(frame, body).ok()?;
    match answer.payload.form {
        Form::Legacy => report_at(frame, members.get("task")?.span),
        Form::Modern => {
            let kind = members.get("resultType").and_then(|kind| json::text(kind.raw))?;
            (kind == "task").then(|| of_members(&members, body)).flatten()
        }
    }
}

/// The report on a task in this payload: a result of `tasks/get` or `tasks/cancel`, or a notification of a task's state.
#[must_use]
pub fn report(payload: &Payload) -> Option<TaskReport> {
    let message = Message::read(payload.bytes.clone()).ok()?;
    match message.shape() {
        Shape::Error | Shape::Request => None,
        Shape::Result | Shape::Notification => report_at(message.frame(), message.body_span()?),
    }
}

/// The task to which a request, notification or result of 2025-11-25 belongs, by its `_meta`.
#[must_use]
pub fn related_to(payload: &Payload) -> Option<Named> {
    // Most payloads belong to no task: a search finds that without a parse.
    may_be_related(payload.body_bytes()).then_some(())?;
    related_in(&Message::read(payload.bytes.clone()).ok()?)
}

/// The task of a message that was read, by its `_meta`.
#[must_use]
pub fn related_in(message: &Message) -> Option<Named> {
    let frame = message.frame();
    let body = message.body_span().filter(|_| message.shape() != Shape::Error)?;
    // A key with escapes is not recognised.
    may_be_related(body.of(frame)).then_some(())?;
    let about = json::members(frame, body).ok()?.get("_meta")?.span;
    let task = json::members(frame, about).ok()?.get(meta::RELATED_TASK)?.span;
    named(&json::members(frame, task).ok()?)
}

/// Whether a message can name the task that it belongs to. The end of the key is searched for: short texts are found quicker.
fn may_be_related(raw: &[u8]) -> bool {
    static KEY_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("/related-task\""));
    KEY_END.find(raw).is_some()
}

/// A task of 2025-11-25 as its server wrote it, under another id. `None` when it is no object with a `taskId`.
#[must_use]
pub fn renamed(task: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut splice = Splice::new();
    named(&json::members(task, Span::all(task)).ok()?)?.replace(id, &mut splice);
    Some(splice.apply_to(task))
}

/// What a tool of a list says about its calls as tasks (2025-11-25, "Tool-Level Negotiation").
#[must_use]
pub fn support_of(tool: &[u8]) -> Support {
    match json::at(tool, &["execution", "taskSupport"]).and_then(json::text).as_deref() {
        Some("optional") => Support::Optional,
        Some("required") => Support::Required,
        Some(_) | None => Support::None,
    }
}

/// Whether calls of a tool may become tasks at its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// They may not.
    None,
    /// They may.
    Optional,
    /// They must.
    Required,
    /// The server does not list the tool: it decides.
    Unlisted,
}

/// Whether a server of 2025-11-25 with these capabilities (raw) accepts `task` in calls of tools.
#[must_use]
pub fn serves_calls(capabilities: &[u8]) -> bool {
    read::within(capabilities, &["tasks", "requests", "tools", "call"])
}

/// The wish of a request to become a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// None.
    None,
    /// Its params have `task` (2025-11-25); in a modern request that means nothing.
    Asks,
    /// Its client declares the tasks extension.
    Declares,
}

/// The session that receives a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taker {
    /// The form of its payloads.
    pub form: Form,
    /// What its server says about tasks of the tool.
    pub support: Support,
}

/// What a call may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// No task.
    Nothing,
    /// A task of its caller.
    Task,
    /// A task that the gateway follows: its caller sees a call.
    Followed,
}

/// A tool call as it is sent.
#[derive(Debug)]
pub struct Fitted {
    /// The request, if it is not sent as it is.
    pub request: Option<Request>,
    /// Whether the gateway declares the extension for it, in place of the caller.
    pub declares: bool,
    /// What it may become.
    pub becomes: Becomes,
}

impl Fitted {
    fn new(request: Option<Request>, becomes: Becomes) -> Self {
        Self { request, declares: false, becomes }
    }
}

/// Fits the task members of a tool call to the session that receives it. `offered`: the gateway offered tasks to the caller.
/// `reserve` reserves a place for the task that the call may become.
///
/// # Errors
/// A refusal of a call that may not become a task although its caller asks for one, or that must and has no place.
pub fn fit(
    request: &Request,
    wish: Wish,
    taker: Taker,
    offered: bool,
    reserve: &mut dyn FnMut() -> bool,
) -> Result<Fitted, Refusal> {
    let (from, to, support) = (request.payload.form, taker.form, taker.support);
    let asks = from == Form::Legacy && wish == Wish::Asks;
    if asks && offered {
        return fit_asking(request, taker, reserve);
    }
    // To a server of 2025-11-25 `task` would mean that the call may become a task. The caller may have sent it without meaning.
    let bare = || if wish == Wish::None { None } else { without_task(request) };
    match (from, to) {
        // Without a place the server does not learn that the caller accepts a task: it answers at the end.
        (Form::Modern, Form::Modern) if wish == Wish::Declares => match reserve() {
            true => Ok(Fitted::new(None, Becomes::Task)),
            false => Ok(Fitted::new(without_extension(request), Becomes::Nothing)),
        },
        (Form::Modern, Form::Modern) => Ok(Fitted::new(None, Becomes::Nothing)),
        // Whether its server insists on a task is seen by its answer.
        (Form::Legacy, Form::Modern) => Ok(Fitted::new(bare(), Becomes::Followed)),
        (Form::Legacy | Form::Modern, Form::Legacy) => {
            let offers = wish == Wish::Declares && from == Form::Modern;
            match support {
                // The client knows better: its server refuses the call (-32601).
                Support::Required if from == Form::Legacy && offered => {
                    Ok(Fitted::new(None, Becomes::Nothing))
                }
                Support::Required if !reserve() => Err(full()),
                Support::Required if offers => Ok(Fitted::new(with_task(request), Becomes::Task)),
                Support::Required => Ok(Fitted::new(with_task(request), Becomes::Followed)),
                Support::Optional if offers && reserve() => {
                    Ok(Fitted::new(with_task(request), Becomes::Task))
                }
                Support::Optional | Support::None | Support::Unlisted => {
                    Ok(Fitted::new(bare(), Becomes::Nothing))
                }
            }
        }
    }
}

/// The same for a caller of 2025-11-25 that asks for a task.
fn fit_asking(request: &Request, taker: Taker, reserve: &mut dyn FnMut() -> bool) -> Result<Fitted, Refusal> {
    let message = Message::read(relay::whole(request));
    let checked = message.and_then(|message| read::check_params(&Params::read(&message)?));
    checked.map_err(|wrong| Refusal::new(RefusalCode::Malformed, wrong.message))?;
    if taker.support == Support::None {
        let what = "this tool cannot be called as a task: its `execution.taskSupport` does not allow it";
        return Err(Refusal::new(RefusalCode::Unsupported, what).hint("call it without `task`"));
    }
    if !reserve() {
        return Err(full());
    }
    Ok(match taker.form {
        Form::Legacy => Fitted::new(None, Becomes::Task),
        Form::Modern => Fitted { declares: true, ..Fitted::new(without_task(request), Becomes::Task) },
    })
}

fn full() -> Refusal {
    Refusal::new(RefusalCode::Overloaded, "too many tasks are open")
        .hint("wait for some of them, or cancel them with tasks/cancel")
}

/// A request that asks to become a task (2025-11-25).
fn with_task(request: &Request) -> Option<Request> {
    let message = Message::read(relay::whole(request)).ok()?;
    let params = Params::read(&message).ok()?;
    let mut splice = Splice::new();
    params.edit().set("task", b"{}").finish(&mut splice);
    Some(edited(request, &message, &splice))
}

/// A request without `task` in its params; `None` if it has none.
#[must_use]
pub(crate) fn without_task(request: &Request) -> Option<Request> {
    let message = Message::read(relay::whole(request)).ok()?;
    let params = Params::read(&message).ok()?;
    params.get("task")?;
    let mut splice = Splice::new();
    params.edit().remove("task").finish(&mut splice);
    Some(edited(request, &message, &splice))
}

/// A modern request without the client's declaration of the extension; `None` if it did not declare it.
fn without_extension(request: &Request) -> Option<Request> {
    let message = Message::read(relay::whole(request)).ok()?;
    let params = Params::read(&message).ok()?;
    let raw = params.client_capabilities()?;
    super::declares(raw).then_some(())?;
    let extensions = json::edited(json::at(raw, &["extensions"])?, &[(EXTENSION, None)]).ok()?;
    let fewer = json::edited(raw, &[("extensions", Some(&extensions))]).ok()?;
    let mut splice = Splice::new();
    params.edit().set_meta(meta::CLIENT_CAPABILITIES, &fewer).finish(&mut splice);
    Some(edited(request, &message, &splice))
}

/// A call that is held as a proposal, without the members that would make it a task at its server.
#[must_use]
pub fn plain(request: &Request) -> Option<Request> {
    let untasked = without_task(request);
    // A modern call may have both.
    without_extension(untasked.as_ref().unwrap_or(request)).or(untasked)
}

fn edited(request: &Request, message: &Message, splice: &Splice) -> Request {
    let payload = relay::read_again(message.edited(splice), request.payload.form);
    Request { payload, ..request.clone() }
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
        ttl_ms: ttl.and_then(|ttl| json::integer(ttl.raw)).and_then(|ms| u64::try_from(ms).ok()),
    })
}

fn named(members: &Members<'_>) -> Option<Named> {
    let member = members.get("taskId")?;
    Some(Named { id: json::text(member.raw)?.into_owned(), span: member.span })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(text: &str) -> Message {
        Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn payload(text: &str, form: Form) -> Payload {
        relay::read_again(Bytes::copy_from_slice(text.as_bytes()), form)
    }

    fn result(raw: &str, form: Form) -> Answer {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#);
        Answer { outcome: model::Outcome::Ok, payload: payload(&text, form) }
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
        assert_eq!((found.named.id.as_str(), found.status), ("t1", Some(Status::Working)));
        assert_eq!((found.created_ms, found.ttl_ms), (Some(2_000), Some(60_000)));
        assert_eq!(
            made(&result(&modern, Form::Modern)).map(|found| (found.named.id, found.ttl_ms)),
            Some(("t1".into(), None))
        );
        assert_eq!(
            (made(&result(&legacy, Form::Modern)), made(&result(&modern, Form::Legacy))),
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
            String::from_utf8_lossy(renamed.body_bytes()).starts_with(r#"{"task":{"taskId":"mine","status""#)
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
            ("t", Some(Status::Completed), None)
        );
        let raw = found.task.of(&sent.bytes);
        assert_eq!(
            renamed(raw, "x\"").map(|task| String::from_utf8(task).unwrap()).as_deref(),
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
                related_to(&payload(&text, Form::Legacy)).map(|named| named.id),
                found.then(|| "t".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn task_declarations_of_servers_are_read() {
        for (tool, expect) in [
            (r#"{"name":"a"}"#, Support::None),
            (r#"{"execution":{"taskSupport":"forbidden"}}"#, Support::None),
            (r#"{"execution":{"taskSupport":"optional"}}"#, Support::Optional),
            (r#"{"execution":{"taskSupport":"required"}}"#, Support::Required),
            (r#"{"execution":[]}"#, Support::None),
        ] {
            assert_eq!(support_of(tool.as_bytes()), expect, "{tool}");
        }
        let ours = format!(r#"{{"tasks":{}}}"#, super::super::LEGACY_ABILITIES);
        assert!(serves_calls(ours.as_bytes()));
        assert!(serves_calls(br#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#));
        assert!(!serves_calls(br#"{"tasks":{"requests":{"tools":{}}}}"#));
    }

    fn call(params: &str, form: Form) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let message = message(&text);
        relay::decode_request(&Params::read(&message).unwrap(), form)
    }

    #[test]
    fn a_request_loses_its_task_members() {
        let untasked = without_task(&call(r#"{"name":"a","task":{"ttl":1}}"#, Form::Legacy)).unwrap();
        assert_eq!(untasked, call(r#"{"name":"a"}"#, Form::Legacy));
        assert!(without_task(&untasked).is_none());

        let declares = |extensions: &str| {
            let caps = format!(r#"{{"elicitation":{{}},"extensions":{{{extensions}}}}}"#);
            call(
                &format!(r#"{{"name":"a","_meta":{{"io.modelcontextprotocol/clientCapabilities":{caps}}}}}"#),
                Form::Modern,
            )
        };
        let (tasks, ui) = (r#""io.modelcontextprotocol/tasks":{}"#, r#""io.modelcontextprotocol/ui":{}"#);
        let fewer = without_extension(&declares(&format!("{tasks},{ui}"))).unwrap();
        assert_eq!(fewer.payload.bytes, declares(ui).payload.bytes);
        assert!(without_extension(&fewer).is_none());

        let both = declares(&format!("{tasks},{ui}"));
        let text = String::from_utf8_lossy(&both.payload.bytes)
            .replace(r#"{"name":"a","#, r#"{"name":"a","task":{},"#);
        let message = message(&text);
        let both = relay::decode_request(&Params::read(&message).unwrap(), Form::Modern);
        assert_eq!(plain(&both).unwrap().payload.bytes, declares(ui).payload.bytes);
        assert!(plain(&declares(ui)).is_none());
    }

    #[test]
    fn calls_are_fitted_to_their_session() {
        use Form::{Legacy, Modern};
        use Support::{None as No, Optional, Required, Unlisted};
        use Wish::{Asks, Declares};
        let (plain, asks, wrong) =
            (r#"{"name":"a"}"#, r#"{"name":"a","task":{}}"#, r#"{"name":"a","task":1}"#);
        for (params, from, wish, to, support, offered, room, expected) in [
            (asks, Legacy, Asks, Legacy, Optional, true, true, "Task as it is, reserved"),
            (asks, Legacy, Asks, Legacy, Unlisted, true, true, "Task as it is, reserved"),
            (asks, Legacy, Asks, Legacy, Optional, true, false, "overloaded"),
            (asks, Legacy, Asks, Legacy, No, true, true, "unsupported"),
            (wrong, Legacy, Asks, Legacy, Optional, true, true, "malformed"),
            (wrong, Legacy, Asks, Legacy, Optional, false, true, "Nothing changed"),
            (asks, Legacy, Asks, Legacy, Required, false, true, "Followed changed, reserved"),
            (plain, Legacy, Wish::None, Legacy, Required, true, true, "Nothing as it is"),
            (plain, Legacy, Wish::None, Legacy, Required, false, true, "Followed changed, reserved"),
            (plain, Legacy, Wish::None, Legacy, Required, false, false, "overloaded"),
            (plain, Legacy, Wish::None, Legacy, Optional, true, true, "Nothing as it is"),
            (asks, Legacy, Asks, Modern, No, true, true, "unsupported"),
            (asks, Legacy, Asks, Modern, Optional, true, true, "Task changed, declared, reserved"),
            (asks, Legacy, Asks, Modern, Optional, true, false, "overloaded"),
            (asks, Legacy, Asks, Modern, Optional, false, true, "Followed changed"),
            (plain, Legacy, Wish::None, Modern, Optional, true, true, "Followed as it is"),
            (asks, Modern, Asks, Legacy, Optional, true, true, "Nothing changed"),
            (asks, Modern, Asks, Legacy, Required, true, true, "Followed changed, reserved"),
            (plain, Modern, Wish::None, Legacy, No, true, true, "Nothing as it is"),
            (asks, Modern, Asks, Modern, Optional, true, true, "Nothing as it is"),
            (plain, Modern, Declares, Modern, Optional, true, true, "Task as it is, reserved"),
            (plain, Modern, Declares, Legacy, No, true, true, "Nothing as it is"),
            (asks, Modern, Declares, Legacy, No, true, true, "Nothing changed"),
            (plain, Modern, Declares, Legacy, Optional, true, true, "Task changed, reserved"),
            (plain, Modern, Declares, Legacy, Optional, true, false, "Nothing as it is"),
            (plain, Modern, Declares, Legacy, Required, true, true, "Task changed, reserved"),
            (plain, Modern, Declares, Legacy, Required, true, false, "overloaded"),
        ] {
            let mut reserved = false;
            let mut reserve = || {
                reserved = room;
                room
            };
            let fitted = fit(&call(params, from), wish, Taker { form: to, support }, offered, &mut reserve);
            let got = match fitted {
                Ok(Fitted { request, declares, becomes }) => {
                    let sent = if request.is_some() { "changed" } else { "as it is" };
                    let declared = if declares { ", declared" } else { "" };
                    let reserved = if reserved { ", reserved" } else { "" };
                    format!("{becomes:?} {sent}{declared}{reserved}")
                }
                Err(refusal) => refusal.code.as_str().to_owned(),
            };
            assert_eq!(got, expected, "{params} {from:?} {wish:?} {to:?} {support:?}");
        }
        let asking =
            fit(&call(asks, Legacy), Asks, Taker { form: Modern, support: Optional }, true, &mut || true);
        assert_eq!(asking.unwrap().request.unwrap().payload.bytes, call(plain, Legacy).payload.bytes);
        let made = with_task(&call(plain, Modern)).unwrap();
        assert_eq!(json::at(made.payload.body_bytes(), &["task"]), Some(&b"{}"[..]));
    }
}
