//! One task of a server: where it came from, and how it stood when it was last told. Must not know the others.

use std::sync::{Arc, Weak};

use model::{Era, LinkId, ParticipantId};
use platform::{Mutex, MutexGuard, unix_ms};
use upstream::{CallNumber, Session, TaskHold};
use wire::mcp::task::{self, Glimpse, Standing, Status, Task};
use wire::rpc::{Id, Shape};

use super::id::TASK_KEPT_MS_MAX;
use crate::stream::Stream;

/// Whose ids: those of one session of a server, or (birth 0) of the server itself; then the id.
pub(super) type Key = (ParticipantId, u64, Arc<str>);

/// How a task that ended with its session failed.
pub(crate) const LOST: &str = "the server's session in which the task ran has ended";
const LOST_ERROR: &[u8] =
    br#"{"code":-32603,"message":"the server's session in which the task ran has ended"}"#;

/// Where a task came from.
pub(crate) struct Origin {
    /// Whose it is.
    pub(crate) who: ParticipantId,
    /// The server.
    pub(crate) upstream: ParticipantId,
    /// Which of its sessions; 0 where the server's tasks belong to none.
    pub(crate) birth: u64,
    /// In which era it is told of.
    pub(crate) era: Era,
    /// The tool that was called, under the name by which that was judged: whoever may not call it has no task of it either.
    pub(crate) tool: Box<str>,
    /// Whether the call was held until it was approved.
    pub(crate) held: bool,
    /// The server's own id.
    pub(crate) own: Arc<str>,
    /// The call that has become it, with the birth of the session that had it.
    pub(crate) call: Option<(u64, CallNumber)>,
    /// The caller's progress token.
    pub(crate) token: Option<Id>,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created_ms: u64,
}

struct Now {
    /// Keeps its session open until its result was told.
    hold: Option<TaskHold>,
    session: Weak<Session>,
    status: Status,
    /// It as the server told it last, under the server's id; empty in the modern era, which has no list and tells whole
    /// results with it, and where it is too long.
    told: Vec<u8>,
    updated_ms: u64,
    until_ms: u64,
    /// Its session has ended before it did.
    lost: bool,
    /// The links that hear of it, the one that dealt with it last at the end.
    links: Vec<LinkId>,
    /// The stream of the request that waits for its result.
    waits: Weak<Stream>,
}

/// One task of a server.
pub(crate) struct Relayed {
    /// The id under which its caller knows it.
    pub(crate) public: String,
    /// Where it came from.
    pub(crate) origin: Origin,
    now: Mutex<Now>,
}

/// A task as its server told it, in bytes, that is kept for `tasks/list`; of a longer one only how it stands is listed.
pub const TASK_TOLD_BYTES_MAX: usize = 4096;
/// Links of one participant that hear of one task.
pub const TASK_LINKS_MAX: usize = 16;

/// Whether an answer tells what a task came to. The modern form has that with the state; of a failed task of the legacy form
/// it is an error.
pub(super) fn tells_result(era: Era, method: &str, shape: Shape, status: Status) -> bool {
    match (era, method, shape) {
        (Era::Legacy, "tasks/result", Shape::Result) => true,
        (Era::Legacy, "tasks/result", Shape::Error) => status == Status::Failed,
        (Era::Modern, "tasks/get", Shape::Result) => status.is_over(),
        (Era::Legacy | Era::Modern, _, _) => false,
    }
}

impl Relayed {
    /// A task that a session has just told of, or that is known by its id only.
    pub(crate) fn new(public: String, origin: Origin, link: LinkId, session: Option<&Arc<Session>>) -> Self {
        let now = Now {
            // What belongs to no session holds none.
            hold: session.filter(|_| origin.birth != 0).map(Session::hold),
            session: session.map(Arc::downgrade).unwrap_or_default(),
            status: Status::Working,
            told: Vec::new(),
            updated_ms: origin.created_ms,
            until_ms: origin.created_ms.saturating_add(TASK_KEPT_MS_MAX),
            lost: false,
            links: vec![link],
            waits: Weak::new(),
        };
        Self { public, origin, now: Mutex::new(now) }
    }

    pub(super) fn key(&self) -> Key {
        (self.origin.upstream.clone(), self.origin.birth, Arc::clone(&self.origin.own))
    }

    /// The session in which it runs, while that is open; nothing where any session of the server will do.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.now().session.upgrade().filter(|session| self.origin.birth != 0 && session.is_open())
    }

    /// Whether its session is gone, so that nobody can be asked any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.origin.birth != 0 && self.session().is_none()
    }

    /// Whether nothing more can become of it, as far as is known.
    pub(crate) fn is_over(&self) -> bool {
        let now = self.now();
        now.status.is_over() || now.lost
    }

    /// The end of its time here.
    pub(crate) fn until_ms(&self) -> u64 {
        self.now().until_ms
    }

    /// The server has told how it stands.
    pub(crate) fn saw(&self, glimpse: &Glimpse, frame: &[u8]) {
        let mut now = self.now();
        let told = glimpse.task.of(frame);
        let kept = self.origin.era == Era::Legacy && told.len() <= TASK_TOLD_BYTES_MAX;
        now.told = if kept { told.to_vec() } else { Vec::new() };
        now.updated_ms = unix_ms();
        now.status = glimpse.status.unwrap_or(now.status);
        if let Some(ttl_ms) = glimpse.ttl_ms {
            // Counted here, not by the server's clock.
            now.until_ms = self.origin.created_ms.saturating_add(ttl_ms.min(TASK_KEPT_MS_MAX));
        }
        // A cancelled task has no result to be told.
        let hold = (now.status == Status::Cancelled).then(|| now.hold.take()).flatten();
        drop(now);
        drop(hold);
    }

    /// Its caller is given this answer to a request about it: its session need not stay open once its result was told.
    pub(crate) fn answered(&self, method: &str, shape: Shape) {
        let mut now = self.now();
        let told = tells_result(self.origin.era, method, shape, now.status);
        let hold = told.then(|| now.hold.take()).flatten();
        drop(now);
        drop(hold);
    }

    /// Its session has ended. True when the task was not over.
    pub(super) fn end(&self) -> bool {
        let mut now = self.now();
        let open = !now.status.is_over() && !now.lost;
        now.lost = true;
        if open {
            now.updated_ms = unix_ms();
        }
        let hold = now.hold.take();
        drop(now);
        drop(hold);
        open
    }

    /// A link of its participant deals with it: it hears of it from now on.
    pub(crate) fn heard_by(&self, link: LinkId) {
        let mut now = self.now();
        now.links.retain(|other| *other != link);
        if now.links.len() >= TASK_LINKS_MAX {
            now.links.remove(0);
        }
        now.links.push(link);
    }

    /// The links that hear of it, the one that dealt with it last at the end.
    pub(crate) fn links(&self) -> Vec<LinkId> {
        self.now().links.clone()
    }

    /// Its result is waited for on this stream.
    pub(crate) fn waited_for(&self, stream: &Arc<Stream>) {
        self.now().waits = Arc::downgrade(stream);
    }

    /// The stream on which its result is waited for.
    pub(crate) fn waits(&self) -> Option<Arc<Stream>> {
        self.now().waits.upgrade().filter(|stream| !stream.has_ended())
    }

    /// It as its server told it last, under the caller's id (legacy); of one that was told at too great length how it stands.
    pub(crate) fn told(&self) -> Option<Vec<u8>> {
        let (told, status) = {
            let now = self.now();
            (now.told.clone(), now.status)
        };
        if !told.is_empty() {
            return task::renamed(&told, &self.public);
        }
        let standing = match status {
            Status::Working => Standing::Working,
            Status::InputRequired => Standing::InputRequired(b"{}"),
            Status::Completed => Standing::Result(b"{}"),
            Status::Failed => Standing::Error(b"{}"),
            Status::Cancelled => Standing::Cancelled,
        };
        Some(self.view_as(standing, None, |view| task::get(view, Era::Legacy)))
    }

    /// It as it is told when its server cannot be asked any more.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&Task<'_>) -> T) -> T {
        let status = self.now().status;
        // The modern form has the result with the state: without the result it cannot be told to be completed.
        let standing = match (status, self.origin.era) {
            (Status::Completed, Era::Legacy) => Standing::Result(b"{}"),
            (Status::Cancelled, _) => Standing::Cancelled,
            (Status::Completed, Era::Modern) => Standing::Error(LOST_ERROR),
            (Status::Working | Status::InputRequired | Status::Failed, _) => Standing::Error(LOST_ERROR),
        };
        let message = (!status.is_over() || self.origin.era == Era::Modern).then_some(LOST);
        self.view_as(standing, message, look)
    }

    fn view_as<T>(
        &self,
        standing: Standing<'_>,
        message: Option<&str>,
        look: impl FnOnce(&Task<'_>) -> T,
    ) -> T {
        let (created_ms, updated_ms) = (self.origin.created_ms, self.now().updated_ms);
        let (ttl_ms, poll_ms) = (Some(self.until_ms().saturating_sub(created_ms)), None);
        look(&Task { id: &self.public, standing, message, created_ms, updated_ms, ttl_ms, poll_ms })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock()
    }
}
