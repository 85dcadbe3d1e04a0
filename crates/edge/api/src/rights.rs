//! Rights of a participant, entry by entry, on each wire: `/api/v1/participants/{id}/can`.

use auth::{Participant, Wire};
use axum::Json;
use axum::extract::{Path, State};
use gateway::Dispatch;
use identity::GRANTS;
use model::{
    APPROVE, Capabilities, Capability, KindRef, ListKind, PROPOSAL, ParticipantId, REQUEST,
    Refusal, RefusalCode,
};
use rules::ToolRules;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

use crate::error::{ApiResult, Problem};
use crate::participants::{InTopic, participant_of};
use crate::state::{Api, Caller};

/// What a participant may do in the topics that the caller may enter. Needs `portmoot/grants` for
/// other participants than the caller.
///
/// Over MCP, and for decisions by the API, the command line and tools, a capability is judged under
/// the public name; over WebSocket under the server's own.
#[utoipa::path(
    get,
    path = "/api/v1/participants/{id}/can",
    params(("id" = String, Path), ("topic" = Option<String>, Query)),
    responses((status = 200, body = Rights), (status = "4XX", body = Problem))
)]
pub(crate) async fn can(
    State(api): State<Api>,
    Caller(caller): Caller,
    InTopic(topic): InTopic,
    Path(id): Path<String>,
) -> ApiResult<Json<Rights>> {
    let id = participant_of(&id)?;
    let topics = match &topic {
        Some(topic) => vec![api.registry.enter(topic.as_str(), &caller)?],
        None => api
            .registry
            .sorted_topics(|topic| api.registry.may_enter(&caller, topic)),
    };
    let topics: Vec<Arc<Dispatch>> = topics
        .into_iter()
        .filter(|dispatch| caller.id == id || api.holds(&caller, GRANTS, Some(dispatch.name())))
        .collect();
    // The same refusal for both: it must not tell which participants there are.
    let participant = match api.admin.known(&id) {
        Ok(participant) if !topics.is_empty() => participant,
        Ok(_) | Err(_) => return Err(unknown_participant(&id).into()),
    };
    let mut entries = Vec::new();
    let mut in_topics = Vec::new();
    for dispatch in &topics {
        if !api.registry.may_enter(&participant, dispatch.name()) {
            continue;
        }
        dispatch.wait_for_servers().await;
        let capabilities = api.registry.in_force(&participant, Some(dispatch.name()));
        entries.extend(rights(dispatch, &participant, &capabilities));
        in_topics.push(TopicRights {
            topic: dispatch.name().to_string(),
            capabilities: capabilities.iter().map(shown).collect(),
            shadow: ShadowRights::of(dispatch, &participant.id),
        });
    }
    let mut wires = Vec::new();
    for (name, wire) in Wire::ALL {
        if participant.wires.contains(wire) {
            wires.push(name.to_owned());
        }
    }
    Ok(Json(Rights {
        participant: participant.id.to_string(),
        wires,
        topics: in_topics,
        entries,
    }))
}

fn unknown_participant(id: &ParticipantId) -> Refusal {
    let message = format!("there is no participant `{id}` of whom you may know what it may do");
    Refusal::new(RefusalCode::UnknownTarget, message).hint("list them: portmoot participants ls")
}

/// The rights to each entry that servers list in a topic, in the order of the configuration.
fn rights(dispatch: &Dispatch, who: &Participant, held: &Capabilities) -> Vec<Right> {
    let snapshot =
        dispatch.with(|topic| topic.list_snapshot_of(&who.id, &Arc::new(Capabilities::full())));
    let mut rights = Vec::new();
    for (list, method) in [
        (ListKind::Tools, "tools/call"),
        (ListKind::Prompts, "prompts/get"),
        (ListKind::Resources, "resources/read"),
    ] {
        for listing in snapshot.list(list) {
            let server = listing.upstream;
            // The gateway's own tools need no capability of their own.
            if *server == ParticipantId::gateway() {
                continue;
            }
            // Rules are about the public name over MCP, and about the server's own in the room.
            let ruled = listing.ruled.map_or(&*listing.public, |ruled| &**ruled);
            let over_mcp = if who.wires.mcp || who.wires.proto {
                admitted(held, method, ruled, server)
            } else {
                None
            };
            let in_room = if who.wires.ws {
                admitted(held, method, listing.own, server)
            } else {
                None
            };
            rights.push(Right {
                rules: (list == ListKind::Tools).then(|| rules_of(dispatch, server, listing.own)),
                topic: dispatch.name().to_string(),
                server: server.to_string(),
                method: method.to_owned(),
                name: listing.public.to_string(),
                own: listing.own.to_string(),
                mcp: over_mcp,
                ws: in_room,
            });
        }
    }
    rights
}

/// The operator's setting for rules about a tool, in the word of the configuration.
fn rules_of(dispatch: &Dispatch, server: &ParticipantId, own: &str) -> String {
    let server = dispatch.server(server);
    let curation = server.and_then(|one| one.upstream.spec().config.curation.clone());
    let rules = curation.map_or_else(ToolRules::default, |curation| curation.rules_of(own));
    let word = match rules {
        ToolRules::Never => "never",
        ToolRules::Ask => "ask",
        ToolRules::Allow => "allow",
    };
    word.to_owned()
}

/// Admission of an act, and the capability by which it is admitted.
fn admitted(
    held: &Capabilities,
    method: &str,
    name: &str,
    server: &ParticipantId,
) -> Option<Admitted> {
    for (head, verdict) in [
        (REQUEST, "may"),
        (PROPOSAL, "may propose"),
        (APPROVE, "may approve"),
    ] {
        let kind = format!("{head}:{method}:{name}");
        if let Some(capability) = allowing(held, &kind, server) {
            return Some(Admitted {
                verdict: verdict.to_owned(),
                capability,
            });
        }
    }
    None
}

/// The capability that allows envelopes of this kind to a server.
fn allowing(held: &Capabilities, kind: &str, server: &ParticipantId) -> Option<String> {
    let place = held.position(KindRef::parse(kind).ok()?, &[server.as_str()])?;
    held.get(place).map(shown)
}

/// A capability with the addressees that it is narrowed to.
fn shown(capability: &Capability) -> String {
    match capability.addressees() {
        None => capability.to_string(),
        Some(to) => format!("{capability} to {}", to.collect::<Vec<_>>().join(", ")),
    }
}

/// What a participant may do.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rights {
    /// The participant.
    pub participant: String,
    /// The wires on which it may come in.
    pub wires: Vec<String>,
    /// The topics that it may enter, as far as the caller may know them.
    pub topics: Vec<TopicRights>,
    /// What servers list there, whether it may use it or not.
    pub entries: Vec<Right>,
}

/// The capabilities of a participant in a topic.
#[derive(Serialize, ToSchema)]
pub(crate) struct TopicRights {
    /// The topic.
    pub topic: String,
    /// Its capabilities, in the order in which they are tried.
    pub capabilities: Vec<String>,
    /// Its capabilities in shadow, which decide nothing, if it has any.
    pub shadow: Option<ShadowRights>,
}

/// The capabilities in shadow of a participant in a topic, and what they would have decided otherwise
/// since the gateway runs and has them.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShadowRights {
    /// The capabilities.
    pub capabilities: Vec<String>,
    /// Acts that were looked at: requests for a target, envelopes, and decisions that counted.
    pub acts: u64,
    /// Acts that would have been refused.
    pub refused: u64,
    /// Acts that would have become proposals.
    pub held: u64,
    /// Acts that would have been allowed.
    pub allowed: u64,
    /// All of it, in English.
    pub words: String,
}

impl ShadowRights {
    fn of(dispatch: &Dispatch, participant: &ParticipantId) -> Option<Self> {
        let counts = dispatch.would_counts(participant)?;
        let set = dispatch.shadow_set_of(participant)?;
        Some(Self {
            capabilities: set.iter().map(shown).collect(),
            acts: counts.acts,
            refused: counts.refused,
            held: counts.held,
            allowed: counts.allowed,
            words: counts.words(),
        })
    }
}

/// The right to one tool, prompt or resource.
#[derive(Serialize, ToSchema)]
pub(crate) struct Right {
    /// The topic.
    pub topic: String,
    /// The server.
    pub server: String,
    /// `tools/call`, `prompts/get` or `resources/read`.
    pub method: String,
    /// The public name or URI.
    pub name: String,
    /// The server's own name or URI.
    pub own: String,
    /// Of a tool, the operator's setting for rules about it: with `never` no rule approves its calls;
    /// else `ask` or `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// Over MCP, and for decisions without an envelope; absent if it may not.
    pub mcp: Option<Admitted>,
    /// By an envelope over WebSocket; absent if it may not.
    pub ws: Option<Admitted>,
}

/// An act that is admitted.
#[derive(Serialize, ToSchema)]
pub(crate) struct Admitted {
    /// `may`, `may propose` or `may approve`.
    pub verdict: String,
    /// The capability that says so.
    pub capability: String,
}
