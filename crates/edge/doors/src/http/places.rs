//! Places for connections: a share for each participant, for all guests together, and for each
//! address whose senders are not known yet.
//!
//! A connection is its address's until a request on it names a known sender. An address whose share
//! is full loses its oldest unknown connection to a new one, so that silent connections lock out no
//! newcomer.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::{Mutex, Shares, Taken};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The bits of an IPv6 address that one sender cannot choose.
const NETWORK_BITS: u32 = 64;
/// A number that no newcomer has.
const NO_NEWCOMER: u64 = 0;

/// The places of one listener.
pub(crate) struct Places {
    max: u32,
    free: Semaphore,
    known: Arc<Shares>,
    /// Connections of one address before their senders are known, and of all addresses together.
    address_newcomers_max: usize,
    newcomers_max: usize,
    newcomers: Mutex<Newcomers>,
}

#[derive(Default)]
struct Newcomers {
    next: u64,
    /// By address, oldest first.
    by_address: HashMap<IpAddr, BTreeMap<u64, Arc<Standing>>>,
    /// The addresses of all, oldest first.
    all: BTreeMap<u64, IpAddr>,
}

impl Newcomers {
    /// Has the oldest one make way, of an address if it is named.
    fn evict(&mut self, address: Option<IpAddr>) {
        let first =
            |own: &BTreeMap<u64, Arc<Standing>>| own.first_key_value().map(|(number, _)| *number);
        let oldest = match address {
            Some(address) => self.by_address.get(&address).and_then(first),
            None => self.all.first_key_value().map(|(number, _)| *number),
        };
        if let Some(gone) = oldest.and_then(|oldest| self.remove(oldest)) {
            gone.evicted.store(true, Ordering::Release);
            gone.waker.wake();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Standing>> {
        let address = self.all.remove(&number)?;
        let own = self.by_address.get_mut(&address)?;
        let gone = own.remove(&number);
        if own.is_empty() {
            self.by_address.remove(&address);
        }
        gone
    }
}

/// Standing of a connection among the others of its address, for as long as it is HTTP: whether its
/// sender is known, and whether it must make way.
#[derive(Default)]
pub(crate) struct Standing {
    /// Its sender is known: no other needs its place.
    known: AtomicBool,
    /// It must make way for another.
    evicted: AtomicBool,
    waker: AtomicWaker,
}

/// The place of one connection.
pub(crate) struct Place {
    places: Arc<Places>,
    account: Mutex<Account>,
}

/// On which account a connection is.
enum Account {
    /// Its address's, as the newcomer of this number.
    Newcomer(u64),
    /// Its sender's.
    Sender(Taken),
}

impl Places {
    /// So many places, of which each holder may have `share`.
    pub(crate) fn new(connections_max: usize, share: usize) -> Arc<Self> {
        let max = u32::try_from(connections_max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let free = Semaphore::new(max as usize);
        let known = Shares::new(connections_max, share);
        let address_newcomers_max = known.share();
        // The other half stays for senders that are known.
        let newcomers_max = address_newcomers_max.max(connections_max / 2);
        let newcomers = Mutex::default();
        Arc::new(Self {
            max,
            free,
            known,
            address_newcomers_max,
            newcomers_max,
            newcomers,
        })
    }

    /// Waits until a place is free.
    pub(crate) async fn one_free(&self) -> Option<SemaphorePermit<'_>> {
        self.free.acquire().await.ok()
    }

    /// Waits until all places are free.
    pub(crate) async fn all_free(&self) {
        drop(self.free.acquire_many(self.max).await);
    }

    /// The place of a new connection from an address. It may cost the oldest connection of an
    /// unknown sender its place.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        free: SemaphorePermit<'_>,
    ) -> (Place, Arc<Standing>) {
        // Its place gives it back.
        free.forget();
        let address = network(address);
        let standing = Arc::<Standing>::default();
        let mut newcomers = self.newcomers.lock();
        newcomers.next += 1;
        let number = newcomers.next;
        if newcomers
            .by_address
            .get(&address)
            .is_some_and(|own| own.len() >= self.address_newcomers_max)
        {
            newcomers.evict(Some(address));
        } else if newcomers.all.len() >= self.newcomers_max {
            newcomers.evict(None);
        }
        newcomers.all.insert(number, address);
        newcomers
            .by_address
            .entry(address)
            .or_default()
            .insert(number, Arc::clone(&standing));
        drop(newcomers);
        let account = Mutex::new(Account::Newcomer(number));
        (
            Place {
                places: Arc::clone(self),
                account,
            },
            standing,
        )
    }

    fn leave(&self, number: u64) -> Option<Arc<Standing>> {
        self.newcomers.lock().remove(number)
    }
}

impl Place {
    /// Whether the sender is known.
    pub(crate) fn is_known(&self) -> bool {
        matches!(&*self.account.lock(), Account::Sender(_))
    }

    /// Puts the connection on the account of the participant that sends on it now.
    ///
    /// # Errors
    /// The participant has too many connections.
    pub(crate) fn belongs_to(&self, sender: &ParticipantId) -> Result<(), Refusal> {
        let share = self.places.known.of(sender.account());
        let mut account = self.account.lock();
        if matches!(&*account, Account::Sender(taken) if taken.is_of(&share)) {
            return Ok(());
        }
        let new = share.take(1).map_err(|_| {
            Refusal::new(RefusalCode::Overloaded, "you have too many connections")
                .hint("close some, or raise `participant_connections_max`")
        })?;
        let before = mem::replace(&mut *account, Account::Sender(new));
        drop(account);
        if let Account::Newcomer(number) = before
            && let Some(standing) = self.places.leave(number)
        {
            standing.known.store(true, Ordering::Release);
        }
        Ok(())
    }
}

impl Standing {
    /// Ready once the connection must make way for another.
    pub(crate) fn poll_evicted(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.known.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.waker.register(cx.waker());
        // After that, so that one of the two sees the other: `enter` or this.
        if self.evicted.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match mem::replace(self.account.get_mut(), Account::Newcomer(NO_NEWCOMER)) {
            Account::Sender(taken) => drop(taken),
            Account::Newcomer(number) => drop(self.places.leave(number)),
        }
        self.places.free.add_permits(1);
    }
}

/// The address as far as its sender cannot choose it.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let network = u128::from(v6) >> (128 - NETWORK_BITS) << (128 - NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn enter(places: &Arc<Places>, address: &str) -> (Place, Arc<Standing>) {
        places.enter(address.parse().unwrap(), places.free.try_acquire().unwrap())
    }

    fn is_evicted((_, standing): &(Place, Arc<Standing>)) -> bool {
        standing
            .poll_evicted(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn the_oldest_unknown_connection_of_an_address_makes_way() {
        let places = Places::new(100, 2);
        let first = enter(&places, "10.0.0.1");
        let second = enter(&places, "10.0.0.1");
        let elsewhere = enter(&places, "10.0.0.2");
        assert!(!is_evicted(&first));
        let third = enter(&places, "::ffff:10.0.0.1");
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&elsewhere));
        second
            .0
            .belongs_to(&ParticipantId::new("ann").unwrap())
            .unwrap();
        let fourth = enter(&places, "10.0.0.1");
        assert!(!is_evicted(&third), "one of them is known by now");
        drop((first, second, third, fourth, elsewhere));
        assert!(places.newcomers.lock().by_address.is_empty());
        assert_eq!(
            (places.known.taken(), places.free.available_permits()),
            (0, 100)
        );
    }

    #[test]
    fn unknown_connections_of_many_addresses_leave_half_of_the_places() {
        let places = Places::new(100, 2);
        let all: Vec<_> = (0..51)
            .map(|number| enter(&places, &format!("10.0.1.{number}")))
            .collect();
        assert!(is_evicted(&all[0]) && !all[1..].iter().any(is_evicted));
    }

    #[test]
    fn a_participant_has_its_share_and_guests_have_one_together() {
        let places = Places::new(100, 2);
        let id = |name: &str| ParticipantId::new(name).unwrap();
        let open = |name: &str| {
            let (place, _) = enter(&places, "10.0.0.1");
            place.belongs_to(&id(name)).map(|()| place)
        };
        let ann = [open("ann").unwrap(), open("ann").unwrap()];
        assert!(open("ann").is_err());
        assert!(
            ann[0].belongs_to(&id("ann")).is_ok(),
            "it is on this account already"
        );
        let guests = [open("anonymous-1").unwrap(), open("anonymous-2").unwrap()];
        assert!(open("anonymous-3").is_err() && open("bob").is_ok());
        assert!(
            guests[0].belongs_to(&id("ann")).is_err(),
            "a proxy may send for several participants"
        );
        drop(ann);
        assert!(guests[0].belongs_to(&id("ann")).is_ok() && open("anonymous-3").is_ok());
    }

    #[test]
    fn one_network_is_one_address() {
        let net = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(net("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(
            (net("::ffff:10.0.0.1"), net("10.0.0.1")),
            ("10.0.0.1".into(), "10.0.0.1".into())
        );
    }
}
