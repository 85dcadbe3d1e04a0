//! Supervision of one upstream: started, watched, started again, and never hidden when it is down.
//!
//! Owns its state and which sessions it has. How a session begins and lives is elsewhere.

mod callers;
mod open;
mod slot;
mod told;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{Guard, LinkError};
use model::{Era, LinkId, Refusal};
use platform::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::backoff::Backoff;
use super::dialer::Dialer;
use super::fault::Fault;
use super::manifest::Manifest;
use super::relay::Overseer;
use super::session::{Session, SessionSink};
use super::sink::SessionKey;
use super::spec::UpstreamSpec;
use super::status::State;
use crate::config::EraChoice;
use slot::Slot;

/// How often idle sessions are looked for.
const TIDY: Duration = Duration::from_secs(5);
/// The same where sessions may be idle for less.
const TIDY_MIN: Duration = Duration::from_millis(10);
/// A session that lived this long was started well.
const STABLE: Duration = Duration::from_secs(10);

/// What all upstreams stand on.
#[derive(Clone)]
pub struct Ground {
    /// The guard of child processes, if one runs.
    pub guard: Option<Guard>,
    /// Who the gateway says it is: an `Implementation` object, raw JSON.
    pub identity: Bytes,
    /// Where everything goes that is about no call.
    pub sink: Arc<dyn SessionSink>,
    /// Where the links to a server come from that dials in by itself.
    pub dialer: Option<Arc<dyn Dialer>>,
}

/// One configured server.
pub struct Upstream {
    me: Weak<Upstream>,
    spec: Arc<UpstreamSpec>,
    ground: Ground,
    book: Mutex<Book>,
    settled: watch::Sender<bool>,
    wake: Notify,
    restarts: AtomicU64,
    /// The state and reason of the log's last line about it.
    told: Mutex<Option<(State, Option<String>)>>,
    begun: Instant,
}

/// What is known about the server, and its sessions.
struct Book {
    /// The eras that it speaks; empty until it was asked.
    eras: Vec<Era>,
    slots: HashMap<(Era, SessionKey), Arc<Slot>>,
    /// Sessions that end with their call.
    once: Vec<Arc<Session>>,
    /// What it offered last in each era that it was asked in, in the order in which it was.
    manifests: Vec<(Era, Arc<Manifest>)>,
    backoff: Backoff,
    starting: usize,
    incomplete: Option<String>,
    /// Why it could not be started, for the log only.
    cause: String,
    /// The server only knows HTTP+SSE.
    older: bool,
    closed: bool,
}

impl Book {
    fn manifest(&self) -> Arc<Manifest> {
        self.manifests.first().map(|(_, manifest)| Arc::clone(manifest)).unwrap_or_default()
    }

    /// Notes what a shared session lists. What was listed in an era that is not spoken any more is forgotten.
    fn lists(&mut self, session: &Session) {
        let (era, manifest) = (session.era(), session.manifest());
        match self.manifests.iter_mut().find(|(other, _)| *other == era) {
            Some((_, place)) => *place = manifest,
            None => self.manifests.push((era, manifest)),
        }
        let eras = self.eras.clone();
        self.manifests.retain(|(other, _)| *other == era || eras.contains(other));
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("name", &self.spec.name()).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Begins to start the server and returns at once. Must be called inside a runtime.
    #[must_use]
    pub fn start(spec: UpstreamSpec, ground: Ground) -> Arc<Self> {
        let eras = match spec.config.era {
            EraChoice::Auto => Vec::new(),
            EraChoice::Legacy => vec![Era::Legacy],
            EraChoice::Modern => vec![Era::Modern],
        };
        let book = Book {
            eras,
            slots: HashMap::new(),
            once: Vec::new(),
            manifests: Vec::new(),
            backoff: Backoff::default(),
            starting: 0,
            incomplete: None,
            cause: String::new(),
            older: false,
            closed: false,
        };
        let waits_for_nobody = ground.dialer.is_some();
        let upstream = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec: Arc::new(spec),
            ground,
            book: Mutex::new(book),
            // Nobody waits for one that may never come.
            settled: watch::Sender::new(waits_for_nobody),
            wake: Notify::new(),
            restarts: AtomicU64::new(0),
            told: Mutex::default(),
            begun: Instant::now(),
        });
        tokio::spawn(keep(Arc::downgrade(&upstream)));
        tokio::spawn(tidy(Arc::downgrade(&upstream)));
        upstream
    }

    /// What was configured.
    #[must_use]
    pub fn spec(&self) -> &UpstreamSpec {
        &self.spec
    }

    /// What it offered last, running or not; empty before its first start.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        self.book().manifest()
    }

    /// The same as it said it to callers of this era, if it was asked in it.
    #[must_use]
    pub fn manifest_in(&self, era: Era) -> Arc<Manifest> {
        let book = self.book();
        let found =
            book.manifests.iter().find(|(other, _)| *other == era).map(|(_, manifest)| Arc::clone(manifest));
        found.unwrap_or_else(|| book.manifest())
    }

    /// What it offered last, in each era that it was asked in.
    #[must_use]
    pub fn manifests(&self) -> Vec<Arc<Manifest>> {
        self.book().manifests.iter().map(|(_, manifest)| Arc::clone(manifest)).collect()
    }

    /// How long it has been supervised.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether the first start has ended, well or badly.
    #[must_use]
    pub fn has_settled(&self) -> bool {
        *self.settled.borrow()
    }

    /// Waits for that. The caller bounds the wait.
    pub async fn settled(&self) {
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// Ends every session; nothing is started again.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book();
            book.closed = true;
            let once = std::mem::take(&mut book.once);
            book.slots.drain().filter_map(|(_, slot)| slot.session.lock().take()).chain(once).collect()
        };
        self.wake.notify_waiters();
        self.wake.notify_one();
        let closing: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(async move { session.close().await })).collect();
        for closing in closing {
            let _ = closing.await;
        }
    }

    /// A server that dials in has come: what went wrong with the one before does not count.
    pub fn arrived(&self) {
        let slots: Vec<Arc<Slot>> = {
            let mut book = self.book();
            book.backoff = Backoff::default();
            book.slots.values().cloned().collect()
        };
        for slot in slots {
            *slot.backoff.lock() = Backoff::default();
        }
    }

    /// Whether it dials in by itself and is not here.
    pub(super) fn is_away(&self) -> bool {
        self.ground.dialer.as_ref().is_some_and(|dialer| dialer.presence().borrow().is_none())
    }

    pub(super) fn not_here(&self) -> Refusal {
        Fault::Link(LinkError::NotConnected).refusal(self.spec.name())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }
}

impl Overseer for Upstream {
    fn lost(&self, session: &Arc<Session>) {
        let mut book = self.book();
        book.once.retain(|other| !Arc::ptr_eq(other, session));
        let mut slots = book.slots.values();
        let slot =
            slots.find(|slot| slot.session.lock().as_ref().is_some_and(|other| Arc::ptr_eq(other, session)));
        let Some(slot) = slot.filter(|_| !book.closed).map(Arc::clone) else { return };
        *slot.session.lock() = None;
        if self.is_away() {
            // It may go, and come again when it likes.
            drop(book);
            return self.tell();
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let reason = format!("the server `{}` ended unexpectedly", self.spec.name());
        book.cause.clear();
        // A caller that makes its own session crash costs itself only.
        let mut own = slot.backoff.lock();
        let backoff = if *session.key() == SessionKey::Shared { &mut book.backoff } else { &mut *own };
        if session.age().0 >= STABLE {
            backoff.lasted();
        }
        backoff.failed(Instant::now(), reason);
        drop(own);
        drop(book);
        self.tell();
        self.wake.notify_one();
    }

    fn listed(&self, session: &Arc<Session>) {
        if *session.key() == SessionKey::Shared {
            self.book().lists(session);
        }
    }

    fn state(&self) {
        self.tell();
    }
}

fn close_all(sessions: Vec<Arc<Session>>) {
    for session in sessions {
        tokio::spawn(async move { session.close().await });
    }
}

/// Keeps a shared session open for as long as anybody holds the upstream.
async fn keep(upstream: Weak<Upstream>) {
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        if strong.book().closed {
            return;
        }
        let era = strong.book().eras.first().copied();
        let remaining = strong.book().backoff.remaining(Instant::now());
        let mut presence = strong.ground.dialer.as_ref().map(|dialer| dialer.presence());
        if let Some(presence) = presence.as_mut().filter(|presence| presence.borrow().is_none()) {
            drop(strong);
            match presence.changed().await {
                Ok(()) => continue,
                Err(_) => return,
            }
        }
        if let Some(remaining) = remaining {
            drop(strong);
            tokio::select! {
                () = sleep(remaining) => {}
                () = another(&mut presence) => {}
            }
            continue;
        }
        let opened = strong.obtain(era, &SessionKey::Shared, None).await;
        drop(strong);
        match opened {
            Ok(session) => {
                let mut end = session.watch_end();
                // Not held while it is watched: an upstream that nobody holds ends its sessions.
                drop(session);
                let _ = end.wait_for(|ended| *ended).await;
            }
            // Where nothing else says when, look again soon.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits until somebody else is here; for ever where nobody comes and goes.
async fn another(presence: &mut Option<watch::Receiver<Option<LinkId>>>) {
    match presence {
        Some(presence) => drop(presence.changed().await),
        None => std::future::pending().await,
    }
}

/// Closes callers' sessions that are idle.
async fn tidy(upstream: Weak<Upstream>) {
    let Some(idle) = upstream.upgrade().map(|upstream| upstream.spec.bounds.caller_idle) else { return };
    loop {
        sleep(TIDY.min(idle.max(TIDY_MIN))).await;
        let Some(upstream) = upstream.upgrade() else { return };
        upstream.tell();
        let mut book = upstream.book();
        if book.closed {
            return;
        }
        let gone: Vec<_> = book
            .slots
            .iter()
            .filter(|((_, key), _)| *key != SessionKey::Shared)
            .filter(|(_, slot)| slot.is_blank() || slot.idle().is_some_and(|quiet| quiet >= idle))
            .map(|(place, _)| place.clone())
            .collect();
        let left = gone.iter().filter_map(|place| book.slots.remove(place)?.session.lock().take()).collect();
        drop(book);
        close_all(left);
    }
}
