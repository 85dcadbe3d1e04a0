//! Notifications of servers, and the callers that get them.

use std::sync::Arc;

use model::method::SUBSCRIBE;
use model::{LinkId, ListenFilter, LogLevel, Narrowing, OperationId, Outcome, ParticipantId};

use crate::{
    Handles, Logs, Topic,
    admission::admits,
    asks::Way,
    effect::Effect,
    event::{About, Interest, PublicTarget, Subject},
    interests::{LISTENS_MAX, OwnResource, SUBSCRIPTIONS_MAX, Subscriber},
    members::{Link, Seat},
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
        let Some(way) = self.concerned_by(server, about) else {
            return;
        };
        let Some(link) = self.members.link(way.link) else {
            return;
        };
        if way.call.is_none() && !link.notified {
            return;
        }
        if let Some(level) = level
            && !self.wants_log(link, way.call, level)
        {
            return;
        }
        let Some(to) = self.receiver(way) else {
            return;
        };
        // The caller of a paused call gets it when it comes back.
        if let Some(call) = way.call
            && let Some(open) = self.operations.get_mut(call)
            && open.state.is_paused()
        {
            return pausing::miss(open, notice);
        }
        self.effects.push(Effect::Notify {
            to,
            notice,
            public: None,
            about: None,
        });
    }

    /// Whether a caller wants log messages of this level about its call, or on its link.
    fn wants_log(&self, link: &Link<H>, call: Option<OperationId>, level: LogLevel) -> bool {
        let open = call.and_then(|call| self.operations.get(call));
        let logs = open.map_or(Logs::OfLink, |open| open.logs);
        let from = match logs {
            Logs::None => return false,
            Logs::OfLink => link.level,
            Logs::From(from) => Some(from),
        };
        // A link that has set no level gets all (MCP 2025-11-25, "Logging").
        from.is_none_or(|from| level >= from)
    }

    /// Notifies the subscribers of a server's resource; only this link, if it is a notification in
    /// the link's own session.
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
            let Some(by) = self.members.of_link(*link) else {
                continue;
            };
            let method = SUBSCRIBE.name;
            if !admits(&by.capabilities, method, Some(public), server.as_str()) {
                continue;
            }
            let way = Way {
                link: *link,
                call: *listen,
            };
            let Some(to) = self.receiver(way) else {
                continue;
            };
            let is_respelled = **public != *own;
            self.effects.push(Effect::Notify {
                to,
                notice: notice.clone(),
                public: is_respelled.then(|| Arc::clone(public)),
                about: Some(Arc::clone(public)),
            });
        }
    }

    /// Notifies the holder of a task: on its listen requests that name the task, and on the link
    /// that asked about it last.
    fn notify_holder(&mut self, server: &ParticipantId, task: OperationId, notice: &H::Notice) {
        for way in self.ways_to_holder(server, task) {
            let Some(to) = self.receiver(way) else {
                continue;
            };
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
        match self.request_awaiting_task(task) {
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
                if let Some(link) = self.members.link_mut(link) {
                    link.level = Some(level);
                }
            }
            Interest::Subscribe => self.subscribe(id),
            Interest::Unsubscribe => {
                if let Some(resource) = self.aimed_at(id) {
                    self.unsubscribe(&resource, link);
                }
            }
            Interest::Listen(filter) => self.listen(id, link, *filter, narrowing),
        }
    }

    /// Whether this interest is within the limits of its link.
    pub(crate) fn has_room_for(&self, link: LinkId, interest: &Interest) -> bool {
        let Some(link) = self.members.link(link) else {
            return true;
        };
        let Some(holdings) = &link.holdings else {
            return true;
        };
        match interest {
            Interest::None | Interest::Level(_) | Interest::Unsubscribe => true,
            Interest::Subscribe => holdings.subscriptions.len() < SUBSCRIPTIONS_MAX,
            Interest::Listen(_) => holdings.listens.len() < LISTENS_MAX,
        }
    }

    /// The resource that an open request aims at.
    fn aimed_at(&self, id: OperationId) -> Option<OwnResource> {
        let open = self.operations.get(id)?;
        Some(OwnResource {
            uri: open.own_name.clone().or_else(|| open.context.clone())?,
            server: self.members.get(open.server)?.id.clone(),
        })
    }

    /// Enters the subscription of a request's link from the admission on: updates may come before
    /// the server's answer.
    fn subscribe(&mut self, id: OperationId) {
        let Some(resource) = self.aimed_at(id) else {
            return;
        };
        let Some(open) = self.operations.get(id) else {
            return;
        };
        let link = open.link;
        let public = match &open.context {
            Some(context) => Arc::clone(context),
            None => Arc::clone(&resource.uri),
        };
        // A link that is already subscribed to the resource keeps its subscription if the server
        // refuses.
        if self
            .interests
            .is_subscribed(&resource.server, &resource.uri, link)
        {
            return;
        }
        let subscriber = Subscriber {
            link,
            listen: None,
            public,
        };
        self.interests
            .subscribe(&resource.server, &resource.uri, subscriber);
        if let Some(link) = self.members.link_mut(link) {
            link.holdings_mut().subscriptions.push(resource.clone());
        }
        if let Some(open) = self.operations.get_mut(id) {
            open.rare.get_or_insert_default().subscribes = Some(resource);
        }
    }

    /// Ends a link's own subscription; the shell ends it at the server.
    fn unsubscribe(&mut self, resource: &OwnResource, link: LinkId) {
        let OwnResource { server, uri } = resource;
        self.interests.unsubscribe(server, uri, link, None);
        if let Some(link) = self.members.link_mut(link) {
            let subscriptions = &mut link.holdings_mut().subscriptions;
            subscriptions.retain(|other| other != resource);
        }
    }

    /// Ends all subscriptions to the resources of a server that has left.
    pub(crate) fn forget_subscriptions(&mut self, server: &ParticipantId) {
        self.interests.forget_server(server);
        for holdings in self.members.all_holdings_mut() {
            holdings
                .subscriptions
                .retain(|resource| resource.server != *server);
        }
    }

    /// Opens the part of a listen request's filter that its caller may use.
    fn listen(
        &mut self,
        id: OperationId,
        link: LinkId,
        mut filter: ListenFilter,
        narrowing: Option<&Narrowing>,
    ) {
        // What needs a capability waits while its caller is paused, and this cannot wait.
        if self.participant(link).is_some_and(|by| self.is_braked(by)) {
            filter.resources.clear();
        }
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
            let resource = OwnResource {
                server: route.upstream.clone(),
                uri: Arc::from(&*route.own),
            };
            let subscriber = Subscriber {
                link,
                listen: Some(id),
                public: Arc::clone(public),
            };
            self.interests
                .subscribe(&resource.server, &resource.uri, subscriber);
            at.push(resource);
        }
        for task in &filter.tasks {
            self.interests.watch(task, link, id);
            self.listen_to_task(task, link, narrowing);
        }
        if let Some(link) = self.members.link_mut(link) {
            link.holdings_mut().listens.push(id);
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
        let rare = self.operations.get(operation)?.rare.as_ref()?;
        Some(&rare.listens.as_ref()?.filter)
    }

    /// Ends the interests of a request that is over.
    pub(crate) fn lose_interest(
        &mut self,
        id: OperationId,
        link: LinkId,
        rare: Rare<H>,
        outcome: Outcome,
    ) {
        // The server has not subscribed it: it answered with an error, or not at all.
        if let Some(resource) = rare.subscribes
            && outcome != Outcome::Ok
        {
            self.unsubscribe(&resource, link);
        }
        if let Some(listening) = rare.listens {
            self.end_listening(id, link, listening);
        }
    }

    /// Ends the interests of a listen request. The shell ends at servers what no other interest of
    /// the link needs.
    fn end_listening(&mut self, id: OperationId, link: LinkId, listening: Listening) {
        // Of a link that has left there is none.
        let handle = self.handle(link);
        for resource in listening.at {
            let OwnResource { server, uri } = resource;
            let is_last = self.interests.unsubscribe(&server, &uri, link, Some(id));
            if is_last
                && let Some(handle) = &handle
                && let Some(server) = self.server(&server)
            {
                self.effects.push(Effect::Unsubscribe {
                    handle: handle.clone(),
                    server: server.handle,
                    own: uri,
                });
            }
        }
        let mut unwatched = Vec::new();
        for task in listening.filter.tasks {
            if self.interests.unwatch(&task, link, id) {
                unwatched.push(task);
            }
        }
        if !unwatched.is_empty()
            && let Some(handle) = handle
        {
            self.effects.push(Effect::Unwatch {
                handle,
                tasks: unwatched,
            });
        }
        if let Some(link) = self.members.link_mut(link) {
            link.holdings_mut().listens.retain(|other| *other != id);
        }
    }
}
