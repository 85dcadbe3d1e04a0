//! Requests that the gateway itself answers: for its own participant (ping, lists, log level,
//! tasks, built-in tools), and in rooms for servers.

mod arguments;
mod held_tasks;
mod messages;
mod participants;
mod plans;
mod proxy;
mod reviews;
mod safe_text;
mod search;
mod tools;

use std::sync::Arc;

use model::method::CALL_TOOL;
use model::{Form, ListKind, MethodFacts, Refusal};
use upstream::Manifest;
use wire::mcp::list::{Hints, render};
use wire::mcp::method;

use crate::delivery::{self, spawn, unknown_method};
use crate::{call::Call, dispatch::Dispatch, handshake, incoming::Names};
use crate::{listen, live::ConfiguredServer, manifests, results, tasks::list as task_list};
pub(crate) use proxy::{is_proxy, unwrap};
pub use tools::manifest;

/// Serves a call that the topic has delivered to the gateway's own participant.
pub(crate) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    match call.names {
        Names::Public => serve_client(dispatch, call),
        Names::Own => serve_room(dispatch, call),
    }
}

/// Serves a request of an MCP client.
fn serve_client(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let name = call.request.method.as_str();
    let form = call.request.payload.form;
    let Some(known) = method::lookup(name).filter(|known| known.is_in(form)) else {
        return delivery::fail(dispatch, call, unknown_method(name));
    };
    if let Some(list) = known.list {
        return manifests::answer(dispatch, call, list);
    }
    match known.name {
        "ping" => delivery::answer_body(dispatch, call, b"{}".to_vec()),
        "server/discover" => spawn(dispatch, call, discover),
        "logging/setLevel" => spawn(dispatch, call, pass_level),
        "subscriptions/listen" => listen::serve(dispatch, call),
        "tools/call" => tools::call(dispatch, call),
        "resources/read" => delivery::finish(dispatch, call, results::read(dispatch, call)),
        "tasks/list" => spawn(dispatch, call, task_list::page),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => {
            held_tasks::serve(dispatch, call)
        }
        _ => delivery::fail(dispatch, call, unknown_method(name)),
    }
}

/// Serves a request that names the gateway's own participant in the room. Its tools are there
/// whatever lists show.
fn serve_room(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let body = match call.request.method.as_str() {
        "tools/call" if !tools::is_in_room(dispatch, call) => Err(tools::unknown()),
        "tools/call" => return tools::call(dispatch, call),
        "tools/list" => Ok(tools::list_in_room(dispatch, call)),
        "resources/read" if results::is_own(dispatch, &call.link.participant.id, &call.request) => {
            results::read(dispatch, call)
        }
        _ => for_server(model::GATEWAY, &Manifest::default(), call, &|_| true),
    };
    delivery::finish(dispatch, call, body);
}

/// Answers a call of a room for its server, unless the server must carry it out; true if it was
/// answered. An approved proposal is carried out by the server, but for what no room has.
pub(crate) fn answer_hosted(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    server: &ConfiguredServer,
) -> bool {
    let approved = call
        .delivered
        .get()
        .is_some_and(|delivered| delivered.proposal.is_some());
    let facts = call.request.method.facts();
    // A room has no addressee for what a subscription brings.
    let approved = approved && !facts.is_of_subscription;
    if approved || facts.is_for_rooms {
        return false;
    }
    let manifest = server.manifest_for(&call.link.participant.id, Form::ENVELOPE);
    let offers = |own: &str| dispatch.with(|topic| topic.offers(&server.id, CALL_TOOL.name, own));
    delivery::finish(
        dispatch,
        call,
        for_server(server.id.as_str(), &manifest, call, &offers),
    );
    true
}

/// The gateway's answer in the room for a server: handshake, ping, lists, with the tools that the
/// topic offers.
///
/// # Errors
/// The refusal of a method that rooms do not have.
fn for_server(
    server: &str,
    manifest: &Manifest,
    call: &Call,
    offers: &dyn Fn(&str) -> bool,
) -> Result<Vec<u8>, Refusal> {
    let asked =
        json::at(call.request.payload.body_bytes(), &["protocolVersion"]).and_then(json::text);
    answer_for(
        server,
        manifest,
        call.request.method.as_str(),
        &asked.unwrap_or_default(),
        offers,
    )
}

fn answer_for(
    server: &str,
    manifest: &Manifest,
    name: &str,
    revision: &str,
    offers: &dyn Fn(&str) -> bool,
) -> Result<Vec<u8>, Refusal> {
    match (name, method::lookup(name).and_then(|known| known.list)) {
        ("initialize", _) => Ok(lists::handshake::of_server(
            server,
            &manifest.capabilities,
            revision,
        )),
        ("ping", _) => Ok(b"{}".to_vec()),
        (_, Some(list)) => {
            let items = manifest.list(list).items.iter();
            let items = items.filter(|item| list != ListKind::Tools || offers(&item.key));
            let items = items.map(|item| (item, None));
            Ok(render(list, items, None, &[], Hints::Legacy))
        }
        (_, None) => Err(not_in_room(name)),
    }
}

async fn discover(dispatch: Arc<Dispatch>, _: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    dispatch.wait_for_servers().await;
    Ok(handshake::discover(&dispatch))
}

/// Passes the caller's log level on to the sessions that it uses. The topic has noted the level,
/// and no server can make this fail.
async fn pass_level(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    let caller = call.caller();
    for server in dispatch.servers() {
        if let Some(session) = server.upstream.open_session(&caller) {
            dispatch.pass_level(&session, call.link.id).await;
        }
    }
    Ok(b"{}".to_vec())
}

/// The refusal of a method that no server carries out for the room.
fn not_in_room(method: &str) -> Refusal {
    let refusal = unknown_method(method);
    if MethodFacts::of(method).is_of_subscription {
        refusal.hint(
            "a room has no notifications of resources: read the resource again with resources/read, or subscribe over MCP",
        )
    } else {
        refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_carry_out_calls_and_the_gateway_answers_the_rest() {
        let manifest = upstream::Manifest::default();
        for (method, expected) in [
            ("initialize", Some("protocolVersion")),
            ("ping", Some("{}")),
            ("tools/list", Some("tools")),
            ("resources/templates/list", Some("resourceTemplates")),
            ("resources/subscribe", None),
            ("tasks/get", None),
            ("no/such", None),
        ] {
            assert!(!MethodFacts::of(method).is_for_rooms, "{method}");
            let body = answer_for("one", &manifest, method, "", &|_| true)
                .ok()
                .map(|body| String::from_utf8(body).unwrap());
            assert_eq!(body.is_some(), expected.is_some(), "{method}");
            assert!(
                body.unwrap_or_default()
                    .contains(expected.unwrap_or_default()),
                "{method}"
            );
        }
        assert!(
            ["tools/call", "completion/complete"]
                .iter()
                .all(|method| MethodFacts::of(method).is_for_rooms)
        );
    }
}
