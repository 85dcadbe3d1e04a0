//! Relay of servers' tasks: ids in answers, notifications and questions, and the session that knows a task.

use std::{sync::Arc, time::Duration};

use model::{Answer, Notice, ParticipantId, Payload, Refusal, RefusalCode};
use platform::unix_ms;
use topic::{Subject, TaskRef};
use upstream::{CallNumber, Session};
use wire::mcp::task::{self, Taker, TaskReport};

use super::task::{LOST, Origin, Task};
use super::{id::TaskId, places::TaskPlace, table::instance_of};
use crate::call::{Call, Names};
use crate::{context::call_number, dispatch::Dispatch, link::Link, live::Event};

/// Time between two looks for tasks whose time is over.
const SWEEP: Duration = Duration::from_secs(10);
/// Longest task id of a server, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 512;

/// The refusal of a task that does not exist, or not for this caller.
pub(crate) fn unknown() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "there is no such task or proposal")
}

/// The task of a server that a caller knows under this id.
pub(crate) fn find(dispatch: &Arc<Dispatch>, link: &Link, public: &str) -> Option<Arc<Task>> {
    let holder = &link.participant.id;
    let state = TaskId::open(&dispatch.context.sealer, holder, unix_ms(), public)?;
    let id = TaskId::read(&state).filter(|id| id.topic == dispatch.name().as_str())?;
    // Tasks of the other form are not converted: for this caller they do not exist.
    (id.form == link.form).then_some(())?;
    let server = ParticipantId::new(id.server).ok()?;
    // Nor does a task exist for a participant that may not call its tool any more.
    let handle = dispatch.with(|topic| {
        topic.may_call(holder, &server, id.tool, id.held).then(|| topic.server(&server)).flatten()
    })?;
    if let Some(known) = dispatch.tasks.find(&server, id.instance, id.own) {
        // A server may give an id again: then it is the new task's.
        let same = known.origin.holder == *holder && known.public == public;
        same.then(|| known.asked_by(link.id))?;
        return Some(known);
    }
    // In a form with a list every task must be in the table.
    (!task::has_list(id.form)).then_some(())?;
    let session = match id.instance {
        0 => None,
        instance => Some(handle.handle.upstream()?.upstream.session_by_instance(instance)?),
    };
    let origin = Origin::of(&id, holder, server, unix_ms());
    let found = Arc::new(Task::new(public.to_owned(), origin, link.id, session.as_ref()));
    enter(dispatch, &found, None);
    Some(found)
}

/// Whether a task's participant may still have it.
pub(crate) fn may_keep(dispatch: &Dispatch, task: &Task) -> bool {
    let Origin { holder, server, tool, held, .. } = &task.origin;
    dispatch.with(|topic| topic.may_call(holder, server, tool, *held))
}

fn enter(dispatch: &Arc<Dispatch>, task: &Arc<Task>, place: Option<TaskPlace>) {
    if !dispatch.tasks.enter(task, place) {
        return;
    }
    let dispatch = Arc::downgrade(dispatch);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP).await;
            let Some(dispatch) = dispatch.upgrade() else { return };
            if !dispatch.tasks.sweep(unix_ms()) {
                return;
            }
        }
    });
}

/// Fits what a call of a tool says about tasks to the session that takes it; `None` leaves the request as it is.
///
/// # Errors
/// Why the call cannot become a task although its caller insists.
pub(crate) fn fit(
    dispatch: &Dispatch,
    call: &Call,
    session: &Session,
    own: Option<&str>,
) -> Result<Option<model::Request>, Refusal> {
    let tool = own.or_else(|| call.request.target.as_ref().map(model::Target::as_str)).unwrap_or_default();
    let takes_task = call.wish == task::Wish::Asks && session.takes_task(tool);
    let taker = Taker { form: session.era(), takes_task };
    let offered = call.names == Names::Public && task::is_offered(call.client().version);
    let mut reserve = || {
        let place = dispatch.tasks.reserve(&call.link.participant.id);
        place.map(|place| call.task.keep(place)).is_some()
    };
    task::fit(&call.request, call.wish, taker, offered, &mut reserve)
}

/// An answer with the gateway's ids of tasks, as its caller knows them.
///
/// # Errors
/// Why the caller cannot have the answer.
pub(crate) fn rename_answer(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    answer: Answer,
) -> Result<Answer, Refusal> {
    let Some(session) = call.session() else { return Ok(answer) };
    let mut answer = answer;
    if let Some(about) = call.task.about() {
        // The right to have it may have been withdrawn while the answer was on its way.
        if !may_keep(dispatch, about) {
            return Err(unknown());
        }
        if let Some(report) =
            task::report(&answer.payload).filter(|report| *report.named.id == *about.origin.own)
        {
            about.update(&report, &answer.payload.bytes);
            answer.payload = report.named.rename(&answer.payload, &about.public);
        }
        about.relayed(call.request.method.as_str(), answer.outcome);
    } else if call.task.asks()
        && let Some(report) = task::made(&answer)
    {
        let task = create(dispatch, call, session, &answer.payload, &report)?;
        answer.payload = report.named.rename(&answer.payload, &task.public);
    }
    if let Some(named) = task::related_to(&answer.payload) {
        let about = call.task.about().filter(|task| *task.origin.own == *named.id).cloned();
        if let Some(task) = about.or_else(|| dispatch.tasks.find_in(session, &named.id)) {
            answer.payload = named.rename(&answer.payload, &task.public);
        }
    }
    Ok(answer)
}

/// Enters the task that a call has become.
fn create(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    session: &Arc<Session>,
    payload: &Payload,
    report: &TaskReport,
) -> Result<Arc<Task>, Refusal> {
    let own = report.named.id.as_str();
    let Some(delivered) = call.delivered.get().filter(|_| own.len() <= TASK_ID_BYTES_MAX) else {
        let what = format!("the server `{}` gave its task an id that is too long", session.upstream());
        return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
    };
    let (holder, now_ms) = (&call.link.participant.id, unix_ms());
    let tool = call.request.target.as_ref().map(model::Target::as_str).unwrap_or_default();
    let id = TaskId {
        topic: dispatch.name().as_str(),
        server: delivered.server.as_str(),
        instance: instance_of(session),
        form: session.era(),
        // A held or proposed call runs on its approver's authority.
        held: delivered.proposal.is_some(),
        tool,
        own,
    };
    let public = id.seal(&dispatch.context.sealer, holder, now_ms);
    let origin = Origin {
        call: Some((session.instance(), call_number(call.id))),
        progress: call.request.progress.clone(),
        ..Origin::of(&id, holder, delivered.server.clone(), now_ms)
    };
    let task = Arc::new(Task::new(public, origin, call.link.id, Some(session)));
    task.update(report, &payload.bytes);
    enter(dispatch, &task, call.task.take_place());
    Ok(task)
}

/// Takes a server's notification of a task's state.
pub(crate) fn state_notice(dispatch: &Arc<Dispatch>, session: &Session, notice: Notice) {
    let Some(report) = task::report(&notice.payload) else { return };
    let Some(task) = dispatch.tasks.find_in(session, &report.named.id) else { return };
    task.update(&report, &notice.payload.bytes);
    let payload = report.named.rename(&notice.payload, &task.public);
    notify_holder(dispatch, &task, Notice { payload, ..notice });
}

/// Takes progress of a call that has become a task: to the request that waits for the task's result, else to its holder.
pub(crate) fn progress(dispatch: &Arc<Dispatch>, session: &Session, notice: Notice) {
    let Some(number) = notice.latest.as_deref().and_then(CallNumber::of_token) else { return };
    let Some(task) = dispatch.tasks.of_call(session.instance(), number) else { return };
    let Some(token) = &task.origin.progress else { return };
    let notice = dispatch.tasks.rename_notice(session, notice);
    let Some(notice) = wire::mcp::relay::with_progress_token(&notice, token) else { return };
    let waiting = task.waiting().filter(|waiting| dispatch.with(|topic| topic.is_open(*waiting)));
    let server = &task.origin.server;
    match waiting {
        Some(waiting) => {
            dispatch.take(Event::Notice { server, subject: Subject::Call(waiting), level: None, notice });
        }
        None => notify_holder(dispatch, &task, notice),
    }
}

fn notify_holder(dispatch: &Arc<Dispatch>, task: &Task, notice: Notice) {
    let (server, subject): (_, TaskRef<'_>) = (&task.origin.server, task.subject());
    dispatch.take(Event::Notice { server, subject: Subject::Task(subject), level: None, notice });
}

/// Ends the tasks of a session that has ended; their holders are notified.
pub(crate) fn lose(dispatch: &Arc<Dispatch>, session: &Session) {
    for task in dispatch.tasks.lose(session.instance()) {
        let notice = task.lost_view(|view| task::notice(view, task.origin.form));
        notify_holder(dispatch, &task, notice);
    }
}

/// Cancels the tasks of a participant at their servers, and forgets them: it may not ask for them any more.
pub(crate) fn cancel_all(dispatch: &Arc<Dispatch>, holder: &ParticipantId) {
    for task in dispatch.tasks.of(holder) {
        let dispatch = Arc::downgrade(dispatch);
        tokio::spawn(async move {
            if let Some(session) = task.last_session().filter(|_| !task.is_over()) {
                session.cancel_task(&task.origin.own).await;
            }
            // Until now it kept its session open.
            if let Some(dispatch) = dispatch.upgrade() {
                dispatch.tasks.forget(&task);
            }
        });
    }
}

/// The body of the answer to a request about a task whose session is gone.
///
/// # Errors
/// The refusal of what only its server could have done.
pub(crate) fn answer_lost(task: &Task, method: &str) -> Result<Vec<u8>, Refusal> {
    let form = task.origin.form;
    match method {
        "tasks/get" => Ok(task.lost_view(|view| task::get(view, form))),
        _ if !task::has_list(form) => Ok(task::acknowledged()),
        "tasks/cancel" => {
            let over = match task.lost_view(|view| view.status(form)) {
                task::Status::Completed => "it is completed",
                task::Status::Cancelled => "it is cancelled",
                task::Status::Failed | task::Status::Working | task::Status::InputRequired => LOST,
            };
            Err(Refusal::new(RefusalCode::Malformed, format!("the task cannot be cancelled: {over}")))
        }
        _ => Err(Refusal::new(RefusalCode::UpstreamDown, LOST)
            .hint("call the tool again if its outcome is still needed")),
    }
}

/// A client's answer to a question that belongs to a task, with the server's id of the task.
pub(crate) fn own_answer(task: &Task, answer: Answer) -> Answer {
    match task::related_to(&answer.payload).filter(|named| named.id == task.public) {
        Some(named) => Answer { payload: named.rename(&answer.payload, &task.origin.own), ..answer },
        None => answer,
    }
}

/// The server's id of the task to which a request belongs.
pub(crate) fn own_relation(dispatch: &Arc<Dispatch>, call: &Call, session: &Session) -> Option<Arc<str>> {
    let named = task::related_to(&call.request.payload)?;
    let task = find(dispatch, &call.link, &named.id)?;
    (task.origin.server.as_str() == session.upstream()).then(|| Arc::clone(&task.origin.own))
}
