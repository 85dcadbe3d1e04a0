//! Requests at a node that another node answers: at a branch all but plain calls, and what belongs to a
//! call that another node makes.

use auth::Wire;
use gateway::SlottedNumber;
use http::Method;
use http::request::Parts;
use model::TopicName;
use wire::mcp::Params;
use wire::rpc::{Id, MessageKind};

use super::connection::Connection;
use super::events::parse_event_id;
use super::head::{Head, HeaderField};
use super::paths::topic_of;
use super::relay::Relay;

/// The page that is each node's own.
const METRICS: &str = "/metrics";

/// Whether a branch answers a request itself, as far as its head says: its sender is known here and no
/// guest, nothing in its topic is shown at the home, and it may be a plain call or about one.
pub(super) fn may_be_own(
    relay: &Relay,
    connection: &Connection,
    parts: &Parts,
    head: &Head<'_>,
) -> bool {
    if parts.uri.path() == METRICS {
        return connection.links.registry.audit.may_act();
    }
    let topic = topic_of(parts.uri.path(), "/mcp").and_then(|name| TopicName::new(name).ok());
    let Some(topic) = topic else {
        return false;
    };
    if head.origin != HeaderField::Missing || parts.uri.query().is_some() {
        return false;
    }
    let is_own = match parts.method {
        Method::POST => relay.lets_be(&topic),
        Method::GET => event_slot(parts) == Some(slot(connection)),
        _ => false,
    };
    if !is_own || !connection.links.registry.audit.may_act() {
        return false;
    }
    let name = topic.as_str();
    let (_, known) = connection.known(head, name);
    let visit = known.map_or_else(|| connection.visit(head, name, Wire::Mcp), Ok);
    visit.is_ok_and(|visit| !visit.visitor.participant.id.is_guest())
}

/// The slot of this node in numbers that clients send back.
pub(super) fn slot(connection: &Connection) -> u16 {
    connection.links.registry.context.slot
}

/// The slot of the node of whose stream a client asks for the rest.
pub(super) fn event_slot(parts: &Parts) -> Option<u16> {
    let id = parts.headers.get("last-event-id")?.to_str().ok()?;
    let (stream, _) = parse_event_id(id)?;
    Some(SlottedNumber::of(stream).slot)
}

/// The slot of the node that has asked what this message answers, if it is an answer.
pub(super) fn answer_slot(params: &Params<'_>) -> Option<u16> {
    let message = params.message();
    let is_answer = matches!(message.shape(), MessageKind::Result | MessageKind::Error);
    let number = message.id().and_then(Id::as_number).filter(|_| is_answer)?;
    Some(SlottedNumber::of(number).slot)
}

/// Whether a message calls a tool: no other request is plain.
pub(super) fn is_call(params: &Params<'_>) -> bool {
    params.message().shape() == MessageKind::Request
        && params.method() == "tools/call"
        && params.get("task").is_none()
}
