//! Supervisor of one server: starts it, restarts it after failures, owns its sessions and its status.

mod book;
mod open;
mod session_choice;
mod single;
mod status_log;
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use client::{LinkError, StderrLog};
use model::{Coding, Form, LinkId, ParticipantId, Refusal};
use platform::{Mutex, Shares};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use wire::mcp::Era;

use crate::origin::Origin;
use crate::session::{Environment, Session, SessionEvent, SessionEvents};
use crate::session_api::SessionOwner;
use crate::starts::Urgency;
use crate::{config::EraChoice, fault::Fault, kept, lists, manifest::Manifest, spec::UpstreamSpec};

use book::{Backoff, Book, Listed, Logged, Purpose, SessionPlace, Slot};
use wanted::Wanted;

/// The log target of lines about the state of servers, so that a filter can select them alone.
const TARGET: &str = "portmoot::servers";
/// Wait before a server that is listed from a kept manifest is probed: what clients use first comes first.
const PROBE_AFTER: Duration = Duration::from_secs(10);
/// Attempts of such a probe: the first may find that the server speaks another era now.
const PROBES_MAX: usize = 2;

/// The interval of the check for idle sessions.
const TIDY: Duration = Duration::from_secs(5);
/// The same with a shorter idle limit.
const TIDY_MIN: Duration = Duration::from_millis(10);
/// A session of this age ends the count of failures in a row.
const STABLE: Duration = Duration::from_secs(10);
/// Wait after a failed attempt that has no back-off.
const RETRY: Duration = Duration::from_millis(100);

/// One configured server under supervision.
pub struct Upstream {
    me: Weak<Self>,
    spec: Arc<UpstreamSpec>,
    environment: Environment,
    book: Mutex<Book>,
    /// Calls at the server, in all sessions and topics, and sessions of callers' own: each with a share for every participant.
    calls: Arc<Shares>,
    own_sessions: Arc<Shares>,
    /// Whether the first start has ended, in success or failure.
    settled: watch::Sender<bool>,
    restarts: AtomicU64,
    /// Wakes the task that keeps a server running which runs on demand.
    demand: Notify,
    /// Whether only one process of it can run.
    single: AtomicBool,
    /// Held while callers are moved to one session.
    sharing: tokio::sync::Mutex<()>,
    logged: Mutex<Logged>,
    started_at: Instant,
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
        // A server is asked for an era only if both its configuration and its transport leave a choice.
        let has_choice = eras.is_empty() && environment.dial_in.is_none();
        let legacy = if has_choice { None } else { Some(false) };
        let mut book = Book { eras, legacy, ..Book::default() };
        remember(&mut book, &spec, &environment);
        // A server that dials in may never connect: no list waits for it.
        let settled = environment.dial_in.is_some() || book.is_remembered;
        let limits = &spec.limits;
        let calls = Shares::new(limits.calls_max, limits.participant_calls_max);
        let own_sessions = Shares::new(limits.caller_sessions_max, limits.participant_sessions_max);
        let upstream = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec: Arc::new(spec),
            calls,
            own_sessions,
            environment: Environment {
                events: Arc::new(SupervisedEvents { upstream: me.clone(), gateway: environment.events }),
                ..environment
            },
            book: Mutex::new(book),
            settled: watch::Sender::new(settled),
            restarts: AtomicU64::new(0),
            demand: Notify::new(),
            single: AtomicBool::new(false),
            sharing: tokio::sync::Mutex::default(),
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
        self.book.lock().manifest()
    }

    /// The last manifest in this form; the one in the other form if the server was not listed in this one.
    #[must_use]
    pub fn manifest_in(&self, form: Form) -> Arc<Manifest> {
        let book = self.book.lock();
        let found = book.listed.iter().find(|listed| listed.era == form);
        found.map_or_else(|| book.manifest(), |listed| Arc::clone(&listed.manifest))
    }

    /// The last manifest in each era.
    #[must_use]
    pub fn manifests(&self) -> Vec<Arc<Manifest>> {
        self.book.lock().listed.iter().map(|listed| Arc::clone(&listed.manifest)).collect()
    }

    /// Has every open session list everything again: what is approved of it has changed.
    pub fn list_again(&self) {
        for session in self.book.lock().sessions() {
            session.list_again();
        }
    }

    /// What its processes write to stderr.
    #[must_use]
    pub fn stderr(&self) -> &Arc<StderrLog> {
        &self.environment.stderr
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

    /// Refuses every open call, because the server is about to be stopped. No session is opened any more.
    pub fn refuse_calls(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book.lock();
            book.closed = true;
            book.sessions().cloned().collect()
        };
        sessions.iter().for_each(|session| session.refuse_calls());
    }

    /// Closes every session and stops restarts.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book.lock();
            book.closed = true;
            let all = book.sessions().cloned().collect();
            book.single_call.clear();
            book.slots.clear();
            all
        };
        let closing: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(async move { session.close().await })).collect();
        for closing in closing {
            let _ = closing.await;
        }
    }

    /// Clears every back-off: a server that dials in has connected, and earlier failures do not count.
    pub fn reset_backoff(&self) {
        let mut book = self.book.lock();
        book.backoff = Backoff::default();
        book.slots.values_mut().for_each(|slot| slot.backoff = Backoff::default());
    }

    /// Takes that the account of this participant has changed, or with `None` the one that all share: closes the sessions of sign-ins
    /// that have ended or were replaced, and forgets the participant's own failures.
    pub fn account_changed(&self, participant: Option<&ParticipantId>) {
        let mut closing = Vec::new();
        let mut book = self.book.lock();
        for slot in book.slots.values_mut() {
            if participant.is_some() && slot.participant.as_ref() == participant {
                slot.backoff = Backoff::default();
            }
            if let Some(session) = slot.session.take_if(|session| session.is_void()) {
                slot.taken = None;
                self.reopen(slot, &session);
                closing.push(session);
            }
        }
        let of_calls = book.single_call.extract_if(.., |(session, _)| session.is_void());
        closing.extend(of_calls.map(|(session, _)| session));
        drop(book);
        close_all(closing);
    }

    /// Has a caller's session opened again: updates of what it is subscribed to must not wait for its next call.
    fn reopen(&self, slot: &Slot, ended: &Session) {
        if let Some(owner) = ended.setup.owner.clone().filter(|_| slot.interest.len() > 0) {
            let place = (ended.era(), ended.key().clone());
            tokio::spawn(restore(Weak::clone(&self.me), place, owner));
        }
    }

    /// Whether the server dials in and is not connected.
    fn is_away(&self) -> bool {
        self.environment.dial_in.as_ref().is_some_and(|dial_in| dial_in.link().is_none())
    }

    fn away_refusal(&self) -> Refusal {
        Fault::Link(LinkError::NotConnected).refusal(self.spec.name())
    }

    /// Handles the end of a session: the slot is empty, and the back-off begins.
    fn session_ended(&self, session: &Arc<Session>) {
        let mut guard = self.book.lock();
        let book = &mut *guard;
        book.single_call.retain(|(other, _)| !Arc::ptr_eq(other, session));
        let slot = book.slots.get_mut(&(session.era(), session.key().clone())).filter(|_| !book.closed);
        let here = slot.filter(|slot| slot.session.as_ref().is_some_and(|other| Arc::ptr_eq(other, session)));
        let Some(slot) = here else { return };
        (slot.session, slot.taken) = (None, None);
        self.reopen(slot, session);
        if self.is_away() {
            // A participant may disconnect and connect again at any time.
            drop(guard);
            return self.log_status();
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let reason = format!("the server `{}` ended unexpectedly", self.spec.name());
        if !session.key().is_own() {
            book.cause = session.end_cause().unwrap_or_default();
            book.last_words = session.last_words();
        }
        // A caller whose own session crashes delays only itself.
        let backoff = if session.key().is_own() { &mut slot.backoff } else { &mut book.backoff };
        if session.age() >= STABLE {
            backoff.lasted();
        }
        backoff.failed(Instant::now(), reason);
        drop(guard);
        self.demand.notify_one();
        self.log_status();
    }

    /// Takes the lists of a shared session, and keeps them for the next process.
    fn take_lists(&self, session: &Session) {
        let mut book = self.book.lock();
        book.take_lists(session);
        let kept = if self.spec.config.is_on_demand() { book.to_keep() } else { None };
        drop(book);
        if let Some(kept) = kept {
            let configuration = kept::digest(&self.spec.config.listed_by());
            self.environment.kept.store(self.spec.name(), &kept, &configuration);
        }
    }

    /// Stops a server that runs on demand if no client needs it: its shared sessions close.
    fn stop_unneeded(&self) {
        if !self.spec.config.is_on_demand() {
            return;
        }
        let users = self.book.lock().quiet_users(self.spec.config.idle_stop);
        let gone = users.into_iter().filter(|link| !self.environment.events.is_here(*link));
        gone.for_each(|link| self.release(link));
        let mut book = self.book.lock();
        if book.closed || book.listed.is_empty() {
            return;
        }
        let closing = book.take_unneeded(self.spec.config.idle_stop);
        drop(book);
        if !closing.is_empty() {
            close_all(closing);
            self.log_status();
        }
    }

    /// Whether a shared session must be opened now that no caller waits for: the server does not run on demand, what it lists is not
    /// known, or clients that used one are still there.
    fn must_run(&self) -> bool {
        let book = self.book.lock();
        !self.spec.config.is_on_demand() || book.listed.is_empty() || book.missing_era().is_some()
    }

    /// Whether a server that runs on demand is to be asked whether its kept manifest still holds.
    fn must_probe(&self) -> bool {
        self.environment.starts.probes() && self.book.lock().is_remembered
    }
}

/// Takes over what a server with this configuration listed when it last ran, if that is kept.
fn remember(book: &mut Book, spec: &UpstreamSpec, environment: &Environment) {
    if !spec.config.is_on_demand() {
        return;
    }
    let configuration = kept::digest(&spec.config.listed_by());
    let Some(kept) = environment.kept.load(spec.name(), &configuration) else { return };
    if spec.config.era == EraChoice::Auto {
        (book.eras, book.legacy) = (kept.eras, kept.legacy);
    }
    book.dislikes_probe = kept.dislikes_probe;
    for of in kept.lists {
        let era = of.handshake.version.era();
        let (coding, over_http, is_shared) = (Coding::Json, false, true);
        let origin = Origin { spec, environment, era, coding, over_http, is_shared };
        let manifest = Arc::new(lists::manifest_of(&origin, &of.handshake, &of.written));
        book.listed.push(Listed { era, manifest, of: Some(of) });
    }
    book.is_remembered = true;
}

/// Receives the events of all sessions of a server first, then the gateway does.
struct SupervisedEvents {
    upstream: Weak<Upstream>,
    gateway: Arc<dyn SessionEvents>,
}

impl SessionEvents for SupervisedEvents {
    fn event(&self, session: &Arc<Session>, event: SessionEvent<'_>) {
        if let Some(upstream) = self.upstream.upgrade() {
            match &event {
                SessionEvent::Changed(_) if !session.key().is_own() => upstream.take_lists(session),
                SessionEvent::Ended => upstream.session_ended(session),
                SessionEvent::State => upstream.log_status(),
                SessionEvent::Changed(_)
                | SessionEvent::Notice(_)
                | SessionEvent::Question(_)
                | SessionEvent::Withdrawn(_) => {}
            }
        }
        self.gateway.event(session, event);
    }

    fn available(&self, server: &str, runs: bool) {
        self.gateway.available(server, runs);
    }

    fn is_here(&self, link: LinkId) -> bool {
        self.gateway.is_here(link)
    }
}

fn close_all(sessions: Vec<Arc<Session>>) {
    for session in sessions {
        tokio::spawn(async move { session.close().await });
    }
}

/// Keeps a shared session open while the upstream exists; of a server that runs on demand while it must run.
async fn keep(upstream: Weak<Upstream>) {
    let mut probes = 0;
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        // Before the account is looked at, so that no change is missed.
        let mut changes = strong.account_changes();
        strong.account_changed(None);
        let are_of_callers = strong.has_callers_accounts();
        if are_of_callers || strong.blocked(None).is_some() {
            if strong.book.lock().closed {
                return;
            }
            strong.settled.send_replace(true);
            strong.log_status();
            if !next_account_change(strong, changes).await {
                return;
            }
            // A change of one caller's account says nothing about another's failures.
            if let Some(strong) = upstream.upgrade().filter(|_| !are_of_callers) {
                strong.reset_backoff();
            }
            continue;
        }
        if !strong.must_run() {
            if strong.book.lock().closed {
                return;
            }
            strong.settled.send_replace(true);
            strong.log_status();
            let is_probe = probes < PROBES_MAX && strong.must_probe();
            drop(strong);
            match is_probe {
                true => {
                    probes += 1;
                    probe(&upstream).await;
                }
                false => demanded(&upstream).await,
            }
            continue;
        }
        let (era, remaining) = {
            let book = strong.book.lock();
            if book.closed {
                return;
            }
            // Unless its eras are to be detected.
            let missing = book.missing_era().filter(|era| book.eras.contains(era));
            let era = missing.or_else(|| book.eras.first().copied());
            (era, book.backoff.remaining(Instant::now()))
        };
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
                () = account_change(&mut changes) => {}
            }
            continue;
        }
        let opened = strong.obtain(Wanted::shared(era)).await;
        let is_on_demand = strong.spec.config.is_on_demand();
        drop(strong);
        match opened {
            // Its end is noticed as a demand, if there is one.
            Ok(_) if is_on_demand => {}
            Ok(session) => {
                let mut end = session.ended.subscribe();
                // The wait holds no session: an upstream without users ends its sessions.
                let kept = Arc::downgrade(&session);
                drop(session);
                loop {
                    tokio::select! {
                        _ = end.wait_for(|ended| *ended) => break,
                        () = account_change(&mut changes) => {
                            // Signed in, perhaps with other scopes: the lists may be others.
                            let Some(strong) = upstream.upgrade() else { return };
                            strong.account_changed(None);
                            let Some(session) = kept.upgrade() else { break };
                            if strong.blocked(None).is_none() {
                                // What could not be listed without the new tokens is listed now.
                                strong.book.lock().incomplete = None;
                                session.mark_stale(lists::ALL);
                            }
                            strong.log_status();
                        }
                    }
                }
            }
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Waits until a server that runs on demand may have to run; a bounded time, so that an upstream that has gone is noticed.
async fn demanded(upstream: &Weak<Upstream>) {
    const LOOK: Duration = Duration::from_secs(60);
    let Some(strong) = upstream.upgrade() else { return };
    let wake = strong.demand.notified();
    // Its users would keep it, and it is gone when they are.
    let _ = timeout(LOOK, wake).await;
}

/// Asks a server once whether its kept manifest still holds, unless a client uses it first.
async fn probe(upstream: &Weak<Upstream>) {
    sleep(PROBE_AFTER).await;
    let Some(strong) = upstream.upgrade().filter(|strong| strong.must_probe()) else { return };
    let era = strong.book.lock().eras.first().copied();
    let wanted = Wanted { purpose: Purpose::Probe, urgency: Urgency::Probe, ..Wanted::shared(era) };
    let probed = strong.obtain(wanted).await;
    tracing::debug!(
        server = strong.spec.name(),
        is_open = probed.is_ok(),
        "asked whether what is kept of it still holds"
    );
    strong.stop_unneeded();
}

/// Opens a caller's own session again that ended with subscriptions, until one is open or no subscription is left.
async fn restore(upstream: Weak<Upstream>, place: SessionPlace, owner: SessionOwner) {
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        let changes = strong.account_changes();
        let remaining = {
            let book = strong.book.lock();
            let slot = book.slots.get(&place).filter(|slot| slot.open().is_none() && slot.interest.len() > 0);
            let Some(slot) = slot.filter(|_| !book.closed) else { return };
            slot.backoff.remaining(Instant::now()).max(book.backoff.remaining(Instant::now()))
        };
        if strong.blocked(Some(owner.participant())).is_some() {
            match next_account_change(strong, changes).await {
                true => continue,
                false => return,
            }
        }
        let (caller, urgency) = (owner.caller(), Urgency::Background);
        let wanted = Wanted { user: None, urgency, ..Wanted::by(&caller, Some(place.0), true) };
        if remaining.is_none() && strong.obtain(wanted).await.is_ok() {
            return;
        }
        drop(strong);
        sleep(remaining.unwrap_or(RETRY)).await;
    }
}

/// Waits until an account at the server has changed; for ever for a server without accounts.
async fn account_change(changes: &mut Option<watch::Receiver<u64>>) {
    if let Some(receiver) = changes
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// The same without a hold on the upstream; false once that is gone.
async fn next_account_change(upstream: Arc<Upstream>, mut changes: Option<watch::Receiver<u64>>) -> bool {
    // Its sender goes with the upstream.
    let mut alive = upstream.settled.subscribe();
    drop(upstream);
    tokio::select! {
        () = account_change(&mut changes) => true,
        _ = alive.wait_for(|_| false) => false,
    }
}

/// Waits until a participant connects or disconnects; for ever for a server that does not dial in.
async fn presence_change(presence: &mut Option<watch::Receiver<Option<LinkId>>>) {
    match presence {
        Some(presence) => drop(presence.changed().await),
        None => std::future::pending().await,
    }
}

/// Closes idle sessions of single callers, and stops a server that runs on demand when no client needs it.
async fn tidy(upstream: Weak<Upstream>) {
    let idle = upstream.upgrade().map(|upstream| {
        let Upstream { spec, .. } = &*upstream;
        let stops = spec.config.is_on_demand().then_some(spec.config.idle_stop);
        (spec.limits.caller_idle, stops.unwrap_or(TIDY))
    });
    let Some((idle, idle_stop)) = idle else { return };
    loop {
        sleep(TIDY.min(idle.min(idle_stop).max(TIDY_MIN))).await;
        let Some(upstream) = upstream.upgrade() else { return };
        upstream.log_status();
        let mut book = upstream.book.lock();
        if book.closed {
            return;
        }
        let closing = book.take_idle(idle);
        drop(book);
        close_all(closing);
        upstream.stop_unneeded();
    }
}
