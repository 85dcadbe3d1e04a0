//! Servers' tasks: holder, right, waiting requests and expiry of each.
//!
//! A call that its server answers with a task lives on as that task, under the call's id. With the
//! answer of the call the task passes to its holder, unless the gateway follows it for the call. It
//! leaves the book once, and the shell gets its handle back with one effect: cancelled at its
//! server, if no participant may have it any more, or forgotten. What its server writes about it is
//! the shell's.

mod book;
mod requests;

use std::sync::Arc;

use model::{Capabilities, Narrowing, OperationId, Outcome, ParticipantId};

use crate::{
    Handles, Topic,
    admission::within,
    effect::{Cause, Effect, Verdict},
    event::{NewTask, TaskOrigin, TaskRight},
    operations::Becomes,
};
pub(crate) use book::{Key, Right, Stage, Task, Tasks, has_right};
pub use book::{PARTICIPANT_TASKS_MAX, TOPIC_TASKS_MAX};

impl<H: Handles> Topic<H> {
    /// Reserves a place for the task that an open call may become; refuses the call if there is
    /// none.
    pub(crate) fn reserve_task_place(&mut self, call: OperationId) {
        let Some(open) = self.operations.get(call) else {
            return;
        };
        // A call that goes to a second session keeps its first place.
        if !open.state.is_at_server() || open.becomes_with_place() {
            return;
        }
        let Some(caller) = self.members.of_link(open.link) else {
            return;
        };
        let holder = caller.id.clone();
        if !self.take_place(&holder) {
            self.effects.verdict = Some(Verdict::Refused(Cause::Limit));
            return;
        }
        if let Some(open) = self.operations.get_mut(call) {
            open.rare.get_or_insert_default().becomes = Some(Becomes {
                place: Some(holder),
            });
        }
    }

    /// Takes a task into the book. A task that no participant may have is cancelled at its server,
    /// and one that finds no place is given back.
    pub(crate) fn open_task(&mut self, new: NewTask<'_, H>) {
        let key = Key::new(new.right.server, new.session, new.own.clone());
        let known = self.tasks.at(&key);
        match new.origin {
            TaskOrigin::Call { follows, durable } => {
                // Its call may have ended meanwhile: then no participant will ever ask for it.
                let is_first = self.tasks.get(new.task).is_none();
                if !is_first || !self.is_served_by(new.task, new.right.server) {
                    return self.release_at_server(new.handle, new.over);
                }
                // A server that gives an id again means the new task by it.
                if let Some(older) = known {
                    self.forget_task(older);
                }
                let stage = Stage::Becoming { follows, durable };
                self.begin_task(new, stage, None);
            }
            TaskOrigin::Named | TaskOrigin::Journal => {
                // Holders of the journal's tasks may join later; their rights are judged when they
                // ask.
                let may_have = new.origin == TaskOrigin::Journal
                    || self.may_have(new.holder, new.narrowing, new.right);
                if !may_have || known.is_some() || !self.take_place(new.holder) {
                    return self.effects.push(Effect::ForgetTask { task: new.handle });
                }
                let place = Some(new.holder.clone());
                self.begin_task(new, Stage::Known, place);
            }
        }
    }

    fn begin_task(&mut self, new: NewTask<'_, H>, stage: Stage, place: Option<ParticipantId>) {
        let id = new.task;
        let until_ms = new.until_ms;
        self.tasks.insert(id, Task::new(new, stage, place));
        if !matches!(stage, Stage::Becoming { .. }) {
            return self.tasks.expire_at(id, until_ms);
        }
        // It lasts as long as its call, whose end decides about it: the call is marked even without a
        // place, so that its end finds the task.
        if let Some(call) = self.operations.get_mut(id) {
            let rare = call.rare.get_or_insert_default();
            rare.becomes.get_or_insert_default();
        }
    }

    /// Whether a server has an open call.
    fn is_served_by(&self, call: OperationId, server: &ParticipantId) -> bool {
        let Some(open) = self.operations.get(call) else {
            return false;
        };
        open.state.is_at_server() && self.members.server(server) == Some(open.server)
    }

    /// Takes a place on a participant's account. Without a free one its oldest task that is over is
    /// forgotten, else the oldest that makes way.
    fn take_place(&mut self, holder: &ParticipantId) -> bool {
        if self.tasks.take_place(holder) {
            return true;
        }
        let Some(spare) = self.tasks.spare(holder) else {
            return false;
        };
        self.forget_task(spare);
        self.tasks.take_place(holder)
    }

    /// Decides about the task of a call that is over, if it has become one: with the call's answer
    /// the task passes to its holder, unless the gateway follows it. Without an answer it is
    /// cancelled at its server.
    pub(crate) fn end_becoming(&mut self, call: OperationId, becomes: Becomes, outcome: Outcome) {
        let Some(task) = self.tasks.get(call) else {
            return self.tasks.give_back(becomes.place.as_ref());
        };
        let Stage::Becoming { follows, durable } = task.stage else {
            return self.tasks.give_back(becomes.place.as_ref());
        };
        let is_answered = matches!(outcome, Outcome::Ok | Outcome::Error);
        // A call that runs on its approver's authority may outlive its caller's rights.
        if !follows && is_answered && self.is_had(task) {
            return self.pass_to_holder(call, becomes, durable);
        }
        self.tasks.give_back(becomes.place.as_ref());
        if follows && is_answered {
            // The answer is the task's result: its server has nothing left to do.
            self.forget_task(call);
        } else {
            self.cancel_task(call);
        }
    }

    fn pass_to_holder(&mut self, id: OperationId, part: Becomes, durable: bool) {
        let Some(task) = self.tasks.get_mut(id) else {
            return;
        };
        task.stage = if durable {
            Stage::Writing
        } else {
            Stage::Known
        };
        task.place = part.place;
        let until_ms = task.until_ms;
        self.tasks.expire_at(id, until_ms);
    }

    /// Gives a task that the journal has to its holder; cancels one that the journal cannot write,
    /// of which its holder never learns.
    pub(crate) fn task_written(&mut self, id: OperationId, stored: bool) {
        let Some(task) = self.tasks.get_mut(id) else {
            return;
        };
        if task.stage != Stage::Writing {
            return;
        }
        if stored {
            task.stage = Stage::Known;
        } else {
            self.cancel_task(id);
        }
    }

    /// Notes that a task has ended, or lasts for another time.
    pub(crate) fn task_changed(&mut self, id: OperationId, over: bool, until_ms: u64) {
        let Some(task) = self.tasks.get_mut(id) else {
            return;
        };
        task.over |= over;
        // One that belongs to an open call lasts as long as the call.
        if matches!(task.stage, Stage::Becoming { .. }) {
            task.until_ms = until_ms;
        } else {
            self.tasks.expire_at(id, until_ms);
            self.expire_tasks();
        }
    }

    /// Ends the tasks that ran in a session that has ended.
    pub(crate) fn lose_tasks(&mut self, server: &ParticipantId, session: u64) {
        let lost = self.tasks.which(|task| {
            !task.lost && session != 0 && task.session == session && task.right.server == *server
        });
        for id in lost {
            let Some(task) = self.tasks.get_mut(id) else {
                continue;
            };
            task.lost = true;
            task.over = true;
            let handle = task.handle.clone();
            self.effects.push(Effect::LoseTask { task: handle });
        }
    }

    /// Has the tasks of a server that is not configured any more make way, if no session is needed
    /// for them: it can be asked about them only if it comes back. The others are lost with their
    /// sessions.
    pub(crate) fn set_tasks_aside(&mut self, server: &ParticipantId) {
        let aside = self
            .tasks
            .which(|task| task.session == 0 && task.right.server == *server);
        for id in aside {
            if let Some(task) = self.tasks.get_mut(id) {
                task.makes_way = true;
            }
        }
    }

    /// Cancels the tasks of a participant that may not ask for them any more.
    pub(crate) fn cancel_tasks_of(&mut self, holder: &ParticipantId) {
        // One that belongs to an open call ends with it.
        let theirs = self
            .tasks
            .which(|task| task.holder == *holder && !matches!(task.stage, Stage::Becoming { .. }));
        for id in theirs {
            self.cancel_task(id);
        }
    }

    /// Cancels the tasks of a guest that has left: the next guest has another name.
    pub(crate) fn cancel_tasks_of_guest(&mut self, holder: &ParticipantId) {
        if self.tasks.is_guest(holder) {
            self.cancel_tasks_of(holder);
        }
    }

    /// Forgets the tasks whose time is over.
    pub(crate) fn expire_tasks(&mut self) {
        while let Some(id) = self.tasks.due(self.now_ms) {
            self.forget_task(id);
        }
    }

    /// Ends a task at its server, if it is not over, and forgets it.
    fn cancel_task(&mut self, id: OperationId) {
        if let Some(task) = self.tasks.remove(id) {
            self.release_at_server(task.handle, task.over);
        }
    }

    /// Lets go of a task that is in no book any more: one that is not over is cancelled at its server.
    fn release_at_server(&mut self, task: H::Task, over: bool) {
        self.effects.push(if over {
            Effect::ForgetTask { task }
        } else {
            Effect::CancelTask { task }
        });
    }

    /// Takes a task out of the book, and leaves it to its server.
    fn forget_task(&mut self, id: OperationId) {
        if let Some(task) = self.tasks.remove(id) {
            self.effects.push(Effect::ForgetTask { task: task.handle });
        }
    }

    /// Whether this right lets a participant have a task at present, with an access token that
    /// narrows its capabilities to this.
    pub(crate) fn may_have(
        &self,
        holder: &ParticipantId,
        narrowing: Option<&Narrowing>,
        right: TaskRight<'_>,
    ) -> bool {
        self.granted_to_holder(holder, narrowing)
            .is_some_and(|granted| has_right(&granted, right))
    }

    /// The capabilities of a holder of tasks with an access token that narrows them to this; `None` of a
    /// participant that may have no tasks.
    fn granted_to_holder(
        &self,
        holder: &ParticipantId,
        narrowing: Option<&Narrowing>,
    ) -> Option<Arc<Capabilities>> {
        // A server that has the name of a former caller has none of its tasks.
        let member = self.members.of_id(holder)?;
        if !member.is_caller() {
            return None;
        }
        Some(within(&member.capabilities, narrowing))
    }
}
