//! Supervisor of one server: starts it, restarts it after failures, owns its sessions and its
//! status.

mod book;
mod demand;
mod keep;
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
use model::{Form, LinkId, ParticipantId, Refusal};
use platform::{Mutex, Shares};
use tokio::sync::{Notify, watch};
use wire::mcp::Era;

use crate::session::{Environment, Session, SessionEvent, SessionEvents};
use crate::{
    config::EraChoice,
    fault::Fault,
    manifest::Manifest,
    measured::Measured,
    measured::{CallDurations, ToolDurations},
    spec::UpstreamSpec,
};

use book::{Backoff, Book, Logged};

/// The log target of lines about the state of servers, so that a filter can select them alone.
const TARGET: &str = "portmoot::servers";
/// Target of what keeps servers down: a command that shows it itself leaves it out of its log.
const DOWN: &str = "portmoot::servers::down";

/// A session of this age ends the count of failures in a row.
const STABLE: Duration = Duration::from_secs(10);

/// One configured server under supervision.
pub struct Upstream {
    me: Weak<Self>,
    spec: Arc<UpstreamSpec>,
    environment: Environment,
    book: Mutex<Book>,
    /// Calls at the server, in all sessions and topics, and sessions of callers' own: each with a
    /// share for every participant.
    calls: Arc<Shares>,
    own_sessions: Arc<Shares>,
    measured: Arc<Measured>,
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
    started_at: Mutex<Instant>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.spec.name())
            .finish_non_exhaustive()
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
        // A server is asked for an era only if both its configuration and its transport leave a
        // choice.
        let has_choice = eras.is_empty() && environment.dial_in.is_none();
        let legacy = if has_choice { None } else { Some(false) };
        let mut book = Book {
            eras,
            legacy,
            ..Book::default()
        };
        book.remember(&spec, &environment);
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
            measured: Arc::default(),
            environment: Environment {
                events: Arc::new(SupervisedEvents {
                    upstream: me.clone(),
                    gateway: environment.events,
                }),
                ..environment
            },
            book: Mutex::new(book),
            settled: watch::Sender::new(settled),
            restarts: AtomicU64::new(0),
            demand: Notify::new(),
            single: AtomicBool::new(false),
            sharing: tokio::sync::Mutex::default(),
            logged: Mutex::default(),
            started_at: Mutex::new(Instant::now()),
        });
        upstream.spawn_tasks();
        upstream
    }

    /// The specification of the server.
    #[must_use]
    pub fn spec(&self) -> &UpstreamSpec {
        &self.spec
    }

    /// Durations of the calls at it since it was configured, by method and by type of error.
    #[must_use]
    pub fn call_durations(&self) -> Vec<CallDurations> {
        self.measured.read()
    }

    /// Durations of the calls of its tools, by the tools' own names.
    #[must_use]
    pub fn tool_durations(&self) -> Vec<ToolDurations> {
        self.measured.read_tools()
    }

    /// The last manifest, also while the server is down; empty before its first start.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        self.book.lock().manifest()
    }

    /// The last manifest in this form; the one in the other form if the server was not listed in
    /// this one.
    #[must_use]
    pub fn manifest_in(&self, form: Form) -> Arc<Manifest> {
        let book = self.book.lock();
        let found = book.listed.iter().find(|listed| listed.era == form);
        found.map_or_else(|| book.manifest(), |listed| Arc::clone(&listed.manifest))
    }

    /// The last manifest in each era.
    #[must_use]
    pub fn manifests(&self) -> Vec<Arc<Manifest>> {
        self.book
            .lock()
            .listed
            .iter()
            .map(|listed| Arc::clone(&listed.manifest))
            .collect()
    }

    /// Lines that its processes write to stderr.
    #[must_use]
    pub fn stderr(&self) -> &Arc<StderrLog> {
        &self.environment.stderr
    }

    /// The time under supervision.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started_at.lock().elapsed()
    }

    /// Has lists and calls wait as for a server that has just been started, if its shared session
    /// is not open: its account has tokens now, so that it opens.
    pub fn unsettle(&self) {
        let book = self.book.lock();
        if book.closed
            || book
                .sessions()
                .any(|session| session.is_open() && !session.key().is_own())
        {
            return;
        }
        *self.started_at.lock() = Instant::now();
        self.settled.send_replace(false);
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

    /// Refuses every open call, because the server is about to be stopped. No session is opened any
    /// more.
    pub fn refuse_calls(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book.lock();
            book.closed = true;
            book.sessions().cloned().collect()
        };
        sessions.iter().for_each(|session| session.refuse_calls());
    }

    /// Closes every session, also those that have yet to open, and stops restarts.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book.lock();
            book.closed = true;
            let all = book.all();
            book.single_call.clear();
            book.slots.clear();
            all
        };
        let closing: Vec<_> = sessions
            .into_iter()
            .map(|session| tokio::spawn(async move { session.close().await }))
            .collect();
        for closing in closing {
            let _ = closing.await;
        }
    }

    /// Clears every back-off: a server that dials in has connected, and earlier failures do not
    /// count.
    pub fn reset_backoff(&self) {
        let mut book = self.book.lock();
        book.backoff = Backoff::default();
        book.slots
            .values_mut()
            .for_each(|slot| slot.backoff = Backoff::default());
    }

    /// Takes that the account of this participant has changed, or with `None` the one that all
    /// share: closes the sessions of sign-ins that have ended or were replaced, and forgets the
    /// participant's own failures.
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
        let of_calls = book
            .single_call
            .extract_if(.., |(session, _)| session.is_void());
        closing.extend(of_calls.map(|(session, _)| session));
        drop(book);
        close_all(closing);
    }

    /// Whether the server dials in and is not connected.
    fn is_away(&self) -> bool {
        self.environment
            .dial_in
            .as_ref()
            .is_some_and(|dial_in| dial_in.link().is_none())
    }

    fn away_refusal(&self) -> Refusal {
        Fault::Link(LinkError::NotConnected).refusal(self.spec.name())
    }

    /// Handles the end of a session: the slot is empty, and the back-off begins.
    fn session_ended(&self, session: &Arc<Session>) {
        let mut guard = self.book.lock();
        let book = &mut *guard;
        book.single_call
            .retain(|(other, _)| !Arc::ptr_eq(other, session));
        let slot = book
            .slots
            .get_mut(&(session.era(), session.key().clone()))
            .filter(|_| !book.closed);
        let here = slot.filter(|slot| {
            slot.session
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(other, session))
        });
        let Some(slot) = here else { return };
        (slot.session, slot.taken) = (None, None);
        self.reopen(slot, session);
        if self.is_away() {
            // A participant may disconnect and connect again at any time.
            drop(guard);
            return self.log_status();
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let reason = match session.end_fault() {
            Some(fault @ Fault::Itself(_)) => fault.refusal(self.spec.name()).message.into_owned(),
            Some(_) | None => format!("the server `{}` ended unexpectedly", self.spec.name()),
        };
        if !session.key().is_own() {
            let cause = session.end_cause().unwrap_or_default();
            book.cause = session
                .noise()
                .map_or(cause.clone(), |noise| format!("{cause}; {noise}"));
            book.hint = session.advice().unwrap_or_default();
            book.last_words = session.last_words();
        }
        // A caller whose own session crashes delays only itself.
        let backoff = if session.key().is_own() {
            &mut slot.backoff
        } else {
            &mut book.backoff
        };
        if session.age() >= STABLE {
            backoff.lasted();
        }
        backoff.failed(Instant::now(), reason);
        drop(guard);
        self.demand.notify_one();
        self.log_status();
    }
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

    fn judged_again(&self, server: &str) {
        self.gateway.judged_again(server);
    }
}

fn close_all(sessions: Vec<Arc<Session>>) {
    for session in sessions {
        tokio::spawn(async move { session.close().await });
    }
}
