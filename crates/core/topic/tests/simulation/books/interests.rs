//! Interests of callers: subscriptions, listen requests, tasks.

use std::collections::BTreeSet;

use model::{LinkId, ListKind, OperationId, ParticipantId};

use super::{Books, calls::Call};
use crate::numbers::Receiver;

/// A link's own subscription, or one of a listen request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subscription {
    pub(crate) server: ParticipantId,
    pub(crate) own: String,
    pub(crate) public: String,
    /// The request that made it; the topic undoes it if the request fails.
    pub(crate) by: OperationId,
}

/// The interests that a step ends.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    leaving: BTreeSet<LinkId>,
    must_unsubscribe: BTreeSet<(LinkId, ParticipantId, String)>,
    unsubscribed: BTreeSet<(LinkId, ParticipantId, String)>,
    must_unwatch: BTreeSet<(LinkId, String)>,
    unwatched: BTreeSet<(LinkId, String)>,
}

impl Ends {
    pub(crate) fn of(leaving: impl Iterator<Item = LinkId>) -> Self {
        Self {
            leaving: leaving.collect(),
            ..Self::default()
        }
    }
}

/// The part of a listen request's filter that its caller may use.
#[derive(Debug, Clone)]
pub(crate) struct Listen {
    pub(crate) lists: Vec<ListKind>,
    pub(crate) resources: Vec<Subscription>,
    pub(crate) tasks: Vec<String>,
}

impl Books {
    /// A receiver is a caller's link, or an open call whose caller waits.
    pub(crate) fn knows(&self, to: &Receiver) {
        match to {
            Receiver::Link(handle) => {
                assert!(
                    self.links.values().any(|link| link.handle == *handle),
                    "link {handle} is not here"
                );
            }
            Receiver::Call(call) => {
                let open = self
                    .calls
                    .values()
                    .any(|open| open.call == *call && !open.answered);
                assert!(open, "call {call} is not open");
            }
        }
    }

    /// A changed list reaches links that take notifications, and listen requests for it.
    pub(crate) fn list_changed(&self, list: ListKind, to: &Receiver) {
        assert_ne!(list, ListKind::Templates);
        self.knows(to);
        let wants = match to {
            Receiver::Link(handle) => self
                .links
                .values()
                .any(|link| link.handle == *handle && link.notified),
            Receiver::Call(call) => {
                let open = self.calls.values().find(|open| open.call == *call).unwrap();
                open.listen
                    .as_ref()
                    .is_some_and(|listen| listen.lists.contains(&list))
            }
        };
        assert!(wants, "{to:?} does not listen to {list:?}");
    }

    /// The receivers of a changed list at a link.
    pub(crate) fn receivers(&self, link: LinkId, list: ListKind) -> Vec<Receiver> {
        let Some(own) = self.links.get(&link) else {
            return Vec::new();
        };
        let home = own.notified.then_some(Receiver::Link(own.handle));
        let listens = self.calls.values().filter(|open| {
            open.link == link
                && open
                    .listen
                    .as_ref()
                    .is_some_and(|listen| listen.lists.contains(&list))
        });
        home.into_iter()
            .chain(listens.map(|open| Receiver::Call(open.call)))
            .collect()
    }

    /// All subscriptions of a link to a server's resource, of its own and of its listen requests.
    pub(crate) fn subscribed(
        &self,
        link: LinkId,
        server: &ParticipantId,
        uri: &str,
    ) -> Vec<Receiver> {
        let fits = |one: &&Subscription| one.server == *server && one.own == uri;
        let Some(own) = self.links.get(&link) else {
            return Vec::new();
        };
        let home = own
            .subscriptions
            .iter()
            .filter(fits)
            .map(|_| Receiver::Link(own.handle));
        let calls = self.calls.values().filter(|open| open.link == link);
        let listens = calls.filter_map(|open| Some((open.call, open.listen.as_ref()?)));
        let listens = listens.filter(|(_, listen)| listen.resources.iter().any(|one| fits(&one)));
        home.chain(listens.map(|(call, _)| Receiver::Call(call)))
            .collect()
    }

    /// The open listen requests of a link that name a task.
    pub(crate) fn watching(&self, link: LinkId, task: &str) -> Vec<u64> {
        let calls = self.calls.values().filter(|open| open.link == link);
        let listens = calls.filter_map(|open| Some((open.call, open.listen.as_ref()?)));
        listens
            .filter(|(_, listen)| listen.tasks.iter().any(|one| one == task))
            .map(|(call, _)| call)
            .collect()
    }

    /// A request is over: its subscription is undone unless it was answered with a result. The last
    /// listen request to name a resource or a task ends that at the server, unless the link is
    /// gone.
    pub(crate) fn end_interest(&mut self, open: &Call, operation: OperationId) {
        let Some(link) = self.links.get_mut(&open.link) else {
            return;
        };
        link.subscriptions.retain(|one| one.by != operation);
        let Some(listen) = open
            .listen
            .as_ref()
            .filter(|_| !self.ends.leaving.contains(&open.link))
        else {
            return;
        };
        for one in &listen.resources {
            let here = self.servers.contains_key(&one.server);
            if here && self.subscribed(open.link, &one.server, &one.own).is_empty() {
                let end = (open.link, one.server.clone(), one.own.clone());
                self.ends.must_unsubscribe.insert(end);
            }
        }
        for task in &listen.tasks {
            if self.watching(open.link, task).is_empty() {
                self.ends.must_unwatch.insert((open.link, task.clone()));
            }
        }
    }

    /// A server has left: its subscriptions end without an effect.
    pub(crate) fn forget_subscriptions(&mut self, server: &ParticipantId) {
        for link in self.links.values_mut() {
            link.attached.remove(server);
            link.subscriptions.retain(|one| one.server != *server);
        }
        for listen in self
            .calls
            .values_mut()
            .filter_map(|open| open.listen.as_mut())
        {
            listen.resources.retain(|one| one.server != *server);
        }
    }

    /// The server answered with a result: the subscription stays.
    pub(crate) fn keep_subscription(&mut self, operation: OperationId) {
        let all = self
            .links
            .values_mut()
            .flat_map(|link| &mut link.subscriptions);
        all.filter(|one| one.by == operation)
            .for_each(|one| one.by = OperationId(0));
    }

    pub(crate) fn unsubscribed(&mut self, handle: u64, server: u64, own: &str) {
        let end = (self.link_of(handle), self.server_of(server), own.to_owned());
        assert!(self.ends.unsubscribed.insert(end), "unsubscribed twice");
    }

    pub(crate) fn unwatched(&mut self, handle: u64, tasks: &[std::sync::Arc<str>]) {
        let link = self.link_of(handle);
        self.ends
            .unwatched
            .extend(tasks.iter().map(|task| (link, task.to_string())));
    }

    pub(crate) fn link_of(&self, handle: u64) -> LinkId {
        let found = self.links.iter().find(|(_, link)| link.handle == handle);
        found.map(|(link, _)| *link).expect("the link is here")
    }

    pub(crate) fn finish_interests(&self) {
        assert_eq!(self.ends.must_unsubscribe, self.ends.unsubscribed);
        assert_eq!(self.ends.must_unwatch, self.ends.unwatched);
    }
}

pub(crate) fn same(one: &Receiver, other: &Receiver) -> bool {
    match (one, other) {
        (Receiver::Call(one), Receiver::Call(other)) => one == other,
        (Receiver::Link(one), Receiver::Link(other)) => one == other,
        (Receiver::Call(_), Receiver::Link(_)) | (Receiver::Link(_), Receiver::Call(_)) => false,
    }
}
