//! Requests, questions and notifications about servers' tasks, and what a shell may look up of
//! them.

use std::sync::Arc;

use model::method::TASK_RESULT;
use model::{LinkId, Narrowing, OperationId, ParticipantId};

use super::{Key, Stage, Task, has_right};
use crate::{
    Handles, Topic,
    asks::Way,
    effect::Cause,
    event::{About, NamedTask, PublicTarget},
    members::Seat,
    operations::AboutTask,
};

/// A request about a task that its caller may have.
pub(crate) struct AdmittedAbout<'a> {
    pub(crate) about: AboutTask,
    /// The task's server; `None`, which is the gateway itself, if that cannot be asked any more.
    pub(crate) target: Option<PublicTarget<'a>>,
}

impl<H: Handles> Topic<H> {
    /// Admits a request about a task.
    ///
    /// # Errors
    /// [`Cause::Unknown`], whether there is no such task, the link's participant may not have it, or
    /// the request's access token is not good for it.
    pub(crate) fn admit_about<'a>(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        named: &'a NamedTask<'a>,
    ) -> Result<AdmittedAbout<'a>, Cause> {
        let (link, member) = self.members.linked(link).ok_or(Cause::Unknown)?;
        if !member.is_caller() || !has_right(&link.granted(member, narrowing), named.right) {
            return Err(Cause::Unknown);
        }
        let server = named.right.server;
        // The tasks of a server that has left are unknown.
        self.server(server).ok_or(Cause::Unknown)?;
        let known = self.tasks.named(named.public);
        let lost = match known {
            Some(id) => {
                let task = self.tasks.get(id).ok_or(Cause::Unknown)?;
                if !task.is_known_to(&member.id) {
                    return Err(Cause::Unknown);
                }
                task.lost
            }
            None => {
                // A server may give an id again: then it is the new task's.
                let key = Key::new(server, named.session, named.own);
                if self.tasks.at(&key).is_some() {
                    return Err(Cause::Unknown);
                }
                named.lost
            }
        };
        // The gateway answers itself about one that is lost.
        let target = if lost {
            None
        } else {
            Some(PublicTarget::Upstream(server.as_str()))
        };
        Ok(AdmittedAbout {
            about: AboutTask {
                task: known,
                right: named.right.into(),
                lost,
            },
            target,
        })
    }

    /// Enters an open request about a task.
    pub(crate) fn begin_about(&mut self, id: OperationId, about: AboutTask) {
        let Some(open) = self.operations.get_mut(id) else {
            return;
        };
        let named = about.task;
        let link = open.link;
        let waits = !about.lost && open.method.as_str() == TASK_RESULT.name;
        open.rare.get_or_insert_default().about = Some(Box::new(about));
        let Some(task) = named.and_then(|task| self.tasks.get_mut(task)) else {
            return;
        };
        task.note_asked_on(link);
        if waits {
            task.waiting.push(id);
        }
    }

    /// Ends the wait of a request about a task that is over.
    pub(crate) fn end_about(&mut self, id: OperationId, about: &AboutTask) {
        if let Some(task) = about.task.and_then(|task| self.tasks.get_mut(task)) {
            task.waiting.retain(|waiting| *waiting != id);
        }
    }

    /// Whether a request is about a task that the participant of its link may not have any more.
    pub(crate) fn is_about_withdrawn(&self, link: LinkId, id: OperationId) -> bool {
        let Some(open) = self.operations.get(id) else {
            return false;
        };
        let Some(about) = open.rare.as_ref().and_then(|rare| rare.about.as_ref()) else {
            return false;
        };
        let Some(caller) = self.participant(link) else {
            return false;
        };
        !self.may_have(caller, None, about.right.as_ref())
    }

    /// Notes that a link listens to a task, with an access token that narrows what its participant
    /// may do to this.
    pub(crate) fn listen_to_task(
        &mut self,
        public: &str,
        link: LinkId,
        narrowing: Option<&Narrowing>,
    ) {
        let Some(id) = self.tasks.named(public) else {
            return;
        };
        let Some(task) = self.tasks.get(id) else {
            return;
        };
        let is_theirs = self
            .participant(link)
            .is_some_and(|caller| task.is_known_to(caller));
        if !is_theirs || !self.may_have(&task.holder, narrowing, task.right.as_ref()) {
            return;
        }
        if let Some(task) = self.tasks.get_mut(id) {
            task.note_asked_on(link);
        }
    }

    /// The call or session at which the caller of a task is asked: the request that waits for its
    /// result, else the session of its holder's own in which it runs.
    pub(crate) fn asked_about_task(
        &self,
        server: Seat,
        id: OperationId,
        session: Option<LinkId>,
    ) -> Option<About> {
        let task = self.tasks.get(id)?;
        if self.members.server(&task.right.server) != Some(server) || !self.is_had(task) {
            return None;
        }
        if let Some(call) = task.waiting.last() {
            return Some(About::Call(*call));
        }
        let link = session?;
        if self.participant(link) != Some(&task.holder) {
            return None;
        }
        Some(About::Session(link))
    }

    /// The ways by which the holder of a task gets notifications about it: its listen requests that
    /// name the task, and the link that asked about it last. None if it may not have the task, or
    /// does not know it.
    pub(crate) fn ways_to_holder(&self, server: &ParticipantId, id: OperationId) -> Vec<Way> {
        let Some(task) = self.tasks.get(id) else {
            return Vec::new();
        };
        // Before its holder knows it, its state may not be on disk, and its id means nothing to it.
        if task.right.server != *server || task.stage != Stage::Known || !self.is_had(task) {
            return Vec::new();
        }
        let mut ways = Vec::new();
        for watcher in self.interests.watchers(&task.public) {
            let is_theirs = self.participant(watcher.link) == Some(&task.holder);
            if is_theirs && self.may_listen_to(watcher.listen, task) {
                ways.push(Way {
                    link: watcher.link,
                    call: Some(watcher.listen),
                });
            }
        }
        if let Some(link) = task.link
            && self.participant(link) == Some(&task.holder)
            && self.members.link(link).is_some_and(|link| link.notified)
        {
            ways.push(Way { link, call: None });
        }
        ways
    }

    /// Whether the access token of a listen request of a task's holder is good for the task.
    fn may_listen_to(&self, listen: OperationId, task: &Task<H>) -> bool {
        let Some(open) = self.operations.get(listen) else {
            return false;
        };
        let Some(listening) = open.rare.as_ref().and_then(|rare| rare.listens.as_ref()) else {
            return false;
        };
        let narrowing = listening.narrowing.as_ref();
        self.may_have(&task.holder, narrowing, task.right.as_ref())
    }

    /// The id at the gateway of a task.
    pub(crate) fn public_of_task(&self, id: OperationId) -> Option<Arc<str>> {
        Some(Arc::clone(&self.tasks.get(id)?.public))
    }

    /// Whether the holder of a task may have it now.
    pub(super) fn is_had(&self, task: &Task<H>) -> bool {
        self.may_have(&task.holder, None, task.right.as_ref())
    }

    /// The task at a server of this id, in the session of this number; 0 is any session.
    pub fn task_at(&self, server: &ParticipantId, session: u64, own: &str) -> Option<H::Task> {
        let id = self.tasks.at(&Key::new(server, session, own))?;
        self.task(id)
    }

    /// A task.
    pub fn task(&self, id: OperationId) -> Option<H::Task> {
        Some(self.tasks.get(id)?.handle.clone())
    }

    /// The task of this id at the gateway, if this participant has it and may have it now, with an
    /// access token that narrows its capabilities to this.
    pub fn task_of(
        &self,
        holder: &ParticipantId,
        narrowing: Option<&Narrowing>,
        public: &str,
    ) -> Option<H::Task> {
        let task = self.tasks.get(self.tasks.named(public)?)?;
        if !task.is_known_to(holder) || !self.may_have(holder, narrowing, task.right.as_ref()) {
            return None;
        }
        Some(task.handle.clone())
    }

    /// The tasks that a participant has and may have now, with an access token that narrows its
    /// capabilities to this, in the order in which the topic took them.
    pub fn tasks_of(&self, holder: &ParticipantId, narrowing: Option<&Narrowing>) -> Vec<H::Task> {
        let Some(granted) = self.granted_to_holder(holder, narrowing) else {
            return Vec::new();
        };
        let theirs = self
            .tasks
            .which(|task| task.is_known_to(holder) && has_right(&granted, task.right.as_ref()));
        theirs.into_iter().filter_map(|id| self.task(id)).collect()
    }

    /// The tasks that are not over and that no participant can ask about after this run of the
    /// gateway: those that the gateway follows for open calls, and those of guests.
    pub fn passing_tasks(&self) -> Vec<H::Task> {
        let passing = self.tasks.which(|task| {
            let is_passing = task.is_followed() || self.tasks.is_guest(&task.holder);
            is_passing && !task.over
        });
        passing.into_iter().filter_map(|id| self.task(id)).collect()
    }

    /// The participants that have tasks, present or not, each as often as it has one.
    pub fn task_holders(&self) -> impl Iterator<Item = &ParticipantId> {
        self.tasks.holders()
    }

    /// The number of tasks.
    pub fn tasks_len(&self) -> usize {
        self.tasks.len()
    }

    /// The open request that waits for a task's result: of several the one that came last.
    pub fn request_awaiting_task(&self, id: OperationId) -> Option<OperationId> {
        self.tasks.get(id)?.waiting.last().copied()
    }

    /// The link that asked about a task last, if its participant knows the task and may have it
    /// now.
    pub fn link_asking_about_task(&self, id: OperationId) -> Option<H::Link> {
        let task = self.tasks.get(id)?;
        if task.stage != Stage::Known || !self.is_had(task) {
            return None;
        }
        self.handle(task.link?)
    }
}
