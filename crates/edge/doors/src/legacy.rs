//! Messages of legacy clients (2024-11-05 to 2025-11-25), on any wire: `initialize`, requests,
//! notifications, answers.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{Dispatch, Incoming, Link, Parks, Requester, Tag, handshake, listen};
use model::Form;
use telemetry::trace::CallerTrace;
use topic::Interest;
use upstream::ClientProfile;
use wire::mcp::task::{self, TaskWish};
use wire::mcp::{Era, Params, Version, meta, refusal, relay};
use wire::rpc::{self, Id, Message, MessageKind, code};

use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::reply::{Owed, SinkReply};
use crate::stream::Stream;

/// The notification by which a client cancels a request.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// Reads an `initialize` request (MCP 2025-11-25, "Lifecycle"): what its client declares, with the
/// revision that both speak.
///
/// # Errors
/// The JSON-RPC error to answer with.
pub(crate) fn initialize(message: &Message) -> Result<ClientProfile, Bytes> {
    let params = Params::read(message).map_err(|malformed| malformed.answer())?;
    let id = message.id();
    let Some(asked) = params.protocol_version() else {
        let why = "`params.protocolVersion` is missing";
        return Err(rpc::error(id, code::INVALID_PARAMS, why, None));
    };
    let Some(capabilities) = params.client_capabilities() else {
        let why = "`params.capabilities` is missing";
        return Err(rpc::error(id, code::INVALID_PARAMS, why, None));
    };
    if !json::is_object(capabilities) {
        let why = "`params.capabilities` must be an object";
        return Err(rpc::error(id, code::INVALID_PARAMS, why, None));
    }
    Ok(ClientProfile {
        capabilities: declared(capabilities),
        client_info: params.client_info().map(Bytes::copy_from_slice),
        version: Version::answer_to(&asked),
    })
}

/// Receives the first request of a client that reads everything on `out`, and answers it if it is
/// not a good `initialize`; `otherwise` is what a client reads that begins with another.
pub(crate) fn first(message: &Message, out: &Stream, otherwise: &str) -> Option<ClientProfile> {
    let id = message.id()?;
    match message.method() {
        "initialize" => return initialize(message).map_err(|error| out.answer(error)).ok(),
        "ping" => out.answer(rpc::result(id, b"{}")),
        _ => out.answer(rpc::error(Some(id), code::INVALID_REQUEST, otherwise, None)),
    }
    None
}

/// Joins for that client. What is listed by then is no change for it. A topic that rejects it
/// answers its request of this id.
pub(crate) async fn join(
    links: &ClientLinks,
    visitor: &Visitor,
    client: ClientProfile,
    id: &Id,
    out: &Arc<Stream>,
) -> Option<Arc<Link>> {
    visitor.dispatch.wait_for_servers_before(&client).await;
    let joined = links.join_on(out, visitor, client);
    joined
        .map_err(|why| out.answer(refusal::encode(&why, Era::Legacy, "", None).answer(Some(id))))
        .ok()
}

/// The result of `initialize` for a client that has joined.
pub(crate) fn welcome(dispatch: &Dispatch, link: &Link, id: &Id) -> Bytes {
    rpc::result(id, &handshake::initialize(dispatch, link.client.version))
}

/// Capabilities to keep. Most clients declare none.
fn declared(raw: &[u8]) -> Bytes {
    if raw == b"{}" {
        Bytes::from_static(b"{}")
    } else {
        Bytes::copy_from_slice(raw)
    }
}

/// Reads a request of an initialized client.
///
/// # Errors
/// The answer that the door gives without the gateway.
pub(crate) fn request(params: &Params<'_>) -> Result<Incoming, Bytes> {
    let message = params.message();
    let Some(id) = message.id() else {
        return Err(Bytes::new());
    };
    let mut parks = Parks::Words;
    let mut wish = TaskWish::None;
    let mut listens = false;
    match params.method() {
        "tools/call" if params.get("task").is_some() => {
            wish = TaskWish::Asks;
            if task::check_params(params).is_ok() {
                parks = Parks::Task;
            }
        }
        "tools/call" if task::takes_task_if_held(params) => parks = Parks::Task,
        "tools/call" => {}
        "ping" => return Err(rpc::result(id, b"{}")),
        "initialize" => {
            return Err(rpc::error(
                Some(id),
                code::INVALID_REQUEST,
                "already initialized",
                None,
            ));
        }
        "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => listens = true,
        name => {
            if params
                .known()
                .is_some_and(|method| !method.is_in(Era::Legacy))
            {
                let why = format!("method not found: {name}");
                return Err(rpc::error(Some(id), code::METHOD_NOT_FOUND, &why, None));
            }
        }
    }
    let request = relay::decode_request(params, Form::Legacy);
    let interest = if listens {
        listen::interest(&request).map_err(|refused| {
            let target = request.target.as_ref().map(model::Target::as_str);
            refusal::encode(&refused, Era::Legacy, params.method(), target).answer(Some(id))
        })?
    } else {
        Interest::None
    };
    let request = match params.meta_raw(meta::HELD) {
        Some(_) => task::without_held(&request).unwrap_or(request),
        None => request,
    };
    let mut incoming = Incoming::plain(request, Some(Tag::of_client(id.clone())));
    incoming.interest = interest;
    incoming.parks = parks;
    incoming.wish = wish;
    Ok(incoming)
}

/// Receives a message of an initialized client that is no request.
pub(crate) fn take(dispatch: &Arc<Dispatch>, link: &Link, params: &Params<'_>) {
    let message = params.message();
    match message.shape() {
        MessageKind::Request => {}
        MessageKind::Notification if params.method() == CANCELLED => {
            if let Some(id) = params.request_id() {
                dispatch.cancel(link, Tag::of_client(id));
            }
        }
        // `notifications/initialized` needs nothing, because sessions at servers are opened on
        // first use.
        MessageKind::Notification => {
            dispatch.client_notice(link, &relay::decode_notice(params, Form::Legacy))
        }
        MessageKind::Result | MessageKind::Error => match message.id().and_then(Id::as_number) {
            Some(number) => {
                dispatch.answer_question(link, number, relay::decode_answer(message, Form::Legacy))
            }
            None => tracing::debug!(participant = %link.participant.id, "an answer to no question"),
        },
    }
}

/// Receives one message of an initialized client, for which the headers around it name this trace;
/// answers go to `out`.
pub(crate) fn receive(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    message: &Message,
    trace: Option<&CallerTrace>,
    out: &Arc<Stream>,
) {
    match Params::read(message) {
        Ok(params) => receive_params(dispatch, by, &params, trace, out),
        Err(malformed) if message.shape() == MessageKind::Request => out.answer(malformed.answer()),
        // A client waits for no answer to the rest.
        Err(_) => {}
    }
}

/// Receives a message whose params were read.
pub(crate) fn receive_params(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    params: &Params<'_>,
    trace: Option<&CallerTrace>,
    out: &Arc<Stream>,
) {
    if params.message().shape() != MessageKind::Request {
        return take(dispatch, by.link, params);
    }
    match request(params) {
        Ok(mut incoming) => {
            incoming.trace = trace.cloned().map(Box::new);
            dispatch.request(by, incoming, Arc::new(SinkReply(Owed::by(out))));
        }
        Err(answer) => out.answer(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Result<Incoming, String> {
        let message = Message::read(Bytes::copy_from_slice(raw.as_bytes())).unwrap();
        let answer = |answer: Bytes| String::from_utf8(answer.to_vec()).unwrap();
        request(&Params::read(&message).unwrap()).map_err(answer)
    }

    fn call(method: &str, params: &str) -> Result<Incoming, String> {
        read(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#
        ))
    }

    #[test]
    fn the_door_answers_what_needs_no_topic() {
        for (method, answer) in [
            ("ping", r#""result":{}"#),
            ("initialize", "already initialized"),
            ("server/discover", "method not found: server/discover"),
        ] {
            let got = call(method, "{}").err().unwrap();
            assert!(
                got.contains(answer) && got.contains(r#""id":7"#),
                "{method}: {got}"
            );
        }
        assert!(call("vendor/method", "{}").is_ok(), "a server may know it");
    }

    #[test]
    fn a_call_that_asks_for_a_task_gets_one() {
        let asking = |task: &str| {
            call("tools/call", &format!(r#"{{"name":"a"{task}}}"#))
                .ok()
                .unwrap()
        };
        for (task, wish, parks) in [
            ("", TaskWish::None, Parks::Words),
            (r#","task":{}"#, TaskWish::Asks, Parks::Task),
            (r#","task":{"ttl":"x"}"#, TaskWish::Asks, Parks::Words),
            (
                r#","_meta":{"portmoot/held":"task"}"#,
                TaskWish::None,
                Parks::Task,
            ),
            (
                r#","_meta":{"portmoot/held":true}"#,
                TaskWish::None,
                Parks::Words,
            ),
        ] {
            let incoming = asking(task);
            assert_eq!((incoming.wish, incoming.parks), (wish, parks), "{task}");
            let body = String::from_utf8_lossy(incoming.request.payload.body_bytes());
            assert!(!body.contains("portmoot/held"), "{body}");
        }
        let other = call("prompts/get", r#"{"name":"a","task":{}}"#)
            .ok()
            .unwrap();
        assert_eq!((other.wish, other.parks), (TaskWish::None, Parks::Words));
    }

    #[test]
    fn initialize_declares_capabilities() {
        let message = |params: &str| {
            let raw =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
            Message::read(Bytes::from(raw)).unwrap()
        };
        let client = initialize(&message(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}}}"#,
        ))
        .unwrap();
        assert_eq!(
            (client.version, &*client.capabilities),
            (Version::V2025_06_18, &br#"{"roots":{}}"#[..])
        );
        for (params, missing) in [
            (r#"{"capabilities":{}}"#, "protocolVersion"),
            (r#"{"protocolVersion":"x"}"#, "capabilities"),
            (
                r#"{"protocolVersion":"x","capabilities":[]}"#,
                "must be an object",
            ),
        ] {
            let error = initialize(&message(params)).unwrap_err();
            assert!(
                String::from_utf8_lossy(&error).contains(missing),
                "{params}"
            );
        }
    }
}
