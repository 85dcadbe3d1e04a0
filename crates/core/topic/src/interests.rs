//! Notifications that the callers of a topic want: subscriptions to resources, watched tasks,
//! changed lists.

use std::{collections::HashMap, sync::Arc};

use model::{LinkId, OperationId, ParticipantId};

/// Resources that one link may be subscribed to at once, its listen requests aside.
pub const SUBSCRIPTIONS_MAX: usize = 1024;
/// Listen requests that one link may have open at once.
pub const LISTENS_MAX: usize = 256;

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnResource {
    pub(crate) server: ParticipantId,
    /// The server's own URI.
    pub(crate) uri: Arc<str>,
}

/// A caller that subscribed to a resource: a link, or one of its listen requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscriber {
    pub(crate) link: LinkId,
    pub(crate) listen: Option<OperationId>,
    /// The URI by which it subscribed.
    pub(crate) public: Arc<str>,
}

/// A listen request that names a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watcher {
    pub(crate) link: LinkId,
    pub(crate) listen: OperationId,
}

/// Subscriptions and watched tasks, indexed by the resources and tasks that servers notify about.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    resources: HashMap<ParticipantId, HashMap<Arc<str>, Vec<Subscriber>>>,
    tasks: HashMap<Arc<str>, Vec<Watcher>>,
}

impl Interests {
    /// Adds a subscription to a server's resource, once.
    pub(crate) fn subscribe(
        &mut self,
        server: &ParticipantId,
        own: &Arc<str>,
        subscriber: Subscriber,
    ) -> bool {
        let of_server = self.resources.entry(server.clone()).or_default();
        let subscribers = of_server.entry(Arc::clone(own)).or_default();
        let is_new = !subscribers.contains(&subscriber);
        if is_new {
            subscribers.push(subscriber);
        }
        is_new
    }

    /// Removes subscriptions of one link to a server's resource: its own, or those of a listen
    /// request. True if the link has none to it any more.
    pub(crate) fn unsubscribe(
        &mut self,
        server: &ParticipantId,
        own: &str,
        link: LinkId,
        listen: Option<OperationId>,
    ) -> bool {
        let Some(of_server) = self.resources.get_mut(server) else {
            return false;
        };
        let Some(subscribers) = of_server.get_mut(own) else {
            return false;
        };
        let before = subscribers.len();
        subscribers.retain(|one| one.link != link || one.listen != listen);
        let was_subscribed = subscribers.len() < before;
        let was_last = subscribers.iter().all(|one| one.link != link);
        if subscribers.is_empty() {
            of_server.remove(own);
        }
        if of_server.is_empty() {
            self.resources.remove(server);
        }
        was_subscribed && was_last
    }

    /// Whether a link itself is subscribed to a server's resource.
    pub(crate) fn is_subscribed(&self, server: &ParticipantId, own: &str, link: LinkId) -> bool {
        self.subscribers(server, own)
            .iter()
            .any(|one| one.link == link && one.listen.is_none())
    }

    /// The subscribers of a server's resource.
    pub(crate) fn subscribers(&self, server: &ParticipantId, own: &str) -> &[Subscriber] {
        self.resources
            .get(server)
            .and_then(|of_server| of_server.get(own))
            .map_or(&[], Vec::as_slice)
    }

    /// Drops all subscriptions at a server that has left.
    pub(crate) fn forget_server(&mut self, server: &ParticipantId) {
        self.resources.remove(server);
    }

    /// Adds a listen request that names a task.
    pub(crate) fn watch(&mut self, task: &Arc<str>, link: LinkId, listen: OperationId) {
        let watchers = self.tasks.entry(Arc::clone(task)).or_default();
        let watcher = Watcher { link, listen };
        if !watchers.contains(&watcher) {
            watchers.push(watcher);
        }
    }

    /// Removes it. True if no listen request of its link names the task any more.
    pub(crate) fn unwatch(&mut self, task: &str, link: LinkId, listen: OperationId) -> bool {
        let Some(watchers) = self.tasks.get_mut(task) else {
            return false;
        };
        watchers.retain(|one| *one != Watcher { link, listen });
        let was_last = watchers.iter().all(|one| one.link != link);
        if watchers.is_empty() {
            self.tasks.remove(task);
        }
        was_last
    }

    /// The listen requests that name a task.
    pub(crate) fn watchers(&self, task: &str) -> &[Watcher] {
        self.tasks.get(task).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_done_with_a_resource_when_its_last_subscription_ends() {
        let (one, own): (_, Arc<str>) = (ParticipantId::new("one").unwrap(), "file:///a".into());
        let mut interests = Interests::default();
        let subscriber = |link, listen: Option<u128>| Subscriber {
            link: LinkId(link),
            listen: listen.map(OperationId),
            public: own.clone(),
        };
        assert!(interests.subscribe(&one, &own, subscriber(1, None)));
        assert!(!interests.subscribe(&one, &own, subscriber(1, None)));
        assert!(interests.subscribe(&one, &own, subscriber(1, Some(5))));
        assert!(interests.subscribe(&one, &own, subscriber(2, None)));
        assert_eq!(interests.subscribers(&one, &own).len(), 3);
        assert!(interests.is_subscribed(&one, &own, LinkId(1)));
        assert!(!interests.unsubscribe(&one, &own, LinkId(1), None));
        assert!(!interests.is_subscribed(&one, &own, LinkId(1)));
        assert!(interests.unsubscribe(&one, &own, LinkId(1), Some(OperationId(5))));
        assert!(
            !interests.unsubscribe(&one, &own, LinkId(1), None),
            "it had none"
        );
        assert!(interests.unsubscribe(&one, &own, LinkId(2), None));
        assert!(interests.resources.is_empty());
    }

    #[test]
    fn a_task_is_watched_by_each_request_that_names_it() {
        let (mut interests, task): (_, Arc<str>) = (Interests::default(), "t".into());
        interests.watch(&task, LinkId(1), OperationId(5));
        interests.watch(&task, LinkId(1), OperationId(6));
        assert_eq!(interests.watchers("t").len(), 2);
        assert!(!interests.unwatch("t", LinkId(1), OperationId(5)));
        assert!(interests.unwatch("t", LinkId(1), OperationId(6)));
        assert!(interests.tasks.is_empty());
    }
}
