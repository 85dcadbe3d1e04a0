//! Table of servers' tasks, with its indexes, places and times.

use std::collections::HashMap as Map;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use model::{Capabilities, LinkId, OperationId, ParticipantId, method::CALL_TOOL};

use crate::{
    Handles,
    admission::Looker,
    deadlines::Deadlines,
    event::{NewTask, TaskOrigin, TaskRight},
    members::{account, is_guest},
};

/// Tasks of servers in one topic, including calls that may still become one.
pub const TOPIC_TASKS_MAX: usize = 10_000;
/// Tasks of one participant in one topic, and of all guests together. Beyond it a call does not
/// become a task, unless an older task is over or makes way: that is forgotten then.
pub const PARTICIPANT_TASKS_MAX: usize = 256;

const _: () = assert!(PARTICIPANT_TASKS_MAX <= TOPIC_TASKS_MAX / 4);

/// A task as its server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    server: ParticipantId,
    /// The number of the server's session; 0 if any session knows the task.
    session: u64,
    /// The server's own id of it.
    own: Arc<str>,
}

impl Key {
    pub(crate) fn new(server: &ParticipantId, session: u64, own: impl Into<Arc<str>>) -> Self {
        Self {
            server: server.clone(),
            session,
            own: own.into(),
        }
    }
}

/// The right by which a participant has a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) server: ParticipantId,
    pub(crate) tool: Box<str>,
    pub(crate) held: bool,
}

impl Right {
    pub(crate) fn as_ref(&self) -> TaskRight<'_> {
        TaskRight {
            server: &self.server,
            tool: &self.tool,
            held: self.held,
        }
    }
}

impl From<TaskRight<'_>> for Right {
    fn from(right: TaskRight<'_>) -> Self {
        Self {
            server: right.server.clone(),
            tool: right.tool.into(),
            held: right.held,
        }
    }
}

/// Whether these capabilities have the right to a task.
pub(crate) fn has_right(capabilities: &Capabilities, right: TaskRight<'_>) -> bool {
    let looker = Looker {
        capabilities,
        promotes: right.held,
    };
    looker
        .access(CALL_TOOL.name, right.tool, right.server.as_str())
        .is_some()
}

/// The participants that know of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The call that has become it is open, and its caller has no answer yet.
    Becoming {
        /// Whether the gateway follows it for the call.
        follows: bool,
        /// Whether the journal must have it first.
        durable: bool,
    },
    /// The journal is about to write it.
    Writing,
    /// Its holder has it.
    Known,
}

/// One task.
#[derive(Debug)]
pub(crate) struct Task<H: Handles> {
    /// Its number in the order of opening.
    order: u64,
    pub(crate) stage: Stage,
    pub(crate) holder: ParticipantId,
    pub(crate) right: Right,
    pub(crate) session: u64,
    own: Arc<str>,
    pub(crate) public: Arc<str>,
    /// The link that asked about it last.
    pub(crate) link: Option<LinkId>,
    pub(crate) over: bool,
    /// Whether its server cannot be asked any more.
    pub(crate) lost: bool,
    /// Whether it makes way for another task although it may run: it is from before a restart, or
    /// its server was taken out of the configuration, and its holder has not asked about it since.
    /// Its id alone finds it then.
    pub(crate) makes_way: bool,
    pub(crate) until_ms: u64,
    /// Open requests that wait for its result, in the order of opening: the last one is asked what
    /// its server asks.
    pub(crate) waiting: Vec<OperationId>,
    /// The participant on whose account it has a place. One that belongs to an open call has the
    /// place of the call.
    pub(crate) place: Option<ParticipantId>,
    pub(crate) handle: H::Task,
}

impl<H: Handles> Task<H> {
    pub(crate) fn new(new: NewTask<'_, H>, stage: Stage, place: Option<ParticipantId>) -> Self {
        let mut waiting = Vec::new();
        // The caller of a call that is followed is asked what the task's server asks.
        if matches!(stage, Stage::Becoming { follows: true, .. }) {
            waiting.push(new.task);
        }
        Self {
            order: 0,
            stage,
            holder: new.holder.clone(),
            right: new.right.into(),
            session: new.session,
            own: new.own,
            public: new.public,
            link: new.link,
            over: new.over,
            lost: false,
            makes_way: new.origin == TaskOrigin::Journal,
            until_ms: new.until_ms,
            waiting,
            place,
            handle: new.handle,
        }
    }

    fn key(&self) -> Key {
        Key::new(&self.right.server, self.session, self.own.clone())
    }

    /// Whether this participant has it and knows it.
    pub(crate) fn is_known_to(&self, participant: &ParticipantId) -> bool {
        self.holder == *participant && self.stage == Stage::Known
    }

    /// Notes that its holder asks about it on this link, so that it keeps its place.
    pub(crate) fn note_asked_on(&mut self, link: LinkId) {
        self.link = Some(link);
        self.makes_way = false;
    }

    /// Whether the gateway follows it for a call, so that no participant knows it.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(self.stage, Stage::Becoming { follows: true, .. })
    }
}

/// The tasks of one topic.
#[derive(Debug)]
pub(crate) struct Tasks<H: Handles> {
    all: HashMap<OperationId, Task<H>>,
    by_key: Map<Key, OperationId>,
    by_public: Map<Arc<str>, OperationId>,
    /// By the time at which each is forgotten.
    expiry: Deadlines,
    /// Places that are taken, by account, and in all.
    places: Map<Box<str>, usize>,
    taken: usize,
    opened: u64,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl<H: Handles> Tasks<H> {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            all: HashMap::new(),
            by_key: Map::new(),
            by_public: Map::new(),
            expiry: Deadlines::default(),
            places: Map::new(),
            taken: 0,
            opened: 0,
            guests,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&Task<H>> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Task<H>> {
        self.all.get_mut(&id)
    }

    /// Whether an id is a guest's.
    pub(crate) fn is_guest(&self, id: &ParticipantId) -> bool {
        is_guest(id, self.guests)
    }

    /// The task with a server's own id.
    pub(crate) fn at(&self, key: &Key) -> Option<OperationId> {
        self.by_key.get(key).copied()
    }

    /// The task with this id at the gateway.
    pub(crate) fn named(&self, public: &str) -> Option<OperationId> {
        self.by_public.get(public).copied()
    }

    pub(crate) fn insert(&mut self, id: OperationId, mut task: Task<H>) {
        task.order = self.opened;
        self.opened += 1;
        self.by_key.insert(task.key(), id);
        self.by_public.insert(Arc::clone(&task.public), id);
        self.all.insert(id, task);
    }

    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Task<H>> {
        let task = self.all.remove(&id)?;
        self.by_key.remove(&task.key());
        self.by_public.remove(&task.public);
        self.expiry.remove(task.until_ms, id);
        self.give_back(task.place.as_ref());
        Some(task)
    }

    /// The tasks for which `fits` holds, in the order of opening.
    pub(crate) fn which(&self, fits: impl Fn(&Task<H>) -> bool) -> Vec<OperationId> {
        let found = self.all.iter().filter(|(_, task)| fits(task));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by_key(|(_, task)| task.order);
        found.into_iter().map(|(id, _)| *id).collect()
    }

    /// The holder of each, in no order.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &ParticipantId> {
        self.all.values().map(|task| &task.holder)
    }

    /// Takes a place on a participant's account, or on that of all guests; false if there is none.
    pub(crate) fn take_place(&mut self, holder: &ParticipantId) -> bool {
        let account = account(holder, self.guests);
        let used = self.places.get(account).copied().unwrap_or_default();
        if used >= PARTICIPANT_TASKS_MAX || self.taken >= TOPIC_TASKS_MAX {
            return false;
        }
        self.places.insert(account.into(), used + 1);
        self.taken += 1;
        true
    }

    /// Gives a place back, if there is one.
    pub(crate) fn give_back(&mut self, place: Option<&ParticipantId>) {
        let Some(holder) = place else {
            return;
        };
        let account = account(holder, self.guests);
        let Some(used) = self.places.get_mut(account) else {
            return;
        };
        *used = used.saturating_sub(1);
        if *used == 0 {
            self.places.remove(account);
        }
        self.taken = self.taken.saturating_sub(1);
    }

    /// The task on a participant's account that is forgotten for another one: the oldest that is
    /// over, else the oldest that makes way.
    pub(crate) fn spare(&self, holder: &ParticipantId) -> Option<OperationId> {
        let spare = self.all.iter().filter(|(_, task)| {
            (task.over || task.makes_way) && self.is_on_account_of(task, holder)
        });
        let (id, _) = spare.min_by_key(|(_, task)| (!task.over, task.order))?;
        Some(*id)
    }

    /// Whether a task has its place on the account of this participant.
    fn is_on_account_of(&self, task: &Task<H>, holder: &ParticipantId) -> bool {
        let Some(place) = &task.place else {
            return false;
        };
        account(place, self.guests) == account(holder, self.guests)
    }

    /// Sets the time at which a task is forgotten.
    pub(crate) fn expire_at(&mut self, id: OperationId, until_ms: u64) {
        if let Some(task) = self.all.get_mut(&id) {
            self.expiry.remove(task.until_ms, id);
            task.until_ms = until_ms;
            self.expiry.insert(until_ms, id);
        }
    }

    /// The first task whose time is over.
    pub(crate) fn due(&self, now_ms: u64) -> Option<OperationId> {
        self.expiry.due(now_ms)
    }

    /// The time at which the next task is forgotten.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.expiry.next_ms()
    }
}
