//! Requests, questions and notifications about servers' tasks, and what a shell may look up of
//! them.

use std::sync::Arc;

use model::method::TASK_RESULT;
use model::{LinkId, Narrowing, OperationId, ParticipantId};

use super::{Stage, Task, has_right};
use crate::{
    Handles, Topic,
    effect::Cause,
    event::{About, NamedTask, PublicTarget},
    members::Seat,
    operations::AboutTask,
};

impl<H: Handles> Topic<H> {
    /// The hold of a request about a task, and its target: the task's server, or the gateway itself
    /// if that cannot be asked any more.
    ///
    /// # Errors
    /// [`Cause::Unknown`], whether there is no such task, the link's participant may not have it, or
    /// the request's access token is not good for it.
    pub(crate) fn admit_about<'a>(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        named: NamedTask<'a>,
    ) -> Result<(AboutTask, Option<PublicTarget<'a>>), Cause> {
        let (own, member) = self.members.linked(link).ok_or(Cause::Unknown)?;
        let may_have =
            member.is_caller() && has_right(&own.granted(member, narrowing), named.right);
        let known = self.tasks.named(named.public);
        let is_theirs = |task: &Task<H>| task.holder == member.id && task.stage == Stage::Known;
        if known.is_some_and(|(_, task)| !is_theirs(task)) || !may_have {
            return Err(Cause::Unknown);
        }
        let server = named.right.server;
        self.server(server).ok_or(Cause::Unknown)?;
        // A server may give an id again: then it is the new task's.
        let at = (server.clone(), named.session, named.own.into());
        if known.is_none() && self.tasks.at(&at).is_some() {
            return Err(Cause::Unknown);
        }
        let lost = known.map_or(named.lost, |(_, task)| task.lost);
        let about = AboutTask {
            task: known.map(|(id, _)| id),
            right: named.right.into(),
            lost,
        };
        Ok((
            about,
            (!lost).then_some(PublicTarget::Upstream(server.as_str())),
        ))
    }

    /// Enters an open request about a task.
    pub(crate) fn begin_about(&mut self, id: OperationId, about: AboutTask) {
        let Some(open) = self.operations.get_mut(id) else {
            return;
        };
        let task = about.task;
        let link = open.link;
        let waits = !about.lost && open.method.as_str() == TASK_RESULT.name;
        open.rare.get_or_insert_default().about = Some(Box::new(about));
        if let Some(task) = task.and_then(|task| self.tasks.get_mut(task)) {
            (task.link, task.makes_way) = (Some(link), false);
            task.waiting.extend(waits.then_some(id));
        }
    }

    /// Takes the end of a request about a task.
    pub(crate) fn end_about(&mut self, id: OperationId, about: &AboutTask) {
        if let Some(task) = about.task.and_then(|task| self.tasks.get_mut(task)) {
            task.waiting.retain(|waiting| *waiting != id);
        }
    }

    /// Whether a request is about a task that the participant of its link may not have any more.
    pub(crate) fn is_about_withdrawn(&self, link: LinkId, id: OperationId) -> bool {
        let rare = self.operations.get(id).and_then(|open| open.rare.as_ref());
        let about = rare.and_then(|rare| rare.about.as_ref());
        let by = self.participant(link);
        about
            .zip(by)
            .is_some_and(|(about, by)| !self.may_have(by, None, about.right.as_ref()))
    }

    /// Notes that a link listens to a task, with an access token that narrows what its participant
    /// may do to this.
    pub(crate) fn listen_to_task(
        &mut self,
        public: &str,
        link: LinkId,
        narrowing: Option<&Narrowing>,
    ) {
        let Some((id, task)) = self.tasks.named(public) else {
            return;
        };
        let is_theirs = task.stage == Stage::Known && self.participant(link) == Some(&task.holder);
        if !is_theirs || !self.may_have(&task.holder, narrowing, task.right.as_ref()) {
            return;
        }
        if let Some(task) = self.tasks.get_mut(id) {
            (task.link, task.makes_way) = (Some(link), false);
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
        let waiting = task.waiting.last().map(|call| About::Call(*call));
        let own = session.filter(|link| self.participant(*link) == Some(&task.holder));
        waiting.or(own.map(About::Session))
    }

    /// The ways by which the holder of a task gets notifications about it: its listen requests that
    /// name the task, and the link that asked about it last. None if it may not have the task, or
    /// does not know it.
    pub(crate) fn ways_to_holder(
        &self,
        server: &ParticipantId,
        id: OperationId,
    ) -> Vec<(LinkId, Option<OperationId>)> {
        let Some(task) = self.tasks.get(id) else {
            return Vec::new();
        };
        // Before its holder knows it, its state may not be on disk, and its id means nothing to it.
        if task.right.server != *server || task.stage != Stage::Known || !self.is_had(task) {
            return Vec::new();
        }
        let is_theirs = |link: LinkId| self.participant(link) == Some(&task.holder);
        let is_notified = |link: LinkId| self.members.link(link).is_some_and(|own| own.notified);
        let listens = self.interests.watchers(&task.public).iter();
        let listens =
            listens.filter(|(link, listen)| is_theirs(*link) && self.may_hear_of(*listen, task));
        let last = task
            .link
            .filter(|link| is_theirs(*link) && is_notified(*link));
        listens
            .map(|(link, listen)| (*link, Some(*listen)))
            .chain(last.map(|link| (link, None)))
            .collect()
    }

    /// Whether the access token of a listen request of a task's holder is good for the task.
    fn may_hear_of(&self, listen: OperationId, task: &Task<H>) -> bool {
        let rare = self
            .operations
            .get(listen)
            .and_then(|open| open.rare.as_ref());
        let listening = rare.and_then(|rare| rare.listens.as_ref());
        listening.is_some_and(|listening| {
            let narrowing = listening.narrowing.as_ref();
            self.may_have(&task.holder, narrowing, task.right.as_ref())
        })
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
        let id = self.tasks.at(&(server.clone(), session, own.into()))?;
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
        let (_, task) = self.tasks.named(public)?;
        let is_theirs = task.holder == *holder && task.stage == Stage::Known;
        let may_have = is_theirs && self.may_have(holder, narrowing, task.right.as_ref());
        may_have.then(|| task.handle.clone())
    }

    /// The tasks that a participant has and may have now, with an access token that narrows its
    /// capabilities to this, in the order in which the topic took them.
    pub fn tasks_of(&self, holder: &ParticipantId, narrowing: Option<&Narrowing>) -> Vec<H::Task> {
        let Some(granted) = self.granted_to(holder, narrowing) else {
            return Vec::new();
        };
        let theirs = self.tasks.which(|task| {
            task.holder == *holder
                && task.stage == Stage::Known
                && has_right(&granted, task.right.as_ref())
        });
        theirs.into_iter().filter_map(|id| self.task(id)).collect()
    }

    /// The tasks that the gateway follows for open calls and that are not over.
    pub fn followed_tasks(&self) -> Vec<H::Task> {
        let followed = self.tasks.which(|task| task.is_followed() && !task.over);
        followed
            .into_iter()
            .filter_map(|id| self.task(id))
            .collect()
    }

    /// The number of tasks.
    pub fn tasks_len(&self) -> usize {
        self.tasks.len()
    }

    /// The open request that waits for a task's result: of several the one that came last.
    pub fn awaits_task(&self, id: OperationId) -> Option<OperationId> {
        self.tasks.get(id)?.waiting.last().copied()
    }

    /// The link that asked about a task last, if its participant may have the task now.
    pub fn asks_task(&self, id: OperationId) -> Option<H::Link> {
        let task = self.tasks.get(id).filter(|task| self.is_had(task))?;
        self.handle(task.link?)
    }
}
