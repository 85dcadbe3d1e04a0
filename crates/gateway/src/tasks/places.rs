//! Places for servers' tasks: how many each participant has, and how many there are in all.

use std::{collections::HashMap, sync::Arc};

use model::ParticipantId;
use platform::Mutex;

use access::is_guest;

/// Tasks of servers that one participant may have in one topic, including calls that may still become one. All guests have as
/// many together. Beyond it a call does not become a task, unless an older task is over: that is forgotten then.
pub const PARTICIPANT_TASKS_MAX: usize = 256;
/// The same of all participants of one topic together.
pub const TOPIC_TASKS_MAX: usize = 10_000;

/// The account on which a task is: a participant's, or that of all guests.
type Holder = Option<ParticipantId>;

fn holder(id: &ParticipantId) -> Holder {
    (!is_guest(id)).then(|| id.clone())
}

/// Taken places of one topic. Clones share one account.
#[derive(Debug, Default, Clone)]
pub(crate) struct Places(Arc<Mutex<Account>>);

#[derive(Debug, Default)]
struct Account {
    shares: HashMap<Holder, usize>,
    all: usize,
}

/// Room for one task; free again when dropped.
#[derive(Debug)]
pub(crate) struct TaskPlace {
    places: Places,
    holder: Holder,
}

impl Places {
    /// Takes a place for a participant, if there is one.
    pub(crate) fn take(&self, id: &ParticipantId) -> Option<TaskPlace> {
        let holder = holder(id);
        let mut account = self.0.lock();
        let share = account.shares.get(&holder).copied().unwrap_or_default();
        (share < PARTICIPANT_TASKS_MAX && account.all < TOPIC_TASKS_MAX).then_some(())?;
        *account.shares.entry(holder.clone()).or_default() += 1;
        account.all += 1;
        Some(TaskPlace { places: self.clone(), holder })
    }
}

impl TaskPlace {
    /// Whether this place is on the account of a participant.
    pub(crate) fn is_of(&self, id: &ParticipantId) -> bool {
        self.holder == holder(id)
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        let mut account = self.places.0.lock();
        account.all -= 1;
        if let Some(share) = account.shares.get_mut(&self.holder) {
            *share -= 1;
            if *share == 0 {
                account.shares.remove(&self.holder);
            }
        }
    }
}
