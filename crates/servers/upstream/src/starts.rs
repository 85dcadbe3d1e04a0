//! Gate of starts: how many processes of servers start up, and how many kept manifests are probed,
//! at a time.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use platform::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Processes that start up at a time, unless configured otherwise.
pub const STARTS_AT_ONCE: usize = 4;
/// Kept manifests that are probed at a time, unless configured otherwise.
pub const PROBES_AT_ONCE: usize = 2;

/// Servers that start up or are probed at a time: `[server] starts_at_once`, `probes_at_once`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartLimits {
    /// Processes of servers that start up at a time.
    pub starts_at_once: usize,
    /// Kept lists of servers that are probed at a time; 0 probes none.
    pub probes_at_once: usize,
}

impl Default for StartLimits {
    fn default() -> Self {
        Self {
            starts_at_once: STARTS_AT_ONCE,
            probes_at_once: PROBES_AT_ONCE,
        }
    }
}

/// The gate through which every start of a local server goes. The gateway has one.
#[derive(Debug)]
pub struct Starts {
    all: Arc<Semaphore>,
    /// Starts that no caller waits for leave a place to those that one waits for.
    background: Arc<Semaphore>,
    probes: Arc<Semaphore>,
    probes_at_once: usize,
    /// The places of each account that has a start under way: half of all.
    accounts: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
    account_starts_max: usize,
}

/// A start that wants a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) urgency: Urgency,
    /// The account of the caller for which it is.
    pub(crate) account: Option<&'a str>,
}

/// The reason for which a start is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A caller.
    Caller,
    /// No caller: the server is started to be listed, kept running or warmed.
    Background,
    /// No caller, and perhaps none ever will: it is asked whether its kept manifest still holds.
    Probe,
}

/// A place in the gate; dropped when the process has started up.
#[derive(Debug)]
pub(crate) struct Place {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Default for Starts {
    fn default() -> Self {
        Self::new(STARTS_AT_ONCE, PROBES_AT_ONCE)
    }
}

impl Starts {
    /// A gate for so many starts, and so many probes among them. Without probes kept manifests hold
    /// until their servers are used.
    #[must_use]
    pub fn new(starts_at_once: usize, probes_at_once: usize) -> Self {
        let gate =
            |places: usize| Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            all: gate(starts_at_once),
            background: gate(starts_at_once.saturating_sub(1)),
            probes: gate(probes_at_once),
            probes_at_once,
            accounts: Mutex::default(),
            account_starts_max: starts_at_once.div_ceil(2).clamp(1, Semaphore::MAX_PERMITS),
        }
    }

    /// Whether kept manifests are probed.
    pub(crate) fn probes(&self) -> bool {
        self.probes_at_once > 0
    }

    /// Waits for a place. The narrower gates come first, so that a start that waits at one of them
    /// takes no place of the others.
    pub(crate) async fn enter(&self, entry: Entry<'_>) -> Place {
        let account = entry.account.map(|account| self.of_account(account));
        let (background, probes) = match entry.urgency {
            Urgency::Caller => (None, None),
            Urgency::Background => (Some(&self.background), None),
            Urgency::Probe => (Some(&self.background), Some(&self.probes)),
        };
        let mut permits = Vec::new();
        for gate in account
            .as_ref()
            .into_iter()
            .chain(probes)
            .chain(background)
            .chain([&self.all])
        {
            // The gates are never closed.
            permits.extend(Arc::clone(gate).acquire_owned().await);
        }
        Place { _permits: permits }
    }

    /// The places of an account. They are forgotten when no start has one.
    fn of_account(&self, account: &str) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock();
        if let Some(known) = accounts.get(account).and_then(Weak::upgrade) {
            return known;
        }
        accounts.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.account_starts_max));
        accounts.insert(account.into(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A place if there is one now.
    fn now(starts: &Starts, urgency: Urgency) -> Option<Place> {
        of(
            starts,
            Entry {
                urgency,
                account: None,
            },
        )
    }

    fn of(starts: &Starts, entry: Entry<'_>) -> Option<Place> {
        match pin!(starts.enter(entry)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_account_has_half_of_the_places_and_none_is_remembered() {
        let starts = Starts::new(4, 2);
        let entry = |account| Entry {
            urgency: Urgency::Caller,
            account: Some(account),
        };
        let greedy: Vec<_> = (0..2)
            .map(|_| of(&starts, entry("greedy")).unwrap())
            .collect();
        assert!(of(&starts, entry("greedy")).is_none());
        let other = of(&starts, entry("other")).unwrap();
        assert_eq!(starts.accounts.lock().len(), 2);
        drop((greedy, other));
        assert!(of(&starts, entry("third")).is_some());
        assert_eq!(starts.accounts.lock().len(), 1);
    }

    #[test]
    fn starts_are_limited_and_callers_have_a_place_of_their_own() {
        let starts = Starts::new(4, 2);
        let background: Vec<_> = (0..3)
            .map(|_| now(&starts, Urgency::Background).unwrap())
            .collect();
        assert!(now(&starts, Urgency::Background).is_none());
        let caller = now(&starts, Urgency::Caller).unwrap();
        assert!(now(&starts, Urgency::Caller).is_none());
        drop((background, caller));
        let probes: Vec<_> = (0..2)
            .map(|_| now(&starts, Urgency::Probe).unwrap())
            .collect();
        assert!(now(&starts, Urgency::Probe).is_none());
        assert!(now(&starts, Urgency::Background).is_some());
        drop(probes);
        assert!(!Starts::new(1, 0).probes());
        assert!(now(&Starts::new(1, 0), Urgency::Background).is_some());
    }
}
