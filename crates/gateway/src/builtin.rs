//! Requests that the gateway's own participant serves: ping, lists, log level, tasks, built-in tools.

mod answer;
mod arguments;
mod definitions;
mod held_tasks;
mod messages;
mod participants;
mod reviews;
mod safe_text;
mod tools;

use std::sync::Arc;

use model::Refusal;
use upstream::Manifest;
use wire::mcp::list::{Hints, render};
use wire::mcp::method;

use crate::call::{Call, Names};
use crate::delivery;
use crate::dispatch::Dispatch;
use crate::tasks::list as task_list;
use crate::{handshake, listen, lists};
use answer::spawn;
pub(crate) use answer::unknown_method;
pub(crate) use definitions::manifest;

/// Serves a call that the topic has delivered to the gateway's own participant.
pub(crate) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    match call.names {
        Names::Public => serve_client(dispatch, call),
        Names::Own => serve_room(dispatch, call),
    }
}

/// Serves a request of an MCP client.
fn serve_client(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let (name, form) = (call.request.method.as_str(), call.request.payload.form);
    let Some(known) = method::lookup(name).filter(|known| known.is_in(form)) else {
        return delivery::fail(dispatch, call, unknown_method(name));
    };
    if let Some(list) = known.list {
        return lists::answer(dispatch, call, list);
    }
    match known.name {
        "ping" => delivery::answer_body(dispatch, call, b"{}".to_vec()),
        "server/discover" => spawn(dispatch, call, discover),
        "logging/setLevel" => spawn(dispatch, call, pass_level),
        "subscriptions/listen" => listen::serve(dispatch, call),
        "tools/call" => tools::call(dispatch, call),
        "tasks/list" => spawn(dispatch, call, task_list::page),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => held_tasks::serve(dispatch, call),
        _ => delivery::fail(dispatch, call, unknown_method(name)),
    }
}

/// Serves a request that names the gateway's own participant in the room. Its tools are there whatever lists show.
fn serve_room(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let body = match call.request.method.as_str() {
        "tools/call" if !tools::is_in_room(dispatch, call) => Err(tools::unknown()),
        "tools/call" => return tools::call(dispatch, call),
        "tools/list" => Ok(tools::list_in_room(dispatch, &call.link.participant.id)),
        name => for_server(model::GATEWAY, &Manifest::default(), name),
    };
    delivery::finish(dispatch, call, body);
}

/// What the gateway answers in the room for a server: handshake, ping, lists.
///
/// # Errors
/// The refusal of a method that rooms do not have.
pub(crate) fn for_server(server: &str, manifest: &Manifest, name: &str) -> Result<Vec<u8>, Refusal> {
    match (name, method::lookup(name).and_then(|known| known.list)) {
        ("initialize", _) => Ok(handshake::of_server(server, &manifest.capabilities)),
        ("ping", _) => Ok(b"{}".to_vec()),
        (_, Some(list)) => {
            let items = manifest.list(list).items.iter().map(|item| (item, None));
            Ok(render(list, items, None, &[], Hints::Legacy))
        }
        (_, None) => Err(not_in_room(name)),
    }
}

async fn discover(dispatch: Arc<Dispatch>, _: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    dispatch.wait_for_servers().await;
    Ok(handshake::discover(&dispatch))
}

/// Passes the caller's log level on to the sessions that it uses. The topic has noted the level, and no server can make this
/// fail.
async fn pass_level(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    let caller = call.link.caller(call.client.as_ref());
    for server in dispatch.servers() {
        if let Some(session) = server.upstream.open_session(&caller) {
            dispatch.pass_level(&session).await;
        }
    }
    Ok(b"{}".to_vec())
}

/// The refusal of a method that no server carries out for the room.
fn not_in_room(method: &str) -> Refusal {
    let refusal = unknown_method(method);
    match method {
        "resources/subscribe" | "resources/unsubscribe" => refusal.hint(
            "a room has no notifications of resources: read the resource again with resources/read, or subscribe over MCP",
        ),
        _ => refusal,
    }
}
