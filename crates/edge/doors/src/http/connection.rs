//! Connection of an HTTP client: what its client occupies, and what was learnt about its token.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use auth::{ClientCertificate, Presented, Wire};
use config::Config;
use identity::Guests;
use model::{ParticipantId, Refusal};
use platform::{Mutex, Share, unix_ms};
use tokio::sync::watch;
use tokio::time::Instant;

use super::arrived::SocketEnds;
use super::handover::Handover;
use super::head::Head;
use super::places::Place;
use super::relay::Relay;
use super::timer::Deadline;
use super::unfinished::Unfinished;
use crate::links::ClientLinks;
use crate::outlet::{Joined, Visitor};
use crate::sessions::Session;
use crate::slot::{FirstReply, Slot};

/// An answer that takes longer than this comes as an event stream, so that no proxy gives up, in
/// seconds.
pub(crate) const QUIET_SECS: u64 = 15;

/// Links, place and guests of a client while it is connected. A WebSocket or an event stream that
/// its connection becomes keeps it.
pub(crate) struct Client {
    /// The links of MCP clients.
    pub(crate) links: Arc<ClientLinks>,
    /// A connection in memory has none.
    place: Option<Place>,
    /// The guests that this client is.
    pub(crate) guests: Guests,
}

impl Client {
    /// Whether a request of this client has named its sender. A connection in memory is the
    /// program's own.
    pub(super) fn is_known(&self) -> bool {
        self.place.as_ref().is_none_or(Place::is_known)
    }
}

/// One connection, as long as it is HTTP.
pub(crate) struct Connection {
    /// The links of MCP clients.
    pub(crate) links: Arc<ClientLinks>,
    /// Place and guests of the connection's client, and the links of all clients.
    pub(crate) client: Arc<Client>,
    /// Place where an idle event stream leaves HTTP.
    pub(crate) handover: Arc<Handover>,
    /// The certificate that its client showed.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
    /// The gateway as its client names it, if it is no HTTP: by its name in TLS, or by its address.
    pub(crate) authority: Option<Arc<str>>,
    /// The address of its client; a connection in memory has none.
    pub(crate) peer: Option<IpAddr>,
    /// In a cluster, the ways of its client to other nodes.
    pub(super) relay: Option<Arc<Relay>>,
    stop: watch::Receiver<bool>,
    known: Mutex<Option<Known>>,
    /// Deadline for the answer of the present request, after which it takes long. Requests follow
    /// each other, so one is enough.
    pub(crate) quiet: Arc<Deadline>,
    /// Bytes read of a head, or of a first frame, that is not whole yet.
    pub(super) unfinished: Unfinished,
}

/// The two ends of a connection, as known before its first byte.
#[derive(Default)]
pub(crate) struct ConnectionEnds {
    /// The certificate that the client showed.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
    /// The gateway's host and port, as the client has them.
    pub(crate) authority: Option<Arc<str>>,
    /// The client's address.
    pub(crate) peer: Option<IpAddr>,
    /// In a cluster, the ways of its client to other nodes.
    pub(super) relay: Option<Arc<Relay>>,
}

impl ConnectionEnds {
    /// The ends of a connection without TLS.
    pub(super) fn plain(ends: SocketEnds, relay: Option<Arc<Relay>>) -> Self {
        Self {
            certificate: None,
            authority: ends.at.map(|at| at.to_string().into()),
            peer: Some(ends.peer),
            relay,
        }
    }
}

/// Configuration and visit that the connection has found in one epoch of the registry.
struct Known {
    epoch: u64,
    config: Arc<Config>,
    visit: Option<Arc<Visit>>,
}

/// A participant that may enter a topic, as a request names the two.
pub(crate) struct Visit {
    bearer: Option<Box<str>>,
    topic: Box<str>,
    session_id: Option<Box<str>>,
    /// The participant, and its topic.
    pub(crate) visitor: Visitor,
    /// The participant's share of the bytes that wait.
    pub(crate) held: Arc<Share>,
    /// The session of this id.
    session: OnceLock<Arc<Session>>,
    modern: OnceLock<Arc<Joined>>,
}

impl Connection {
    /// A new connection.
    pub(crate) fn new(
        links: &Arc<ClientLinks>,
        place: Option<Place>,
        shown: ConnectionEnds,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let ConnectionEnds {
            certificate,
            authority,
            peer,
            relay,
        } = shown;
        Arc::new(Self {
            links: Arc::clone(links),
            client: Arc::new(Client {
                links: Arc::clone(links),
                place,
                guests: Guests::default(),
            }),
            handover: Arc::default(),
            certificate,
            authority,
            peer,
            relay,
            stop,
            known: Mutex::default(),
            quiet: Arc::default(),
            unfinished: Unfinished::default(),
        })
    }

    /// A copy of the connection for one request of HTTP/2, where requests do not follow each other.
    pub(crate) fn of_request(&self) -> Arc<Self> {
        Arc::new(Self {
            links: Arc::clone(&self.links),
            client: Arc::clone(&self.client),
            certificate: self.certificate.clone(),
            authority: self.authority.clone(),
            peer: self.peer,
            relay: self.relay.clone(),
            handover: Arc::default(),
            stop: self.stop.clone(),
            known: Mutex::default(),
            quiet: Arc::default(),
            unfinished: Unfinished::default(),
        })
    }

    /// Whether the gateway is a branch: then HTTP/2 is the home's.
    pub(super) fn is_of_branch(&self) -> bool {
        self.relay.as_ref().is_some_and(|relay| relay.is_branch)
    }

    /// True once the gateway is about to stop.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Whether the gateway is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until the gateway is about to stop.
    pub(crate) async fn stopping(&self) {
        drop(self.stop.clone().wait_for(|stop| *stop).await);
    }

    /// Credentials that the client presents with a request.
    pub(crate) fn presented<'c>(&'c self, bearer: Option<&'c str>) -> Presented<'c> {
        Presented {
            bearer,
            certificate: self.certificate.as_deref(),
            address: self.peer,
        }
    }

    /// Puts the connection on the account of the participant that sends on it now. A connection in
    /// memory has no place.
    ///
    /// # Errors
    /// The participant has too many connections.
    pub(crate) fn belongs_to(&self, sender: &ParticipantId) -> Result<(), Refusal> {
        self.client
            .place
            .as_ref()
            .map_or(Ok(()), |place| place.belongs_to(sender))
    }

    /// The configuration in force, and the visit that the last request made, if this one makes the
    /// same.
    pub(crate) fn known(&self, head: &Head<'_>, topic: &str) -> (Arc<Config>, Option<Arc<Visit>>) {
        let registry = &self.links.registry;
        let epoch = registry.epoch();
        let mut known = self.known.lock();
        match &*known {
            Some(known) if known.epoch == epoch => {
                let visit = known.visit.as_ref().filter(|visit| visit.is(head, topic));
                (Arc::clone(&known.config), visit.cloned())
            }
            Some(_) | None => {
                let config = registry.config();
                *known = Some(Known {
                    epoch,
                    config: Arc::clone(&config),
                    visit: None,
                });
                (config, None)
            }
        }
    }

    /// The participant of a request on this wire, and its topic.
    ///
    /// # Errors
    /// The refusal to send.
    pub(crate) fn visit(
        &self,
        head: &Head<'_>,
        topic: &str,
        wire: Wire,
    ) -> Result<Arc<Visit>, Refusal> {
        let registry = &self.links.registry;
        // Before the look-up, so that a change in between makes the visit stale at once.
        let epoch = registry.epoch();
        let bearer = head.bearer();
        let session_id = head.session_id();
        let of_session = session_id.filter(|_| bearer.is_none());
        let guest = of_session.and_then(|id| self.links.sessions.guest(id));
        let (dispatch, participant) = registry.visitor(
            self.presented(bearer),
            topic,
            wire,
            guest,
            &self.client.guests,
        )?;
        self.belongs_to(&participant.id)?;
        let visit = Arc::new(Visit {
            bearer: bearer.map(Box::from),
            topic: topic.into(),
            session_id: session_id.map(Box::from),
            held: registry.held_of(&participant.id),
            visitor: Visitor {
                dispatch,
                participant,
            },
            session: OnceLock::new(),
            modern: OnceLock::new(),
        });
        // Only requests of MCP look for it: a participant may come in on one wire and not on the
        // other.
        if wire == Wire::Mcp
            && let Some(known) = self
                .known
                .lock()
                .as_mut()
                .filter(|known| known.epoch == epoch)
        {
            known.visit = Some(Arc::clone(&visit));
        }
        Ok(visit)
    }

    /// Forgets what was learnt: the connection sends no more requests, or a link has ended.
    pub(crate) fn forget(&self) {
        *self.known.lock() = None;
    }

    /// The participant's session of this id.
    pub(crate) fn session(&self, visit: &Visit, id: &str) -> Option<Arc<Session>> {
        if let Some(session) = visit.session.get() {
            if session.joined.home.liveness.touch(self.links.now_ms()) {
                return Some(Arc::clone(session));
            }
            self.forget();
        }
        let found = self.links.find_session(&visit.visitor, id)?;
        // One that has ended stays in a visit that is forgotten.
        visit.session.get_or_init(|| Arc::clone(&found));
        Some(found)
    }

    /// The modern link of the participant.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn modern(&self, visit: &Visit) -> Result<Arc<Joined>, Refusal> {
        if let Some(link) = visit.modern.get() {
            if link.home.liveness.touch(self.links.now_ms()) {
                return Ok(Arc::clone(link));
            }
            self.forget();
        }
        let link = self.links.modern(&visit.visitor)?;
        visit.modern.get_or_init(|| Arc::clone(&link));
        Ok(link)
    }

    /// The first reply in the slot of a request, and whether it took long.
    pub(crate) async fn first(&self, slot: &Slot) -> (FirstReply, bool) {
        let mut waits = None;
        let mut took_long = false;
        let first = poll_fn(|cx| {
            loop {
                if let Poll::Ready(first) = slot.poll_first(cx) {
                    return Poll::Ready(first);
                }
                // An answer that is there already needs no clock.
                waits.get_or_insert_with(|| Wait::begin(&self.quiet));
                if took_long || !self.quiet.has_passed() {
                    return Poll::Pending;
                }
                took_long = true;
                slot.open_stream();
            }
        })
        .await;
        (first, took_long)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // What a guest does outside of a session ends with its connection.
        self.links.leave_shared(&self.guests.all());
    }
}

/// A wait for an answer. Once dropped, nothing takes long any more.
struct Wait<'c>(&'c Deadline);

impl<'c> Wait<'c> {
    fn begin(quiet: &'c Deadline) -> Self {
        quiet.set(Instant::now() + Duration::from_secs(QUIET_SECS));
        Self(quiet)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Visit {
    fn is(&self, head: &Head<'_>, topic: &str) -> bool {
        let same = match (&self.bearer, head.bearer()) {
            (None, None) => true,
            (Some(known), Some(bearer)) => is_same_secret(known.as_bytes(), bearer.as_bytes()),
            (Some(_), None) | (None, Some(_)) => false,
        };
        same && *self.topic == *topic
            && self.session_id.as_deref() == head.session_id()
            && !self.has_ended()
    }

    /// Whether the access token is not valid any more, or has to be asked about again.
    fn has_ended(&self) -> bool {
        self.visitor.participant.is_to_be_checked(unix_ms)
    }
}

/// Compares in a time that does not depend on where the two differ: a proxy may send the requests
/// of several clients on one connection.
fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}
