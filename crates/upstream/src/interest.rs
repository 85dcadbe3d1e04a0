//! Interest of callers in a server's notifications: resource updates, task states, log level.
//!
//! Outlives sessions: a new session makes the subscriptions again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use model::LinkId;
use platform::{Mutex, MutexGuard};

/// The interest of all callers of one session and its successors.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    links: Mutex<Links>,
    /// Grows with every change of the union.
    revision: AtomicU64,
    /// Held during a subscription, so that the second of two requests for one URI sees the outcome of the first.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Interested links.
#[derive(Debug, Default)]
struct Links {
    by_uri: BTreeMap<String, BTreeSet<LinkId>>,
    by_task: BTreeMap<String, BTreeSet<LinkId>>,
    level: Option<String>,
}

impl Interest {
    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock()
    }

    /// True when no link is subscribed to this URI.
    pub(crate) fn is_new(&self, uri: &str) -> bool {
        !self.links().by_uri.contains_key(uri)
    }

    /// Number of URIs and tasks with subscribers.
    pub(crate) fn len(&self) -> usize {
        let links = self.links();
        links.by_uri.len() + links.by_task.len()
    }

    /// Subscribes a link to a task.
    pub(crate) fn add_task(&self, link: LinkId, task: &str) {
        let mut links = self.links();
        let subscribers = links.by_task.entry(task.to_owned()).or_default();
        if subscribers.is_empty() {
            self.renew();
        }
        subscribers.insert(link);
    }

    /// Ends a link's subscription to a task; true when it was the last one.
    pub(crate) fn remove_task(&self, link: LinkId, task: &str) -> bool {
        let mut links = self.links();
        let Some(subscribers) = links.by_task.get_mut(task) else { return false };
        subscribers.remove(&link);
        let last = subscribers.is_empty();
        if last {
            links.by_task.remove(task);
            self.renew();
        }
        last
    }

    /// Tasks with subscribers.
    pub(crate) fn tasks(&self) -> Vec<String> {
        self.links().by_task.keys().cloned().collect()
    }

    /// Subscribes a link to a resource.
    pub(crate) fn add_uri(&self, link: LinkId, uri: &str) {
        let mut links = self.links();
        let subscribers = links.by_uri.entry(uri.to_owned()).or_default();
        if subscribers.is_empty() {
            self.renew();
        }
        subscribers.insert(link);
    }

    /// Ends a link's subscription to a resource; true when it was the last one.
    pub(crate) fn remove_uri(&self, link: LinkId, uri: &str) -> bool {
        let mut links = self.links();
        let Some(subscribers) = links.by_uri.get_mut(uri) else { return false };
        subscribers.remove(&link);
        let last = subscribers.is_empty();
        if last {
            links.by_uri.remove(uri);
            self.renew();
        }
        last
    }

    /// Removes a link from all resources; returns the URIs without subscribers.
    pub(crate) fn forget_uris(&self, link: LinkId) -> Vec<String> {
        let of_link: Vec<String> = {
            let links = self.links();
            let subscribed = links.by_uri.iter().filter(|(_, subscribers)| subscribers.contains(&link));
            subscribed.map(|(uri, _)| uri.clone()).collect()
        };
        of_link.into_iter().filter(|uri| self.remove_uri(link, uri)).collect()
    }

    /// Removes a link from all tasks; true when a task lost its last subscriber.
    pub(crate) fn forget_tasks(&self, link: LinkId) -> bool {
        let mut links = self.links();
        let before = links.by_task.len();
        links.by_task.retain(|_, subscribers| !(subscribers.remove(&link) && subscribers.is_empty()));
        let less = links.by_task.len() < before;
        if less {
            self.renew();
        }
        less
    }

    /// Resources with subscribers.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.links().by_uri.keys().cloned().collect()
    }

    /// The log level that was set last.
    pub(crate) fn level(&self) -> Option<String> {
        self.links().level.clone()
    }

    pub(crate) fn set_level(&self, level: &str) {
        self.links().level = Some(level.to_owned());
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// Starts a new revision: the listen stream is opened again.
    pub(crate) fn renew(&self) {
        self.revision.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_stays_until_its_last_link_is_removed() {
        let interest = Interest::default();
        let (one, two) = (LinkId(1), LinkId(2));
        interest.add_task(one, "t");
        let before = interest.revision();
        interest.add_task(two, "t");
        assert_eq!(
            (interest.tasks(), interest.len(), interest.revision()),
            (vec!["t".to_owned()], 1, before)
        );
        assert!(!interest.remove_task(one, "t") && !interest.remove_task(one, "u"));
        assert!(interest.remove_task(two, "t"));
        assert!(interest.len() == 0 && interest.revision() > before);
    }

    #[test]
    fn forgetting_a_link_removes_its_tasks() {
        let interest = Interest::default();
        let (one, two) = (LinkId(1), LinkId(2));
        interest.add_task(one, "s");
        interest.add_task(one, "t");
        interest.add_task(two, "t");
        let before = interest.revision();
        assert!(interest.forget_tasks(one) && interest.revision() > before);
        assert_eq!(interest.tasks(), ["t"]);
        let before = interest.revision();
        assert!(!interest.forget_tasks(one) && interest.revision() == before);
        assert!(interest.forget_tasks(two) && interest.tasks().is_empty());
    }

    #[test]
    fn a_uri_stays_until_its_last_link_is_removed() {
        let interest = Interest::default();
        let (one, two) = (LinkId(1), LinkId(2));
        assert!(interest.is_new("a:1"));
        interest.add_uri(one, "a:1");
        interest.add_uri(two, "a:1");
        interest.add_uri(two, "a:2");
        let before = interest.revision();
        assert!(!interest.remove_uri(one, "a:1"));
        assert!(!interest.remove_uri(one, "a:9"));
        assert_eq!(interest.revision(), before);
        assert_eq!(interest.forget_uris(two), ["a:1", "a:2"]);
        assert!(interest.uris().is_empty() && interest.revision() > before);
    }
}
