//! Servers' tasks in the topic's book: how they get there, how they are found, and how they end.

use std::sync::{Arc, Weak};

use model::{LinkId, Narrowing, Notice, OperationId, ParticipantId, Payload};
use platform::unix_ms;
use tokio::task::JoinSet;
use topic::{NewTask, Subject, TaskOrigin, TaskRight};
use upstream::Session;
use upstream::tasks::{ServerTask, TaskEvents, instance_of};
use wire::mcp::task;

use super::task_id::TaskId;
use crate::{dispatch::Dispatch, live::Event};

/// The facts by which a task is entered in the topic's book.
pub(super) struct Entry<'e> {
    pub(super) origin: TaskOrigin,
    /// The participant that has it.
    pub(super) holder: &'e ParticipantId,
    /// The right by which it has it.
    pub(super) right: TaskRight<'e>,
    /// The narrowing of the request that names it.
    pub(super) narrowing: Option<&'e Narrowing>,
    /// The link that asks about it.
    pub(super) link: Option<LinkId>,
}

/// The right by which a task is its holder's, as its id says it.
pub(super) fn right_of<'i>(server: &'i ParticipantId, id: &TaskId<'i>) -> TaskRight<'i> {
    TaskRight {
        server,
        tool: id.tool,
        held: id.held,
    }
}

/// Enters a task in the topic's book, if its holder may have it.
pub(super) fn enter(dispatch: &Arc<Dispatch>, task: &Arc<ServerTask>, entry: Entry<'_>) {
    // A result that the gateway keeps needs no session.
    let session = match &task.kept {
        Some(_) => 0,
        None => task.origin.instance,
    };
    let new = NewTask {
        task: task.operation,
        origin: entry.origin,
        holder: entry.holder,
        right: entry.right,
        narrowing: entry.narrowing,
        session,
        own: Arc::clone(&task.origin.own),
        public: task.public.as_str().into(),
        link: entry.link,
        over: task.is_over(),
        until_ms: steady_ms(dispatch, task.until_ms()),
        handle: Arc::clone(task),
    };
    dispatch.take(Event::Task(Box::new(new)));
    // Its session may have ended after the task was made and before the topic had it.
    if task.is_lost() {
        lose(dispatch, &task.origin.server, task.origin.instance);
    }
}

/// Takes the end of a session of a server, with which its tasks end.
pub(super) fn lose(dispatch: &Arc<Dispatch>, server: &ParticipantId, session: u64) {
    dispatch.take(Event::SessionLost { server, session });
}

/// Receives what becomes known about the tasks of a topic.
pub(super) fn events(dispatch: &Arc<Dispatch>) -> Weak<dyn TaskEvents> {
    let events: Weak<Dispatch> = Arc::downgrade(dispatch);
    events
}

impl TaskEvents for Dispatch {
    fn changed(self: Arc<Self>, task: &ServerTask) {
        let until_ms = steady_ms(&self, task.until_ms());
        self.take(Event::TaskChanged {
            task: task.operation,
            over: task.is_over(),
            until_ms,
        });
    }
}

/// A time on the wall clock, in milliseconds since 1970, on the topic's steady clock.
fn steady_ms(dispatch: &Dispatch, wall_ms: u64) -> u64 {
    let left_ms = wall_ms.saturating_sub(unix_ms());
    dispatch.context.now_ms().saturating_add(left_ms)
}

/// Whether there is a place for the task that an open call may become. The call has it then.
pub(super) fn has_place(dispatch: &Arc<Dispatch>, call: OperationId) -> bool {
    let verdict = dispatch.take(Event::MayBecomeTask { operation: call });
    verdict.is_none()
}

/// The task of this id, by the session that sent the id.
pub(super) fn find_in(
    dispatch: &Dispatch,
    session: &Session,
    own: &str,
) -> Option<Arc<ServerTask>> {
    let server = ParticipantId::new(session.upstream()).ok()?;
    dispatch.with(|topic| topic.task_at(&server, instance_of(session), own))
}

/// The task to which a message of a server belongs.
pub(crate) fn related(
    dispatch: &Dispatch,
    session: &Session,
    payload: &Payload,
) -> Option<Arc<ServerTask>> {
    if session.tasks() == 0 {
        return None;
    }
    find_in(dispatch, session, &task::related_to(payload)?.id)
}

/// A server's notification as the caller of the task to which it belongs reads it.
pub(crate) fn rename_notice(dispatch: &Dispatch, session: &Session, notice: Notice) -> Notice {
    let task = related(dispatch, session, &notice.payload);
    match task.and_then(|task| task.shown(&notice.payload)) {
        Some(payload) => Notice { payload, ..notice },
        None => notice,
    }
}

/// The open request that awaits a task's end: of those that do, the one that came last.
pub(crate) fn awaited(dispatch: &Dispatch, task: &ServerTask) -> Option<OperationId> {
    dispatch.with(|topic| topic.request_awaiting_task(task.operation))
}

/// Passes a notification about a task to its holder.
pub(super) fn notify(dispatch: &Arc<Dispatch>, task: &ServerTask, notice: Notice) {
    notify_of(dispatch, task, Subject::Task(task.operation), notice);
}

/// Passes a notification about the call that became a task to the request that waits for the task's
/// result, else to its holder.
pub(super) fn notify_of_call(dispatch: &Arc<Dispatch>, task: &ServerTask, notice: Notice) {
    notify_of(dispatch, task, Subject::TaskCall(task.operation), notice);
}

fn notify_of(dispatch: &Arc<Dispatch>, task: &ServerTask, subject: Subject<'_>, notice: Notice) {
    dispatch.take(Event::Notice {
        server: &task.origin.server,
        subject,
        level: None,
        notice: Arc::new(notice),
    });
}

/// Cancels a task at its server. Until it has answered, the task keeps its session open. No session
/// is opened for it: a task that was not asked about since a restart runs on, and the log says so.
pub(crate) fn cancel(task: Arc<ServerTask>) {
    let Some(session) = task.last_session() else {
        let server = &task.origin.server;
        let operation = task.operation;
        tracing::warn!(%server, %operation, "a task runs on although no participant has it any more: the gateway has no session in which its server could be asked to cancel it");
        return task.release();
    };
    tokio::spawn(async move {
        session.cancel_task(&task.origin.own).await;
        task.release();
    });
}

/// Cancels the tasks that no participant can ask about after this run of the gateway, within a
/// bound.
pub(crate) async fn cancel_passing(dispatch: &Dispatch) {
    let mut cancelling = JoinSet::new();
    for task in dispatch.with(|topic| topic.passing_tasks()) {
        if let Some(session) = task.last_session() {
            cancelling.spawn(async move { session.cancel_task(&task.origin.own).await });
        }
    }
    while cancelling.join_next().await.is_some() {}
}
