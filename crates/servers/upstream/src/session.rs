//! Session with a server: identity, handshake result, open and closed state.
//!
//! The files below `session/` add calls, incoming messages, questions, subscriptions, tasks and
//! health.

mod calls;
mod client_tasks;
mod deferred;
mod doubts;
pub(crate) mod inbox;
mod lost;
mod noise;
mod pending;
mod questions;
mod relisted;
pub(crate) mod requests;
mod resend;
mod rounds;
mod subscribe;
mod task_questions;
mod tasks;
#[cfg(test)]
mod tests;
mod upkeep;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{
    Accounts, Authorize, Guard, HttpSpec, LinkError, SendMeta, ServerLink, StderrLog,
    processes::Root,
};
use model::{Coding, LinkId, LogLevel, Notice, Refusal};
use platform::{Mutex, Shares};
use tokio::sync::{Notify, watch};
use wire::mcp::{ListKind, Version, extensions};
use wire::{mcp::Era, rpc::Id};
use zeroize::Zeroizing;

use crate::curation::Curation;
use crate::field_numbers::FieldNumbers;
use crate::pinning::Pinning;
use crate::relisting::Relisting;
use crate::sent::{Resolve, SentSchemas};
use crate::session_api::{RequestNumbers, SessionKey, SessionOwner};
use crate::{
    config::{HttpConfig, Transport},
    declared::Handshake,
    dial_in::DialIn,
    fault::Fault,
    interest::Interest,
    kept::KeptManifests,
    manifest::{Manifest, Written},
    measured::Measured,
    question::Question,
    spec::UpstreamSpec,
    starts::Starts,
    status::QuarantinedTool,
    words,
};
use client_tasks::ClientTasks;
pub use client_tasks::{CLIENT_TASK_ID_BYTES_MAX, CLIENT_TASKS_MAX};
pub use deferred::UnsentCall;
use doubts::Doubts;
use noise::Noise;
use pending::PendingTable;
pub use task_questions::{TASK_QUESTIONS_MAX, TaskQuestions, Unanswered};
pub use tasks::TaskHold;

/// Lines on stderr that a failure is shown with.
const LAST_WORDS_MAX: usize = 5;
/// Lines of it that are searched for an error.
const SEARCHED_WORDS_MAX: usize = 200;

/// An event of a session that concerns no single call.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// The server sent a notification: to the session's owner, or on a shared session to all
    /// interested callers.
    Notice(Notice),
    /// The server asks the session's owner.
    Question(Question),
    /// The server withdrew the question with its id, of a call or of the owner.
    Withdrawn(Id),
    /// The session's manifest was fetched and differs from the previous one, or the server
    /// announced changes of these lists.
    Changed(&'a [ListKind]),
    /// The session ended, on request or unexpectedly; its open calls have ended before.
    Ended,
    /// A failure of the session began or ended.
    State,
}

/// Receives the events of sessions. The session's tasks call it; an implementation must not block.
pub trait SessionEvents: Send + Sync {
    /// Takes one event.
    fn event(&self, session: &Arc<Session>, event: SessionEvent<'_>);

    /// Takes that the server of this name runs now, or does not; in the order of the changes.
    fn available(&self, server: &str, runs: bool);

    /// Takes that what the server of this name listed last was judged again, while none of its
    /// sessions is open.
    fn judged_again(&self, server: &str);

    /// Whether the client with this link is connected. A link may also leave before the session
    /// that it waited for is open.
    fn is_here(&self, link: LinkId) -> bool;
}

/// The gateway's services for all sessions of a server.
#[derive(Clone)]
pub struct Environment {
    /// The guard of child processes, if one runs.
    pub guard: Option<Guard>,
    /// The gateway's `Implementation` object, raw JSON.
    pub identity: Bytes,
    /// The random id of the running gateway: a server that names it leads back to the gateway.
    pub instance: Arc<str>,
    /// Receives everything that concerns no single call.
    pub events: Arc<dyn SessionEvents>,
    /// The participant that serves, for a server that dials in.
    pub dial_in: Option<Arc<DialIn>>,
    /// Numbers of requests, shared with the calls of the gateway.
    pub numbers: Arc<RequestNumbers>,
    /// Lines that the server's processes write to stderr.
    pub stderr: Arc<StderrLog>,
    /// Resolves references to schemas, if that is configured.
    pub resolve: Option<Arc<dyn Resolve>>,
    /// The numbers of fields that the tools' messages had.
    pub fields: Arc<FieldNumbers>,
    /// The accounts at the server, if its requests may need tokens.
    pub accounts: Option<Arc<dyn Accounts>>,
    /// Judges what the server lists, if that is wanted.
    pub pins: Option<Arc<dyn Pinning>>,
    /// The gate of all starts of processes.
    pub starts: Arc<Starts>,
    /// Lists of servers when they last ran, and the participants that used them lately.
    pub kept: Arc<KeptManifests>,
}

/// Everything that a new session needs.
pub(crate) struct SessionSetup {
    pub(crate) spec: Arc<UpstreamSpec>,
    pub(crate) key: SessionKey,
    /// The caller that owns the session; `None` for the shared session.
    pub(crate) owner: Option<SessionOwner>,
    pub(crate) environment: Environment,
    pub(crate) interest: Arc<Interest>,
    /// Whether the server only speaks HTTP+SSE (2024-11-05).
    pub(crate) http_sse: bool,
    /// Whether a server that is configured to speak proto-mcp speaks JSON-RPC instead.
    pub(crate) proto_fallback: bool,
    /// Whether the session ends with its first call.
    pub(crate) single_call: bool,
    /// The calls at the server, in all its sessions.
    pub(crate) calls: Arc<Shares>,
    /// Durations of the calls at the server, in all its sessions.
    pub(crate) measured: Arc<Measured>,
}

/// A failed request.
struct Failure {
    /// Why, in words for callers.
    why: String,
    /// Whether the server cannot be reached.
    is_down: bool,
}

/// The health record of an open session.
#[derive(Default)]
struct Health {
    /// Why the last request failed; the next answer clears it.
    failure: Mutex<Option<Failure>>,
    /// Set together with `failure`; every answer checks it.
    failing: AtomicBool,
    /// A check whether the server is still modern is running.
    checking_era: AtomicBool,
    /// A liveness check is running, and the server has sent nothing since it began.
    silent: AtomicBool,
}

/// One session with one server.
pub struct Session {
    me: Weak<Session>,
    pub(crate) setup: SessionSetup,
    /// Whether calls of a legacy server are kept to be sent again.
    keeps_calls: bool,
    /// The extensions that its own modern requests declare.
    pub(crate) extensions: Bytes,
    pub(crate) link: OnceLock<ServerLink>,
    /// The account whose key it began with, where each caller has a key.
    keyed: OnceLock<Arc<dyn Authorize>>,
    handshake: Mutex<Option<Handshake>>,
    /// The place in [`Version::ALL`] of the revision that the last handshake chose.
    version: AtomicUsize,
    pub(crate) manifest: Mutex<Arc<Manifest>>,
    /// The lists as they were fetched last.
    pub(crate) written: Mutex<Written>,
    /// Schemas of tools that are being listed (proto-mcp).
    pub(crate) sent_schemas: SentSchemas,
    /// Whether references of tools had no answer when they were listed last (proto-mcp).
    pub(crate) unresolved: AtomicBool,
    /// Tools that its link does not list, each with a reason.
    pub(crate) left_out: OnceLock<Vec<QuarantinedTool>>,
    /// Held while lists are fetched.
    pub(crate) listing: tokio::sync::Mutex<()>,
    pending: Mutex<PendingTable>,
    /// Bytes that wait for their child process, with a share for each participant.
    queue_shares: Arc<Shares>,
    /// The log level that was sent to the server last.
    passed_level: Mutex<Option<LogLevel>>,
    /// Wakes the task that expires requests.
    timer: Arc<Notify>,
    /// Wakes the task that refreshes lists and legacy subscriptions.
    pub(crate) upkeep: Arc<Notify>,
    /// Wakes the task that keeps the listen stream open (modern).
    pub(crate) listening: Arc<Notify>,
    /// Lists to fetch again, as bits.
    pub(crate) stale: AtomicU64,
    /// Lists that are fetched again, and calls that wait for them.
    pub(crate) relisting: Relisting,
    /// Lists whose change the server announced, as bits.
    pub(crate) announced: AtomicU64,
    /// The number of the last listen request that the server acknowledged.
    pub(crate) acknowledged: watch::Sender<u64>,
    /// The revision of the interest that the listen stream covers.
    pub(crate) covered: watch::Sender<u64>,
    /// Whether the session has ended.
    pub(crate) ended: watch::Sender<bool>,
    health: Health,
    doubts: Doubts,
    /// Messages that could not be parsed.
    unreadable: AtomicU64,
    noise: Noise,
    opened_at: Instant,
    /// The time of the last call, in milliseconds since `opened_at`.
    last_call_ms: AtomicU64,
    instance: u64,
    /// The links that use the session, if it is a caller's own.
    users: Mutex<Vec<LinkId>>,
    /// Open task holds.
    tasks: AtomicUsize,
    client_tasks: ClientTasks,
    /// Open questions about calls.
    asking: AtomicUsize,
    /// Whether the session ends with its calls.
    is_retired: AtomicBool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let server = self.upstream();
        let key = &self.setup.key;
        f.debug_struct("Session")
            .field("server", &server)
            .field("key", key)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(setup: SessionSetup) -> Arc<Self> {
        let owner = setup
            .owner
            .as_ref()
            .map(|owner| &*owner.client.capabilities);
        let extensions = Bytes::from(extensions::of_session(owner));
        let session = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            keeps_calls: setup.spec.config.may_lose_sessions(),
            setup,
            extensions,
            link: OnceLock::new(),
            keyed: OnceLock::new(),
            handshake: Mutex::default(),
            version: AtomicUsize::new(Version::NEWEST_LEGACY as usize),
            manifest: Mutex::default(),
            written: Mutex::default(),
            sent_schemas: SentSchemas::default(),
            unresolved: AtomicBool::new(false),
            left_out: OnceLock::new(),
            listing: tokio::sync::Mutex::default(),
            pending: Mutex::default(),
            // All together are bounded by the queue itself.
            queue_shares: Shares::new(usize::MAX, client::PARTICIPANT_CHILD_QUEUE_BYTES_MAX),
            passed_level: Mutex::default(),
            timer: Arc::default(),
            upkeep: Arc::default(),
            listening: Arc::default(),
            stale: AtomicU64::new(0),
            relisting: Relisting::default(),
            announced: AtomicU64::new(0),
            acknowledged: watch::Sender::new(0),
            covered: watch::Sender::new(0),
            ended: watch::Sender::new(false),
            health: Health::default(),
            doubts: Doubts::default(),
            unreadable: AtomicU64::new(0),
            noise: Noise::default(),
            opened_at: Instant::now(),
            last_call_ms: AtomicU64::new(0),
            instance: u64::from_le_bytes(platform::random()),
            users: Mutex::default(),
            tasks: AtomicUsize::new(0),
            client_tasks: ClientTasks::default(),
            asking: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
        });
        session.watch_deadlines();
        session
    }

    /// The server's configured name.
    #[must_use]
    pub fn upstream(&self) -> &str {
        self.setup.spec.name()
    }

    /// Settings of an HTTP link of this session, with the account of its owner.
    pub(crate) fn http(&self, config: &HttpConfig) -> Result<HttpSpec, Fault> {
        let key = self.callers_key()?;
        let mut spec = self
            .setup
            .spec
            .http(config, key.as_ref().map(|key| key.as_str()))?;
        spec.authorize = self.keyed.get().cloned().or_else(|| self.account());
        Ok(spec)
    }

    fn account(&self) -> Option<Arc<dyn Authorize>> {
        let owner = self.setup.owner.as_ref().map(SessionOwner::holder);
        self.setup
            .environment
            .accounts
            .as_ref()
            .map(|accounts| accounts.account(owner))
    }

    /// The key of its owner, where the configuration has a place for one. From then on the session
    /// ends with that key.
    pub(crate) fn callers_key(&self) -> Result<Option<Zeroizing<String>>, Fault> {
        if !self.setup.spec.config.transport.has_callers_key() {
            return Ok(None);
        }
        let Some(account) = self.account() else {
            return Ok(None);
        };
        let key = account.key().map_err(LinkError::Account)?;
        let _ = self.keyed.set(account);
        Ok(key)
    }

    /// The owner of the session.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.setup.key
    }

    /// Random number of this session, different from that of every other session, also in earlier
    /// runs. Clients cannot guess it.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// The era of every message on the session, which is the form of every payload.
    #[must_use]
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// The negotiated protocol revision. A session that was opened again may have another one of
    /// the same era.
    #[must_use]
    pub fn version(&self) -> Version {
        Version::ALL
            .get(self.version.load(Ordering::Relaxed))
            .copied()
            .unwrap_or(Version::NEWEST_LEGACY)
    }

    /// Coding of the server's payloads.
    #[must_use]
    pub fn coding(&self) -> Coding {
        match self.setup.spec.config.transport {
            Transport::Proto(_) if !self.setup.proto_fallback => Coding::Proto,
            _ => Coding::Json,
        }
    }

    /// Selection and changes of its server's tools by the configuration; `None` if callers see them
    /// as they are.
    #[must_use]
    pub fn curation(&self) -> Option<&Curation> {
        self.setup.spec.config.curation.as_deref()
    }

    /// Whether the arguments of its calls are checked by its tools' schemas: always, if these are
    /// messages of proto-mcp.
    #[must_use]
    pub fn validates(&self) -> bool {
        self.setup.spec.config.validate || self.coding() == Coding::Proto
    }

    /// True until the session has ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !*self.ended.borrow()
    }

    /// Whether the sign-in for which it was opened has ended or was replaced.
    pub(crate) fn is_void(&self) -> bool {
        self.link.get().is_some_and(|link| link.is_void())
            || self.keyed.get().is_some_and(|account| account.is_void())
    }

    /// The lists of the server on this session, as last fetched.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.manifest.lock())
    }

    /// The raw result of `initialize` (legacy) or `server/discover` (modern).
    #[must_use]
    pub fn handshake_result(&self) -> Bytes {
        self.handshake
            .lock()
            .as_ref()
            .map(|handshake| handshake.result.clone())
            .unwrap_or_default()
    }

    /// The links that use the session, or used it last, if it is a caller's own.
    #[must_use]
    pub fn users(&self) -> Vec<LinkId> {
        self.users.lock().clone()
    }

    pub(crate) fn set_users(&self, users: Vec<LinkId>) {
        *self.users.lock() = users;
    }

    /// Open calls of callers.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.pending.lock().calls()
    }

    /// Takes the link to its server.
    pub(crate) fn take_link(&self, link: ServerLink) {
        // A second link is dropped, which closes it.
        let _ = self.link.set(link);
        if let Some(root) = self.process() {
            self.noise
                .log_early(root.started, &self.setup.environment.stderr);
        }
    }

    /// Ends the session before its link is closed: its calls are refused at once.
    pub(crate) fn refuse_calls(&self) {
        self.end(Fault::Link(client::LinkError::Closed));
    }

    /// Closes the link in order and ends the session.
    pub async fn close(&self) {
        if let Some(link) = self.link.get() {
            link.close().await;
        }
        self.end(Fault::Link(client::LinkError::Closed));
    }

    /// The time since the session was opened.
    pub(crate) fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// The time since its last call.
    pub(crate) fn since_last_call(&self) -> Duration {
        self.age().saturating_sub(Duration::from_millis(
            self.last_call_ms.load(Ordering::Relaxed),
        ))
    }

    pub(crate) fn handshake(&self) -> Option<Handshake> {
        self.handshake.lock().clone()
    }

    /// The fault with which the session ended; `None` while it is open.
    pub(crate) fn end_fault(&self) -> Option<Fault> {
        self.pending.lock().ended.clone()
    }

    /// Ends the session of a server that leads back to this gateway: what it listed is the
    /// gateway's own, and is listed no more.
    pub(crate) async fn end_as_itself(&self, fault: Fault) {
        *self.manifest.lock() = Arc::default();
        *self.written.lock() = Written::default();
        self.emit(SessionEvent::Changed(&[]));
        self.end(fault);
        self.close().await;
    }

    /// Why the session ended, for operators; `None` while it is open.
    pub(crate) fn end_cause(&self) -> Option<String> {
        self.pending.lock().ended.as_ref().map(Fault::cause)
    }

    /// Root of its processes, if it has some.
    pub(crate) fn process(&self) -> Option<Root> {
        self.link.get()?.process()
    }

    /// First noise of its process, for operators.
    pub(crate) fn noise(&self) -> Option<String> {
        self.noise.first()
    }

    /// Keeps the beginning of a text that is no message, if the server is a process.
    fn keep_noise(&self, head: &str) {
        if self.setup.spec.config.transport.child().is_none() {
            return;
        }
        let process = || Some(self.process()?.started);
        self.noise
            .keep(head, process, &self.setup.environment.stderr);
        self.emit(SessionEvent::State);
    }

    /// The last lines of its process on stderr, from the one on that names an error.
    pub(crate) fn last_words(&self) -> Vec<Arc<str>> {
        let mut lines = self.all_words();
        let last = lines.len().saturating_sub(LAST_WORDS_MAX);
        lines.drain(..words::telling(&lines).unwrap_or(last).min(last));
        lines.truncate(LAST_WORDS_MAX);
        lines
    }

    /// Advice to an operator about the words of its process, if it is known.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        words::advice(&self.all_words())
    }

    fn all_words(&self) -> Vec<Arc<str>> {
        let last_of = |root: Root| {
            self.setup
                .environment
                .stderr
                .last_of(root.started, SEARCHED_WORDS_MAX)
        };
        self.process().map(last_of).unwrap_or_default()
    }

    pub(crate) fn set_handshake(&self, handshake: Handshake) {
        let mut current = self.handshake.lock();
        self.version
            .store(handshake.version as usize, Ordering::Relaxed);
        *current = Some(handshake);
    }

    pub(crate) fn refusal(&self, fault: &Fault) -> Refusal {
        fault.refusal(self.upstream())
    }

    /// True over Streamable HTTP, where each request has a response stream of its own.
    pub fn over_http(&self) -> bool {
        self.link
            .get()
            .is_some_and(|link| link.has_request_streams())
    }

    /// Whether the server may keep something from one call to the next.
    pub(crate) fn keeps_state(&self) -> bool {
        self.link.get().is_none_or(|link| link.keeps_state())
    }

    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), client::SendError> {
        self.link
            .get()
            .ok_or(client::SendError::Closed)?
            .send(frame, meta)
    }

    /// Ends the session once: every open call gets the fault, and the gateway learns the end.
    fn end(&self, fault: Fault) {
        let open = {
            let mut pending = self.pending.lock();
            if pending.ended.is_some() {
                return;
            }
            pending.ended = Some(fault.clone());
            pending.drain()
        };
        self.ended.send_replace(true);
        self.wake_tasks();
        // Not under the lock: the receiver of an end may send its next request at once.
        for unfinished in open {
            let fault = if unfinished.is_unsent {
                Fault::Unsent(client::SendError::Closed)
            } else {
                fault.clone()
            };
            self.deliver(unfinished.request, Err(fault));
        }
        self.emit(SessionEvent::Ended);
    }

    pub(crate) fn emit(&self, event: SessionEvent<'_>) {
        if let Some(me) = self.me.upgrade() {
            self.setup.environment.events.event(&me, event);
        }
    }

    fn wake_tasks(&self) {
        self.timer.notify_one();
        self.upkeep.notify_one();
        self.listening.notify_one();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.wake_tasks();
    }
}
