//! Tasks that run at servers, as their callers know them: under ids of ours, each of one participant.
//!
//! Owns which id of ours means which task of which server, how it stood when it was last told, and the bounds. An id of ours
//! is sealed for its participant, so nobody else can use it. Must not know the topic, doors, or how messages are spelled.

mod id;
mod relayed;

use std::collections::HashMap;
use std::sync::Arc;

use model::ParticipantId;
use upstream::CallNumber;

use crate::guests::is_guest;
pub(crate) use id::Sealed;
use platform::{Mutex, MutexGuard};
use relayed::Key;
pub(crate) use relayed::{LOST, Origin, Relayed};

/// Tasks of servers that one participant may have in one topic, calls that may still become one included; all guests have as
/// many together. Beyond it a call does not become one, unless an older task is over: that is forgotten then.
pub const PARTICIPANT_TASKS_MAX: usize = 256;
/// The same, of all participants of one topic together.
pub const TOPIC_TASKS_MAX: usize = 10_000;
/// A server's task id that is longer than this, in bytes, is not taken.
pub const TASK_ID_BYTES_MAX: usize = 512;

#[derive(Default)]
struct Book {
    all: HashMap<Key, Arc<Relayed>>,
    /// By the call that has become the task: its progress token lives on.
    calls: HashMap<(u64, CallNumber), Arc<Relayed>>,
    /// What each holder has: tasks, and places for calls that may become one.
    shares: HashMap<Holder, usize>,
    /// Places of all holders.
    places: usize,
    swept: bool,
}

/// On whose account a task is: a participant's, or all guests' together.
type Holder = Option<ParticipantId>;

fn holder(who: &ParticipantId) -> Holder {
    (!is_guest(who)).then(|| who.clone())
}

/// The tasks of servers in one topic.
#[derive(Default, Clone)]
pub(crate) struct Tasks(Arc<Mutex<Book>>);

/// Room for one task, kept while the call that may become it is open; given back when dropped.
pub(crate) struct Place {
    tasks: Tasks,
    holder: Holder,
    spent: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.spent {
            self.tasks.book().give_back(&self.holder);
        }
    }
}

impl Tasks {
    /// The task that a server means by this id.
    pub(crate) fn find(&self, upstream: &ParticipantId, birth: u64, own: &str) -> Option<Arc<Relayed>> {
        self.book().all.get(&(upstream.clone(), birth, own.into())).cloned()
    }

    /// The task that this call of a session has become.
    pub(crate) fn of_call(&self, birth: u64, call: CallNumber) -> Option<Arc<Relayed>> {
        self.book().calls.get(&(birth, call)).cloned()
    }

    /// Keeps room for one more task of a participant. Where there is none, the oldest of theirs that is over goes.
    pub(crate) fn reserve(&self, who: &ParticipantId) -> Option<Place> {
        let holder = holder(who);
        let mut book = self.book();
        book.make_room(&holder).then_some(())?;
        *book.shares.entry(holder.clone()).or_default() += 1;
        book.places += 1;
        Some(Place { tasks: self.clone(), holder, spent: false })
    }

    /// Enters a task, on the place that was kept for it if one was; where there is no room it is not entered. True when
    /// somebody has to begin to [`Tasks::sweep`].
    pub(crate) fn enter(&self, task: &Arc<Relayed>, place: Option<Place>) -> bool {
        let mut book = self.book();
        if let Some(mut place) = place {
            place.spent = true;
            book.give_back(&place.holder);
        }
        // A server that gives an id again means the new task by it.
        book.remove(&task.key());
        let holder = holder(&task.origin.who);
        if !book.make_room(&holder) {
            return false;
        }
        *book.shares.entry(holder).or_default() += 1;
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
        if !book.shares.contains_key(&holder(who)) {
            return Vec::new();
        }
        let mut theirs: Vec<_> = book.all.values().filter(|task| task.origin.who == *who).cloned().collect();
        drop(book);
        theirs.sort_by(|a, b| (a.origin.created_ms, &a.public).cmp(&(b.origin.created_ms, &b.public)));
        theirs
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock()
    }
}

impl Book {
    fn remove(&mut self, key: &Key) {
        let Some(gone) = self.all.remove(key) else { return };
        if let Some((birth, call)) = gone.origin.call {
            self.calls.remove(&(birth, call));
        }
        self.lessen(&holder(&gone.origin.who));
    }

    fn give_back(&mut self, holder: &Holder) {
        self.places = self.places.saturating_sub(1);
        self.lessen(holder);
    }

    fn lessen(&mut self, holder: &Holder) {
        if let Some(count) = self.shares.get_mut(holder) {
            *count -= 1;
            if *count == 0 {
                self.shares.remove(holder);
            }
        }
    }

    /// Whether a holder may have one more, if need be instead of its oldest task that is over.
    fn make_room(&mut self, holder: &Holder) -> bool {
        if !self.is_full(holder) {
            return true;
        }
        let is_theirs = |who: &ParticipantId| holder.as_ref().map_or_else(|| is_guest(who), |id| id == who);
        let theirs = self.all.values().filter(|task| is_theirs(&task.origin.who));
        let over = theirs.filter(|task| task.is_over()).min_by_key(|task| task.origin.created_ms);
        let Some(key) = over.map(|task| task.key()) else { return false };
        self.remove(&key);
        !self.is_full(holder)
    }

    fn is_full(&self, holder: &Holder) -> bool {
        self.shares.get(holder).copied().unwrap_or_default() >= PARTICIPANT_TASKS_MAX
            || self.all.len() + self.places >= TOPIC_TASKS_MAX
    }
}

#[cfg(test)]
mod tests;
