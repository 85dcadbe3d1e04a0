//! Notifications of servers, and the callers that get them.

use std::sync::Arc;

use model::method::SUBSCRIBE;
use model::{LinkId, ListenFilter, LogLevel, Narrowing, OperationId, Outcome, ParticipantId};

use crate::{
    Handles, Logs, Topic,
    admission::admits,
    effect::Effect,
    event::{About, Interest, PublicTarget, Subject},
    interests::{LISTENS_MAX, SUBSCRIPTIONS_MAX, Subscriber},
    members::{Link, Member, Seat},
    operations::{Listening, Rare},
    pausing,
};

impl<H: Handles> Topic<H> {
    /// Passes a server's notification to its callers. The topic drops notifications that belong to
    /// no caller.
    pub(crate) fn notice(
        &mut self,
        server: &ParticipantId,
        subject: Subject<'_>,
        level: Option<LogLevel>,
        notice: H::Notice,
    ) {
        let Some(seat) = self.members.server(server) else {
            return;
        };
        match subject {
            Subject::Call(call) => self.notify_caller(seat, About::Call(call), level, notice),
            Subject::Session(link) => self.notify_caller(seat, About::Session(link), level, notice),
            Subject::Resource { own, session } => {
                self.notify_subscribers(server, own, session, &notice)
            }
            Subject::Task(task) => self.notify_holder(server, task, &notice),
            Subject::TaskCall(task) => self.notify_of_task_call(server, seat, task, notice),
        }
    }

    /// Notifies a caller of its call, or on its link if it takes such notifications. A log message
    /// must have the level that the caller wants.
    fn notify_caller(
        &mut self,
        server: Seat,
        about: About,
        level: Option<LogLevel>,
        notice: H::Notice,
    ) {
        let Some((link, call)) = self.concerned_by(server, about) else {
            return;
        };
        let Some(own) = self.members.link(link) else {
            return;
        };
        let logs = call
            .and_then(|call| self.operations.get(call))
            .map(|open| (open.logs, open.log_level(own.level)));
        let wants = level.is_none_or(|level| match logs.unwrap_or((Logs::OfLink, own.level)) {
            (Logs::None, _) => false,
            (Logs::OfLink | Logs::From(_), from) => from.is_none_or(|from| level >= from),
        });
        let takes = wants && (call.is_some() || own.notified);
        let Some(to) = self.receiver(link, call).filter(|_| takes) else {
            return;
        };
        match call
            .and_then(|call| self.operations.get_mut(call))
            .filter(|open| open.state.is_paused())
        {
            Some(open) => pausing::miss(open, notice),
            None => self.effects.push(Effect::Notify {
                to,
                notice,
                public: None,
                about: None,
            }),
        }
    }

    fn notify_subscribers(
        &mut self,
        server: &ParticipantId,
        own: &str,
        session: Option<LinkId>,
        notice: &H::Notice,
    ) {
        for subscriber in self.interests.subscribers(server, own) {
            let Subscriber {
                link,
                listen,
                public,
            } = subscriber;
            if session.is_some_and(|session| session != *link) {
                continue;
            }
            // A participant that may no longer subscribe there gets no updates, whatever its
            // spelling names by now. The token of the latest request on the link need not be the
            // one by which this was admitted.
            let may = |(_, by): (&Link<H>, &Member<H>)| {
                admits(
                    &by.capabilities,
                    SUBSCRIBE.name,
                    Some(public),
                    server.as_str(),
                )
            };
            if !self.members.linked(*link).is_some_and(may) {
                continue;
            }
            let Some(to) = self.receiver(*link, *listen) else {
                continue;
            };
            let spelled = (**public != *own).then(|| Arc::clone(public));
            let about = Some(Arc::clone(public));
            self.effects.push(Effect::Notify {
                to,
                notice: notice.clone(),
                public: spelled,
                about,
            });
        }
    }

    /// Notifies the holder of a task: on its listen requests that name the task, and on the link
    /// that asked about it last.
    fn notify_holder(&mut self, server: &ParticipantId, task: OperationId, notice: &H::Notice) {
        let ways = self.ways_to_holder(server, task);
        let receivers: Vec<_> = ways
            .into_iter()
            .filter_map(|(link, listen)| self.receiver(link, listen))
            .collect();
        for to in receivers {
            self.effects.push(Effect::Notify {
                to,
                notice: notice.clone(),
                public: None,
                about: self.public_of_task(task),
            });
        }
    }

    /// Notifies the request that waits for a task's result, else the task's holder.
    fn notify_of_task_call(
        &mut self,
        server: &ParticipantId,
        seat: Seat,
        task: OperationId,
        notice: H::Notice,
    ) {
        match self.awaits_task(task) {
            Some(waiting) => self.notify_caller(seat, About::Call(waiting), None, notice),
            None => self.notify_holder(server, task, &notice),
        }
    }

    /// Applies the change that an admitted request makes to its link's notifications.
    pub(crate) fn take_interest(
        &mut self,
        id: OperationId,
        interest: Interest,
        narrowing: Option<&Narrowing>,
    ) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        let link = open.link;
        match interest {
            Interest::None => {}
            Interest::Level(level) => {
                if let Some(own) = self.members.link_mut(link) {
                    own.level = Some(level);
                }
            }
            Interest::Subscribe => self.subscribe(id),
            Interest::Unsubscribe => {
                if let Some((server, own)) = self.aimed_at(id) {
                    self.unsubscribe(&server, &own, link);
                }
            }
            Interest::Listen(filter) => self.listen(id, link, filter, narrowing),
        }
    }

    /// Whether this interest is within the limits of its link.
    pub(crate) fn has_room_for(&self, link: LinkId, interest: &Interest) -> bool {
        let Some(own) = self.members.link(link).and_then(|own| own.own.as_ref()) else {
            return true;
        };
        match interest {
            Interest::None | Interest::Level(_) | Interest::Unsubscribe => true,
            Interest::Subscribe => own.subscriptions.len() < SUBSCRIPTIONS_MAX,
            Interest::Listen(_) => own.listens.len() < LISTENS_MAX,
        }
    }

    /// The server and the server's own URI that an open request aims at.
    fn aimed_at(&self, id: OperationId) -> Option<(ParticipantId, Arc<str>)> {
        let open = self.operations.get(id)?;
        let own = open.own.clone().or_else(|| open.context.clone())?;
        Some((self.members.get(open.server)?.id.clone(), own))
    }

    fn subscribe(&mut self, id: OperationId) {
        let Some((server, own)) = self.aimed_at(id) else {
            return;
        };
        let Some(open) = self.operations.get(id) else {
            return;
        };
        let link = open.link;
        let public = open.context.clone().unwrap_or_else(|| Arc::clone(&own));
        // A link that is already subscribed to the resource keeps its subscription if the server
        // refuses.
        if self.interests.is_subscribed(&server, &own, link) {
            return;
        }
        self.interests.subscribe(
            &server,
            &own,
            Subscriber {
                link,
                listen: None,
                public,
            },
        );
        if let Some(link) = self.members.link_mut(link) {
            link.own_mut()
                .subscriptions
                .push((server.clone(), Arc::clone(&own)));
        }
        if let Some(open) = self.operations.get_mut(id) {
            open.rare.get_or_insert_default().subscribes = Some((server, own));
        }
    }

    /// Ends a link's own subscription; the shell ends it at the server.
    fn unsubscribe(&mut self, server: &ParticipantId, own: &str, link: LinkId) {
        self.interests.unsubscribe(server, own, link, None);
        if let Some(link) = self.members.link_mut(link) {
            link.own_mut()
                .subscriptions
                .retain(|(at, uri)| at != server || **uri != *own);
        }
    }

    /// Ends all subscriptions to the resources of a server that has left.
    pub(crate) fn forget_subscriptions(&mut self, server: &ParticipantId) {
        self.interests.forget_server(server);
        for own in self.members.owns_mut() {
            own.subscriptions.retain(|(at, _)| at != server);
        }
    }

    fn listen(
        &mut self,
        id: OperationId,
        link: LinkId,
        mut filter: ListenFilter,
        narrowing: Option<&Narrowing>,
    ) {
        // A caller gets no updates of resources to which it may not subscribe, and does not learn
        // whether they exist.
        filter.resources.retain(|uri| {
            let target = Some(PublicTarget::Uri(uri));
            self.admits(link, narrowing, SUBSCRIBE.name, target)
        });
        let mut at = Vec::new();
        for public in &filter.resources {
            let Some(route) = self.lookup(link, PublicTarget::Uri(public)) else {
                continue;
            };
            let (server, own): (_, Arc<str>) = (route.upstream.clone(), (&*route.own).into());
            let subscriber = Subscriber {
                link,
                listen: Some(id),
                public: Arc::clone(public),
            };
            self.interests.subscribe(&server, &own, subscriber);
            at.push((server, own));
        }
        for task in &filter.tasks {
            self.interests.watch(task, link, id);
            self.listen_to_task(task, link, narrowing);
        }
        if let Some(link) = self.members.link_mut(link) {
            link.own_mut().listens.push(id);
        }
        if let Some(open) = self.operations.get_mut(id) {
            open.rare.get_or_insert_default().listens = Some(Listening {
                filter,
                at,
                narrowing: narrowing.cloned(),
            });
        }
    }

    /// The part of a listen request's filter that its caller may use.
    pub fn listening(&self, operation: OperationId) -> Option<&ListenFilter> {
        Some(
            &self
                .operations
                .get(operation)?
                .rare
                .as_ref()?
                .listens
                .as_ref()?
                .filter,
        )
    }

    /// Ends the interests of a request that is over.
    pub(crate) fn lose_interest(
        &mut self,
        id: OperationId,
        link: LinkId,
        rare: Rare<H>,
        outcome: Outcome,
    ) {
        if let Some((server, own)) = rare.subscribes.filter(|_| outcome != Outcome::Ok) {
            self.unsubscribe(&server, &own, link);
        }
        let Some(Listening { filter, at, .. }) = rare.listens else {
            return;
        };
        let handle = self.handle(link);
        for (server, own) in at {
            let last = self.interests.unsubscribe(&server, &own, link, Some(id));
            if let (true, Some(handle), Some(at)) = (last, &handle, self.server(&server)) {
                self.effects.push(Effect::Unsubscribe {
                    handle: handle.clone(),
                    server: at.handle,
                    own,
                });
            }
        }
        let tasks: Vec<Arc<str>> = filter
            .tasks
            .into_iter()
            .filter(|task| self.interests.unwatch(task, link, id))
            .collect();
        if let (false, Some(handle)) = (tasks.is_empty(), handle) {
            self.effects.push(Effect::Unwatch { handle, tasks });
        }
        if let Some(link) = self.members.link_mut(link) {
            link.own_mut().listens.retain(|other| *other != id);
        }
    }
}
