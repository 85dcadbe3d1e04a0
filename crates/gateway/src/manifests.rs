//! Lists of a topic: pages of the merged lists for one caller (MCP, "Pagination"), and the mirrored arguments of a tool.
//!
//! What a caller sees of the servers' manifests is the crate `lists`; here they are gathered. No list starts a server or waits for one:
//! lists are what servers listed last.

mod announcements;

use std::{sync::Arc, sync::atomic::Ordering};

use access::config::ToolsList;
use lists::{Manifests, PageRequest, Seen};
use model::{Coding, Form, ListKind, ParticipantId, Refusal, RefusalCode};
use topic::{ListSnapshot, Target};
use upstream::Manifest;
use wire::mcp::{header::HeaderParam, relay, task, task::TaskListing};

use crate::{call::Call, delivery, dispatch::Dispatch, link::Link, live::ConfiguredServer};

pub(crate) use announcements::{Announcement, Announcements};

/// Answers a list request with one page; while the gateway itself starts, after a bounded wait for its servers.
pub(crate) fn answer(dispatch: &Arc<Dispatch>, call: &Arc<Call>, list: ListKind) {
    if dispatch.settled.load(Ordering::Acquire) {
        return delivery::finish(dispatch, call, page(dispatch, call, list, &known(dispatch, call)));
    }
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    tokio::spawn(async move {
        dispatch.wait_for_servers().await;
        if !call.is_over() {
            delivery::finish(&dispatch, &call, page(&dispatch, &call, list, &known(&dispatch, &call)));
        }
    });
}

/// What the caller of a built-in tool sees.
///
/// # Errors
/// The refusal of a caller that has left.
pub(crate) async fn seen(dispatch: &Dispatch, call: &Arc<Call>) -> Result<Seen, Refusal> {
    dispatch.wait_for_servers().await;
    let manifests = known(dispatch, call);
    Ok(Seen::new(snapshot(dispatch, call)?, manifests, task::shown(call.client().version)))
}

/// The manifests that a caller is listed from now.
fn known(dispatch: &Dispatch, call: &Arc<Call>) -> Manifests {
    let mut all = vec![(ParticipantId::gateway(), dispatch.own_manifest())];
    all.extend(dispatch.servers().iter().map(|server| (server.id.clone(), at_hand(server, call))));
    all
}

/// What a server lists to a caller now: what its own session there lists, else what the server listed last to all.
fn at_hand(server: &Arc<ConfiguredServer>, call: &Arc<Call>) -> Arc<Manifest> {
    let caller = call.link.caller(call.client.as_ref());
    if let Some(callers) = &server.callers {
        if !callers.is_connected(caller.participant) {
            return callers.shown();
        }
        open_for(server, call);
        return server.manifest_for(caller.participant, call.link.form);
    }
    match server.upstream.own_session(&caller) {
        Some(own) => own.manifest(),
        None => server.upstream.manifest_in(call.link.form),
    }
}

/// Opens a session for a caller with an account of its own, from which it is listed afterwards: nothing there is shared, and no process
/// is started for it.
fn open_for(server: &Arc<ConfiguredServer>, call: &Arc<Call>) {
    let caller = call.link.caller(call.client.as_ref());
    if server.upstream.own_session(&caller).is_some() {
        return;
    }
    let (server, call) = (Arc::clone(server), Arc::clone(call));
    tokio::spawn(async move {
        let opened = server.upstream.session(&call.link.caller(call.client.as_ref())).await;
        tracing::debug!(server = %server.id, opens = opened.is_ok(), "opened for the lists of a caller with an account");
    });
}

/// One page, as a result's body.
fn page(dispatch: &Dispatch, call: &Call, list: ListKind, manifests: &Manifests) -> Result<Vec<u8>, Refusal> {
    let snapshot = snapshot(dispatch, call)?;
    let asked = PageRequest {
        participant: &call.link.participant.id,
        list,
        form: call.request.payload.form,
        tasks: if list == ListKind::Tools {
            task::shown(call.client().version)
        } else {
            TaskListing::AsWritten
        },
        only: if list == ListKind::Tools { dispatch.tools_list() } else { ToolsList::Full },
        cursor: relay::param_text(&call.request, "cursor"),
    };
    asked.page(&dispatch.context.sealer, &dispatch.pages, snapshot, manifests)
}

fn snapshot(dispatch: &Dispatch, call: &Call) -> Result<ListSnapshot, Refusal> {
    dispatch
        .with(|topic| topic.list_snapshot(call.link.id, call.narrowing.as_ref()))
        .ok_or_else(|| Refusal::new(RefusalCode::UnknownTarget, "the session has ended"))
}

/// The arguments that a modern call of a tool mirrors in HTTP headers, by the tool's schema (2026-07-28, "x-mcp-header"). `tool`
/// is the public name.
pub fn mirrored_params(dispatch: &Dispatch, link: &Link, tool: &str) -> Vec<HeaderParam> {
    let Some((server, own)) = dispatch.route(link.id, Target::Tool(tool)) else { return Vec::new() };
    server.manifest_for(&link.participant.id, Form::Modern).annotations.get(&own).cloned().unwrap_or_default()
}

/// How the server of a target spells payloads: what is protobuf already passes to it as it is.
pub fn coding_of(dispatch: &Dispatch, link: &Link, target: &model::Target) -> Coding {
    let target = match target {
        model::Target::Tool(name) => Target::Tool(name),
        model::Target::Uri(uri) => Target::Uri(uri),
        model::Target::Prompt(_) | model::Target::Task(_) => return Coding::Json,
    };
    let route = dispatch.route(link.id, target);
    route.map_or(Coding::Json, |(server, _)| server.manifest_for(&link.participant.id, Form::Legacy).coding)
}
