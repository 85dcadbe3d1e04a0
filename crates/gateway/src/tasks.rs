//! Tasks that run at servers, as their callers know them: under ids of ours, each of one participant.
//!
//! Owns which id of ours means which task of which server, how it stood when it was last told, and the bounds. An id of ours
//! is sealed for its participant, so nobody else can use it. Must not know the topic, doors, or how messages are spelled.

mod id;
mod relayed;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::ParticipantId;

use crate::upstream::Ticket;
pub(crate) use id::Sealed;
use relayed::Key;
pub(crate) use relayed::{LOST, Origin, Relayed};

/// Tasks of servers that one participant may have in one topic. Beyond it a call that asks to become one is refused, unless
/// an older one is over: that is forgotten then.
pub const PARTICIPANT_TASKS_MAX: usize = 256;
/// The same, of all participants of one topic together.
pub const TOPIC_TASKS_MAX: usize = 10_000;
/// A server's task id that is longer than this, in bytes, is not taken.
pub const TASK_ID_BYTES_MAX: usize = 512;

#[derive(Default)]
struct Book {
    all: HashMap<Key, Arc<Relayed>>,
    /// By the call that has become the task: its progress token lives on.
    calls: HashMap<(u64, Ticket), Arc<Relayed>>,
    counts: HashMap<ParticipantId, usize>,
    swept: bool,
}

/// The tasks of servers in one topic.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Book>);

impl Tasks {
    /// The task that a server means by this id.
    pub(crate) fn find(&self, upstream: &ParticipantId, birth: u64, own: &str) -> Option<Arc<Relayed>> {
        self.book().all.get(&(upstream.clone(), birth, own.into())).cloned()
    }

    /// The task that this call of a session has become.
    pub(crate) fn of_call(&self, birth: u64, call: Ticket) -> Option<Arc<Relayed>> {
        self.book().calls.get(&(birth, call)).cloned()
    }

    /// Whether a participant may have one more.
    pub(crate) fn has_room(&self, who: &ParticipantId) -> bool {
        let book = self.book();
        let of_theirs = book.counts.get(who).copied().unwrap_or_default();
        (of_theirs < PARTICIPANT_TASKS_MAX && book.all.len() < TOPIC_TASKS_MAX)
            || book.all.values().any(|task| task.origin.who == *who && task.is_over())
    }

    /// Enters a task. Of a participant that has as many as it may, the oldest goes, one that is over if there is one; where
    /// there is no room all the same it is not entered. True when somebody has to begin to [`Tasks::sweep`].
    pub(crate) fn enter(&self, task: &Arc<Relayed>) -> bool {
        let mut book = self.book();
        let who = &task.origin.who;
        // A server that gives an id again means the new task by it.
        book.remove(&task.key());
        let full = |book: &Book| {
            book.counts.get(who).copied().unwrap_or_default() >= PARTICIPANT_TASKS_MAX
                || book.all.len() >= TOPIC_TASKS_MAX
        };
        if full(&book) {
            let theirs = book.all.values().filter(|other| other.origin.who == *who);
            let oldest = theirs.min_by_key(|other| (!other.is_over(), other.origin.created_ms));
            if let Some(key) = oldest.map(|oldest| oldest.key()) {
                book.remove(&key);
            }
        }
        if full(&book) {
            return false;
        }
        *book.counts.entry(who.clone()).or_default() += 1;
        if let Some((birth, call)) = task.origin.call {
            book.calls.insert((birth, call), Arc::clone(task));
        }
        book.all.insert(task.key(), Arc::clone(task));
        !std::mem::replace(&mut book.swept, true)
    }

    /// Forgets what has been kept for as long as it may; false when nothing is left to come back for.
    pub(crate) fn sweep(&self, now_ms: u64) -> bool {
        let mut book = self.book();
        let old = book.all.values().filter(|task| task.until_ms() <= now_ms).map(|task| task.key());
        for key in old.collect::<Vec<_>>() {
            book.remove(&key);
        }
        book.swept = !book.all.is_empty();
        book.swept
    }

    /// A session has ended, and with it the tasks that were not over. Gives those.
    pub(crate) fn lost(&self, birth: u64) -> Vec<Arc<Relayed>> {
        let book = self.book();
        let of_session = book.all.values().filter(|task| task.origin.birth == birth);
        of_session.filter(|task| task.end()).cloned().collect()
    }

    /// What a participant has, the oldest first.
    pub(crate) fn of(&self, who: &ParticipantId) -> Vec<Arc<Relayed>> {
        let book = self.book();
        if !book.counts.contains_key(who) {
            return Vec::new();
        }
        let mut theirs: Vec<_> = book.all.values().filter(|task| task.origin.who == *who).cloned().collect();
        drop(book);
        theirs.sort_by(|a, b| (a.origin.created_ms, &a.public).cmp(&(b.origin.created_ms, &b.public)));
        theirs
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn remove(&mut self, key: &Key) {
        let Some(gone) = self.all.remove(key) else { return };
        if let Some((birth, call)) = gone.origin.call {
            self.calls.remove(&(birth, call));
        }
        let who = &gone.origin.who;
        if let Some(count) = self.counts.get_mut(who) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(who);
            }
        }
    }
}

#[cfg(test)]
mod tests;
