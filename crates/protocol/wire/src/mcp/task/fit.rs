//! Task members of a tool call, fitted to the session that receives it; declared support of tools
//! and servers.

use model::{Form, Refusal, RefusalCode, Request};

use super::{EXTENSION, read};
use crate::mcp::{Params, meta, relay};

/// Support for tasks that a tool of a list declares (2025-11-25, "Tool-Level Negotiation").
#[must_use]
pub fn support_of(tool: &[u8]) -> TaskSupport {
    match json::at(tool, &["execution", "taskSupport"])
        .and_then(json::text)
        .as_deref()
    {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        Some(_) | None => TaskSupport::None,
    }
}

/// Whether calls of a tool may become tasks at its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
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
pub enum TaskWish {
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
    /// Its server's support for tasks of the tool.
    pub support: TaskSupport,
}

/// The task that a call may become.
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
    /// The task that the call may become.
    pub becomes: Becomes,
}

impl Fitted {
    fn new(request: Option<Request>, becomes: Becomes) -> Self {
        Self {
            request,
            declares: false,
            becomes,
        }
    }
}

/// Fits the task members of a tool call to the session that receives it. `offered`: the gateway
/// offered tasks to the caller.
/// `reserve` reserves a place for the task that the call may become.
///
/// # Errors
/// A refusal of a call that may not become a task although its caller asks for one, or that must
/// and has no place.
pub fn fit(
    request: &Request,
    wish: TaskWish,
    taker: Taker,
    offered: bool,
    reserve: &mut dyn FnMut() -> bool,
) -> Result<Fitted, Refusal> {
    let (from, to, support) = (request.payload.form, taker.form, taker.support);
    let asks = from == Form::Legacy && wish == TaskWish::Asks;
    if asks && offered {
        return fit_asking(request, taker, reserve);
    }
    // To a server of 2025-11-25 `task` would mean that the call may become a task. The caller may
    // have sent it without meaning.
    let bare = || {
        if wish == TaskWish::None {
            None
        } else {
            without_task(request)
        }
    };
    match (from, to) {
        // Without a place the server does not learn that the caller accepts a task: it answers at
        // the end.
        (Form::Modern, Form::Modern) if wish == TaskWish::Declares => {
            if reserve() {
                Ok(Fitted::new(None, Becomes::Task))
            } else {
                Ok(Fitted::new(without_extension(request), Becomes::Nothing))
            }
        }
        (Form::Modern, Form::Modern) => Ok(Fitted::new(None, Becomes::Nothing)),
        // Whether its server insists on a task is seen by its answer.
        (Form::Legacy, Form::Modern) => Ok(Fitted::new(bare(), Becomes::Followed)),
        (Form::Legacy | Form::Modern, Form::Legacy) => {
            let offers = wish == TaskWish::Declares && from == Form::Modern;
            match support {
                // The client knows better: its server refuses the call (-32601).
                TaskSupport::Required if from == Form::Legacy && offered => {
                    Ok(Fitted::new(None, Becomes::Nothing))
                }
                TaskSupport::Required if !reserve() => Err(full()),
                TaskSupport::Required if offers => {
                    Ok(Fitted::new(with_task(request), Becomes::Task))
                }
                TaskSupport::Required => Ok(Fitted::new(with_task(request), Becomes::Followed)),
                TaskSupport::Optional if offers && reserve() => {
                    Ok(Fitted::new(with_task(request), Becomes::Task))
                }
                TaskSupport::Optional | TaskSupport::None | TaskSupport::Unlisted => {
                    Ok(Fitted::new(bare(), Becomes::Nothing))
                }
            }
        }
    }
}

/// Fits the call of a caller of 2025-11-25 that asks for a task.
fn fit_asking(
    request: &Request,
    taker: Taker,
    reserve: &mut dyn FnMut() -> bool,
) -> Result<Fitted, Refusal> {
    let asked = json::at(request.payload.body_bytes(), &["task"]);
    asked
        .map_or(Ok(()), read::check_task)
        .map_err(|wrong| Refusal::new(RefusalCode::Malformed, wrong))?;
    if taker.support == TaskSupport::None {
        let what =
            "this tool cannot be called as a task: its `execution.taskSupport` does not allow it";
        return Err(Refusal::new(RefusalCode::Unsupported, what).hint("call it without `task`"));
    }
    if !reserve() {
        return Err(full());
    }
    Ok(match taker.form {
        Form::Legacy => Fitted::new(None, Becomes::Task),
        Form::Modern => Fitted {
            declares: true,
            ..Fitted::new(without_task(request), Becomes::Task)
        },
    })
}

fn full() -> Refusal {
    Refusal::new(RefusalCode::Overloaded, "too many tasks are open")
        .hint("wait for some of them, or cancel them with tasks/cancel")
}

/// A request that asks to become a task (2025-11-25).
fn with_task(request: &Request) -> Option<Request> {
    relay::edit_params(request, |edit| {
        edit.set("task", b"{}");
    })
}

/// A request without `task` in its params; `None` if it has none.
#[must_use]
pub(crate) fn without_task(request: &Request) -> Option<Request> {
    json::at(request.payload.body_bytes(), &["task"])?;
    relay::edit_params(request, |edit| {
        edit.remove("task");
    })
}

/// Whether a call takes a task once it is held.
#[must_use]
pub fn takes_task_if_held(params: &Params<'_>) -> bool {
    params
        .meta_raw(meta::HELD)
        .and_then(json::text)
        .is_some_and(|value| value == meta::AS_TASK)
}

/// A request without its word on what it takes once it is held. `None` if it cannot be edited.
#[must_use]
pub fn without_held(request: &Request) -> Option<Request> {
    relay::edit_params(request, |edit| {
        edit.remove_meta(&[meta::HELD]);
    })
}

/// A modern request without the client's declaration of the extension; `None` if it did not declare
/// it.
fn without_extension(request: &Request) -> Option<Request> {
    let body = request.payload.body_bytes();
    let raw = json::at(body, &["_meta", meta::CLIENT_CAPABILITIES])?;
    super::declares(raw).then_some(())?;
    let extensions = json::edited(json::at(raw, &["extensions"])?, &[(EXTENSION, None)]).ok()?;
    let fewer = json::edited(raw, &[("extensions", Some(&extensions))]).ok()?;
    relay::edit_params(request, |edit| {
        edit.set_meta(meta::CLIENT_CAPABILITIES, &fewer);
    })
}

/// A call that is held as a proposal, without the members that would make it a task at its server.
#[must_use]
pub fn plain(request: &Request) -> Option<Request> {
    let untasked = without_task(request);
    // A modern call may have both.
    without_extension(untasked.as_ref().unwrap_or(request)).or(untasked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Message;

    #[test]
    fn task_declarations_of_servers_are_read() {
        for (tool, expect) in [
            (r#"{"name":"a"}"#, TaskSupport::None),
            (
                r#"{"execution":{"taskSupport":"forbidden"}}"#,
                TaskSupport::None,
            ),
            (
                r#"{"execution":{"taskSupport":"optional"}}"#,
                TaskSupport::Optional,
            ),
            (
                r#"{"execution":{"taskSupport":"required"}}"#,
                TaskSupport::Required,
            ),
            (r#"{"execution":[]}"#, TaskSupport::None),
        ] {
            assert_eq!(support_of(tool.as_bytes()), expect, "{tool}");
        }
        let ours = format!(r#"{{"tasks":{}}}"#, super::super::LEGACY_ABILITIES);
        assert!(serves_calls(ours.as_bytes()));
        assert!(serves_calls(
            br#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#
        ));
        assert!(!serves_calls(br#"{"tasks":{"requests":{"tools":{}}}}"#));
    }

    fn call(params: &str, form: Form) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let message = Message::read(text.into_bytes().into()).unwrap();
        relay::decode_request(&Params::read(&message).unwrap(), form)
    }

    #[test]
    fn a_request_loses_its_task_members() {
        let untasked =
            without_task(&call(r#"{"name":"a","task":{"ttl":1}}"#, Form::Legacy)).unwrap();
        assert_eq!(untasked, call(r#"{"name":"a"}"#, Form::Legacy));
        assert!(without_task(&untasked).is_none());

        let declares = |extensions: &str| {
            let caps = format!(r#"{{"elicitation":{{}},"extensions":{{{extensions}}}}}"#);
            call(
                &format!(
                    r#"{{"name":"a","_meta":{{"io.modelcontextprotocol/clientCapabilities":{caps}}}}}"#
                ),
                Form::Modern,
            )
        };
        let (tasks, ui) = (
            r#""io.modelcontextprotocol/tasks":{}"#,
            r#""io.modelcontextprotocol/ui":{}"#,
        );
        let fewer = without_extension(&declares(&format!("{tasks},{ui}"))).unwrap();
        assert_eq!(fewer.payload.bytes, declares(ui).payload.bytes);
        assert!(without_extension(&fewer).is_none());

        let both = declares(&format!("{tasks},{ui}"));
        let text = String::from_utf8_lossy(&both.payload.bytes)
            .replace(r#"{"name":"a","#, r#"{"name":"a","task":{},"#);
        let message = Message::read(text.into_bytes().into()).unwrap();
        let both = relay::decode_request(&Params::read(&message).unwrap(), Form::Modern);
        assert_eq!(
            plain(&both).unwrap().payload.bytes,
            declares(ui).payload.bytes
        );
        assert!(plain(&declares(ui)).is_none());
    }

    #[test]
    fn calls_are_fitted_to_their_session() {
        use Form::{Legacy, Modern};
        use TaskSupport::{None as No, Optional, Required, Unlisted};
        use TaskWish::{Asks, Declares};
        let (plain, asks, wrong) = (
            r#"{"name":"a"}"#,
            r#"{"name":"a","task":{}}"#,
            r#"{"name":"a","task":1}"#,
        );
        for (params, from, wish, to, support, offered, room, expected) in [
            (
                asks,
                Legacy,
                Asks,
                Legacy,
                Optional,
                true,
                true,
                "Task as it is, reserved",
            ),
            (
                asks,
                Legacy,
                Asks,
                Legacy,
                Unlisted,
                true,
                true,
                "Task as it is, reserved",
            ),
            (
                asks,
                Legacy,
                Asks,
                Legacy,
                Optional,
                true,
                false,
                "overloaded",
            ),
            (asks, Legacy, Asks, Legacy, No, true, true, "unsupported"),
            (
                wrong,
                Legacy,
                Asks,
                Legacy,
                Optional,
                true,
                true,
                "malformed",
            ),
            (
                wrong,
                Legacy,
                Asks,
                Legacy,
                Optional,
                false,
                true,
                "Nothing changed",
            ),
            (
                asks,
                Legacy,
                Asks,
                Legacy,
                Required,
                false,
                true,
                "Followed changed, reserved",
            ),
            (
                plain,
                Legacy,
                TaskWish::None,
                Legacy,
                Required,
                true,
                true,
                "Nothing as it is",
            ),
            (
                plain,
                Legacy,
                TaskWish::None,
                Legacy,
                Required,
                false,
                true,
                "Followed changed, reserved",
            ),
            (
                plain,
                Legacy,
                TaskWish::None,
                Legacy,
                Required,
                false,
                false,
                "overloaded",
            ),
            (
                plain,
                Legacy,
                TaskWish::None,
                Legacy,
                Optional,
                true,
                true,
                "Nothing as it is",
            ),
            (asks, Legacy, Asks, Modern, No, true, true, "unsupported"),
            (
                asks,
                Legacy,
                Asks,
                Modern,
                Optional,
                true,
                true,
                "Task changed, declared, reserved",
            ),
            (
                asks,
                Legacy,
                Asks,
                Modern,
                Optional,
                true,
                false,
                "overloaded",
            ),
            (
                asks,
                Legacy,
                Asks,
                Modern,
                Optional,
                false,
                true,
                "Followed changed",
            ),
            (
                plain,
                Legacy,
                TaskWish::None,
                Modern,
                Optional,
                true,
                true,
                "Followed as it is",
            ),
            (
                asks,
                Modern,
                Asks,
                Legacy,
                Optional,
                true,
                true,
                "Nothing changed",
            ),
            (
                asks,
                Modern,
                Asks,
                Legacy,
                Required,
                true,
                true,
                "Followed changed, reserved",
            ),
            (
                plain,
                Modern,
                TaskWish::None,
                Legacy,
                No,
                true,
                true,
                "Nothing as it is",
            ),
            (
                asks,
                Modern,
                Asks,
                Modern,
                Optional,
                true,
                true,
                "Nothing as it is",
            ),
            (
                plain,
                Modern,
                Declares,
                Modern,
                Optional,
                true,
                true,
                "Task as it is, reserved",
            ),
            (
                plain,
                Modern,
                Declares,
                Legacy,
                No,
                true,
                true,
                "Nothing as it is",
            ),
            (
                asks,
                Modern,
                Declares,
                Legacy,
                No,
                true,
                true,
                "Nothing changed",
            ),
            (
                plain,
                Modern,
                Declares,
                Legacy,
                Optional,
                true,
                true,
                "Task changed, reserved",
            ),
            (
                plain,
                Modern,
                Declares,
                Legacy,
                Optional,
                true,
                false,
                "Nothing as it is",
            ),
            (
                plain,
                Modern,
                Declares,
                Legacy,
                Required,
                true,
                true,
                "Task changed, reserved",
            ),
            (
                plain,
                Modern,
                Declares,
                Legacy,
                Required,
                true,
                false,
                "overloaded",
            ),
        ] {
            let mut reserved = false;
            let mut reserve = || {
                reserved = room;
                room
            };
            let fitted = fit(
                &call(params, from),
                wish,
                Taker { form: to, support },
                offered,
                &mut reserve,
            );
            let got = match fitted {
                Ok(Fitted {
                    request,
                    declares,
                    becomes,
                }) => {
                    let sent = if request.is_some() {
                        "changed"
                    } else {
                        "as it is"
                    };
                    let declared = if declares { ", declared" } else { "" };
                    let reserved = if reserved { ", reserved" } else { "" };
                    format!("{becomes:?} {sent}{declared}{reserved}")
                }
                Err(refusal) => refusal.code.as_str().to_owned(),
            };
            assert_eq!(
                got, expected,
                "{params} {from:?} {wish:?} {to:?} {support:?}"
            );
        }
        let asking = fit(
            &call(asks, Legacy),
            Asks,
            Taker {
                form: Modern,
                support: Optional,
            },
            true,
            &mut || true,
        );
        assert_eq!(
            asking.unwrap().request.unwrap().payload.bytes,
            call(plain, Legacy).payload.bytes
        );
        let made = with_task(&call(plain, Modern)).unwrap();
        assert_eq!(
            json::at(made.payload.body_bytes(), &["task"]),
            Some(&b"{}"[..])
        );
    }
}
