//! Connection of an HTTP client: its permit, its guests, and what was learnt about its token.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use access::Guests;
use access::config::Config;
use auth::Participant;
use gateway::Dispatch;
use model::Refusal;
use platform::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::handover::Handover;
use super::timer::SpareTimer;
use crate::links::ClientLinks;
use crate::modern_links::ModernLink;
use crate::sessions::Session;
use crate::slot::{First, Slot};

/// An answer that takes longer than this comes as an event stream, so that no proxy gives up, in seconds.
pub(crate) const QUIET_SECS: u64 = 15;

/// One connection. A WebSocket or an event stream that the connection becomes keeps it.
pub(crate) struct Connection {
    links: Arc<ClientLinks>,
    _permit: Option<OwnedSemaphorePermit>,
    guests: Guests,
    handover: Arc<Handover>,
    stop: watch::Receiver<bool>,
    known: Mutex<Known>,
    /// The timer of answers that take long. Requests follow each other, so one is enough, and it is seldom set anew.
    quiet: Arc<SpareTimer>,
}

/// What was learnt in an epoch of the registry.
#[derive(Default)]
struct Known {
    epoch: u64,
    config: Option<Arc<Config>>,
    visit: Option<Arc<Visit>>,
}

/// A participant that may enter a topic, as a request names the two.
pub(crate) struct Visit {
    bearer: Option<Box<str>>,
    topic: Box<str>,
    session_id: Option<Box<str>>,
    dispatch: Arc<Dispatch>,
    participant: Arc<Participant>,
    session: Mutex<Option<Arc<Session>>>,
    modern: Mutex<Option<Arc<ModernLink>>>,
}

impl Connection {
    /// A new connection.
    pub(crate) fn new(
        links: &Arc<ClientLinks>,
        permit: Option<OwnedSemaphorePermit>,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            links: Arc::clone(links),
            _permit: permit,
            guests: Guests::default(),
            handover: Arc::default(),
            stop,
            known: Mutex::default(),
            quiet: Arc::default(),
        })
    }

    /// The links of MCP clients.
    pub(crate) fn links(&self) -> &Arc<ClientLinks> {
        &self.links
    }

    /// The guests that this connection is.
    pub(crate) fn guests(&self) -> &Guests {
        &self.guests
    }

    /// Where an idle event stream leaves HTTP.
    pub(crate) fn handover(&self) -> &Arc<Handover> {
        &self.handover
    }

    /// Whether the gateway is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        let registry = self.links.registry();
        let epoch = registry.epoch();
        let mut known = self.known.lock();
        match &known.config {
            Some(config) if known.epoch == epoch => Arc::clone(config),
            Some(_) | None => {
                let config = registry.config();
                *known = Known { epoch, config: Some(Arc::clone(&config)), visit: None };
                config
            }
        }
    }

    /// The participant of a request, and its topic.
    ///
    /// # Errors
    /// The refusal to send.
    pub(crate) fn visit(
        &self,
        bearer: Option<&str>,
        topic: &str,
        session_id: Option<&str>,
    ) -> Result<Arc<Visit>, Refusal> {
        let registry = self.links.registry();
        let epoch = registry.epoch();
        {
            let known = self.known.lock();
            if let Some(visit) = &known.visit
                && known.epoch == epoch
                && visit.is(bearer, topic, session_id)
            {
                return Ok(Arc::clone(visit));
            }
        }
        let of_session = session_id.filter(|_| bearer.is_none());
        let guest = of_session.and_then(|id| self.links.sessions().guest(id));
        let (dispatch, participant) = registry.visitor(bearer, topic, guest, &self.guests)?;
        let visit = Arc::new(Visit {
            bearer: bearer.map(Box::from),
            topic: topic.into(),
            session_id: session_id.map(Box::from),
            dispatch,
            participant,
            session: Mutex::default(),
            modern: Mutex::default(),
        });
        let mut known = self.known.lock();
        if known.epoch == epoch {
            known.visit = Some(Arc::clone(&visit));
        }
        Ok(visit)
    }

    /// Forgets what was learnt: the connection sends no more requests.
    pub(crate) fn forget(&self) {
        *self.known.lock() = Known::default();
        self.quiet.clear();
    }

    /// What comes first in the slot of a request, and whether that took long.
    pub(crate) async fn first(&self, slot: &Slot) -> (First, bool) {
        // An answer that is there already needs no clock.
        if let Poll::Ready(first) = poll_fn(|cx| Poll::Ready(slot.poll_first(cx))).await {
            return (first, false);
        }
        let due = Instant::from(tokio::time::Instant::now()) + Duration::from_secs(QUIET_SECS);
        let (mut timeout, mut took_long) = (self.quiet.until(due), false);
        let first = poll_fn(|cx| {
            loop {
                if let Poll::Ready(first) = slot.poll_first(cx) {
                    return Poll::Ready(first);
                }
                if took_long || Pin::new(&mut timeout).poll(cx).is_pending() {
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

impl Visit {
    fn is(&self, bearer: Option<&str>, topic: &str, session_id: Option<&str>) -> bool {
        let same = match (&self.bearer, bearer) {
            (None, None) => true,
            (Some(known), Some(bearer)) => is_same_secret(known.as_bytes(), bearer.as_bytes()),
            (Some(_), None) | (None, Some(_)) => false,
        };
        same && *self.topic == *topic && self.session_id.as_deref() == session_id
    }

    /// The topic.
    pub(crate) fn dispatch(&self) -> &Arc<Dispatch> {
        &self.dispatch
    }

    /// The participant.
    pub(crate) fn participant(&self) -> &Arc<Participant> {
        &self.participant
    }

    /// The session of this id, if it is the participant's.
    pub(crate) fn session(&self, links: &ClientLinks, id: &str) -> Option<Arc<Session>> {
        let known = self.session.lock().clone().filter(|_| self.session_id.as_deref() == Some(id));
        if let Some(session) = known.filter(|session| session.home().liveness.touch(links.now_ms())) {
            return Some(session);
        }
        let found = links.find_session(&self.dispatch, &self.participant, id);
        self.session.lock().clone_from(&found);
        found
    }

    /// The modern link of the participant.
    ///
    /// # Errors
    /// Why the topic rejects it.
    pub(crate) fn modern(&self, links: &ClientLinks) -> Result<Arc<ModernLink>, Refusal> {
        let known = self.modern.lock().clone();
        if let Some(link) = known.filter(|link| link.home().liveness.touch(links.now_ms())) {
            return Ok(link);
        }
        let link = links.modern(&self.dispatch, &self.participant)?;
        *self.modern.lock() = Some(Arc::clone(&link));
        Ok(link)
    }
}

/// Compares in a time that does not depend on where the two differ: a proxy may send the requests of several clients on one
/// connection.
fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
