//! Messages of modern clients (2026-07-28), on any wire: each request is complete in itself.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{Dispatch, Incoming, Link, Parks, Tag, listen};
use model::{Form, Request};
use topic::{Interest, Logs};
use upstream::ClientProfile;
use wire::mcp::task::{self, TaskWish};
use wire::mcp::{Era, Params, Rejection, Version, header, refusal, relay};

/// Longest message, in bytes, of which a part is kept without a copy.
const SHARED_BYTES_MAX: usize = 4096;
/// The method of listen requests.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// Checks what a modern request on a pipe must have, where no header repeats it.
///
/// # Errors
/// The error to answer with.
pub(crate) fn check(params: &Params<'_>) -> Result<(), Rejection> {
    let asked = params.protocol_version().unwrap_or_default();
    header::check_body(params, header::supported(&asked)?)
}

/// Reads a request that was checked.
///
/// # Errors
/// The error to answer with.
pub(crate) fn request(params: &Params<'_>) -> Result<Incoming, Rejection> {
    let message = params.message();
    let client = client(params);
    let declares = task::declares(&client.capabilities);
    let request = relay::decode_request(params, Form::Modern);
    if !declares && needs_tasks(&request) {
        return Err(Rejection::missing_capability(&format!(
            "{{\"extensions\":{}}}",
            task::ABILITIES
        )));
    }
    let interest = match params.method() {
        LISTEN => listen::interest(&request)
            .map_err(|refused| refusal::encode(&refused, Era::Modern, LISTEN, None))?,
        _ => Interest::None,
    };
    let is_tool = params.method() == "tools/call";
    let parks = if declares && is_tool {
        Parks::Task
    } else {
        Parks::Retry
    };
    let wish = match is_tool {
        true if declares => TaskWish::Declares,
        true if params.get("task").is_some() => TaskWish::Asks,
        true | false => TaskWish::None,
    };
    let state = params
        .request_state()
        .and_then(json::text)
        .map(std::borrow::Cow::into_owned);
    let tag = message.id().cloned().map(Tag::of_client);
    // A modern caller gets log messages about a request only if that names a level (2026-07-28,
    // "Logging").
    let logs = params.log_level().map_or(Logs::None, Logs::From);
    Ok(Incoming {
        client: Some(client),
        interest,
        logs,
        parks,
        wish,
        state,
        ..Incoming::plain(request, tag)
    })
}

/// Takes a message that is no request. The protocol has one notification of a client, and a modern
/// client sends no answers.
pub(crate) fn take(dispatch: &Arc<Dispatch>, link: &Link, params: &Params<'_>) {
    if params.method() == "notifications/cancelled"
        && let Some(id) = params.request_id()
    {
        dispatch.cancel(link, Tag::of_client(id));
    }
}

/// Client that a request declares. Absent capabilities are none.
fn client(params: &Params<'_>) -> ClientProfile {
    let frame = params.message().frame();
    let part = |raw: &[u8]| match raw {
        b"{}" => Bytes::from_static(b"{}"),
        raw if frame.len() <= SHARED_BYTES_MAX => frame.slice_ref(raw),
        // A long message must not stay in memory for a small part of it.
        raw => Bytes::copy_from_slice(raw),
    };
    ClientProfile {
        capabilities: params
            .client_capabilities()
            .map_or_else(|| Bytes::from_static(b"{}"), part),
        client_info: params.client_info().map(part),
        version: Version::NEWEST,
    }
}

/// Whether only a client that declares the tasks extension may send this (its "Capability
/// Negotiation").
fn needs_tasks(request: &Request) -> bool {
    match request.method.as_str() {
        "tasks/get" | "tasks/update" | "tasks/cancel" => true,
        LISTEN => wire::mcp::listen::filter(request).is_ok_and(|filter| !filter.tasks.is_empty()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wire::rpc::Message;

    use super::*;

    fn read(method: &str, capabilities: &str, more: &str) -> Result<Incoming, i64> {
        let raw = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}{more}}}}}"#
        );
        let message = Message::read(Bytes::from(raw)).unwrap();
        request(&Params::read(&message).unwrap()).map_err(|answer| answer.code)
    }

    const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

    #[test]
    fn tasks_are_for_clients_that_declare_them() {
        for (method, more) in [
            ("tasks/get", r#","taskId":"t""#),
            ("tasks/cancel", r#","taskId":"t""#),
            (LISTEN, r#","notifications":{"taskIds":["t"]}"#),
        ] {
            assert_eq!(read(method, "{}", more).err(), Some(-32021), "{method}");
        }
        assert!(read("tasks/get", TASKS, r#","taskId":"t""#).is_ok());
    }

    #[test]
    fn a_caller_is_parked_as_it_declares() {
        let name = r#","name":"a""#;
        for (method, capabilities, more, wish, parks) in [
            ("tools/call", "{}", "", TaskWish::None, Parks::Retry),
            ("tools/call", TASKS, "", TaskWish::Declares, Parks::Task),
            (
                "tools/call",
                "{}",
                r#","task":{}"#,
                TaskWish::Asks,
                Parks::Retry,
            ),
            ("prompts/get", TASKS, "", TaskWish::None, Parks::Retry),
        ] {
            let incoming = read(method, capabilities, &format!("{name}{more}"))
                .ok()
                .unwrap();
            assert_eq!(
                (incoming.wish, incoming.parks),
                (wish, parks),
                "{method} {capabilities} {more}"
            );
        }
        let again = read("tools/call", "{}", r#","name":"a","requestState":"s\n""#)
            .ok()
            .unwrap();
        assert_eq!(again.state.as_deref(), Some("s\n"));
    }
}
