//! Flights: uses of refresh tokens, one at a time in the whole cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

/// A taker of the ends of flights.
pub(crate) trait Lands: std::fmt::Debug + Send + Sync {
    /// A flight is over.
    fn landed(&self, account: &Arc<str>, number: u64, is_known: bool);
}

/// The use of an account's refresh token by this node. Dropping it says that nothing is known of
/// its result; until its time is over no node uses the token again.
#[derive(Debug)]
pub struct TokenFlight {
    journal: Arc<dyn Lands>,
    account: Arc<str>,
    number: u64,
    before_ms: u64,
    is_over: bool,
}

/// The cause for which this node does not use a refresh token now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoFlight {
    /// A use of it that was under way is over.
    #[error("another use of the refresh token is over")]
    Over,
    /// This node is the home no more.
    #[error("another node is the home of the cluster")]
    Elsewhere,
}

/// The end of a wait for a flight.
pub(crate) type Landing = Result<TokenFlight, NoFlight>;

impl TokenFlight {
    pub(crate) fn new(
        journal: Arc<dyn Lands>,
        account: Arc<str>,
        number: u64,
        before_ms: u64,
    ) -> Self {
        Self {
            journal,
            account,
            number,
            before_ms,
            is_over: false,
        }
    }

    /// The time that is left for the use.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.before_ms.saturating_sub(platform::steady_ms()))
    }

    /// The use is over, and what came of it is stored.
    pub fn end(mut self) {
        self.land(true);
    }

    fn land(&mut self, is_known: bool) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.journal.landed(&self.account, self.number, is_known);
        }
    }
}

impl Drop for TokenFlight {
    fn drop(&mut self) {
        self.land(false);
    }
}

/// Those who wait to use refresh tokens, by account, in their order.
#[derive(Debug, Default)]
pub(crate) struct Flights(HashMap<Arc<str>, Vec<Waiter>>);

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    landing: oneshot::Sender<Landing>,
}

impl Flights {
    /// One more waits.
    pub(crate) fn wait(&mut self, account: &Arc<str>, ticket: u64) -> oneshot::Receiver<Landing> {
        let (landing, receiver) = oneshot::channel();
        let waiters = self.0.entry(Arc::clone(account)).or_default();
        waiters.push(Waiter { ticket, landing });
        receiver
    }

    /// The first of an account that still waits.
    pub(crate) fn next(&mut self, account: &str) -> Option<oneshot::Sender<Landing>> {
        let waiters = self.0.get_mut(account)?;
        let next = waiters.iter().position(|one| !one.landing.is_closed());
        let next = next.map(|place| waiters.remove(place).landing);
        if waiters.is_empty() {
            self.0.remove(account);
        }
        next
    }

    /// Those with these tickets wait no more.
    pub(crate) fn end(&mut self, tickets: &[u64], why: NoFlight) {
        for waiters in self.0.values_mut() {
            for waiter in waiters.extract_if(.., |one| tickets.contains(&one.ticket)) {
                let _ = waiter.landing.send(Err(why));
            }
        }
        self.0.retain(|_, waiters| !waiters.is_empty());
    }
}
