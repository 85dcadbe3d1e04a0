//! What callers want to hear from a server besides answers: updates of resources, how tasks stand, and log messages of a
//! level.
//!
//! Outlives sessions: what is wanted is asked again after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use model::LinkId;
use platform::Mutex;

/// The wants of all callers of one session and its successors.
#[derive(Debug, Default)]
pub(super) struct Wants {
    state: Mutex<State>,
    /// Grows with each change of what is wanted.
    revision: AtomicU64,
    /// One subscription at a time, so that the second of two waits for the first's outcome.
    pub(super) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    uris: BTreeMap<String, BTreeSet<LinkId>>,
    tasks: BTreeMap<String, BTreeSet<LinkId>>,
    level: Option<String>,
}

impl Wants {
    fn state(&self) -> platform::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// True when nobody wanted this URI before.
    pub(super) fn is_new(&self, uri: &str) -> bool {
        !self.state().uris.contains_key(uri)
    }

    /// URIs and tasks wanted by anybody.
    pub(super) fn len(&self) -> usize {
        let state = self.state();
        state.uris.len() + state.tasks.len()
    }

    /// Has a link told of a task.
    pub(super) fn add_task(&self, link: LinkId, task: &str) {
        let mut state = self.state();
        let links = state.tasks.entry(task.to_owned()).or_default();
        if links.is_empty() {
            self.renew();
        }
        links.insert(link);
    }

    /// Has it told no more; true when nobody wants it any more.
    pub(super) fn remove_task(&self, link: LinkId, task: &str) -> bool {
        let mut state = self.state();
        let Some(links) = state.tasks.get_mut(task) else { return false };
        links.remove(&link);
        let last = links.is_empty();
        if last {
            state.tasks.remove(task);
            self.renew();
        }
        last
    }

    /// Tasks wanted by anybody.
    pub(super) fn tasks(&self) -> Vec<String> {
        self.state().tasks.keys().cloned().collect()
    }

    pub(super) fn add(&self, link: LinkId, uri: &str) {
        let mut state = self.state();
        let links = state.uris.entry(uri.to_owned()).or_default();
        if links.is_empty() {
            self.renew();
        }
        links.insert(link);
    }

    /// True when nobody wants it any more.
    pub(super) fn remove(&self, link: LinkId, uri: &str) -> bool {
        let mut state = self.state();
        let Some(links) = state.uris.get_mut(uri) else { return false };
        links.remove(&link);
        let last = links.is_empty();
        if last {
            state.uris.remove(uri);
            self.renew();
        }
        last
    }

    /// Removes a link; the URIs that nobody wants any more come back.
    pub(super) fn forget(&self, link: LinkId) -> Vec<String> {
        let of_link: Vec<String> = {
            let state = self.state();
            state.uris.iter().filter(|(_, links)| links.contains(&link)).map(|(uri, _)| uri.clone()).collect()
        };
        of_link.into_iter().filter(|uri| self.remove(link, uri)).collect()
    }

    /// Removes a link from all tasks; true when one of them nobody wants any more.
    pub(super) fn forget_tasks(&self, link: LinkId) -> bool {
        let mut state = self.state();
        let before = state.tasks.len();
        state.tasks.retain(|_, links| !(links.remove(&link) && links.is_empty()));
        let less = state.tasks.len() < before;
        if less {
            self.renew();
        }
        less
    }

    pub(super) fn uris(&self) -> Vec<String> {
        self.state().uris.keys().cloned().collect()
    }

    pub(super) fn level(&self) -> Option<String> {
        self.state().level.clone()
    }

    pub(super) fn set_level(&self, level: &str) {
        self.state().level = Some(level.to_owned());
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// Has everything asked again.
    pub(super) fn renew(&self) {
        self.revision.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_wanted_until_its_last_link_leaves() {
        let wants = Wants::default();
        let (one, two) = (LinkId(1), LinkId(2));
        wants.add_task(one, "t");
        let before = wants.revision();
        wants.add_task(two, "t");
        assert_eq!((wants.tasks(), wants.len(), wants.revision()), (vec!["t".to_owned()], 1, before));
        assert!(!wants.remove_task(one, "t") && !wants.remove_task(one, "u"));
        assert!(wants.remove_task(two, "t"));
        assert!(wants.len() == 0 && wants.revision() > before);
    }

    #[test]
    fn a_link_that_leaves_takes_its_tasks_along() {
        let wants = Wants::default();
        let (one, two) = (LinkId(1), LinkId(2));
        wants.add_task(one, "s");
        wants.add_task(one, "t");
        wants.add_task(two, "t");
        let before = wants.revision();
        assert!(wants.forget_tasks(one) && wants.revision() > before);
        assert_eq!(wants.tasks(), ["t"]);
        let before = wants.revision();
        assert!(!wants.forget_tasks(one) && wants.revision() == before);
        assert!(wants.forget_tasks(two) && wants.tasks().is_empty());
    }

    #[test]
    fn a_uri_is_wanted_until_its_last_link_leaves() {
        let wants = Wants::default();
        let (one, two) = (LinkId(1), LinkId(2));
        assert!(wants.is_new("a:1"));
        wants.add(one, "a:1");
        wants.add(two, "a:1");
        wants.add(two, "a:2");
        let before = wants.revision();
        assert!(!wants.remove(one, "a:1"));
        assert!(!wants.remove(one, "a:9"));
        assert_eq!(wants.revision(), before);
        assert_eq!(wants.forget(two), ["a:1", "a:2"]);
        assert!(wants.uris().is_empty() && wants.revision() > before);
    }
}
