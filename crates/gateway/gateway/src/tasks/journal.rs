//! Journal of servers' tasks that outlive the gateway: a record of each, and their return after a
//! restart.

use std::sync::Arc;

use model::{ParticipantId, Refusal};
use platform::unix_ms;
use store::{Ledger, StoreError, not_written};
use tokio::sync::oneshot;
use topic::TaskOrigin;
use upstream::tasks::ServerTask;

use super::book::{self, Entry};
use super::kept::{CreatedTask, KeptTasks, TaskRecord};
use super::task_id::TaskId;
use crate::{dispatch::Dispatch, link::Link, live::Event};

/// Whether a task must be on disk before its holder learns of it: it outlives the gateway and its
/// holder's connection, and the gateway keeps a journal.
pub(crate) fn keeps<'d>(
    dispatch: &'d Dispatch,
    holder: &ParticipantId,
    task: &ServerTask,
) -> Option<&'d Ledger<KeptTasks>> {
    // A guest's tasks end when the guest leaves, at the latest with the gateway.
    if holder.is_guest() || !task.outlives_gateway() {
        return None;
    }
    Some(&dispatch.ledgers.as_ref()?.tasks)
}

/// Writes a new task down. If that is not possible, it is cancelled at its server and forgotten.
///
/// # Errors
/// The refusal of a journal that cannot be written.
pub(crate) async fn write(
    dispatch: &Arc<Dispatch>,
    journal: &Ledger<KeptTasks>,
    link: &Link,
    task: &Arc<ServerTask>,
) -> Result<(), Refusal> {
    let record = TaskRecord::TaskCreated(CreatedTask {
        id: task.public.clone(),
        topic: dispatch.name().to_string(),
        by: link.participant.id.to_string(),
        created_ms: task.origin.created_ms,
        until_ms: task.until_ms(),
    });
    let (written, end) = oneshot::channel();
    // Its receiver waits below.
    journal.submit(&[record], move |result| _ = written.send(result));
    let end = end.await.unwrap_or(Err(StoreError::Stopped));
    // A caller must not learn of a task that a restart would lose: the topic cancels it.
    dispatch.take(Event::TaskWritten {
        task: task.operation,
        stored: end.is_ok(),
    });
    end.map_err(|error| not_written(&error))
}

/// Brings back the tasks that the journal has, as far as their servers are configured: their
/// participants have them in their lists without asking for each. If a participant has more than the
/// topic takes, the newest are brought back. The topic's servers must be configured before.
pub(crate) fn restore(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    let topic = dispatch.name().as_str();
    let now_ms = unix_ms();
    let all: Vec<CreatedTask> = ledgers
        .tasks
        .state(|kept| kept.of_topic(topic, now_ms).cloned().collect());
    // Each later one takes the place of the participant's oldest, if there is no other.
    for record in &all {
        restore_one(dispatch, record);
    }
}

fn restore_one(dispatch: &Arc<Dispatch>, record: &CreatedTask) {
    let Ok(holder) = ParticipantId::new(&record.by) else {
        return;
    };
    let sealer = &dispatch.context.sealer;
    let Some(state) = TaskId::open(sealer, &holder, unix_ms(), &record.id) else {
        return;
    };
    let id =
        TaskId::read(&state).filter(|id| id.topic == dispatch.name().as_str() && id.instance == 0);
    let Some((id, server)) = id.and_then(|id| {
        let server = ParticipantId::new(id.server).ok()?;
        dispatch.server(&server)?;
        Some((id, server))
    }) else {
        return;
    };
    let origin = id.origin(server, record.created_ms);
    let operation = dispatch.context.operation();
    let events = book::events(dispatch);
    let task = ServerTask::new(operation, record.id.clone(), origin, None, events);
    let task = Arc::new(task.kept_until(record.until_ms));
    let entry = Entry {
        origin: TaskOrigin::Journal,
        holder: &holder,
        right: book::right_of(&task.origin.server, &id),
        narrowing: None,
        link: None,
    };
    book::enter(dispatch, &task, entry);
}
