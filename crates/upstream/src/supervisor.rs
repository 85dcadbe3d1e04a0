//! Supervisor of one server: starts it, restarts it after failures, owns its sessions and its status.

mod open;
mod session_choice;
mod session_events;
mod slot;
mod status_log;

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

use crate::backoff::Backoff;
use crate::config::EraChoice;
use crate::dial_in::DialIn;
use crate::fault::Fault;
use crate::manifest::Manifest;
use crate::session::{Session, SessionEvents};
use crate::session_api::SessionKey;
use crate::spec::UpstreamSpec;
use crate::status::State;
use slot::Slot;

/// How often idle sessions are looked for.
const TIDY: Duration = Duration::from_secs(5);
/// The same with a shorter idle limit.
const TIDY_MIN: Duration = Duration::from_millis(10);
/// A session of this age ends the count of failures in a row.
const STABLE: Duration = Duration::from_secs(10);
/// Wait after a failed attempt that has no back-off.
const RETRY: Duration = Duration::from_millis(100);

/// What all sessions of a server need from the gateway.
#[derive(Clone)]
pub struct Environment {
    /// The guard of child processes, if one runs.
    pub guard: Option<Guard>,
    /// The gateway's `Implementation` object, raw JSON.
    pub identity: Bytes,
    /// Receives everything that concerns no single call.
    pub events: Arc<dyn SessionEvents>,
    /// The participant that serves, for a server that dials in.
    pub dial_in: Option<Arc<DialIn>>,
}

/// One configured server under supervision.
pub struct Upstream {
    me: Weak<Upstream>,
    spec: Arc<UpstreamSpec>,
    environment: Environment,
    inner: Mutex<Inner>,
    /// Whether the first start has ended, in success or failure.
    settled: watch::Sender<bool>,
    wake: Notify,
    restarts: AtomicU64,
    /// State and reason of the last status line in the log.
    logged: Mutex<Option<(State, Option<String>)>>,
    started_at: Instant,
}

/// What is known about the server, and its sessions.
struct Inner {
    /// The eras that it speaks; empty before detection.
    eras: Vec<Era>,
    slots: HashMap<(Era, SessionKey), Arc<Slot>>,
    /// Sessions that end with their call.
    single_call: Vec<Arc<Session>>,
    /// The last manifest in each era, in the order of the first fetch.
    manifests: Vec<(Era, Arc<Manifest>)>,
    backoff: Backoff,
    /// Attempts that are running.
    starting: usize,
    /// Why the lists are incomplete, in words for callers.
    incomplete: Option<String>,
    /// Why the last start failed, for the log only.
    cause: String,
    /// Whether the server only speaks HTTP+SSE (2024-11-05).
    http_sse: bool,
    closed: bool,
}

impl Inner {
    fn manifest(&self) -> Arc<Manifest> {
        self.manifests.first().map(|(_, manifest)| Arc::clone(manifest)).unwrap_or_default()
    }

    /// Keeps the manifest of a shared session, and drops manifests of eras that the server no longer speaks.
    fn keep_manifest(&mut self, session: &Session) {
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
    pub fn start(spec: UpstreamSpec, environment: Environment) -> Arc<Self> {
        let eras = match spec.config.era {
            EraChoice::Auto => Vec::new(),
            EraChoice::Legacy => vec![Era::Legacy],
            EraChoice::Modern => vec![Era::Modern],
        };
        let inner = Inner {
            eras,
            slots: HashMap::new(),
            single_call: Vec::new(),
            manifests: Vec::new(),
            backoff: Backoff::default(),
            starting: 0,
            incomplete: None,
            cause: String::new(),
            http_sse: false,
            closed: false,
        };
        // A server that dials in may never connect: no list waits for it.
        let settled = environment.dial_in.is_some();
        let upstream = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec: Arc::new(spec),
            environment,
            inner: Mutex::new(inner),
            settled: watch::Sender::new(settled),
            wake: Notify::new(),
            restarts: AtomicU64::new(0),
            logged: Mutex::default(),
            started_at: Instant::now(),
        });
        tokio::spawn(keep(Arc::downgrade(&upstream)));
        tokio::spawn(tidy(Arc::downgrade(&upstream)));
        upstream
    }

    /// The specification of the server.
    #[must_use]
    pub fn spec(&self) -> &UpstreamSpec {
        &self.spec
    }

    /// The last manifest, also while the server is down; empty before its first start.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        self.inner().manifest()
    }

    /// The last manifest in this era; the one of the other era if the server was not listed in this one.
    #[must_use]
    pub fn manifest_in(&self, era: Era) -> Arc<Manifest> {
        let inner = self.inner();
        let found =
            inner.manifests.iter().find(|(other, _)| *other == era).map(|(_, manifest)| Arc::clone(manifest));
        found.unwrap_or_else(|| inner.manifest())
    }

    /// The last manifest in each era.
    #[must_use]
    pub fn manifests(&self) -> Vec<Arc<Manifest>> {
        self.inner().manifests.iter().map(|(_, manifest)| Arc::clone(manifest)).collect()
    }

    /// The time under supervision.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Whether the first start has ended, in success or failure.
    #[must_use]
    pub fn has_settled(&self) -> bool {
        *self.settled.borrow()
    }

    /// Waits for the end of the first start. The caller bounds the wait.
    pub async fn settled(&self) {
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// Closes every session and stops restarts.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut inner = self.inner();
            inner.closed = true;
            let single_call = std::mem::take(&mut inner.single_call);
            inner
                .slots
                .drain()
                .filter_map(|(_, slot)| slot.session.lock().take())
                .chain(single_call)
                .collect()
        };
        self.wake.notify_waiters();
        self.wake.notify_one();
        let closing: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(async move { session.close().await })).collect();
        for closing in closing {
            let _ = closing.await;
        }
    }

    /// Clears every back-off: a server that dials in has connected, and earlier failures do not count.
    pub fn reset_backoff(&self) {
        let slots: Vec<Arc<Slot>> = {
            let mut inner = self.inner();
            inner.backoff = Backoff::default();
            inner.slots.values().cloned().collect()
        };
        for slot in slots {
            *slot.backoff.lock() = Backoff::default();
        }
    }

    /// Whether the server dials in and is not connected.
    fn is_away(&self) -> bool {
        self.environment.dial_in.as_ref().is_some_and(|dial_in| dial_in.link().is_none())
    }

    fn away_refusal(&self) -> Refusal {
        Fault::Link(LinkError::NotConnected).refusal(self.spec.name())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Handles the end of a session: the slot is empty, and the back-off begins.
    fn session_ended(&self, session: &Arc<Session>) {
        let mut inner = self.inner();
        inner.single_call.retain(|other| !Arc::ptr_eq(other, session));
        let mut slots = inner.slots.values();
        let slot =
            slots.find(|slot| slot.session.lock().as_ref().is_some_and(|other| Arc::ptr_eq(other, session)));
        let Some(slot) = slot.filter(|_| !inner.closed).map(Arc::clone) else { return };
        *slot.session.lock() = None;
        if self.is_away() {
            // A participant may disconnect and connect again at any time.
            drop(inner);
            return self.log_status();
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let reason = format!("the server `{}` ended unexpectedly", self.spec.name());
        inner.cause.clear();
        // A caller whose own session crashes delays only itself.
        let mut own = slot.backoff.lock();
        let backoff = if *session.key() == SessionKey::Shared { &mut inner.backoff } else { &mut *own };
        if session.age() >= STABLE {
            backoff.lasted();
        }
        backoff.failed(Instant::now(), reason);
        drop(own);
        drop(inner);
        self.log_status();
        self.wake.notify_one();
    }

    /// Handles a new manifest of a session.
    fn manifest_changed(&self, session: &Arc<Session>) {
        if *session.key() == SessionKey::Shared {
            self.inner().keep_manifest(session);
        }
    }
}

fn close_all(sessions: Vec<Arc<Session>>) {
    for session in sessions {
        tokio::spawn(async move { session.close().await });
    }
}

/// Keeps a shared session open while the upstream exists.
async fn keep(upstream: Weak<Upstream>) {
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        if strong.inner().closed {
            return;
        }
        let era = strong.inner().eras.first().copied();
        let remaining = strong.inner().backoff.remaining(Instant::now());
        let mut presence = strong.environment.dial_in.as_ref().map(|dial_in| dial_in.presence());
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
                () = presence_change(&mut presence) => {}
            }
            continue;
        }
        let opened = strong.obtain(era, &SessionKey::Shared, None).await;
        drop(strong);
        match opened {
            Ok(session) => {
                let mut end = session.watch_end();
                // The wait holds no session: an upstream without users ends its sessions.
                drop(session);
                let _ = end.wait_for(|ended| *ended).await;
            }
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Waits until a participant connects or disconnects; for ever for a server that does not dial in.
async fn presence_change(presence: &mut Option<watch::Receiver<Option<LinkId>>>) {
    match presence {
        Some(presence) => drop(presence.changed().await),
        None => std::future::pending().await,
    }
}

/// Closes idle sessions of single callers.
async fn tidy(upstream: Weak<Upstream>) {
    let Some(idle) = upstream.upgrade().map(|upstream| upstream.spec.bounds.caller_idle) else { return };
    loop {
        sleep(TIDY.min(idle.max(TIDY_MIN))).await;
        let Some(upstream) = upstream.upgrade() else { return };
        upstream.log_status();
        let mut inner = upstream.inner();
        if inner.closed {
            return;
        }
        let gone: Vec<_> = inner
            .slots
            .iter()
            .filter(|((_, key), _)| *key != SessionKey::Shared)
            .filter(|(_, slot)| slot.is_blank() || slot.idle().is_some_and(|quiet| quiet >= idle))
            .map(|(place, _)| place.clone())
            .collect();
        let closing = gone.iter().filter_map(|key| inner.slots.remove(key)?.session.lock().take()).collect();
        drop(inner);
        close_all(closing);
    }
}
