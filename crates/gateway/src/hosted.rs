//! Those whom the gateway plays in a topic's room: every upstream, and itself. They are receivers like all others: they read
//! what is addressed to them, hold it strictly to its kind (MCPx v0.1, section 4.3), and answer.
//!
//! Owns what such a participant does with an envelope. It executes requests that name it, and nothing else. Must not know
//! sockets, nor what the topic admits.

mod reply;

use std::sync::Arc;

use model::{Era, ParticipantId};
use wire::mcp::list::{Hints, render};
use wire::mcp::{ListKind, Params, Version, method};
use wire::mcpx::Envelope;
use wire::mcpx::check::{Act, Call, Mismatch, strict};
use wire::rpc::{Message, code};

use crate::caller::Caller;
use crate::pump::{Pump, Seat};
use crate::stream::{Lifetime, Stream};
use reply::Reply;

/// What the head of a request's kind is.
const REQUEST: &str = "mcp/request:";
/// What a hosted server carries out for the room. Anything else it does not know.
const CARRIED_OUT: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// Takes an envelope that was said in the room: whoever of ours it names acts on it.
pub(crate) fn receive(pump: &Arc<Pump>, caller: &Arc<Caller>, envelope: &Envelope) {
    if !envelope.kind().starts_with(REQUEST) || envelope.is_broadcast() {
        return;
    }
    let seats = pump.seats();
    let mut named: Vec<&Seat> = Vec::new();
    for to in envelope.to() {
        let seat = seats.iter().find(|seat| seat.id.as_str() == to);
        named.extend(seat.filter(|seat| !named.iter().any(|other| other.id == seat.id)));
    }
    let own = envelope.to().any(|to| to == model::GATEWAY);
    if (named.is_empty() && !own) || pump.repeats().is_repeat(caller.link(), envelope.id()) {
        return;
    }
    let act = strict(envelope.kind(), envelope.payload_bytes());
    for seat in named {
        act_on(pump, caller, envelope, Host::Server(seat), &act);
    }
    if own {
        act_on(pump, caller, envelope, Host::Gateway, &act);
    }
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
    let reply = Reply::new(pump, id, link, caller, envelope);
    match act {
        Ok(Act::Request(call)) => carry_out(pump, caller, host, call, reply),
        Ok(Act::Proposal(_) | Act::Answer(_) | Act::Other) => {}
        Err(mismatch) => {
            tracing::info!(
                participant = %caller.participant().id, kind = envelope.kind(), %mismatch,
                "a kind and its payload differ: nothing was done"
            );
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
            let out = Stream::new(0, Lifetime::Reader, 1, caller.bounds());
            let reader = out.read(None);
            pump.execute(caller, seat, message, &out);
            if let Some(reader) = reader {
                reply.follow(reader);
            }
        }
        (name, host) => match method::lookup(name).and_then(|known| known.list) {
            Some(kind) => reply.result(message, &list(host, kind)),
            None => reply.error(message.id(), code::METHOD_NOT_FOUND, &format!("method not found: {name}")),
        },
    }
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
    let capabilities =
        if wire::json::is_object(&capabilities) { capabilities } else { "{\"tools\":{}}".into() };
    [
        b"{\"protocolVersion\":\"".as_slice(),
        Version::NEWEST_LEGACY.as_str().as_bytes(),
        b"\",\"capabilities\":",
        &capabilities,
        b",\"serverInfo\":{\"name\":",
        wire::json::quote(&name).as_bytes(),
        b",\"version\":\"",
        env!("CARGO_PKG_VERSION").as_bytes(),
        b"\"}}",
    ]
    .concat()
}
