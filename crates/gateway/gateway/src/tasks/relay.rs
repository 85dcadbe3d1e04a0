//! Relay of servers' tasks: ids in answers, notifications and questions, and the session that knows
//! a task.

use std::{borrow::Cow, sync::Arc};

use model::{Answer, Form, Outcome, ParticipantId, Payload, Refusal, RefusalCode, Request};
use platform::unix_ms;
use topic::{NamedTask, TaskOrigin, TaskRight};
use upstream::tasks::{KeptResult, Origin, ServerTask, instance_of};
use upstream::{CallNumber, Session};
use wire::mcp::task::{self, Becomes, Fitted, Taker, TaskReport, TaskSupport, TaskWish};

use super::book::{self, Entry};
use super::journal;
use super::task_id::TaskId;
use crate::call::{Call, Delivered};
use crate::link::Requester;
use crate::{dispatch::Dispatch, incoming::Names};

/// Longest task id of a server, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 512;
/// Longest time for which the result of a call is kept as a task that no server has, in
/// milliseconds: ten minutes.
pub const RESULT_KEPT_MS_MAX: u64 = 600_000;

/// A task of a server as a caller names it.
pub(crate) struct Named {
    pub(crate) task: Arc<ServerTask>,
    tool: Box<str>,
    held: bool,
}

impl Named {
    /// The facts by which the topic judges requests about it, as its id says them.
    pub(crate) fn facts(&self) -> NamedTask<'_> {
        NamedTask {
            public: &self.task.public,
            session: self.task.origin.instance,
            own: &self.task.origin.own,
            right: TaskRight {
                server: &self.task.origin.server,
                tool: &self.tool,
                held: self.held,
            },
            lost: self.task.is_lost(),
        }
    }
}

/// The task of a server that a caller names by this id. The topic judges whether the caller may
/// have it.
pub(crate) fn find(dispatch: &Arc<Dispatch>, by: Requester<'_>, public: &str) -> Option<Named> {
    let holder = &by.link.participant.id;
    let state = TaskId::open(&dispatch.context.sealer, holder, unix_ms(), public)?;
    let id = TaskId::read(&state).filter(|id| id.topic == dispatch.name().as_str())?;
    let known = dispatch.with(|topic| topic.task_of(holder, None, public));
    let task = match known {
        Some(task) => task,
        None => known_by_id(dispatch, by, public, &id)?,
    };
    Some(Named {
        task,
        tool: id.tool.into(),
        held: id.held,
    })
}

/// A task that the topic does not have, as its id says it. The topic has it from now on, if the
/// caller may have it with its access token.
fn known_by_id(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    public: &str,
    id: &TaskId<'_>,
) -> Option<Arc<ServerTask>> {
    let holder = &by.link.participant.id;
    let server = ParticipantId::new(id.server).ok()?;
    let session = dispatch
        .server(&server)?
        .upstream
        .session_by_instance(id.instance);
    // In a form with a list the topic has every task that is not forgotten while its session lasts.
    if task::has_list(id.form) && session.is_some() {
        return None;
    }
    let origin = id.origin(server, unix_ms());
    let operation = dispatch.context.operation();
    let task = Arc::new(ServerTask::new(
        operation,
        public.to_owned(),
        origin,
        session.as_ref(),
        book::events(dispatch),
    ));
    // A task of a session that has ended, or of a gateway before a restart, is known by its id
    // alone: it has failed.
    if !task.is_lost() {
        let entry = Entry {
            origin: TaskOrigin::Named,
            holder,
            right: book::right_of(&task.origin.server, id),
            narrowing: by.narrowing(),
            link: Some(by.link.id),
        };
        book::enter(dispatch, &task, entry);
    }
    // A request at the same time may have entered it first: then that is the one that the topic has.
    let entered = dispatch.with(|topic| topic.task_of(holder, None, public));
    Some(entered.unwrap_or(task))
}

/// The task of a server that a caller names by this id, if the topic has it and the caller may have
/// it, with its access token.
pub(crate) fn held(
    dispatch: &Arc<Dispatch>,
    by: Requester<'_>,
    public: &str,
) -> Option<Arc<ServerTask>> {
    find(dispatch, by, public)?;
    let holder = &by.link.participant.id;
    dispatch.with(|topic| topic.task_of(holder, by.narrowing(), public))
}

/// Fits what a call of a tool says about tasks to the session that takes it. `request` is sent in
/// place of the call's own, which a proposal has made plain.
///
/// # Errors
/// Why the call cannot become a task although its caller insists, or must.
pub(crate) fn fit(
    dispatch: &Arc<Dispatch>,
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
        (TaskWish::None, Form::Legacy) if session.requires_task(tool) => TaskSupport::Required,
        (TaskWish::None, _) => TaskSupport::None,
        (TaskWish::Asks | TaskWish::Declares, _) => session.task_support(tool),
    };
    let taker = Taker {
        form: session.era(),
        support,
    };
    let knows = call.link.has_tasks() && task::is_offered(call.client().version);
    let offered = !held && call.names == Names::Public && knows;
    // Before the call is sent, so that a task that the server makes has a place.
    let mut reserve = || book::has_place(dispatch, call.id);
    let fitted = task::fit(
        request.unwrap_or(&call.request),
        wish,
        taker,
        offered,
        &mut reserve,
    )?;
    match fitted.becomes {
        Becomes::Nothing => {}
        Becomes::Task => call.task.ask(),
        Becomes::Followed => call.task.follow(),
    }
    Ok(fitted)
}

/// An answer of a server with the gateway's ids of tasks, as its caller knows them.
pub(crate) fn rename_answer(dispatch: &Dispatch, call: &Call, mut answer: Answer) -> Answer {
    let Some(session) = call.sessions.last() else {
        return answer;
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
    } else if let Some(task) = call.task.became() {
        answer = created(answer, task, session, form);
    }
    if form == Form::Legacy
        && let Some(named) = task::related_to(&answer.payload)
    {
        let about = call
            .task
            .about()
            .filter(|task| *task.origin.own == *named.id)
            .cloned();
        if let Some(task) = about.or_else(|| book::find_in(dispatch, session, &named.id)) {
            answer.payload = named.rename(&answer.payload, &task.public);
        }
    }
    answer
}

/// The answer by which a caller of this form learns of the task that its call has become.
fn created(answer: Answer, task: &ServerTask, session: &Session, form: Form) -> Answer {
    if let Some(kept) = &task.kept {
        let body = task.kept_view(kept, |view| task::created(view, Form::Legacy, None));
        let payload = Payload::body(Form::Legacy, body);
        return Answer {
            outcome: Outcome::Ok,
            payload,
        };
    }
    match task::made(&answer) {
        Some(report) if session.era() == form => {
            let payload = report.named.rename(&answer.payload, &task.public);
            Answer { payload, ..answer }
        }
        Some(_) => task::made_in(&answer, form, &task.public).unwrap_or(answer),
        None => answer,
    }
}

/// Receives the answer of a call that may become a task of its caller (`CallTask::asks`): if it has become one, the topic
/// has the task from now on.
///
/// # Errors
/// Why the caller cannot have the answer.
pub(crate) fn become_task(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    delivered: &Delivered,
    answer: &Answer,
) -> Result<(), Refusal> {
    let Some(session) = call.sessions.last() else {
        return Ok(());
    };
    let task = match task::made(answer) {
        Some(report) => create(dispatch, call, session, delivered, &answer.payload, &report)?,
        None if call.request.payload.form == Form::Legacy && session.era() == Form::Modern => {
            match keep(dispatch, call, delivered, session, answer)? {
                Some(task) => task,
                None => return Ok(()),
            }
        }
        None => return Ok(()),
    };
    call.task.set_became(&task);
    Ok(())
}

/// Enters a call that was answered at once, although its caller asked for a task, as a task that is
/// completed. Only what is a complete result to the gateway is kept.
fn keep(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    delivered: &Delivered,
    session: &Session,
    answer: &Answer,
) -> Result<Option<Arc<ServerTask>>, Refusal> {
    let kind = json::at(answer.payload.body_bytes(), &["resultType"]).and_then(json::text);
    if answer.outcome != Outcome::Ok || kind.is_some_and(|kind| kind != "complete") {
        return Ok(None);
    }
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
    let holder = &call.link.participant.id;
    let now_ms = unix_ms();
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
    let origin = id.origin(delivered.server.clone(), now_ms);
    let ttl_ms =
        task::asked_ttl(&call.request).map_or(RESULT_KEPT_MS_MAX, |ms| ms.min(RESULT_KEPT_MS_MAX));
    let task = ServerTask::new(call.id, public, origin, None, book::events(dispatch));
    let task = Arc::new(task.with_result(KeptResult::new(answer.clone(), bytes), ttl_ms));
    let entry = Entry {
        origin: TaskOrigin::Call {
            follows: false,
            durable: false,
        },
        holder,
        right: book::right_of(&delivered.server, &id),
        narrowing: None,
        link: Some(call.link.id),
    };
    book::enter(dispatch, &task, entry);
    Ok(Some(task))
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
    delivered: &Delivered,
    payload: &Payload,
    report: &TaskReport,
) -> Result<Arc<ServerTask>, Refusal> {
    let own = report.named.id.as_str();
    if own.len() > TASK_ID_BYTES_MAX {
        let what = format!(
            "the server `{}` gave its task an id that is too long",
            session.upstream()
        );
        return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
    }
    let holder = &call.link.participant.id;
    let now_ms = unix_ms();
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
    let follows = call.task.follows();
    // The extension has no progress of tasks.
    let passes = follows || call.request.payload.form == Form::Legacy;
    let origin = Origin {
        call: Some((session.instance(), CallNumber::of(call.id))),
        progress: call.request.progress.clone().filter(|_| passes),
        ..id.origin(delivered.server.clone(), now_ms)
    };
    let events = book::events(dispatch);
    let mut task = ServerTask::new(call.id, public, origin, Some(session), events);
    task.followed = follows;
    task.begin(report, &payload.bytes);
    // The caller learns of it once it is on disk: see `journal::write`.
    let durable = journal::keeps(dispatch, holder, &task).is_some();
    let task = Arc::new(task);
    let entry = Entry {
        origin: TaskOrigin::Call { follows, durable },
        holder,
        right: book::right_of(&delivered.server, &id),
        narrowing: None,
        link: Some(call.link.id),
    };
    book::enter(dispatch, &task, entry);
    Ok(task)
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
    let task = held(dispatch, call.requester(), &named.id)?;
    (task.origin.server.as_str() == session.upstream()).then(|| Arc::clone(&task.origin.own))
}
