//! Journal of servers' tasks that outlive the gateway: a record of each, and their return after a
//! restart.

use std::sync::Arc;

use access::not_written;
use model::{LinkId, ParticipantId, Refusal};
use platform::unix_ms;
use store::{Ledger, StoreError};
use tokio::sync::oneshot;
use upstream::tasks::Task;

use super::kept::{CreatedTask, KeptTasks, TaskRecord};
use crate::dispatch::Dispatch;
use access::TaskId;

/// Whether a task must be on disk before its caller learns of it: it outlives the gateway, and the
/// gateway keeps a journal.
pub(crate) fn keeps<'d>(dispatch: &'d Dispatch, task: &Task) -> Option<&'d Ledger<KeptTasks>> {
    dispatch
        .ledgers
        .as_ref()
        .filter(|_| task.outlives_gateway())
        .map(|ledgers| &ledgers.tasks)
}

/// Writes a new task down. If that is not possible, it is cancelled at its server and forgotten.
///
/// # Errors
/// The refusal of a journal that cannot be written.
pub(crate) async fn write(
    dispatch: &Arc<Dispatch>,
    journal: &Ledger<KeptTasks>,
    task: &Arc<Task>,
) -> Result<(), Refusal> {
    let record = TaskRecord::TaskCreated(CreatedTask {
        id: task.public.clone(),
        topic: dispatch.name().to_string(),
        by: task.origin.holder.to_string(),
        created_ms: task.origin.created_ms,
        until_ms: task.until_ms(),
    });
    let (written, end) = oneshot::channel();
    // Its receiver waits below.
    journal.submit(&[record], move |result| _ = written.send(result));
    let Err(error) = end.await.unwrap_or(Err(StoreError::Stopped)) else {
        task.announce();
        return Ok(());
    };
    // A caller must not learn of a task that a restart would lose.
    dispatch.tasks.forget(task);
    if let Some(session) = task.last_session() {
        session.cancel_task(&task.origin.own).await;
    }
    Err(not_written(&error))
}

/// Brings back the tasks that the journal has, as far as their servers are configured: their
/// participants have them in their lists without asking for each. The topic's servers must be
/// configured before.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    let (topic, now_ms) = (dispatch.name().as_str(), unix_ms());
    let all: Vec<CreatedTask> = ledgers
        .tasks
        .state(|kept| kept.of_topic(topic, now_ms).cloned().collect());
    for task in all {
        if let Some(task) = restored(dispatch, task, now_ms) {
            dispatch.tasks.enter(&Arc::new(task), None);
        }
    }
}

fn restored(dispatch: &Dispatch, record: CreatedTask, now_ms: u64) -> Option<Task> {
    let holder = ParticipantId::new(&record.by).ok()?;
    let state = TaskId::open(&dispatch.context.sealer, &holder, now_ms, &record.id)?;
    let id = TaskId::read(&state)
        .filter(|id| id.topic == dispatch.name().as_str() && id.instance == 0)?;
    let server = ParticipantId::new(id.server).ok()?;
    dispatch.server(&server)?;
    let origin = id.origin(&holder, server, record.created_ms);
    Some(Task::restored(
        record.id,
        origin,
        LinkId(0),
        record.until_ms,
    ))
}
