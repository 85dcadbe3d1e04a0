//! One session with one server: shared by many callers, or one caller's own.
//!
//! Owns the numbers under which requests are known to the server, and who waits for which. What arrives is told apart in
//! `inbox`; how the session began is in `greet`. It must not know how sessions are chosen or started again.

mod calls;
mod care;
mod expiry;
mod health;
pub(super) mod inbox;
pub(super) mod own;
mod questions;
mod reopen;
mod tasks;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use bytes::Bytes;
use client::{Link, SendMeta};
use http::HeaderMap;
use json::Splice;
use model::{Era, Refusal, RefusalCode};
use platform::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use wire::mcp::{ListKind, Params, Version};
use wire::rpc::{Id, Message, notification};

use super::dialer::Dialer;
use super::fault::Fault;
use super::headers;
use super::manifest::Manifest;
use super::sink::{CallSink, Hello, Outgoing, QuestionId, SessionKey, Ticket};
use super::spec::UpstreamSpec;
use super::wants::Wants;
use calls::{Calls, Open, Sent, Times, Waiter};
use health::Health;
pub use tasks::Hold;

/// Where everything goes that is about no call. Called from the session's tasks; must not block.
pub trait SessionSink: Send + Sync {
    /// A notification: for the session's owner, or (shared) for whoever is interested.
    fn notice(&self, session: &Arc<Session>, method: &str, frame: Bytes);
    /// A question to the owner of a caller's session.
    fn question(&self, session: &Arc<Session>, question: QuestionId, message: Message);
    /// The server does not want an answer to this question any more.
    fn withdrawn(&self, session: &Arc<Session>, question: QuestionId) {
        let _ = (session, question);
    }
    /// The session's manifest was fetched for the first time or again, and differs from the one before, or the server
    /// has told that these lists changed.
    fn changed(&self, session: &Arc<Session>, told: &[ListKind]);
    /// The session has ended, wanted or not; its open calls have been told.
    fn ended(&self, session: &Arc<Session>);
    /// Trouble with a session has begun, or is over.
    fn state(&self) {}
}

/// What the server said when the session began.
#[derive(Debug, Clone)]
pub(super) struct Greeting {
    pub(super) era: Era,
    pub(super) version: Version,
    /// The result of `initialize` or `server/discover`.
    pub(super) raw: Bytes,
    /// The server's capabilities.
    pub(super) capabilities: Bytes,
    /// The server also speaks the other era.
    pub(super) both: bool,
}

/// What a session is opened with.
pub(super) struct Opening {
    pub(super) spec: Arc<UpstreamSpec>,
    pub(super) key: SessionKey,
    /// What is said about the client: the caller's hello, or nothing for the shared session.
    pub(super) hello: Option<Hello>,
    /// The gateway's own `Implementation`.
    pub(super) identity: Bytes,
    pub(super) sink: Arc<dyn SessionSink>,
    /// The guard of child processes.
    pub(super) guard: Option<client::Guard>,
    pub(super) wants: Arc<Wants>,
    /// The server only knows HTTP+SSE.
    pub(super) older: bool,
    /// Ends with its first call.
    pub(super) once: bool,
    /// Where the link to a server that dials in comes from.
    pub(super) dialer: Option<Arc<dyn Dialer>>,
}

/// One session with one server.
pub struct Session {
    me: Weak<Session>,
    pub(super) opening: Opening,
    link: OnceLock<Link>,
    greeting: Mutex<Option<Greeting>>,
    era: OnceLock<Era>,
    version: OnceLock<Version>,
    pub(super) manifest: Mutex<Arc<Manifest>>,
    calls: Mutex<Calls>,
    /// Wakes the task that ends what takes too long.
    timer: Arc<Notify>,
    /// Wakes the task that keeps manifest and subscriptions up to date.
    pub(super) upkeep: Arc<Notify>,
    /// Wakes the task that keeps the listen stream (modern).
    pub(super) listening: Arc<Notify>,
    pub(super) stale: AtomicU64,
    /// Lists of which the server has said that they changed.
    pub(super) told: AtomicU64,
    pub(super) acknowledged: watch::Sender<u64>,
    /// The revision of the wants that the listen stream covers.
    pub(super) heard: watch::Sender<u64>,
    ended: watch::Sender<bool>,
    health: Health,
    garbage: AtomicU64,
    begun: Instant,
    used: AtomicU64,
    birth: u64,
    /// Tasks at the server that may still be asked for.
    tasks: AtomicUsize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (server, key) = (self.upstream(), &self.opening.key);
        f.debug_struct("Session").field("server", &server).field("key", key).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(opening: Opening) -> Arc<Self> {
        let session = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            opening,
            link: OnceLock::new(),
            greeting: Mutex::default(),
            era: OnceLock::new(),
            version: OnceLock::new(),
            manifest: Mutex::default(),
            calls: Mutex::default(),
            timer: Arc::default(),
            upkeep: Arc::default(),
            listening: Arc::default(),
            stale: AtomicU64::new(0),
            told: AtomicU64::new(0),
            acknowledged: watch::Sender::new(0),
            heard: watch::Sender::new(0),
            ended: watch::Sender::new(false),
            health: Health::default(),
            garbage: AtomicU64::new(0),
            begun: Instant::now(),
            used: AtomicU64::new(0),
            birth: u64::from_le_bytes(platform::random()),
            tasks: AtomicUsize::new(0),
        });
        session.keep_time();
        session
    }

    /// The server's configured name.
    #[must_use]
    pub fn upstream(&self) -> &str {
        self.opening.spec.name()
    }

    /// Whose it is.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.opening.key
    }

    /// The era in which everything on it is written.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era.get().copied().unwrap_or(Era::Legacy)
    }

    /// The revision that was agreed on.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version.get().copied().unwrap_or(Version::NEWEST_LEGACY)
    }

    /// True until it has ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !*self.ended.borrow()
    }

    /// What the server offers on this session, as last known.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.manifest.lock())
    }

    /// The result of `initialize` (legacy) or `server/discover` (modern), raw.
    #[must_use]
    pub fn greeting(&self) -> Bytes {
        self.greeting.lock().as_ref().map(|greeting| greeting.raw.clone()).unwrap_or_default()
    }

    /// Calls of callers that are open.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.open().callers()
    }

    /// Sends a request; its answer, progress and questions go to the sink. Never waits.
    ///
    /// # Errors
    /// A refusal when the upstream is busy or down; then the sink is not used.
    pub fn call(&self, call: Outgoing<'_>, sink: Arc<dyn CallSink>) -> Result<Ticket, Refusal> {
        let message = call.params.message();
        let Some(id) = message.id().cloned() else {
            return Err(Refusal::new(RefusalCode::Malformed, "a call needs an id"));
        };
        let now = Instant::now();
        let age = now.saturating_duration_since(self.begun).as_millis();
        self.used.store(u64::try_from(age).unwrap_or(u64::MAX), Ordering::Relaxed);
        let headers = self.headers(call.params, call.target);
        let token = call.params.progress_token();
        let tool = call.target.filter(|_| call.params.method() == "tools/call");
        let longest = self.opening.spec.config.timeouts.max;
        // What waits for a task's end takes as long as the task: only the hard maximum counts.
        let waits = call.params.method() == "tasks/result";
        let patience = if waits { longest } else { self.opening.spec.timeout(tool) };

        let number = self.open().number();
        let ours = Id::number(number);
        let (mut edit, mut splice) = (call.edit, Splice::new());
        if token.is_some() {
            edit.set_progress_token(&ours);
        }
        edit.finish(&mut splice);
        message.set_id(&mut splice, &ours);
        let frame = message.edited(&splice);

        let mut open = self.open();
        if let Some(fault) = &open.ended {
            return Err(self.refusal(fault));
        }
        if open.len() >= self.opening.spec.bounds.calls_max {
            return Err(self.refusal(&Fault::Unsent(client::Unsent::Busy)));
        }
        let first = open.len() == 0;
        let behind = self.serial() && open.callers() > 0;
        let kept = self.resends().then(|| (frame.clone(), headers.clone()));
        let times = Times::new(now, patience, longest);
        open.insert(
            number,
            Open { waiter: Waiter::Call { sink, id, token }, times: Some(times), sent: kept },
        );
        if let Some(stalled) = &mut open.stalled {
            stalled.push(number);
        } else if behind {
            open.wait(number, (frame, headers));
        } else {
            drop(open);
            let from = self.link.get().is_some_and(Link::is_carried).then(|| call.from.into());
            if let Err(unsent) = self.send(frame, SendMeta { request: Some(number), headers, from }) {
                self.open().settle(number);
                return Err(self.refusal(&Fault::Unsent(unsent)));
            }
        }
        if first {
            self.timer.notify_one();
        }
        Ok(Ticket(number))
    }

    /// Takes a call back: the server is told in its era's way, and the sink hears nothing more.
    pub fn cancel(&self, ticket: Ticket, reason: &str) {
        if self.settle(ticket.0).is_some() {
            self.call_off(ticket.0, reason);
            self.rest();
        }
    }

    /// Sends a notification of the session's owner, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// A refusal when the upstream is busy or down.
    pub fn notify(&self, frame: Bytes) -> Result<(), Refusal> {
        self.send(frame, SendMeta::default()).map_err(|unsent| self.refusal(&Fault::Unsent(unsent)))
    }

    /// Ends the session in order.
    pub async fn close(&self) {
        if let Some(link) = self.link.get() {
            link.close(client::Bounds::default()).await;
        }
        self.end(Fault::Link(client::LinkFailure::Closed));
    }

    /// Becomes true, or is closed, when the session has ended.
    pub(super) fn watch_end(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// How long it has been open, and how long since its last call.
    pub(super) fn age(&self) -> (std::time::Duration, std::time::Duration) {
        let age = self.begun.elapsed();
        (age, age.saturating_sub(std::time::Duration::from_millis(self.used.load(Ordering::Relaxed))))
    }

    pub(super) fn link(&self) -> Option<&Link> {
        self.link.get()
    }

    pub(super) fn set_link(&self, link: Link) {
        // One that is not taken is dropped, which ends it.
        let _ = self.link.set(link);
    }

    pub(super) fn greeted(&self) -> Option<Greeting> {
        self.greeting.lock().clone()
    }

    pub(super) fn set_greeting(&self, greeting: Greeting) {
        let _ = self.era.set(greeting.era);
        let _ = self.version.set(greeting.version);
        *self.greeting.lock() = Some(greeting);
    }

    fn open(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock()
    }

    pub(super) fn refusal(&self, fault: &Fault) -> Refusal {
        fault.refusal(self.upstream())
    }

    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), client::Unsent> {
        self.link.get().ok_or(client::Unsent::Closed)?.send(frame, meta)
    }

    /// True over Streamable HTTP.
    pub(super) fn over_http(&self) -> bool {
        self.streams()
    }

    /// True where each request has a stream of its own.
    fn streams(&self) -> bool {
        self.link.get().is_some_and(Link::attributes)
    }

    /// One call after the other: a modern caller has no session at our door to which a question could go, and on a
    /// shared stream nothing tells which of several calls it belongs to.
    fn serial(&self) -> bool {
        matches!(self.opening.key, SessionKey::Principal { .. })
            && self.era() == Era::Legacy
            && !self.streams()
    }

    /// Whether a request may have to be sent again: only a legacy HTTP session can be gone while the server is not.
    fn resends(&self) -> bool {
        self.streams() && self.era() == Era::Legacy
    }

    /// The headers that mirror a modern request.
    fn headers(&self, params: &Params<'_>, target: Option<&str>) -> Option<Box<HeaderMap>> {
        if self.era() == Era::Legacy || !self.streams() {
            return None;
        }
        let manifest = self.manifest();
        Some(Box::new(headers::mirror(params, target, self.version(), &manifest)))
    }

    /// Takes a request out of the table and sends what waited for it.
    fn settle(&self, number: u64) -> Option<Open> {
        let (settled, next) = self.open().settle(number);
        if let Some((number, request)) = next {
            self.resend(number, request);
        }
        settled
    }

    fn resend(&self, number: u64, (frame, headers): Sent) {
        if let Err(unsent) = self.send(frame, SendMeta { request: Some(number), headers, from: None })
            && let Some(open) = self.settle(number)
        {
            self.tell(open, Err(Fault::Unsent(unsent)));
        }
    }

    /// Tells whoever waits that there will be no answer; or, for our own requests, the answer.
    fn tell(&self, open: Open, end: Result<Message, Fault>) {
        match open.waiter {
            Waiter::Own(waiter) => drop(waiter.send(end)),
            Waiter::Call { sink, id, .. } => {
                sink.done(match end {
                    Ok(message) => Ok(super::sink::Answer { message, id }),
                    Err(fault) => Err(self.refusal(&fault)),
                });
                self.rest();
            }
        }
    }

    /// Tells the server that nobody waits for this request any more.
    fn call_off(&self, number: u64, reason: &str) {
        let Some(link) = self.link.get() else { return };
        if !(self.era() == Era::Modern && self.streams()) {
            let reason = json::quote(reason);
            let params = format!("{{\"requestId\":{number},\"reason\":{reason}}}");
            let frame = notification("notifications/cancelled", Some(params.as_bytes()));
            let _ = link.send(frame, SendMeta::default());
        }
        link.cancel(number);
    }

    /// A session for one call ends with it, or with the task that it has become.
    fn rest(&self) {
        if self.opening.once
            && self.calls() == 0
            && self.tasks() == 0
            && let Some(me) = self.me.upgrade()
        {
            tokio::spawn(async move { me.close().await });
        }
    }

    /// The end, told once to everybody who waits.
    fn end(&self, fault: Fault) {
        let waiting = {
            let mut open = self.open();
            if open.ended.is_some() {
                return;
            }
            open.ended = Some(fault.clone());
            open.drain()
        };
        self.ended.send_replace(true);
        self.timer.notify_one();
        self.upkeep.notify_one();
        self.listening.notify_one();
        for open in waiting {
            self.tell(open, Err(fault.clone()));
        }
        if let Some(me) = self.me.upgrade() {
            self.opening.sink.ended(&me);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.timer.notify_one();
        self.upkeep.notify_one();
        self.listening.notify_one();
    }
}
