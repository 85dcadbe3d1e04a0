//! Servers that dial in: envelopes between such a participant and the gateway's sessions with it,
//! and how long its tools stay listed after it has left.

use std::sync::{Arc, Weak};

use model::{LinkId, ParticipantId};
use platform::unix_ms;
use upstream::dial_in::{DialIn, Outbox, Receipt};
use wire::{mcpx::Envelope, time::rfc3339};

use crate::live::{ConfiguredServer, Server};
use crate::{dispatch::Dispatch, record::Record};

const RESPONSE: &str = "mcp/response:";

/// Sends the requests of sessions to participants of a topic that serve.
pub(crate) struct RoomOutbox(pub(crate) Weak<Dispatch>);

impl Outbox for RoomOutbox {
    fn stamp(&self) -> (String, String) {
        // By the id the topic knows the answer as one between the gateway and the participant.
        let id = self
            .0
            .upgrade()
            .map(|dispatch| dispatch.context.direct_envelope().to_string());
        (id.unwrap_or_default(), rfc3339(unix_ms()))
    }

    fn send(&self, link: LinkId, envelope: &[u8]) {
        if let Some(dispatch) = self.0.upgrade() {
            dispatch.whisper(link, envelope);
        }
    }
}

/// Takes an envelope that answers a request of a session, or notifies about it. `server` is the
/// sender's own server side.
pub(crate) fn receive(
    dispatch: &Arc<Dispatch>,
    link: LinkId,
    server: Option<&Server>,
    envelope: &Envelope,
) {
    let own = server
        .and_then(Server::upstream)
        .and_then(|server| server.dial_in.as_ref());
    let own = own.filter(|dialed| dialed.link() == Some(link));
    match own.map_or(Receipt::Unrelated, |dialed| dialed.receive(envelope)) {
        Receipt::Accepted => {}
        Receipt::Rejected(why) => misled(dispatch, envelope, envelope.from(), &why),
        Receipt::Unrelated => {
            if let Some(asked) = asked(dispatch, envelope) {
                misled(
                    dispatch,
                    envelope,
                    asked.as_str(),
                    "it answers what another was asked",
                );
            }
        }
    }
}

/// The participant, not the sender, that was asked what this envelope answers.
fn asked(dispatch: &Dispatch, envelope: &Envelope) -> Option<ParticipantId> {
    let about = envelope
        .correlation_id()
        .filter(|_| envelope.kind().starts_with(RESPONSE))?;
    let servers = dispatch.servers();
    let is_asked = |dialed: &Arc<DialIn>| dialed.is_pending(about);
    let asked = servers
        .iter()
        .find(|server| server.dial_in.as_ref().is_some_and(is_asked))?;
    (asked.id.as_str() != envelope.from()).then(|| asked.id.clone())
}

fn misled(dispatch: &Dispatch, envelope: &Envelope, server: &str, why: &str) {
    Record(dispatch).mismatched(envelope, &[server], why);
    let participant = envelope.from();
    let kind = envelope.kind();
    tracing::info!(
        participant,
        kind,
        why,
        "the answer of a participant does not count"
    );
}

/// Notes that a participant listens: if it serves, it is asked what it lists.
pub(crate) fn connected(dispatch: &Arc<Dispatch>, participant: &ParticipantId) {
    let Some(server) = dispatch.server(participant) else {
        return;
    };
    if let Some(dialed) = &server.dial_in {
        connected_to(dispatch, &server, dialed);
    }
}

/// Notes that the participant of a server has joined. The topic says by which link its participant
/// listens now: the one that has joined may have left, or have been replaced, before this.
pub(crate) fn connected_to(dispatch: &Arc<Dispatch>, server: &ConfiguredServer, dialed: &DialIn) {
    server.upstream.reset_backoff();
    if let Some(link) =
        dialed.connect_existing(|| dispatch.with(|topic| topic.listener(&server.id)))
    {
        disconnected(dispatch, &server.id, link);
    }
}

/// Notes that a link has ended: if its participant served on it, its open calls end now, and its
/// tools stay listed for a while.
pub(crate) fn disconnected(dispatch: &Arc<Dispatch>, participant: &ParticipantId, link: LinkId) {
    let Some(dialed) = dispatch
        .server(participant)
        .and_then(|server| server.dial_in.clone())
    else {
        return;
    };
    let Some(departure) = dialed.disconnected(link) else {
        return;
    };
    let away = dispatch.settings().limits.away;
    let id = participant.clone();
    let dispatch = Arc::downgrade(dispatch);
    tokio::spawn(async move {
        if !dialed.unlist_after(departure, away).await {
            return;
        }
        let Some(dispatch) = dispatch.upgrade() else {
            return;
        };
        // The configuration may have changed meanwhile.
        let server = dispatch.server(&id);
        let is_same = |now: &Arc<DialIn>| Arc::ptr_eq(now, &dialed);
        if let Some(server) = server.filter(|server| server.dial_in.as_ref().is_some_and(is_same)) {
            dispatch.list_shared(&server, &[]);
        }
    });
}
