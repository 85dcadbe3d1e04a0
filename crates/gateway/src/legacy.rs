//! What a legacy client may say (2024-11-05 to 2025-11-25), whatever carries it.
//!
//! Owns the meaning of each message of a caller that has said `initialize`: what is answered here, what goes to the
//! pump. Must not know HTTP or pipes; the doors hand in messages and the stream for answers.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use json::Splice;
use model::{Era, Refusal, RefusalCode};
use upstream::{Answer, ClientProfile};
use wire::mcp::{Params, Version};
use wire::rpc::{self, Id, Message, Shape, code};

use crate::caller::{Caller, LOG_LEVELS};
use crate::lists;
use crate::pump::{Pump, Routed};
use crate::stream::Stream;

/// What a client said in `initialize`, and what it is answered.
pub struct Welcome {
    /// What to remember of it.
    pub hello: ClientProfile,
    /// The revision that both will speak.
    pub version: Version,
}

/// Reads an `initialize` request (MCP 2025-11-25, "Lifecycle").
///
/// # Errors
/// The JSON-RPC error to answer with.
pub fn welcome(message: &Message) -> Result<Welcome, Bytes> {
    let params = Params::read(message).map_err(|malformed| malformed.answer())?;
    let id = message.id();
    let missing =
        |what: &str| rpc::error(id, code::INVALID_PARAMS, &format!("`params.{what}` is missing"), None);
    let asked = params.protocol_version().ok_or_else(|| missing("protocolVersion"))?;
    let capabilities = params.client_capabilities().ok_or_else(|| missing("capabilities"))?;
    if !json::is_object(capabilities) {
        return Err(rpc::error(id, code::INVALID_PARAMS, "`params.capabilities` must be an object", None));
    }
    let version = Version::answer_to(&asked);
    let hello = ClientProfile {
        capabilities: Bytes::copy_from_slice(capabilities),
        client_info: params.client_info().map(Bytes::copy_from_slice),
        version,
    };
    Ok(Welcome { hello, version })
}

/// Takes one message of an initialized caller that has not been looked into; answers go to `out`.
pub fn read(pump: &Arc<Pump>, caller: &Arc<Caller>, message: &Message, out: &Arc<Stream>) {
    match Params::read(message) {
        Ok(params) => receive(pump, caller, &params, out),
        Err(malformed) if message.shape() == Shape::Request => out.answer(malformed.answer()),
        // Nobody waits for an answer to the rest.
        Err(_) => {}
    }
}

/// Takes one message of an initialized caller; answers go to `out`.
pub fn receive(pump: &Arc<Pump>, caller: &Arc<Caller>, params: &Params<'_>, out: &Arc<Stream>) {
    let message = params.message();
    match message.shape() {
        Shape::Request => request(pump, caller, params, out),
        Shape::Notification => notification(pump, caller, params),
        Shape::Result | Shape::Error => answer(pump, caller, message),
    }
}

fn request(pump: &Arc<Pump>, caller: &Arc<Caller>, params: &Params<'_>, out: &Arc<Stream>) {
    let message = params.message();
    let Some(id) = message.id() else { return };
    match params.method() {
        "initialize" => out.answer(rpc::error(Some(id), code::INVALID_REQUEST, "already initialized", None)),
        "ping" => out.answer(rpc::result(id, b"{}")),
        "logging/setLevel" => set_level(pump, caller, params, out),
        "resources/subscribe" | "resources/unsubscribe" => subscribe(pump, caller, params, out),
        name => match params.known() {
            Some(method) if !method.is_in(Era::Legacy) => {
                out.answer(rpc::error(
                    Some(id),
                    code::METHOD_NOT_FOUND,
                    &format!("method not found: {name}"),
                    None,
                ));
            }
            Some(method) => match method.list {
                Some(list) => drop(lists::answer(pump, caller, list, params, caller.hello().clone(), out)),
                None => forward(pump, caller, params, out),
            },
            None => forward(pump, caller, params, out),
        },
    }
}

fn forward(pump: &Arc<Pump>, caller: &Arc<Caller>, params: &Params<'_>, out: &Arc<Stream>) {
    // It is found again by its id if the client cancels it.
    drop(pump.request(caller, params, caller.hello(), out));
}

fn set_level(pump: &Arc<Pump>, caller: &Arc<Caller>, params: &Params<'_>, out: &Arc<Stream>) {
    let Some((operation, Routed::Gateway)) = pump.admit(caller, params, out) else { return };
    let level = params.level().map(Cow::into_owned).unwrap_or_default();
    if !caller.set_log_level(&level) {
        let refusal = Refusal::new(RefusalCode::Malformed, format!("unknown log level: {level}"))
            .hint(format!("use one of {}", LOG_LEVELS.join(", ")));
        return pump.answer_here(&operation, Err(refusal));
    }
    let (pump, caller) = (Arc::clone(pump), Arc::clone(caller));
    tokio::spawn(async move {
        pump.set_level(&caller).await;
        pump.answer_here(&operation, Ok(rpc::result(&operation.request, b"{}")));
    });
}

fn subscribe(pump: &Arc<Pump>, caller: &Arc<Caller>, params: &Params<'_>, out: &Arc<Stream>) {
    let Some((operation, Routed::Upstream(seat, own))) = pump.admit(caller, params, out) else { return };
    let (pump, caller) = (Arc::clone(pump), Arc::clone(caller));
    let wanted = params.method() == "resources/subscribe";
    tokio::spawn(async move {
        let public = operation.target.clone().unwrap_or_default();
        let own = own.as_deref().unwrap_or(&public);
        let done = if wanted {
            pump.subscribe(&caller, &seat, own, &public, caller.hello()).await
        } else {
            caller.unsubscribe(&public);
            pump.unsubscribe(&caller, &seat, own);
            Message::read(rpc::result(&operation.request, b"{}")).map_err(|_| unsaid())
        };
        let answer =
            done.map(|message| Answer { message, id: operation.request.clone() }.frame(Splice::default()));
        pump.answer_here(&operation, answer);
    });
}

fn unsaid() -> Refusal {
    Refusal::new(RefusalCode::Internal, "no answer could be made")
}

fn notification(pump: &Pump, caller: &Caller, params: &Params<'_>) {
    let message = params.message();
    match params.method() {
        "notifications/cancelled" => {
            if let Some(open) = params.request_id().and_then(|id| caller.find(&id)) {
                open.cancel();
            }
        }
        "notifications/roots/list_changed" => {
            for session in pump.own_sessions(caller) {
                if let Err(refusal) = session.notify(message.frame().clone()) {
                    tracing::debug!(upstream = session.upstream(), %refusal, "roots change not passed on");
                }
            }
        }
        // Progress of the client on a server's question: the token is the server's own.
        "notifications/progress" => {
            for session in caller.asking() {
                if let Err(refusal) = session.notify(message.frame().clone()) {
                    tracing::debug!(upstream = session.upstream(), %refusal, "progress not passed on");
                }
            }
        }
        // `notifications/initialized` needs nothing: sessions are opened on first use. What we do not know is
        // addressed to nobody.
        _ => {}
    }
}

fn answer(pump: &Arc<Pump>, caller: &Arc<Caller>, message: &Message) {
    let question = message.id().and_then(|id: &Id| caller.asked(id));
    let Some(question) = question else {
        tracing::debug!(participant = %caller.participant().id, "an answer that nobody asked for");
        return;
    };
    if !pump.answered(caller.link(), question.ask, message.shape()) {
        return;
    }
    let spelled = question.task.as_ref().and_then(|task| Pump::task_answer(task, message));
    if let Err(refusal) = question.session.answer(question.id, spelled.as_ref().unwrap_or(message)) {
        tracing::debug!(upstream = question.session.upstream(), %refusal, "an answer came too late");
    }
}
