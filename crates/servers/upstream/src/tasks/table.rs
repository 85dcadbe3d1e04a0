//! Table of servers' tasks in one topic, by server, session and the server's own id.

use std::time::Duration;
use std::{collections::HashMap, sync::Arc};

use model::{Notice, ParticipantId, Payload};
use platform::{Mutex, MutexGuard, Share, unix_ms};
use tokio::task::JoinSet;
use wire::mcp::task;

use super::places::{Places, TaskPlace};
use super::task::{Key, Task};
use crate::{CallNumber, Session};

/// Time between two looks for tasks whose time is over.
const SWEEP: Duration = Duration::from_secs(10);

/// The tasks of one topic.
#[derive(Debug, Default)]
pub struct Tasks {
    table: Mutex<Table>,
    places: Places,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<Key, (Arc<Task>, TaskPlace)>,
    /// By the call that became the task: its progress token stays valid.
    calls: foldhash::HashMap<(u64, CallNumber), Arc<Task>>,
    swept: bool,
}

impl Tasks {
    /// The task with a server's own id.
    pub fn find(&self, server: &ParticipantId, instance: u64, own: &str) -> Option<Arc<Task>> {
        let table = self.table();
        table
            .all
            .get(&(server.clone(), instance, own.into()))
            .map(|(task, _)| Arc::clone(task))
    }

    /// The task of this id, by the session that sent the id.
    pub fn find_in(&self, session: &Session, own: &str) -> Option<Arc<Task>> {
        self.find(
            &ParticipantId::new(session.upstream()).ok()?,
            instance_of(session),
            own,
        )
    }

    /// The task that a call of a session became.
    pub fn of_call(&self, instance: u64, call: CallNumber) -> Option<Arc<Task>> {
        self.table().calls.get(&(instance, call)).cloned()
    }

    /// Takes a place for one more task of a participant. Without a free one the participant's
    /// oldest task that is over is forgotten.
    pub fn reserve(&self, holder: &ParticipantId) -> Option<TaskPlace> {
        let own = self.places.of(holder);
        let place = own.take(1).or_else(|_| {
            self.table().forget_oldest(&own);
            own.take(1)
        });
        place.ok()
    }

    /// Enters a task on its place; without a place it is not entered. Must be called inside a
    /// runtime.
    pub fn enter(self: &Arc<Self>, task: &Arc<Task>, place: Option<TaskPlace>) {
        if !self.insert(task, place) {
            return;
        }
        let tasks = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(tasks) = tasks.upgrade() else { return };
                if !tasks.sweep(unix_ms()) {
                    return;
                }
            }
        });
    }

    /// Inserts a task into the table. True when the caller must begin to [`Tasks::sweep`].
    pub(super) fn insert(&self, task: &Arc<Task>, place: Option<TaskPlace>) -> bool {
        // A server that gives an id again means the new task by it.
        self.table().remove(&task.key());
        // `reserve` locks the table too.
        let Some(place) = place.or_else(|| self.reserve(&task.origin.holder)) else {
            return false;
        };
        let mut table = self.table();
        if let Some(call) = task.origin.call {
            table.calls.insert(call, Arc::clone(task));
        }
        table.all.insert(task.key(), (Arc::clone(task), place));
        !std::mem::replace(&mut table.swept, true)
    }

    /// Forgets the tasks whose time is over; false when none is left.
    pub(super) fn sweep(&self, now_ms: u64) -> bool {
        let mut table = self.table();
        let old = table
            .all
            .values()
            .filter(|(task, _)| task.until_ms() <= now_ms)
            .map(|(task, _)| task.key());
        for key in old.collect::<Vec<_>>() {
            table.remove(&key);
        }
        table.swept = !table.all.is_empty();
        table.swept
    }

    /// Ends the tasks of a session that has ended, and returns those that were not over.
    pub fn lose(&self, instance: u64) -> Vec<Arc<Task>> {
        let table = self.table();
        let all = table.all.values().map(|(task, _)| task);
        let of_session = all.filter(|task| task.origin.instance == instance && task.kept.is_none());
        of_session.filter(|task| task.lose()).cloned().collect()
    }

    /// Forgets a task, unless its server has given the id to a newer one.
    pub fn forget(&self, task: &Arc<Task>) {
        let mut table = self.table();
        if table
            .all
            .get(&task.key())
            .is_some_and(|(known, _)| Arc::ptr_eq(known, task))
        {
            table.remove(&task.key());
        }
    }

    /// Cancels the tasks that the gateway follows at their servers, within a bound.
    pub async fn cancel_followed(&self) {
        let all: Vec<_> = self
            .table()
            .all
            .values()
            .map(|(task, _)| Arc::clone(task))
            .collect();
        let mut cancelling = JoinSet::new();
        for task in all.into_iter().filter(|task| task.followed) {
            let Some(session) = task.last_session().filter(|_| !task.is_over()) else {
                continue;
            };
            cancelling.spawn(async move { session.cancel_task(&task.origin.own).await });
        }
        while cancelling.join_next().await.is_some() {}
    }

    /// The tasks of a participant, in no order.
    pub fn of(&self, holder: &ParticipantId) -> Vec<Arc<Task>> {
        let table = self.table();
        let all = table.all.values().map(|(task, _)| task);
        all.filter(|task| task.origin.holder == *holder)
            .cloned()
            .collect()
    }

    /// The task to which a message of a server belongs.
    pub fn related(&self, session: &Session, payload: &Payload) -> Option<Arc<Task>> {
        (session.tasks() > 0).then_some(())?;
        self.find_in(session, &task::related_to(payload)?.id)
    }

    /// A server's notification as the caller of the task to which it belongs reads it.
    pub fn rename_notice(&self, session: &Session, notice: Notice) -> Notice {
        let task = self.related(session, &notice.payload);
        match task.and_then(|task| task.shown(&notice.payload)) {
            Some(payload) => Notice { payload, ..notice },
            None => notice,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    fn remove(&mut self, key: &Key) {
        let Some((gone, _)) = self.all.remove(key) else {
            return;
        };
        if let Some(call) = gone.origin.call {
            self.calls.remove(&call);
        }
    }

    /// Forgets the oldest task on an account that is over.
    fn forget_oldest(&mut self, account: &Arc<Share>) {
        let own = self
            .all
            .values()
            .filter(|(_, place)| place.is_of(account))
            .map(|(task, _)| task);
        let oldest = own
            .filter(|task| task.is_over())
            .min_by_key(|task| task.origin.created_ms);
        if let Some(key) = oldest.map(|task| task.key()) {
            self.remove(&key);
        }
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
