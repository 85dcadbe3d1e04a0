//! Supervision of one upstream: started, watched, started again, and never hidden when it is down.
//!
//! Owns its state and which sessions it has. How a session begins and lives is elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{Guard, LinkFailure};
use model::{Era, Refusal, RefusalCode};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::backoff::Backoff;
use super::fault::Fault;
use super::manifest::Manifest;
use super::relay::{Overseer, Relay};
use super::session::{Opening, Session, SessionSink, lock, member};
use super::sink::{Hello, SessionKey};
use super::spec::UpstreamSpec;
use super::status::{State, Status};
use super::wants::Wants;
use super::{greet, lists, subscriptions};
use crate::config::{EraChoice, Sessions, Transport};

/// How often idle sessions are looked for.
const TIDY: Duration = Duration::from_secs(5);
/// A call waits this long for the next attempt rather than be refused.
const WAIT: Duration = Duration::from_secs(2);
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
}

/// What is known about the server, and its sessions.
struct Book {
    /// The eras that it speaks; empty until it was asked.
    eras: Vec<Era>,
    slots: HashMap<(Era, SessionKey), Arc<Slot>>,
    /// Sessions that end with their call.
    once: Vec<Arc<Session>>,
    manifest: Arc<Manifest>,
    backoff: Backoff,
    starting: usize,
    incomplete: Option<String>,
    /// The server only knows HTTP+SSE.
    older: bool,
    closed: bool,
}

/// The place of one session: its successors take the same.
#[derive(Default)]
struct Slot {
    session: Mutex<Option<Arc<Session>>>,
    turn: tokio::sync::Mutex<()>,
    wants: Arc<Wants>,
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
            manifest: Arc::default(),
            backoff: Backoff::default(),
            starting: 0,
            incomplete: None,
            older: false,
            closed: false,
        };
        let upstream = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec: Arc::new(spec),
            ground,
            book: Mutex::new(book),
            settled: watch::Sender::new(false),
            wake: Notify::new(),
            restarts: AtomicU64::new(0),
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
        Arc::clone(&self.book().manifest)
    }

    /// Waits until the first start has ended, well or badly. The caller bounds the wait.
    pub async fn settled(&self) {
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// How it is doing, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> Status {
        let book = self.book();
        let sessions: Vec<Arc<Session>> = book
            .slots
            .values()
            .filter_map(|slot| lock(&slot.session).clone())
            .chain(book.once.iter().cloned())
            .filter(|session| session.is_open())
            .collect();
        let shared = sessions.iter().find(|session| *session.key() == SessionKey::Shared);
        let trouble = shared.and_then(|session| session.trouble()).or_else(|| book.incomplete.clone());
        let (state, reason) = match (shared, trouble) {
            (Some(_), Some(trouble)) => (State::Degraded, Some(trouble)),
            (Some(_), None) => (State::Ready, None),
            (None, _) if book.starting > 0 => (State::Starting, book.backoff.reason()),
            (None, _) if book.closed => (State::Down, Some("stopped".to_owned())),
            (None, _) if book.backoff.reason().is_some() => (State::Down, book.backoff.reason()),
            (None, _) => (State::Starting, None),
        };
        let manifest = &book.manifest;
        Status {
            name: Arc::from(self.spec.name()),
            state,
            reason,
            eras: book.eras.clone(),
            version: shared.map(|session| session.version().as_str().to_owned()),
            pid: shared.and_then(|session| session.link()?.pid()),
            sessions: sessions.len(),
            calls: sessions.iter().map(|session| session.calls()).sum(),
            listed: [&manifest.tools, &manifest.resources, &manifest.templates, &manifest.prompts]
                .map(|list| list.items.len()),
            quarantined: manifest.quarantined.clone(),
            restarts: self.restarts.load(Ordering::Relaxed),
            retry_after_ms: book.backoff.remaining(Instant::now()).map(millis),
        }
    }

    /// The session for a caller: the shared one where policy and declared capabilities allow it, else the caller's own,
    /// opened on first use. Its era is the caller's where the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server cannot be used now.
    pub async fn session(&self, key: &SessionKey, hello: &Hello, era: Era) -> Result<Arc<Session>, Refusal> {
        loop {
            let known = self.book().eras.clone();
            let era = match known.first() {
                Some(_) if known.contains(&era) => era,
                Some(other) => *other,
                None => {
                    // Nobody knows yet what it speaks: opening the shared session finds out.
                    let session = self.obtain(None, &SessionKey::Shared, None).await?;
                    if self.book().eras.is_empty() {
                        return Ok(session);
                    }
                    continue;
                }
            };
            let key = if self.shares(key, hello, era) { SessionKey::Shared } else { key.clone() };
            let hello = (key != SessionKey::Shared).then_some(hello);
            return self.obtain(Some(era), &key, hello).await;
        }
    }

    /// The session that [`Upstream::session`] would give, if it is open now.
    #[must_use]
    pub fn open_session(&self, key: &SessionKey, hello: &Hello, era: Era) -> Option<Arc<Session>> {
        let shared = self.shares(key, hello, self.spoken(era)?);
        if shared { self.open_shared(era) } else { self.ready(era, key.clone()) }
    }

    /// The shared session for callers of this era, if it is open now.
    #[must_use]
    pub fn open_shared(&self, era: Era) -> Option<Arc<Session>> {
        self.ready(era, SessionKey::Shared)
    }

    fn ready(&self, era: Era, key: SessionKey) -> Option<Arc<Session>> {
        if self.spec.config.sessions == Sessions::Call && key != SessionKey::Shared {
            return None;
        }
        let place = (self.spoken(era)?, key);
        let session = lock(&self.book().slots.get(&place)?.session).clone();
        session.filter(|session| session.is_open())
    }

    /// The era in which a caller of this era is served, if it is known by now.
    fn spoken(&self, era: Era) -> Option<Era> {
        let book = self.book();
        if book.eras.contains(&era) { Some(era) } else { book.eras.first().copied() }
    }

    /// Closes what belongs to a caller that has left.
    pub fn leave(&self, key: &SessionKey) {
        if *key == SessionKey::Shared {
            return;
        }
        let left: Vec<Arc<Session>> = {
            let mut book = self.book();
            let keys: Vec<_> = book.slots.keys().filter(|(_, other)| other == key).cloned().collect();
            keys.iter().filter_map(|key| lock(&book.slots.remove(key)?.session).take()).collect()
        };
        close_all(left);
    }

    /// Ends every session; nothing is started again.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let mut book = self.book();
            book.closed = true;
            let once = std::mem::take(&mut book.once);
            book.slots.drain().filter_map(|(_, slot)| lock(&slot.session).take()).chain(once).collect()
        };
        self.wake.notify_waiters();
        self.wake.notify_one();
        let closing: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(async move { session.close().await })).collect();
        for closing in closing {
            let _ = closing.await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Whether a caller that says this of itself uses the shared session.
    #[must_use]
    pub fn shares(&self, key: &SessionKey, hello: &Hello, era: Era) -> bool {
        match self.spec.config.sessions {
            Sessions::Shared => true,
            Sessions::Caller | Sessions::Call => *key == SessionKey::Shared,
            // The modern era says all in each request.
            Sessions::Auto => {
                era == Era::Modern
                    || ["sampling", "elicitation", "roots"]
                        .iter()
                        .all(|capability| member(&hello.capabilities, capability).is_none())
            }
        }
    }

    /// The open session of this place, or a new one.
    async fn obtain(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
    ) -> Result<Arc<Session>, Refusal> {
        if self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared {
            return self.open(era, key, hello, Arc::default()).await;
        }
        // Until the era is known there is one place, so that only one process is asked.
        let place = (era.unwrap_or(Era::Modern), key.clone());
        let slot = self.slot(place.clone())?;
        if let Some(session) = lock(&slot.session).clone().filter(|session| session.is_open()) {
            return Ok(session);
        }
        let failures = self.book().backoff.total();
        let _turn = slot.turn.lock().await;
        if let Some(session) = lock(&slot.session).clone().filter(|session| session.is_open()) {
            return Ok(session);
        }
        // Whoever waited behind a start that failed shares its outcome.
        if let (true, Some(reason)) = {
            let book = self.book();
            (book.backoff.total() > failures, book.backoff.reason())
        } {
            return Err(Refusal::new(RefusalCode::UpstreamDown, reason).hint("it is tried again by itself"));
        }
        self.wait_for_turn().await?;
        let session = self.open(era, key, hello, Arc::clone(&slot.wants)).await?;
        let mut book = self.book();
        if book.closed {
            close_all(vec![session]);
            return Err(self.down("was stopped"));
        }
        let found = (session.era(), key.clone());
        if found != place {
            book.slots.remove(&place);
        }
        let home = Arc::clone(book.slots.entry(found).or_insert_with(|| Arc::clone(&slot)));
        // Whoever waits at the first place finds it there too.
        *lock(&slot.session) = Some(Arc::clone(&session));
        *lock(&home.session) = Some(Arc::clone(&session));
        if *key == SessionKey::Shared {
            book.manifest = session.manifest();
        }
        drop(book);
        self.ground.sink.changed(&session);
        // Whoever waited for the first start finds the lists there.
        self.settled.send_replace(true);
        self.wake.notify_one();
        Ok(session)
    }

    fn slot(&self, place: (Era, SessionKey)) -> Result<Arc<Slot>, Refusal> {
        let mut book = self.book();
        if book.closed {
            drop(book);
            return Err(self.down("was stopped"));
        }
        if let Some(slot) = book.slots.get(&place) {
            return Ok(Arc::clone(slot));
        }
        if place.1 != SessionKey::Shared {
            self.room(&mut book)?;
        }
        Ok(Arc::clone(book.slots.entry(place).or_default()))
    }

    /// Makes room for one more session of a caller: the one that was idle longest goes.
    fn room(&self, book: &mut Book) -> Result<(), Refusal> {
        let own = book.slots.keys().filter(|(_, key)| *key != SessionKey::Shared).count();
        if own + book.once.len() < self.spec.bounds.caller_sessions_max {
            return Ok(());
        }
        let idle = book
            .slots
            .iter()
            .filter(|((_, key), _)| *key != SessionKey::Shared)
            .filter_map(|(place, slot)| Some((place.clone(), lock(&slot.session).clone()?)))
            .filter(|(_, session)| session.calls() == 0)
            .max_by_key(|(_, session)| session.age().1);
        let Some((place, session)) = idle else {
            let what = format!("the server `{}` serves as many callers as it may", self.spec.name());
            return Err(Refusal::new(RefusalCode::UpstreamBusy, what).hint("try again later"));
        };
        book.slots.remove(&place);
        close_all(vec![session]);
        Ok(())
    }

    /// Waits for the end of the back-off if that is near.
    async fn wait_for_turn(&self) -> Result<(), Refusal> {
        let (remaining, reason) = {
            let book = self.book();
            (book.backoff.remaining(Instant::now()), book.backoff.reason())
        };
        match remaining {
            None => Ok(()),
            Some(remaining) if remaining <= WAIT => {
                sleep(remaining).await;
                Ok(())
            }
            Some(remaining) => {
                let reason = reason.unwrap_or_else(|| "is not running".to_owned());
                Err(Refusal::new(RefusalCode::UpstreamDown, reason)
                    .hint("it is tried again by itself")
                    .retry_after_ms(millis(remaining)))
            }
        }
    }

    fn down(&self, what: &str) -> Refusal {
        Refusal::new(RefusalCode::UpstreamDown, format!("the server `{}` {what}", self.spec.name()))
    }

    /// Opens a session within the start's time and reads its lists.
    async fn open(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
        wants: Arc<Wants>,
    ) -> Result<Arc<Session>, Refusal> {
        self.book().starting += 1;
        self.ground.sink.state(self.spec.name());
        let mut outcome = self.attempt(era, key, hello, &wants).await;
        if let Err(Fault::Link(LinkFailure::Http { status: 400 | 404 | 405, .. })) = &outcome
            && matches!(self.spec.config.transport, Transport::Http(_))
            && era != Some(Era::Modern)
            && !self.book().older
        {
            // What a server of 2024-11-05 answers to a POST; one that is none fails again.
            self.book().older = true;
            let second = self.attempt(Some(Era::Legacy), key, hello, &wants).await;
            self.book().older = second.is_ok();
            outcome = if second.is_ok() { second } else { outcome };
        }
        self.settle(&outcome, key);
        self.ground.sink.state(self.spec.name());
        if outcome.is_err() {
            self.settled.send_replace(true);
        }
        outcome.map_err(|fault| fault.refusal(self.spec.name()))
    }

    fn settle(&self, outcome: &Result<Arc<Session>, Fault>, key: &SessionKey) {
        let mut book = self.book();
        book.starting = book.starting.saturating_sub(1);
        match outcome {
            Ok(session) => {
                book.backoff.started();
                if let Some(greeting) = session.greeted()
                    && (book.eras.is_empty() || (greeting.both && book.eras.len() == 1))
                    && self.spec.config.era == EraChoice::Auto
                {
                    book.eras =
                        if greeting.both { vec![Era::Modern, Era::Legacy] } else { vec![greeting.era] };
                }
                if session.opening.once {
                    book.once.push(Arc::clone(session));
                }
            }
            Err(fault) => {
                tracing::error!(server = self.spec.name(), %fault, "the server could not be started");
                let reason = fault.refusal(self.spec.name()).message.into_owned();
                book.backoff.failed(Instant::now(), reason);
                // The verdict on its era may have been wrong, or the server was replaced.
                if *key == SessionKey::Shared && self.spec.config.era == EraChoice::Auto {
                    book.eras.clear();
                }
            }
        }
    }

    async fn attempt(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
        wants: &Arc<Wants>,
    ) -> Result<Arc<Session>, Fault> {
        let session = Session::new(Opening {
            spec: Arc::clone(&self.spec),
            key: key.clone(),
            hello: hello.cloned(),
            identity: self.ground.identity.clone(),
            sink: Arc::new(Relay::new(self.me.clone() as Weak<dyn Overseer>, Arc::clone(&self.ground.sink))),
            guard: self.ground.guard.clone(),
            wants: Arc::clone(wants),
            once: self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared,
            older: self.book().older,
        });
        let opened = timeout(self.spec.config.timeouts.start, greet::open(&session, era)).await;
        if let Err(fault) = opened.unwrap_or(Err(Fault::Timeout)) {
            session.close().await;
            return Err(fault);
        }
        let Some(greeting) = session.greeted() else { return Err(Fault::Answer("no greeting".to_owned())) };
        let listed =
            timeout(self.spec.config.timeouts.start, lists::refresh(&session, &greeting, lists::ALL)).await;
        let complete = matches!(listed, Ok(Ok(_)));
        if !session.is_open() {
            return Err(Fault::Link(LinkFailure::Broken(
                "it ended while it was asked for its lists".to_owned(),
            )));
        }
        if *key == SessionKey::Shared {
            self.book().incomplete = (!complete).then(|| "its lists could not be read in full".to_owned());
        }
        if greeting.era == Era::Legacy {
            session.tell_wants().await;
        }
        tokio::spawn(lists::keep(Arc::downgrade(&session), Arc::clone(&session.upkeep)));
        if greeting.era == Era::Modern {
            tokio::spawn(subscriptions::listen(Arc::downgrade(&session), Arc::clone(&session.listening)));
        }
        Ok(session)
    }
}

impl Overseer for Upstream {
    fn lost(&self, session: &Arc<Session>) {
        let mut book = self.book();
        book.once.retain(|other| !Arc::ptr_eq(other, session));
        let current = book.slots.values().any(|slot| {
            let mut place = lock(&slot.session);
            let same = place.as_ref().is_some_and(|other| Arc::ptr_eq(other, session));
            if same {
                *place = None;
            }
            same
        });
        if !current || book.closed {
            return;
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let reason = format!("the server `{}` ended unexpectedly", self.spec.name());
        if session.age().0 >= STABLE {
            book.backoff.lasted();
        }
        book.backoff.failed(Instant::now(), reason);
        drop(book);
        self.wake.notify_one();
    }

    fn listed(&self, session: &Arc<Session>) {
        if *session.key() == SessionKey::Shared {
            self.book().manifest = session.manifest();
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
        if let Some(remaining) = remaining {
            drop(strong);
            sleep(remaining).await;
            continue;
        }
        let opened = strong.obtain(era, &SessionKey::Shared, None).await;
        drop(strong);
        match opened {
            Ok(session) => session.until_ended().await,
            // Where nothing else says when, look again soon.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Closes callers' sessions that are idle.
async fn tidy(upstream: Weak<Upstream>) {
    loop {
        sleep(TIDY).await;
        let Some(upstream) = upstream.upgrade() else { return };
        let mut book = upstream.book();
        if book.closed {
            return;
        }
        let idle = upstream.spec.bounds.caller_idle;
        let gone: Vec<_> = book
            .slots
            .iter()
            .filter(|((_, key), slot)| *key != SessionKey::Shared && slot.turn.try_lock().is_ok())
            .filter(|(_, slot)| {
                lock(&slot.session)
                    .as_ref()
                    .is_none_or(|session| session.calls() == 0 && session.age().1 >= idle)
            })
            .map(|(place, _)| place.clone())
            .collect();
        let left = gone.iter().filter_map(|place| lock(&book.slots.remove(place)?.session).take()).collect();
        drop(book);
        close_all(left);
    }
}
