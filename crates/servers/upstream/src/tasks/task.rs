//! Task of a server: its origin, and its last known state.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::{Answer, Form, OperationId, Outcome, ParticipantId, Payload};
use platform::{Mutex, MutexGuard, Taken, unix_ms};
use wire::mcp::task::{self, OperationState, TaskReport, TaskStatus};

use crate::{CallNumber, Session, TaskHold};

/// Longest time for which a task can be asked for, whatever its server says, in milliseconds: a
/// day.
pub const TASK_KEPT_MS_MAX: u64 = 24 * 3600 * 1000;
/// Error of a task that ended with its session.
pub const LOST: &str = "the server's session in which the task ran has ended";
const LOST_ERROR: &[u8] =
    br#"{"code":-32603,"message":"the server's session in which the task ran has ended"}"#;

/// Longest task that is kept for `tasks/list` as its server wrote it, in bytes; of a longer one
/// only the state is listed.
pub const TASK_KEPT_BYTES_MAX: usize = 4096;

/// The origin of a task.
#[derive(Debug)]
pub struct Origin {
    /// The server.
    pub server: ParticipantId,
    /// The instance number of the session in which it runs; 0 if the server's tasks belong to no
    /// session.
    pub instance: u64,
    /// The form of payloads about it.
    pub form: Form,
    /// The server's own id.
    pub own: Arc<str>,
    /// The call that became the task, with the instance number of its session.
    pub call: Option<(u64, CallNumber)>,
    /// The caller's progress token, as it was spelled.
    pub progress: Option<Bytes>,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
}

#[derive(Debug)]
struct State {
    /// Keeps its session open until its result has been relayed.
    hold: Option<TaskHold>,
    session: Weak<Session>,
    status: TaskStatus,
    /// The task as its server wrote it last, under the server's id and in the form of 2025-11-25,
    /// which has a list. Empty if it is too long.
    written: Vec<u8>,
    updated_ms: u64,
    until_ms: u64,
    /// Its session ended before it did.
    lost: bool,
    /// A caller of 2025-11-25 has cancelled it, for which it is cancelled from then on, whatever
    /// its server does.
    cancelled: bool,
}

/// The result of a call that was answered at once, although its caller asked for a task.
#[derive(Debug)]
pub struct KeptResult {
    /// The answer, as its server wrote it.
    pub answer: Answer,
    /// Its bytes on its caller's account.
    _bytes: Option<Taken>,
}

impl KeptResult {
    /// An answer, and its bytes on its caller's account.
    pub fn new(answer: Answer, bytes: Option<Taken>) -> Self {
        Self {
            answer,
            _bytes: bytes,
        }
    }
}

/// Receives what becomes known about tasks.
pub trait TaskEvents: Send + Sync {
    /// A task has ended ([`ServerTask::is_over`]), or lasts for another time ([`ServerTask::until_ms`]).
    fn changed(self: Arc<Self>, task: &ServerTask);
}

/// One task of a server.
#[derive(Debug)]
pub struct ServerTask {
    /// Its id in the topic.
    pub operation: OperationId,
    /// Its id at the gateway.
    pub public: String,
    /// Its origin.
    pub origin: Origin,
    /// Whether the gateway follows it for a call, whose caller sees no task.
    pub followed: bool,
    /// Its result, if no server has it.
    pub kept: Option<KeptResult>,
    events: Weak<dyn TaskEvents>,
    state: Mutex<State>,
}

impl ServerTask {
    /// A task that a session has just created, or that is known by its id alone. `events` are
    /// reported from its first change on.
    pub fn new(
        operation: OperationId,
        public: String,
        origin: Origin,
        session: Option<&Arc<Session>>,
        events: Weak<dyn TaskEvents>,
    ) -> Self {
        let state = State {
            // A task that any session knows needs none to stay open.
            hold: session.filter(|_| origin.instance != 0).map(Session::hold),
            session: session.map(Arc::downgrade).unwrap_or_default(),
            status: TaskStatus::Working,
            written: Vec::new(),
            updated_ms: origin.created_ms,
            until_ms: origin.created_ms.saturating_add(TASK_KEPT_MS_MAX),
            lost: false,
            cancelled: false,
        };
        Self {
            operation,
            public,
            origin,
            followed: false,
            kept: None,
            events,
            state: Mutex::new(state),
        }
    }

    /// Completes it with a result that the gateway keeps for this time.
    #[must_use]
    pub fn with_result(mut self, kept: KeptResult, ttl_ms: u64) -> Self {
        {
            let mut state = self.state();
            state.status = TaskStatus::Completed;
            state.until_ms = self.origin.created_ms.saturating_add(ttl_ms);
        }
        self.kept = Some(kept);
        self
    }

    /// Keeps it until this time, in milliseconds since 1970: it outlived the gateway that created
    /// it.
    #[must_use]
    pub fn kept_until(self, until_ms: u64) -> Self {
        self.state().until_ms = until_ms;
        self
    }

    /// Whether its server knows it in any session, so that it outlives this gateway. One that the
    /// gateway follows ends with its call.
    pub fn outlives_gateway(&self) -> bool {
        self.origin.instance == 0 && self.kept.is_none() && !self.followed
    }

    /// The session in which it runs, while that is open; `None` if any session of the server will
    /// do.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.last_session().filter(|_| self.origin.instance != 0)
    }

    /// The session that was known for it last, while that is open.
    pub fn last_session(&self) -> Option<Arc<Session>> {
        self.state()
            .session
            .upgrade()
            .filter(|session| session.is_open())
    }

    /// Whether its session is gone, so that its server cannot be asked any more.
    pub fn is_lost(&self) -> bool {
        self.kept.is_none() && self.origin.instance != 0 && self.session().is_none()
    }

    /// Whether it has ended, as far as is known.
    pub fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Time at which it is forgotten, in milliseconds since 1970.
    pub fn until_ms(&self) -> u64 {
        self.state().until_ms
    }

    /// Takes the message of its server that created it.
    pub fn begin(&self, report: &TaskReport, frame: &[u8]) {
        // It is entered into the topic as it is then.
        let _ = self.enter(report, frame);
    }

    /// Updates the state from a message of its server.
    pub fn update(&self, report: &TaskReport, frame: &[u8]) {
        if self.enter(report, frame) {
            self.report();
        }
    }

    /// Enters a message of its server. True if it has ended by it, or lasts for another time.
    fn enter(&self, report: &TaskReport, frame: &[u8]) -> bool {
        let written = report.task.of(frame);
        let written = match self.origin.form {
            Form::Legacy => written.to_vec(),
            Form::Modern => task::to_legacy(written, &self.origin.own).unwrap_or_default(),
        };
        let mut state = self.state();
        if state.cancelled {
            return false;
        }
        let before = (state.is_over(), state.until_ms);
        state.written = if written.len() <= TASK_KEPT_BYTES_MAX {
            written
        } else {
            Vec::new()
        };
        state.updated_ms = unix_ms();
        state.status = report.status.unwrap_or(state.status);
        if let Some(ttl_ms) = report.ttl_ms {
            // Counted on this machine's clock, not on the server's.
            state.until_ms = self
                .origin
                .created_ms
                .saturating_add(ttl_ms.min(TASK_KEPT_MS_MAX));
        }
        let changed = (state.is_over(), state.until_ms) != before;
        // A cancelled task has no result that could be asked for.
        if state.status == TaskStatus::Cancelled {
            release(state);
        }
        changed
    }

    fn report(&self) {
        if let Some(events) = self.events.upgrade() {
            events.changed(self);
        }
    }

    /// Notes an answer that is relayed to its caller. Its session need not stay open after the
    /// result.
    pub fn relayed(&self, method: &str, outcome: Outcome) {
        let state = self.state();
        let has_result = task::has_result(
            self.origin.form,
            method,
            outcome == Outcome::Ok,
            state.status,
        );
        if has_result {
            release(state);
        }
    }

    /// Ends it with its session. True if it was not over.
    pub fn lose(&self) -> bool {
        let mut state = self.state();
        let open = !state.is_over();
        state.lost = true;
        if open {
            state.updated_ms = unix_ms();
        }
        release(state);
        open
    }

    /// Notes that a caller of 2025-11-25 has cancelled it.
    pub fn cancel(&self) {
        let mut state = self.state();
        (state.cancelled, state.status, state.updated_ms) =
            (true, TaskStatus::Cancelled, unix_ms());
        state.written = Vec::new();
        release(state);
        self.report();
    }

    /// Whether a caller of 2025-11-25 has cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Ends it, because its server does not know it any more: it may be forgotten.
    pub(crate) fn dismiss(&self) {
        let mut state = self.state();
        (state.lost, state.until_ms) = (true, 0);
        release(state);
        self.report();
    }

    /// Lets go of its session, which need not stay open for it any more.
    pub fn release(&self) {
        release(self.state());
    }

    /// A message of its server as its caller reads it: under its id at the gateway, or without one
    /// if its caller knows of no task.
    /// `None` if the message does not belong to it.
    pub fn shown(&self, payload: &Payload) -> Option<Payload> {
        let named = task::related_to(payload).filter(|named| *named.id == *self.origin.own)?;
        if self.followed {
            task::unrelated(payload)
        } else {
            Some(named.rename(payload, &self.public))
        }
    }

    /// The task as its server wrote it last, under its id at the gateway and in the form of
    /// 2025-11-25; a task that was too long by its state alone.
    pub fn listed(&self) -> Option<Vec<u8>> {
        if let Some(kept) = &self.kept {
            return Some(self.kept_view(kept, |view| task::get(view, Form::Legacy)));
        }
        let (written, status) = {
            let state = self.state();
            (state.written.clone(), state.status)
        };
        if !written.is_empty() {
            return task::renamed(&written, &self.public);
        }
        let standing = match status {
            TaskStatus::Working => OperationState::Working,
            TaskStatus::InputRequired => OperationState::InputRequired(b"{}"),
            TaskStatus::Completed => OperationState::Result(b"{}"),
            TaskStatus::Failed => OperationState::Error(b"{}"),
            TaskStatus::Cancelled => OperationState::Cancelled,
        };
        Some(self.view(standing, None, |view| task::get(view, Form::Legacy)))
    }

    /// A task whose result is kept here.
    pub fn kept_view<T>(
        &self,
        kept: &KeptResult,
        look: impl FnOnce(&task::TaskView<'_>) -> T,
    ) -> T {
        self.view(
            OperationState::Result(kept.answer.payload.body_bytes()),
            None,
            look,
        )
    }

    /// The task when its server cannot be asked any more, for a caller of this form.
    pub fn lost_view<T>(&self, form: Form, look: impl FnOnce(&task::TaskView<'_>) -> T) -> T {
        let status = self.state().status;
        // The modern form has the result with the state: without the result the task is not
        // completed.
        let has_result = task::has_list(form);
        let standing = match status {
            TaskStatus::Completed if has_result => OperationState::Result(b"{}"),
            TaskStatus::Cancelled => OperationState::Cancelled,
            TaskStatus::Completed
            | TaskStatus::Working
            | TaskStatus::InputRequired
            | TaskStatus::Failed => OperationState::Error(LOST_ERROR),
        };
        let message = (!status.is_over() || !has_result).then_some(LOST);
        self.view(standing, message, look)
    }

    fn view<T>(
        &self,
        standing: OperationState<'_>,
        message: Option<&str>,
        look: impl FnOnce(&task::TaskView<'_>) -> T,
    ) -> T {
        let created_ms = self.origin.created_ms;
        let updated_ms = self.state().updated_ms;
        let ttl_ms = Some(self.until_ms().saturating_sub(created_ms));
        let poll_ms = None;
        look(&task::TaskView {
            id: &self.public,
            standing,
            message,
            created_ms,
            updated_ms,
            ttl_ms,
            poll_ms,
            awaits_approval: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.status.is_over() || self.lost
    }
}

/// The instance number under which a session's tasks are known: 0 if any session of its server
/// knows them.
pub fn instance_of(session: &Session) -> u64 {
    if session.shares_tasks() {
        0
    } else {
        session.instance()
    }
}

/// Lets go of a task's session, which may end it: the task is not locked any more then.
fn release(mut state: MutexGuard<'_, State>) {
    let hold = state.hold.take();
    drop(state);
    drop(hold);
}
