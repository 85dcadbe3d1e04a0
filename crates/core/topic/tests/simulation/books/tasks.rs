//! Tasks at servers: whose each is, who waits for it, and its one end.

use std::collections::{BTreeMap, BTreeSet};

use model::{KindRef, LinkId, Narrowing, OperationId, Outcome, ParticipantId};

use super::{Books, calls::Call};
use crate::turn::Turn;

/// The right by which a participant has a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) server: ParticipantId,
    pub(crate) tool: String,
    pub(crate) held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its call is open.
    Becoming {
        follows: bool,
    },
    /// The journal is about to write it.
    Writing,
    Known,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) handle: u64,
    pub(crate) holder: ParticipantId,
    pub(crate) right: Right,
    pub(crate) session: u64,
    pub(crate) public: String,
    pub(crate) stage: Stage,
    /// Whether the journal must have it before its holder.
    pub(crate) durable: bool,
    pub(crate) over: bool,
    pub(crate) lost: bool,
    pub(crate) until_ms: u64,
    /// The link that asked about it last.
    pub(crate) link: Option<LinkId>,
    /// Open requests that wait for its result, the last one at the end.
    pub(crate) waiting: Vec<OperationId>,
}

impl Task {
    fn is_becoming(&self) -> bool {
        matches!(self.stage, Stage::Becoming { .. })
    }
}

/// The terms of a step that concern tasks.
#[derive(Debug, Default)]
pub(crate) struct TaskTurn {
    /// A task of a call that is over, and whether it has ended itself.
    pub(crate) late: Option<(u64, bool)>,
    /// A task that the topic gives back.
    pub(crate) given_back: Option<u64>,
    /// A participant that may not be here any more, or whose name is another one's.
    pub(crate) revoked: BTreeSet<ParticipantId>,
    /// A task that the journal cannot write.
    pub(crate) unwritten: Option<OperationId>,
    /// Whether tasks expire whose time is over.
    pub(crate) expires: bool,
    /// The server and number of a session that has ended.
    pub(crate) lost: Option<(ParticipantId, u64)>,
}

/// The ends that a step brings to tasks.
#[derive(Debug, Default)]
pub(crate) struct TaskEnds {
    pub(crate) cancelled: BTreeSet<u64>,
    pub(crate) forgotten: BTreeSet<u64>,
    pub(crate) lost: BTreeSet<u64>,
    /// Calls that end in this step.
    closed: BTreeMap<OperationId, Outcome>,
}

impl Books {
    /// Whether a participant may have a task by this right now.
    pub(crate) fn may_have(&self, holder: &ParticipantId, right: &Right) -> bool {
        self.may_have_with(holder, None, right)
    }

    /// Whether a participant may have a task by this right now, with this token.
    pub(crate) fn may_have_with(
        &self,
        holder: &ParticipantId,
        token: Option<&Narrowing>,
        right: &Right,
    ) -> bool {
        if self.links_of(holder).is_empty() {
            return false;
        }
        let at = [right.server.as_str()];
        let tool = Some(right.tool.as_str());
        let Some(granted) = self.granted_with(holder, token) else {
            return false;
        };
        let calls = KindRef::request("tools/call", tool);
        let proposes = KindRef::proposal("tools/call", tool);
        calls.is_ok_and(|kind| granted.admits(kind, &at))
            || right.held && proposes.is_ok_and(|kind| granted.admits(kind, &at))
    }

    /// Whether this participant has a task, and may have it now.
    pub(crate) fn has_task(&self, by: &ParticipantId, task: &Task) -> bool {
        task.holder == *by && task.stage == Stage::Known && self.may_have(by, &task.right)
    }

    /// A call has ended: it waits for no task any more.
    pub(crate) fn end_task_part(&mut self, operation: OperationId, outcome: Outcome) {
        self.task_ends.closed.insert(operation, outcome);
        for task in self.tasks.values_mut() {
            task.waiting.retain(|waiting| *waiting != operation);
        }
    }

    /// Compares the ends of tasks with those that must follow from the step.
    pub(crate) fn finish_tasks(&mut self, turn: &Turn) {
        let ends = std::mem::take(&mut self.task_ends);
        let mut cancelled = BTreeSet::new();
        let mut forgotten = BTreeSet::new();
        if let Some((handle, over)) = turn.tasks.late {
            self.count("task of a call that is over");
            if over {
                forgotten.insert(handle);
            } else {
                cancelled.insert(handle);
            }
        }
        forgotten.extend(turn.tasks.given_back);
        for (id, task) in self.tasks.clone() {
            let closed = ends.closed.get(&id).copied();
            match self.must_end(id, &task, closed, turn) {
                None => {
                    if task.is_becoming() && closed.is_some() {
                        self.pass_on(id);
                    }
                    continue;
                }
                Some(Must::Cancel) if !task.over => _ = cancelled.insert(task.handle),
                Some(Must::Cancel | Must::Forget) => _ = forgotten.insert(task.handle),
            }
            self.tasks.remove(&id);
        }
        assert_eq!(ends.cancelled, cancelled, "cancelled at their servers");
        assert_eq!(ends.forgotten, forgotten, "forgotten");
        for handle in cancelled.into_iter().chain(forgotten) {
            assert!(self.ended_tasks.insert(handle), "{handle} ended twice");
        }
        self.lose(&ends, turn);
    }

    fn must_end(
        &mut self,
        id: OperationId,
        task: &Task,
        closed: Option<Outcome>,
        turn: &Turn,
    ) -> Option<Must> {
        if let Stage::Becoming { follows } = task.stage {
            let is_answered = matches!(closed?, Outcome::Ok | Outcome::Error);
            if follows && is_answered {
                self.count("task followed to its end");
                return Some(Must::Forget);
            }
            let passes = is_answered && self.may_have(&task.holder, &task.right);
            return (!passes).then_some(Must::Cancel);
        }
        if turn.tasks.revoked.contains(&task.holder) {
            self.count("task of a revoked participant");
            return Some(Must::Cancel);
        }
        if turn.tasks.unwritten == Some(id) {
            self.count("task not written");
            return Some(Must::Cancel);
        }
        let expires = turn.tasks.expires && task.until_ms <= self.now_ms;
        if expires {
            self.count("task expired");
        }
        expires.then_some(Must::Forget)
    }

    /// A task passes to its holder.
    fn pass_on(&mut self, id: OperationId) {
        let task = self.tasks.get_mut(&id).unwrap();
        task.stage = if task.durable {
            Stage::Writing
        } else {
            Stage::Known
        };
        self.count("became a task");
    }

    fn lose(&mut self, ends: &TaskEnds, turn: &Turn) {
        let mut lost = BTreeSet::new();
        if let Some((server, session)) = &turn.tasks.lost {
            let in_it = |task: &&mut Task| {
                !task.lost && task.right.server == *server && task.session == *session
            };
            for task in self.tasks.values_mut().filter(in_it) {
                (task.lost, task.over) = (true, true);
                lost.insert(task.handle);
            }
        }
        assert_eq!(ends.lost, lost, "lost with their session");
    }

    /// Every open request about a task is its holder's, who may have it.
    pub(crate) fn check_about(&self) {
        let about = |open: &Call| open.about.clone().map(|right| (open.by.clone(), right));
        for (operation, open) in &self.calls {
            let Some((by, right)) = about(open) else {
                continue;
            };
            assert!(
                self.may_have(&by, &right),
                "{operation} is about a task that {by} may not have"
            );
        }
        for (id, task) in &self.tasks {
            for waiting in &task.waiting {
                let open = &self.calls[waiting];
                assert!(
                    open.by == task.holder || waiting == id,
                    "{} waits for {}'s task",
                    open.by,
                    task.holder
                );
            }
            assert!(!task.is_becoming() || self.calls.contains_key(id));
        }
    }
}

/// The end of a task.
#[derive(Debug, Clone, Copy)]
enum Must {
    /// At its server, if it is not over.
    Cancel,
    Forget,
}
