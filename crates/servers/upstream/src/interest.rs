//! Interest of callers in a server's notifications: resource updates, task states, log level.
//!
//! Outlives sessions: a new session makes the subscriptions again.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{LinkId, LogLevel};
use platform::{Mutex, Shares, Taken};

/// Something at a server that links subscribe to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscription {
    /// Updates of a resource, by the server's own URI.
    Resource(String),
    /// States of a task, by the server's own id (modern servers).
    Task(String),
}

/// Subscriptions at one server that one participant has with all its links together, and all guests
/// together.
pub const PARTICIPANT_SUBSCRIPTIONS_MAX: usize = 256;

/// The interest of all callers of one session and its successors.
#[derive(Debug)]
pub(crate) struct Interest {
    table: Mutex<Table>,
    /// Places of subscriptions that are made or being made, by account.
    accounts: Arc<Shares>,
    /// Held during a subscription, so that the second of two requests for one URI sees the outcome
    /// of the first.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    links: BTreeMap<Subscription, BTreeMap<LinkId, Taken>>,
    /// The levels from which on links want log messages.
    levels: BTreeMap<LinkId, LogLevel>,
    /// Grows with every change of the subscriptions that the server must learn.
    revision: u64,
}

impl Default for Interest {
    fn default() -> Self {
        // Those of all together are bounded by the server's own limit.
        let accounts = Shares::new(usize::MAX, PARTICIPANT_SUBSCRIPTIONS_MAX);
        Self {
            table: Mutex::default(),
            accounts,
            turn: tokio::sync::Mutex::default(),
        }
    }
}

impl Interest {
    /// A place for one more subscription on an account, if it has one.
    pub(crate) fn place(&self, account: &str) -> Option<Taken> {
        self.accounts.of(account).take(1).ok()
    }

    /// True when no link has this subscription.
    pub(crate) fn is_new(&self, subscription: &Subscription) -> bool {
        !self.table.lock().links.contains_key(subscription)
    }

    /// Number of subscriptions; those of several links to the same thing count once.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().links.len()
    }

    /// All subscriptions.
    pub(crate) fn all(&self) -> Vec<Subscription> {
        self.table.lock().links.keys().cloned().collect()
    }

    /// Adds a link's subscription.
    pub(crate) fn add(&self, link: LinkId, subscription: Subscription, place: Taken) {
        let mut table = self.table.lock();
        let before = table.links.len();
        table
            .links
            .entry(subscription)
            .or_default()
            .insert(link, place);
        table.revision += u64::from(table.links.len() > before);
    }

    /// Ends a link's subscription; true when it was the last link that had it.
    pub(crate) fn remove(&self, link: LinkId, subscription: &Subscription) -> bool {
        !self.remove_all(link, |one| one == subscription).is_empty()
    }

    /// Ends all subscriptions of a link; returns those that no link has any more.
    pub(crate) fn forget(&self, link: LinkId) -> Vec<Subscription> {
        self.table.lock().levels.remove(&link);
        self.remove_all(link, |_| true)
    }

    fn remove_all(&self, link: LinkId, which: impl Fn(&Subscription) -> bool) -> Vec<Subscription> {
        let mut table = self.table.lock();
        let mut lost = Vec::new();
        table.links.retain(|one, links| {
            let last = which(one) && links.remove(&link).is_some() && links.is_empty();
            lost.extend(last.then(|| one.clone()));
            !last
        });
        table.revision += u64::from(!lost.is_empty());
        lost
    }

    /// Takes the interest of a session that has no successor of its own.
    pub(crate) fn absorb(&self, other: &Self) {
        // One after the other: no two tables are locked at once.
        let other = std::mem::take(&mut *other.table.lock());
        let mut table = self.table.lock();
        for (subscription, links) in other.links {
            table.links.entry(subscription).or_default().extend(links);
        }
        table.levels.extend(other.levels);
        table.revision += 1;
    }

    /// The most verbose level that a link wants.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.table.lock().levels.values().min().copied()
    }

    /// Notes from which level on a link wants log messages: besides what it wanted before, or
    /// `instead`.
    pub(crate) fn want_level(&self, link: LinkId, level: LogLevel, instead: bool) {
        let mut table = self.table.lock();
        let wanted = table.levels.entry(link).or_insert(level);
        *wanted = if instead { level } else { level.min(*wanted) };
    }

    pub(crate) fn revision(&self) -> u64 {
        self.table.lock().revision
    }

    /// Starts a new revision: the listen stream is opened again.
    pub(crate) fn renew(&self) {
        self.table.lock().revision += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str) -> Subscription {
        Subscription::Task(id.to_owned())
    }

    fn uri(uri: &str) -> Subscription {
        Subscription::Resource(uri.to_owned())
    }

    fn add(interest: &Interest, link: LinkId, subscription: Subscription) {
        interest.add(link, subscription, interest.place("ann").unwrap());
    }

    #[test]
    fn a_participant_subscribes_as_often_as_its_share_allows() {
        let interest = Interest::default();
        for number in 0..PARTICIPANT_SUBSCRIPTIONS_MAX {
            add(
                &interest,
                LinkId(number as u64 % 2),
                uri(&number.to_string()),
            );
        }
        assert!(interest.place("ann").is_none() && interest.place("bob").is_some());
        interest.forget(LinkId(0));
        assert!(interest.place("ann").is_some());
    }

    #[test]
    fn a_subscription_stays_until_its_last_link_is_removed() {
        let interest = Interest::default();
        let one = LinkId(1);
        let two = LinkId(2);
        assert!(interest.is_new(&task("t")));
        add(&interest, one, task("t"));
        let before = interest.revision();
        add(&interest, two, task("t"));
        assert_eq!(
            (interest.all(), interest.revision()),
            (vec![task("t")], before)
        );
        assert!(!interest.is_new(&task("t")) && interest.is_new(&uri("t")));
        assert!(!interest.remove(one, &task("t")) && !interest.remove(one, &uri("t")));
        assert_eq!(interest.revision(), before);
        assert!(interest.remove(two, &task("t")));
        assert!(interest.len() == 0 && interest.revision() > before);
    }

    #[test]
    fn forgetting_a_link_removes_its_subscriptions() {
        let interest = Interest::default();
        let one = LinkId(1);
        let two = LinkId(2);
        for (link, subscription) in [
            (one, task("s")),
            (one, uri("u")),
            (one, task("t")),
            (two, task("t")),
        ] {
            add(&interest, link, subscription);
        }
        let before = interest.revision();
        assert_eq!(interest.forget(one), [uri("u"), task("s")]);
        assert!(interest.revision() > before && interest.all() == [task("t")]);
        let before = interest.revision();
        assert!(interest.forget(one).is_empty() && interest.revision() == before);
        assert!(!interest.forget(two).is_empty() && interest.len() == 0);
    }

    #[test]
    fn a_successor_takes_subscriptions_and_level() {
        let of_old = Interest::default();
        let of_new = Interest::default();
        add(&of_old, LinkId(1), uri("a:1"));
        of_old.want_level(LinkId(1), LogLevel::Info, true);
        of_new.want_level(LinkId(2), LogLevel::Error, true);
        add(&of_new, LinkId(2), uri("a:1"));
        of_new.absorb(&of_old);
        assert_eq!((of_old.len(), of_new.level()), (0, Some(LogLevel::Info)));
        of_new.want_level(LinkId(1), LogLevel::Alert, false);
        assert_eq!(of_new.level(), Some(LogLevel::Info));
        of_new.want_level(LinkId(1), LogLevel::Alert, true);
        assert_eq!(of_new.level(), Some(LogLevel::Error));
        assert!(!of_new.remove(LinkId(2), &uri("a:1")) && of_new.remove(LinkId(1), &uri("a:1")));
    }
}
