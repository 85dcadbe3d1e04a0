//! Relay of servers' tasks: ids in answers, notifications and questions, and the session that knows
//! a task.

use access::TaskId;
use std::{borrow::Cow, sync::Arc};

use model::{
    Answer, Form, OperationId, Outcome, ParticipantId, Payload, Refusal, RefusalCode, Request,
};
use platform::unix_ms;
use upstream::Session;
use upstream::tasks::{KeptResult, Origin, Task, answers, instance_of};
use wire::mcp::task::{self, Becomes, Fitted, Support, Taker, TaskReport, TaskWish};

use super::journal;
use crate::{call::Call, context::call_number, dispatch::Dispatch, incoming::Names, link::Link};

/// Longest task id of a server, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 512;
/// Longest time for which the result of a call is kept as a task that no server has, in
/// milliseconds: ten minutes.
pub const RESULT_KEPT_MS_MAX: u64 = 600_000;

/// The task of a server that a caller knows under this id.
pub(crate) fn find(dispatch: &Arc<Dispatch>, link: &Link, public: &str) -> Option<Arc<Task>> {
    let holder = &link.participant.id;
    let state = TaskId::open(&dispatch.context.sealer, holder, unix_ms(), public)?;
    let id = TaskId::read(&state).filter(|id| id.topic == dispatch.name().as_str())?;
    let server = ParticipantId::new(id.server).ok()?;
    // Nor does a task exist for a participant that may not call its tool any more.
    let handle = dispatch.with(|topic| {
        topic
            .may_call(holder, &server, id.tool, id.held)
            .then(|| topic.server(&server))
            .flatten()
    })?;
    if let Some(known) = dispatch.tasks.find(&server, id.instance, id.own) {
        // A server may give an id again: then it is the new task's.
        let same = known.origin.holder == *holder && known.public == public && !known.followed;
        same.then(|| known.asked_by(link.id))?;
        return Some(known);
    }
    let session = handle
        .handle
        .upstream()?
        .upstream
        .session_by_instance(id.instance);
    // In a form with a list every task that is not forgotten is in the table while its session
    // lasts.
    (!task::has_list(id.form) || session.is_none()).then_some(())?;
    let origin = id.origin(holder, server, unix_ms());
    let found = Arc::new(Task::new(
        public.to_owned(),
        origin,
        link.id,
        session.as_ref(),
    ));
    // A task of a session that has ended, or of a gateway before a restart, is known by its id
    // alone: it has failed.
    if !found.is_lost() {
        dispatch.tasks.enter(&found, None);
    }
    Some(found)
}

/// The open request that awaits a task's end: of those that do, the one that came last.
pub(crate) fn awaited(dispatch: &Dispatch, task: &Task) -> Option<OperationId> {
    task.waiting()
        .filter(|waiting| dispatch.with(|topic| topic.is_open(*waiting)))
}

/// Whether a task's participant may still have it.
pub(crate) fn may_keep(dispatch: &Dispatch, task: &Task) -> bool {
    let Origin {
        holder,
        server,
        tool,
        held,
        ..
    } = &task.origin;
    dispatch.with(|topic| topic.may_call(holder, server, tool, *held))
}

/// Fits what a call of a tool says about tasks to the session that takes it. `request` is sent in
/// place of the call's own, which a proposal has made plain.
///
/// # Errors
/// Why the call cannot become a task although its caller insists, or must.
pub(crate) fn fit(
    dispatch: &Dispatch,
    call: &Call,
    session: &Session,
    own: Option<&str>,
    request: Option<&Request>,
) -> Result<Fitted, Refusal> {
    let tool = own
        .or_else(|| call.request.target.as_ref().map(model::Target::as_str))
        .unwrap_or_default();
    // The caller of a held call follows its proposal.
    let held = call
        .delivered
        .get()
        .is_some_and(|delivered| delivered.proposal.is_some());
    let wish = if held && request.is_some() {
        TaskWish::None
    } else {
        call.wish
    };
    let support = match (wish, session.era()) {
        // The server takes no ordinary call of such a tool: the gateway makes the task, and follows
        // it.
        (TaskWish::None, Form::Legacy) if session.requires_task(tool) => Support::Required,
        (TaskWish::None, _) => Support::None,
        (TaskWish::Asks | TaskWish::Declares, _) => session.task_support(tool),
    };
    let taker = Taker {
        form: session.era(),
        support,
    };
    let knows = call.link.has_tasks() && task::is_offered(call.client().version);
    let offered = !held && call.names == Names::Public && knows;
    let mut place = None;
    // Before the call is sent, so that a task that the server makes has a place.
    let mut reserve = || {
        place = dispatch.tasks.reserve(&call.link.participant.id);
        place.is_some()
    };
    let fitted = task::fit(
        request.unwrap_or(&call.request),
        wish,
        taker,
        offered,
        &mut reserve,
    )?;
    match fitted.becomes {
        Becomes::Nothing => {}
        Becomes::Task => call.task.keep(place),
        Becomes::Followed => call.task.follow(place),
    }
    Ok(fitted)
}

/// An answer as its caller gets it.
pub(crate) struct Renamed {
    pub(crate) answer: Answer,
    /// The task that the call has become by it.
    pub(crate) created: Option<Arc<Task>>,
}

impl From<Answer> for Renamed {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            created: None,
        }
    }
}

/// An answer with the gateway's ids of tasks, as its caller knows them.
///
/// # Errors
/// Why the caller cannot have the answer.
pub(crate) fn rename_answer(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    answer: Answer,
) -> Result<Renamed, Refusal> {
    let (mut answer, mut created) = (answer, None);
    // The right to have it may have been withdrawn while the answer was on its way.
    if call
        .task
        .about()
        .is_some_and(|about| !may_keep(dispatch, about))
    {
        return Err(answers::unknown());
    }
    let Some(session) = &call.session() else {
        return Ok(answer.into());
    };
    let form = call.request.payload.form;
    if let Some(about) = call.task.about() {
        if let Some(report) =
            task::report(&answer.payload).filter(|report| *report.named.id == *about.origin.own)
        {
            about.update(&report, &answer.payload.bytes);
            answer.payload = report.named.rename(&answer.payload, &about.public);
        }
        // What the gateway awaits in a caller's name does not reach the caller.
        if call.link.form == form {
            about.relayed(call.request.method.as_str(), answer.outcome);
        }
    } else if call.task.asks()
        && let Some(report) = task::made(&answer)
    {
        let task = create(dispatch, call, session, &answer.payload, &report)?;
        if session.era() == form {
            answer.payload = report.named.rename(&answer.payload, &task.public);
        } else if let Some(made) = task::made_in(&answer, form, &task.public) {
            return Ok(Renamed {
                answer: made,
                created: Some(task),
            });
        }
        created = Some(task);
    } else if call.task.asks() && form == Form::Legacy && session.era() == Form::Modern {
        return keep(dispatch, call, session, answer).map(Renamed::from);
    }
    if form == Form::Legacy
        && let Some(named) = task::related_to(&answer.payload)
    {
        let about = call
            .task
            .about()
            .filter(|task| *task.origin.own == *named.id)
            .cloned();
        if let Some(task) = about.or_else(|| dispatch.tasks.find_in(session, &named.id)) {
            answer.payload = named.rename(&answer.payload, &task.public);
        }
    }
    Ok(Renamed { answer, created })
}

/// Enters a call that was answered at once, although its caller asked for a task, as a task that is
/// completed. Only what is a complete result to the gateway is kept.
fn keep(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    session: &Session,
    answer: Answer,
) -> Result<Answer, Refusal> {
    let kind = json::at(answer.payload.body_bytes(), &["resultType"]).and_then(json::text);
    if answer.outcome != Outcome::Ok || kind.is_some_and(|kind| kind != "complete") {
        return Ok(answer);
    }
    let Some(delivered) = call.delivered.get() else {
        return Ok(answer);
    };
    let bytes = call
        .link
        .held
        .get()
        .map(|share| share.take(answer.payload.bytes.len()))
        .transpose();
    let bytes = bytes.map_err(|_| {
        let what = "the call has run, but there is no room to keep its result as a task";
        Refusal::new(RefusalCode::Overloaded, what).hint("call the tool without `task`")
    })?;
    let (holder, now_ms) = (&call.link.participant.id, unix_ms());
    let own = format!("portmoot-{}", call.id);
    let id = TaskId {
        topic: dispatch.name().as_str(),
        server: delivered.server.as_str(),
        instance: session.instance(),
        form: Form::Legacy,
        held: false,
        tool: &judged_tool(dispatch, call, session),
        own: &own,
    };
    let public = id.seal(&dispatch.context.sealer, holder, now_ms);
    let origin = id.origin(holder, delivered.server.clone(), now_ms);
    let ttl_ms =
        task::asked_ttl(&call.request).map_or(RESULT_KEPT_MS_MAX, |ms| ms.min(RESULT_KEPT_MS_MAX));
    let task = Arc::new(Task::of_result(
        public,
        origin,
        call.link.id,
        KeptResult::new(answer, bytes),
        ttl_ms,
    ));
    dispatch.tasks.enter(&task, call.task.take_place());
    let made = task
        .kept
        .as_ref()
        .map(|kept| task.kept_view(kept, |view| task::created(view, Form::Legacy, None)));
    let payload = Payload::body(Form::Legacy, made.unwrap_or_default());
    Ok(Answer {
        outcome: Outcome::Ok,
        payload,
    })
}

/// The name by which a call of a tool is judged: the one that its caller knows, unless the
/// configuration gives it that name.
fn judged_tool<'c>(dispatch: &Dispatch, call: &'c Call, session: &Session) -> Cow<'c, str> {
    let named = call
        .request
        .target
        .as_ref()
        .map(model::Target::as_str)
        .unwrap_or_default();
    let ruled = || {
        let (_, delivered) = (session.curation()?, call.delivered.get()?);
        dispatch.with(|topic| topic.ruled_of_public(&delivered.server, named))
    };
    ruled().map_or(Cow::Borrowed(named), Cow::Owned)
}

/// Enters the task that a call has become.
pub(super) fn create(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    session: &Arc<Session>,
    payload: &Payload,
    report: &TaskReport,
) -> Result<Arc<Task>, Refusal> {
    let own = report.named.id.as_str();
    let Some(delivered) = call
        .delivered
        .get()
        .filter(|_| own.len() <= TASK_ID_BYTES_MAX)
    else {
        let what = format!(
            "the server `{}` gave its task an id that is too long",
            session.upstream()
        );
        return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
    };
    let (holder, now_ms) = (&call.link.participant.id, unix_ms());
    let tool = &judged_tool(dispatch, call, session);
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
    let followed = call.task.follows();
    // The extension has no progress of tasks.
    let passes = followed || call.request.payload.form == Form::Legacy;
    let origin = Origin {
        call: Some((session.instance(), call_number(call.id))),
        progress: call.request.progress.clone().filter(|_| passes),
        ..id.origin(holder, delivered.server.clone(), now_ms)
    };
    let mut task = Task::new(public, origin, call.link.id, Some(session));
    task.followed = followed;
    let task = Arc::new(task);
    task.update(report, &payload.bytes);
    // The caller learns of it once it is on disk: see `journal::write`.
    if journal::keeps(dispatch, &task).is_some() {
        task.hide();
    }
    dispatch.tasks.enter(&task, call.task.take_place());
    Ok(task)
}

/// Cancels the tasks of a participant at their servers, and forgets them: it may not ask for them
/// any more.
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

/// The server's id of the task to which a request belongs.
pub(crate) fn own_relation(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    session: &Session,
) -> Option<Arc<str>> {
    // Only 2025-11-25 has such.
    let both = [call.request.payload.form, session.era()];
    let named = both
        .iter()
        .all(|form| *form == Form::Legacy)
        .then(|| task::related_to(&call.request.payload))??;
    let task = find(dispatch, &call.link, &named.id)?;
    (task.origin.server.as_str() == session.upstream()).then(|| Arc::clone(&task.origin.own))
}
