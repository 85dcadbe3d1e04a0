//! The last step of a request on its way in: its params, in the era and under the name of the session that takes it.
//!
//! Must not know how the topic decides.

use std::sync::Arc;

use model::{Era, Refusal, RefusalCode};
use platform::Mutex;
use upstream::{CallEvents, ClientProfile, Outgoing, Session};
use wire::mcp::{Params, Target, Version, meta, task};
use wire::rpc::Message;

use super::Pump;
use crate::operation::{Names, Operation, Tasked};
use crate::spell;
use crate::stream::Stream;
use crate::tasks::Tasks;

/// The params of a request; what is wrong with them is answered here.
pub(super) fn read<'m>(message: &'m Message, out: &Stream) -> Option<Params<'m>> {
    Params::read(message).inspect_err(|malformed| out.answer(malformed.answer())).ok()
}

/// Sends a request in the era of the session that takes it.
pub(super) fn translate(
    tasks: &Tasks,
    operation: &Arc<Operation>,
    session: &Arc<Session>,
    own: Option<&str>,
    params: &Params<'_>,
    hello: &ClientProfile,
) {
    let fitted = match operation.method {
        "tools/call" => fit_task(tasks, operation, session, own, params),
        _ => Ok(None),
    };
    match fitted {
        Err(refusal) => operation.done(Err(refusal)),
        Ok(None) => in_era(operation, session, own, params, hello),
        Ok(Some(message)) => match Params::read(&message) {
            Ok(params) => in_era(operation, session, own, &params, hello),
            Err(_) => operation.refuse(&untranslated()),
        },
    }
}

fn in_era(
    operation: &Arc<Operation>,
    session: &Arc<Session>,
    own: Option<&str>,
    params: &Params<'_>,
    hello: &ClientProfile,
) {
    match spell::for_session(params.message(), operation.caller.era(), session.era(), hello) {
        None => send(operation, session, own, params),
        Some(message) => match Params::read(&message) {
            Ok(params) => send(operation, session, own, &params),
            Err(_) => operation.refuse(&untranslated()),
        },
    }
}

pub(super) fn untranslated() -> Refusal {
    Refusal::new(RefusalCode::Internal, "the request could not be translated")
}

/// What a call of a tool says of tasks, fitted to the session that takes it; `None` when it goes as it came. Whoever was told
/// that calls may become tasks is refused where this one may not (2025-11-25, "Tool-Level Negotiation"); for all others
/// `task` means nothing.
fn fit_task(
    tasks: &Tasks,
    operation: &Operation,
    session: &Session,
    own: Option<&str>,
    params: &Params<'_>,
) -> Result<Option<Message>, Refusal> {
    let caller = &operation.caller;
    // Room is kept for what it may become, so that calls at the same time do not pass the bound together.
    let may_become = || {
        let Some(place) = tasks.reserve(&caller.participant().id) else { return false };
        let (token, place) = (params.progress_token(), Mutex::new(Some(place)));
        // Set once: a request is sent once.
        let _ = operation.tasked.set(Tasked::Asks { token, place });
        true
    };
    if caller.era() == Era::Modern {
        if session.era() == Era::Legacy {
            return Ok(task::without_task(params));
        }
        let declares = params.client_capabilities().is_some_and(task::declares);
        // Without room its server is not told that the caller would take a task: it answers when it is done.
        return Ok(if declares && !may_become() { task::without_extension(params) } else { None });
    }
    if params.get("task").is_none() {
        return Ok(None);
    }
    let told = operation.names == Names::Public && caller.hello().version == Version::NEWEST_LEGACY;
    if !told {
        return Ok(task::without_task(params));
    }
    task::asked(params).map_err(|wrong| Refusal::new(RefusalCode::Malformed, wrong.message))?;
    let tool = own.or_else(|| params.target().map(Target::text)).unwrap_or_default();
    if session.era() == Era::Modern || !session.takes_task(tool) {
        let what = "this tool cannot be called as a task: its `execution.taskSupport` does not allow it";
        return Err(Refusal::new(RefusalCode::Unsupported, what).hint("call it without `task`"));
    }
    if !may_become() {
        return Err(Refusal::new(RefusalCode::Overloaded, "too many tasks are open")
            .hint("wait for some of them, or cancel them with tasks/cancel"));
    }
    Ok(None)
}

fn send(operation: &Arc<Operation>, session: &Arc<Session>, own: Option<&str>, params: &Params<'_>) {
    let mut edit = params.edit();
    if let Some(own) = own {
        edit.set_target(own);
    }
    if params.meta_raw(meta::RELATED_TASK).is_some()
        && let Some(raw) = Pump::own_relation(operation, session, params)
    {
        edit.set_meta(meta::RELATED_TASK, raw.as_bytes());
    }
    let target = own.or_else(|| params.target().map(Target::text));
    operation.goes_to(session);
    if let Some(task) = operation.about().filter(|_| operation.method == "tasks/result") {
        task.waited_for(&operation.out);
    }
    let from = operation.caller.participant().id.as_str();
    let sink: Arc<dyn CallEvents> = Arc::<Operation>::clone(operation);
    match session.call(Outgoing { params, edit, target, from }, sink) {
        Ok(ticket) => operation.is_sent(ticket),
        Err(refusal) => operation.done(Err(refusal)),
    }
}
