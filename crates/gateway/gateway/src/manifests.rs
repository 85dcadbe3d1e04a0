//! Lists of a topic: pages of the merged lists for one caller (MCP, "Pagination"), and the mirrored
//! arguments of a tool.
//!
//! What a caller sees of the servers' manifests is the crate `lists`; here they are gathered. No
//! list starts a server or waits for one: lists are what servers listed last. Only a caller with an
//! account of its own at a server waits for its session there.

use std::sync::Arc;

use lists::{AcceptedNames, Manifests, MergedPage, PageRequest, Reader, Seen};
use model::{Coding, Form, ListKind, ParticipantId, Refusal, RefusalCode};
use tokio::{task::JoinSet, time::timeout};
use topic::section::ToolsList;
use topic::{ListSnapshot, PublicTarget};
use upstream::Manifest;
use wire::mcp::{gateways, header::HeaderParam, relay, task};

use crate::{
    call::Call, delivery, dispatch::Dispatch, handshake, link::Link, live::ConfiguredServer,
};

/// A caller's lists at one moment: its part of what the topic has, and whose lists that is made of.
/// Another configuration takes the place of all of it at once.
struct Listed {
    snapshot: ListSnapshot,
    servers: Vec<Arc<ConfiguredServer>>,
    /// Lists of the gateway's own participant.
    own: Arc<Manifest>,
    /// The part of the tools that lists show.
    tools_list: ToolsList,
}

impl Listed {
    /// The lists of now.
    ///
    /// # Errors
    /// The refusal of a caller that has left.
    fn of(dispatch: &Dispatch, call: &Call) -> Result<Self, Refusal> {
        // Held until the topic was looked at.
        let own_lists = dispatch.own_lists.read();
        let (snapshot, servers) = dispatch.with(|topic| {
            let servers = topic.servers();
            let servers = servers.filter_map(|server| server.handle.upstream().cloned());
            let snapshot = topic.list_snapshot(call.link.id, call.narrowing());
            (snapshot, servers.collect())
        });
        let ended = || Refusal::new(RefusalCode::UnknownTarget, "the session has ended");
        Ok(Self {
            snapshot: snapshot.ok_or_else(ended)?,
            servers,
            own: Arc::clone(&own_lists.manifest),
            tools_list: own_lists.tools_list,
        })
    }

    /// The manifests that its caller is listed from; `None` if the caller's own session at a server
    /// must be opened to know one.
    fn known(&self, call: &Call) -> Option<Manifests> {
        let mut all = vec![(ParticipantId::gateway(), Arc::clone(&self.own))];
        for server in &self.servers {
            all.push((server.id.clone(), at_hand(server, call)?));
        }
        Some(all)
    }

    /// The manifests that its caller is listed from, of servers at which it has no session those
    /// that others see.
    fn last(&self, call: &Call) -> Manifests {
        let mut all = vec![(ParticipantId::gateway(), Arc::clone(&self.own))];
        let others = |server: &ConfiguredServer| {
            server.manifest_for(&call.link.participant.id, call.link.form)
        };
        for server in &self.servers {
            let manifest = at_hand(server, call).unwrap_or_else(|| others(server));
            all.push((server.id.clone(), manifest));
        }
        all
    }
}

/// Answers a list request with one page. It waits only while the gateway itself starts, and where
/// the caller has an account of its own at a server. A caller that is a gateway waits for no start:
/// two gateways that are servers of each other would wait for one another. It is notified of what
/// comes.
pub(crate) fn answer(dispatch: &Arc<Dispatch>, call: &Arc<Call>, list: ListKind) {
    let is_gateway = || gateways::read(call.request.payload.body_bytes()).is_some();
    if (dispatch.starts.have_ended() || is_gateway())
        && let Ok(listed) = Listed::of(dispatch, call)
        && let Some(manifests) = listed.known(call)
    {
        return delivery::finish(
            dispatch,
            call,
            page(dispatch, call, list, listed, &manifests),
        );
    }
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    tokio::spawn(async move {
        let listed = after_wait(&dispatch, &call).await;
        let page =
            listed.and_then(|(listed, manifests)| page(&dispatch, &call, list, listed, &manifests));
        delivery::finish(&dispatch, &call, page);
    });
}

/// Lists that the caller of a built-in tool sees.
///
/// # Errors
/// The refusal of a caller that has left.
pub(crate) async fn seen(dispatch: &Dispatch, call: &Arc<Call>) -> Result<Seen, Refusal> {
    let listed = Listed::of(dispatch, call)?;
    let (listed, manifests) = match listed.known(call) {
        Some(manifests) if dispatch.starts.have_ended() => (listed, manifests),
        _ => after_wait(dispatch, call).await?,
    };
    let tasks = task::shown(call.client().version);
    Ok(Seen::new(
        listed.snapshot,
        manifests,
        tasks,
        promises(dispatch, call),
    ))
}

/// The lists after the bounded waits.
///
/// # Errors
/// The refusal of a caller that has left.
async fn after_wait(dispatch: &Dispatch, call: &Arc<Call>) -> Result<(Listed, Manifests), Refusal> {
    dispatch.wait_for_servers().await;
    let servers = dispatch.servers();
    let mut opening = JoinSet::new();
    for server in servers
        .iter()
        .filter(|server| at_hand(server, call).is_none())
    {
        let call = Arc::clone(call);
        let server = Arc::clone(server);
        let within = dispatch.settings().topic.list_wait;
        opening.spawn(async move {
            let caller = call.caller();
            let _ = timeout(within, server.upstream.session(&caller)).await;
        });
    }
    while opening.join_next().await.is_some() {}
    // Of now: another configuration may have come meanwhile.
    let listed = Listed::of(dispatch, call)?;
    let manifests = listed.last(call);
    Ok((listed, manifests))
}

/// Lists of a server to a caller now: those of its own session there, else those that the server
/// sent last to all. `None` where each caller has an account, and this one has no session yet: only
/// a session in its name says what it is listed.
fn at_hand(server: &ConfiguredServer, call: &Call) -> Option<Arc<Manifest>> {
    let caller = call.caller();
    if let Some(callers) = &server.callers
        && !callers.is_connected(caller.participant)
    {
        return Some(callers.shown());
    }
    match server.upstream.own_session(&caller) {
        Some(own) => Some(own.manifest()),
        None if server.callers.is_some() => None,
        None => Some(server.upstream.manifest_in(call.link.form)),
    }
}

/// One page, as a result's body.
fn page(
    dispatch: &Dispatch,
    call: &Call,
    list: ListKind,
    listed: Listed,
    manifests: &Manifests,
) -> Result<Vec<u8>, Refusal> {
    let asked = PageRequest {
        participant: &call.link.participant.id,
        list,
        form: call.request.payload.form,
        reader: reader(dispatch, call, list),
        only: if list == ListKind::Tools {
            listed.tools_list
        } else {
            ToolsList::Full
        },
        cursor: relay::param_text(&call.request, "cursor"),
        gateways: gateways::read(call.request.payload.body_bytes())
            .map(|_| handshake::gateways(dispatch)),
    };
    let MergedPage {
        body,
        left_out_bytes,
    } = asked.page(
        &dispatch.context.sealer,
        &dispatch.pages,
        listed.snapshot,
        manifests,
    )?;
    dispatch.note_left_out(left_out_bytes);
    Ok(body)
}

/// Reading of a list by a caller's client: only lists of tools differ.
fn reader(dispatch: &Dispatch, call: &Call, list: ListKind) -> Reader {
    let client = call.client();
    match list {
        ListKind::Tools => Reader {
            tasks: task::shown(client.version),
            apps: client.shows_apps(),
            names: AcceptedNames::of(client.client_info.as_deref()),
            outputs: promises(dispatch, call),
        },
        ListKind::Prompts | ListKind::Resources | ListKind::Templates | ListKind::Skills => {
            Reader::PLAIN
        }
    }
}

/// Whether tools promise structured results to the caller: a result that is cut has none.
fn promises(dispatch: &Dispatch, call: &Call) -> bool {
    dispatch.result_limit(&call.link.participant.id).is_none()
}

/// The arguments that a modern call of a tool mirrors in HTTP headers, by the tool's schema
/// (2026-07-28, "x-mcp-header"). `tool` is the public name.
pub fn mirrored_params(dispatch: &Dispatch, link: &Link, tool: &str) -> Vec<HeaderParam> {
    let Some((server, own)) = dispatch.route(link.id, PublicTarget::Tool(tool)) else {
        return Vec::new();
    };
    server
        .manifest_for(&link.participant.id, Form::Modern)
        .mirrored_by_callers(&own)
}

/// Coding in which the server of a target wants payloads: what is protobuf already passes to it as
/// it is, unless arguments of its tool are preset or hidden.
pub fn coding_of(dispatch: &Dispatch, link: &Link, target: &model::Target) -> Coding {
    let target = match target {
        model::Target::Tool(name) => PublicTarget::Tool(name),
        model::Target::Uri(uri) => PublicTarget::Uri(uri),
        model::Target::Prompt(_) | model::Target::Task(_) => return Coding::Json,
    };
    let Some((server, own)) = dispatch.route(link.id, target) else {
        return Coding::Json;
    };
    match target {
        PublicTarget::Tool(_) if server.cuts(&own) => Coding::Json,
        _ => {
            server
                .manifest_for(&link.participant.id, Form::Legacy)
                .coding
        }
    }
}
