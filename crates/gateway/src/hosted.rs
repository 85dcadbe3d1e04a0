//! Those whom the gateway plays in a topic's room: every upstream, and itself. They are receivers like all others: they read
//! what is addressed to them, hold it strictly to its kind (MCPx v0.1, section 4.3), and answer.
//!
//! Owns what such a participant does with an envelope. It executes requests that name it, and nothing else. Must not know
//! sockets, nor what the topic admits.

mod reply;

use std::sync::Arc;

use json::quote;
use model::{Era, OperationId, ParticipantId};
use topic::BuiltinTool;
use wire::mcp::list::{Hints, render};
use wire::mcp::{ListKind, Params, Version, method};
use wire::mcpx::Envelope;
use wire::mcpx::check::{Act, Call, Mismatch, strict};
use wire::rpc::{Message, code};

use crate::caller::Caller;
use crate::own::tools;
use crate::pump::{Claim, Pump, Seat};
use crate::stream::{Lifetime, Stream};
pub(crate) use reply::Reply;

/// What the head of a request's kind is.
const REQUEST: &str = "mcp/request:";
/// A proposal's.
const PROPOSAL: &str = "mcp/proposal:";
/// A response's.
const RESPONSE: &str = "mcp/response:";
/// What a hosted server carries out for the room. Anything else it does not know.
const CARRIED_OUT: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// Takes an envelope that was said in the room: whoever of ours it names acts on it.
pub(crate) fn receive(pump: &Arc<Pump>, caller: &Arc<Caller>, envelope: &Envelope, claim: Option<Claim>) {
    let kind = envelope.kind();
    if kind.starts_with(REQUEST) {
        pump.note_asked(caller, envelope);
        requested(pump, caller, envelope, claim);
    } else if kind.starts_with(PROPOSAL) {
        proposed(pump, caller, envelope);
    } else if kind.starts_with(RESPONSE) {
        pump.note_answer(caller, envelope);
        pump.answered_in_room(caller, envelope);
    }
}

/// The gateway's own participant keeps track of every proposal that is one.
fn proposed(pump: &Arc<Pump>, caller: &Arc<Caller>, envelope: &Envelope) {
    match strict(envelope.kind(), envelope.payload_bytes()) {
        Ok(Act::Proposal(call)) => pump.proposed(caller, envelope, &call),
        Ok(Act::Request(_) | Act::Answer(_) | Act::Other) => {}
        Err(mismatch) => {
            misbehaved(pump, caller, envelope, model::GATEWAY, &mismatch);
            pump.not_proposed(caller, envelope, &format!("kind and payload differ: {mismatch}"));
        }
    }
}

fn misbehaved(pump: &Pump, caller: &Caller, envelope: &Envelope, host: &str, mismatch: &Mismatch) {
    pump.record_ignored(caller, envelope, &[host], &format!("mismatch: {mismatch}"));
    tracing::info!(
        participant = %caller.participant().id, kind = envelope.kind(), %mismatch,
        "a kind and its payload differ: nothing was done"
    );
}

fn requested(pump: &Arc<Pump>, caller: &Arc<Caller>, envelope: &Envelope, claim: Option<Claim>) {
    let fulfils = envelope.correlation_id().and_then(|id| pump.proposal_of(id));
    if let Some(proposal) = fulfils {
        return fulfilled(pump, caller, envelope, proposal, claim);
    }
    if envelope.is_broadcast() {
        return;
    }
    // Who serves by itself hears it in the room.
    let named = named(pump, envelope, false);
    let own = envelope.to().any(|to| to == model::GATEWAY);
    if (named.is_empty() && !own) || is_repeat(pump, caller, envelope) {
        return;
    }
    let act = strict(envelope.kind(), envelope.payload_bytes());
    for seat in &named {
        act_on(pump, caller, envelope, Host::Server(seat), &act);
    }
    if own {
        act_on(pump, caller, envelope, Host::Gateway, &act);
    }
}

/// Whether this was acted on before; it is not acted on again.
fn is_repeat(pump: &Pump, caller: &Caller, envelope: &Envelope) -> bool {
    let repeats = pump.repeats().is_repeat(&caller.participant().id, envelope.id());
    if repeats {
        let why = format!("repeat: {} was acted on before", quote(envelope.id()));
        pump.record_ignored(caller, envelope, &envelope.to().collect::<Vec<_>>(), &why);
    }
    repeats
}

/// The servers that an envelope names, each once.
fn named(pump: &Pump, envelope: &Envelope, serving: bool) -> Vec<Seat> {
    let seats = pump.seats();
    let is_named =
        |seat: &&Seat| (serving || seat.served.is_none()) && envelope.to().any(|to| to == seat.id.as_str());
    seats.iter().filter(is_named).cloned().collect()
}

/// A request that fulfils a proposal (MCPx v0.1, 3.2.1): an approval, written down before anything is carried out, and
/// carried out by hosted servers once. What the proposer says is none.
fn fulfilled(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    envelope: &Envelope,
    proposal: OperationId,
    claim: Option<Claim>,
) {
    if is_repeat(pump, caller, envelope) {
        return;
    }
    // A call that was held for one who serves by itself is not shown to it: it is asked by the gateway.
    let held = pump.case(proposal, |case| case.opened.held) == Some(true);
    let named = named(pump, envelope, held);
    let act = strict(envelope.kind(), envelope.payload_bytes());
    let Ok(Act::Request(call)) = act else {
        named.iter().for_each(|seat| act_on(pump, caller, envelope, Host::Server(seat), &act));
        return;
    };
    let own = pump.is_proposer(proposal, caller.participant().id.as_str());
    if own {
        // It may be entitled to this anyway; then it is a request like any other, and no approval.
        let act = Ok(Act::Request(call));
        named.iter().for_each(|seat| act_on(pump, caller, envelope, Host::Server(seat), &act));
        return;
    }
    let replies: Vec<(Seat, Reply)> = named
        .into_iter()
        .map(|seat| {
            let mut reply = Reply::new(pump, seat.id.clone(), seat.link, caller, envelope);
            reply.about(&call);
            (seat, reply)
        })
        .collect();
    let approval = pump.approve_by(caller, envelope, &call, proposal);
    let (pump, caller, envelope) = (Arc::clone(pump), Arc::clone(caller), envelope.clone());
    tokio::spawn(async move {
        let approved = approval.decided().await;
        if let (Ok(_), Some(claim)) = (&approved, claim) {
            claim.counts();
        }
        if let (Err(refusal), true) = (&approved, replies.is_empty()) {
            // Nobody of ours is named who could say so.
            pump.tell_refused(&caller, &envelope, refusal);
        }
        for (seat, mut reply) in replies {
            match &approved {
                Ok(Some(proposer)) => {
                    reply.also(proposer);
                    execute(&pump, &caller, &seat, call.message(), Some(proposal), reply);
                }
                // The call that is held behind it is carried out, and its answer is told to both.
                Ok(None) => {}
                Err(refusal) => reply.error(call.message().id(), code::INVALID_REQUEST, &refusal.to_string()),
            }
        }
    });
}

/// Who of ours is named.
#[derive(Clone, Copy)]
enum Host<'s> {
    Server(&'s Seat),
    Gateway,
}

fn act_on(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    envelope: &Envelope,
    host: Host<'_>,
    act: &Result<Act, Mismatch>,
) {
    let (id, link) = match host {
        Host::Server(seat) => (seat.id.clone(), seat.link),
        Host::Gateway => (ParticipantId::gateway(), pump.own_link()),
    };
    let host_id = id.to_string();
    let reply = Reply::new(pump, id, link, caller, envelope);
    match act {
        Ok(Act::Request(call)) => carry_out(pump, caller, host, call, reply),
        Ok(Act::Proposal(_) | Act::Answer(_) | Act::Other) => {}
        Err(mismatch) => {
            misbehaved(pump, caller, envelope, &host_id, mismatch);
            reply.error(None, code::INVALID_REQUEST, &format!("kind and payload differ: {mismatch}"));
        }
    }
}

fn carry_out(pump: &Arc<Pump>, caller: &Arc<Caller>, host: Host<'_>, call: &Call, mut reply: Reply) {
    reply.about(call);
    let message = call.message();
    if call.is_notification() {
        return notified(caller, message);
    }
    match (call.method(), host) {
        ("initialize", _) => reply.result(message, &greeting(host)),
        ("ping", _) => reply.result(message, b"{}"),
        (name, Host::Server(seat)) if CARRIED_OUT.contains(&name) => {
            execute(pump, caller, seat, message, None, reply);
        }
        ("tools/call", Host::Gateway) => own_tool(pump, caller, call, reply),
        ("tools/list", Host::Gateway) => reply.result(message, &tools::in_room(pump, caller)),
        (name, host) => match method::lookup(name).and_then(|known| known.list) {
            Some(kind) => reply.result(message, &list(host, kind)),
            None => reply.error(message.id(), code::METHOD_NOT_FOUND, &not_here(name)),
        },
    }
}

/// What nobody of ours carries out for the room.
fn not_here(method: &str) -> String {
    match method {
        // Updates are told to one session, and a room has none.
        "resources/subscribe" | "resources/unsubscribe" => format!(
            "method not found: {method}: nobody in a room is told of updates; read the resource again with \
             resources/read, or subscribe to it over MCP"
        ),
        method => format!("method not found: {method}"),
    }
}

/// The gateway's own participant does what a tool of its own does.
fn own_tool(pump: &Arc<Pump>, caller: &Arc<Caller>, call: &Call, mut reply: Reply) {
    // It tells what others may not see.
    reply.only_to(caller.link());
    let tool = call.target().and_then(BuiltinTool::of);
    let message = call.message().clone();
    if !tool.is_some_and(|tool| tools::is_for(pump, caller, tool)) {
        return reply.refused(&message, &tools::unknown());
    }
    let (pump, caller) = (Arc::clone(pump), Arc::clone(caller));
    tokio::spawn(async move {
        match tools::call(&pump, &caller, &message).await {
            Ok(frame) => reply.frame(&frame),
            Err(refusal) => reply.refused(&message, &refusal),
        }
    });
}

fn execute(
    pump: &Arc<Pump>,
    caller: &Arc<Caller>,
    seat: &Seat,
    message: &Message,
    proposal: Option<OperationId>,
    reply: Reply,
) {
    let out = Stream::new(0, Lifetime::Reader, 1, caller.bounds());
    let reader = out.read(None);
    pump.execute(caller, seat, message, &out, proposal);
    if let Some(reader) = reader {
        reply.follow(reader);
    }
}

/// A hosted server carries out what was approved.
pub(crate) fn carry_out_proposal(
    pump: &Arc<Pump>,
    runner: &Arc<Caller>,
    seat: &Seat,
    message: &Message,
    proposal: OperationId,
    reply: Reply,
) {
    execute(pump, runner, seat, message, Some(proposal), reply);
}

/// Only who asked may take back what it asked.
fn notified(caller: &Caller, message: &Message) {
    let Ok(params) = Params::read(message) else { return };
    if message.method() == "notifications/cancelled"
        && let Some(open) = params.request_id().and_then(|id| caller.find(&id))
    {
        open.cancel();
    }
}

/// A list of what a host has, under its own names.
fn list(host: Host<'_>, kind: ListKind) -> Vec<u8> {
    let manifest = match host {
        Host::Server(seat) => Some(seat.upstream.manifest_in(Era::Legacy)),
        Host::Gateway => None,
    };
    let items = manifest.iter().flat_map(|manifest| &manifest.list(kind).items).map(|item| (item, None));
    render(kind, items, None, &[], Hints::Legacy)
}

/// What a host says of itself (MCP 2025-11-25, "Initialization").
fn greeting(host: Host<'_>) -> Vec<u8> {
    let (name, capabilities) = match host {
        Host::Server(seat) => {
            (seat.id.as_str().to_owned(), seat.upstream.manifest_in(Era::Legacy).capabilities.clone())
        }
        Host::Gateway => (model::GATEWAY.to_owned(), bytes::Bytes::new()),
    };
    let capabilities = if json::is_object(&capabilities) { capabilities } else { "{\"tools\":{}}".into() };
    [
        b"{\"protocolVersion\":\"".as_slice(),
        Version::NEWEST_LEGACY.as_str().as_bytes(),
        b"\",\"capabilities\":",
        &capabilities,
        b",\"serverInfo\":{\"name\":",
        json::quote(&name).as_bytes(),
        b",\"version\":\"",
        env!("CARGO_PKG_VERSION").as_bytes(),
        b"\"}}",
    ]
    .concat()
}
