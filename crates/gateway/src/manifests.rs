//! Lists of a topic: pages of the merged lists for one caller (MCP, "Pagination"), and the mirrored arguments of a tool.
//!
//! What a caller sees of the servers' manifests is the crate `lists`; here they are gathered, and sessions opened for them.

mod announcements;

use std::{sync::Arc, sync::atomic::Ordering};

use access::config::ToolsList;
use lists::{Manifests, PageRequest, Seen};
use model::{Coding, Form, ListKind, ParticipantId, Refusal, RefusalCode};
use tokio::{task::JoinSet, time::timeout};
use topic::{ListSnapshot, Target};
use upstream::Manifest;
use wire::mcp::{header::HeaderParam, relay, task, task::TaskListing};

use crate::{call::Call, delivery, dispatch::Dispatch, link::Link, live::ConfiguredServer};

pub(crate) use announcements::{Announcement, Announcements};

/// Answers a list request with one page. If servers are starting, or sessions of the caller's own must be opened to know what they
/// list, the page is rendered after a bounded wait.
pub(crate) fn answer(dispatch: &Arc<Dispatch>, call: &Arc<Call>, list: ListKind) {
    if dispatch.settled.load(Ordering::Acquire)
        && let Some(manifests) = known(dispatch, call)
    {
        return delivery::finish(dispatch, call, page(dispatch, call, list, &manifests));
    }
    let (dispatch, call) = (Arc::clone(dispatch), Arc::clone(call));
    tokio::spawn(async move {
        let manifests = after_wait(&dispatch, &call).await;
        if !call.is_over() {
            delivery::finish(&dispatch, &call, page(&dispatch, &call, list, &manifests));
        }
    });
}

/// What the caller of a built-in tool sees.
///
/// # Errors
/// The refusal of a caller that has left.
pub(crate) async fn seen(dispatch: &Dispatch, call: &Arc<Call>) -> Result<Seen, Refusal> {
    let at_hand = match dispatch.settled.load(Ordering::Acquire) {
        true => known(dispatch, call),
        false => None,
    };
    let manifests = match at_hand {
        Some(manifests) => manifests,
        None => after_wait(dispatch, call).await,
    };
    Ok(Seen::new(snapshot(dispatch, call)?, manifests, task::shown(call.client().version)))
}

/// The manifests, after a bounded wait for servers that are starting and for sessions that must be opened.
async fn after_wait(dispatch: &Dispatch, call: &Arc<Call>) -> Manifests {
    dispatch.wait_for_servers().await;
    opened(dispatch, call).await
}

/// The manifests, if no session must be opened for them.
fn known(dispatch: &Dispatch, call: &Call) -> Option<Manifests> {
    let mut all = own(dispatch);
    for server in dispatch.servers() {
        all.push((server.id.clone(), at_hand(&server, call)?));
    }
    Some(all)
}

/// The manifests, after sessions were opened that are the caller's own, or the first in its form. Of a server that is down or
/// slow they are the last that it had: a call then says what is wrong.
async fn opened(dispatch: &Dispatch, call: &Arc<Call>) -> Manifests {
    let (mut all, mut opening) = (own(dispatch), JoinSet::new());
    for server in dispatch.servers() {
        let known = at_hand(&server, call);
        if known.is_none() {
            let (call, server, at) = (Arc::clone(call), Arc::clone(&server), all.len());
            let within = dispatch.settings.topic.list_wait;
            opening.spawn(async move {
                let caller = call.link.caller(call.client.as_ref());
                let session = timeout(within, server.upstream.session(&caller)).await.ok()?.ok()?;
                Some((at, session.manifest()))
            });
        }
        let manifest =
            known.unwrap_or_else(|| server.manifest_for(&call.link.participant.id, call.link.form));
        all.push((server.id.clone(), manifest));
    }
    while let Some(opened) = opening.join_next().await {
        if let Ok(Some((at, manifest))) = opened
            && let Some((_, place)) = all.get_mut(at)
        {
            *place = manifest;
        }
    }
    all
}

fn own(dispatch: &Dispatch) -> Manifests {
    vec![(ParticipantId::gateway(), dispatch.own_manifest())]
}

/// The manifest of a server without opening a session; `None` if one must be opened for it.
fn at_hand(server: &ConfiguredServer, call: &Call) -> Option<Arc<Manifest>> {
    let (form, upstream) = (call.link.form, &server.upstream);
    let caller = call.link.caller(call.client.as_ref());
    if let Some(callers) = &server.callers
        && !callers.is_connected(caller.participant)
    {
        return Some(callers.shown());
    }
    if upstream.is_owned(&caller) {
        match (form, upstream.open_session(&caller)) {
            (_, Some(session)) => return Some(session.manifest()),
            (Form::Legacy, None) => return None,
            // Nothing is shared where each caller has an account of its own.
            (Form::Modern, None) if upstream.has_callers_accounts() => return None,
            // A modern caller is listed what the shared session lists, until it has one of its own.
            (Form::Modern, None) => {}
        }
    }
    (!upstream.could_open(form)).then(|| upstream.manifest_in(form))
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
