//! Shares of something bounded: a pool, an account for each holder, and what a holder has taken.
//!
//! Finding a holder's account takes a lock; taking and giving back are atomic additions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::Mutex;

/// A holder's share of a pool is a part of it like this, unless it is configured.
pub const SHARE_OF_POOL: usize = 4;
/// Accounts from which on those that no one uses any more are forgotten.
const ACCOUNTS_MIN: usize = 64;

/// The share of a pool that is not configured: a quarter of it, at least one.
#[must_use]
pub fn default_share(capacity: usize) -> usize {
    (capacity / SHARE_OF_POOL).max(1)
}

/// Why something could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The holder has taken its share.
    Share,
    /// All holders together have taken everything.
    Pool,
}

/// Something bounded that many holders share: places, or bytes.
#[derive(Debug)]
pub struct Shares {
    pool: Arc<Pool>,
    share: usize,
    accounts: Mutex<Accounts>,
}

#[derive(Debug)]
struct Pool {
    taken: AtomicUsize,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Accounts {
    of: HashMap<Box<str>, Weak<Share>>,
    /// The number of accounts at which unused ones are forgotten: twice as many as remained the
    /// last time.
    tidy_at: usize,
}

impl Shares {
    /// A pool of this size, of which each holder may take `share`.
    #[must_use]
    pub fn new(capacity: usize, share: usize) -> Arc<Self> {
        let pool = Arc::new(Pool {
            taken: AtomicUsize::new(0),
            capacity,
        });
        Arc::new(Self {
            pool,
            share: share.min(capacity),
            accounts: Mutex::default(),
        })
    }

    /// The account of a holder.
    pub fn of(&self, holder: &str) -> Arc<Share> {
        self.limited(holder, self.share)
    }

    /// The account of a holder with a smaller share than others have. The first look decides until
    /// the account is unused.
    pub fn limited(&self, holder: &str, share: usize) -> Arc<Share> {
        let mut accounts = self.accounts.lock();
        if let Some(known) = accounts.of.get(holder).and_then(Weak::upgrade) {
            return known;
        }
        if accounts.of.len() >= accounts.tidy_at.max(ACCOUNTS_MIN) {
            accounts.of.retain(|_, account| account.strong_count() > 0);
            accounts.tidy_at = accounts.of.len() * 2;
        }
        let max = share.min(self.share);
        let account = Arc::new(Share {
            taken: AtomicUsize::new(0),
            max,
            pool: Arc::clone(&self.pool),
        });
        accounts.of.insert(holder.into(), Arc::downgrade(&account));
        account
    }

    /// The share of a holder.
    #[must_use]
    pub fn share(&self) -> usize {
        self.share
    }

    /// Amount that all holders have taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.pool.taken.load(Ordering::Relaxed)
    }
}

/// The account of one holder. All that use it for the same holder have the same one.
#[derive(Debug)]
pub struct Share {
    taken: AtomicUsize,
    max: usize,
    pool: Arc<Pool>,
}

impl Share {
    /// Whether this much more fits into the share and the pool.
    ///
    /// # Errors
    /// What is full.
    pub fn check(&self, more: usize) -> Result<(), Full> {
        fits(&self.taken, more, self.max, Full::Share)?;
        fits(&self.pool.taken, more, self.pool.capacity, Full::Pool)
    }

    /// Whether the account has room for this much more.
    #[must_use]
    pub fn has_room(&self, more: usize) -> bool {
        self.check(more).is_ok()
    }

    /// Takes this much, if it fits. It is given back when the result is dropped.
    ///
    /// # Errors
    /// What is full.
    pub fn take(self: &Arc<Self>, amount: usize) -> Result<Taken, Full> {
        let mut taken = Taken {
            share: Arc::clone(self),
            amount: 0,
        };
        taken.grow(amount).map(|()| taken)
    }

    /// Takes this much, even beyond the share.
    #[must_use]
    pub fn taken_beyond(self: &Arc<Self>, amount: usize) -> Taken {
        self.add(amount);
        Taken {
            share: Arc::clone(self),
            amount,
        }
    }

    /// Adds to what is taken, even beyond the share.
    pub fn add(&self, amount: usize) {
        self.taken.fetch_add(amount, Ordering::Relaxed);
        self.pool.taken.fetch_add(amount, Ordering::Relaxed);
    }

    /// Gives back what was added.
    pub fn remove(&self, amount: usize) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
        self.pool.taken.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Amount that the holder has taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

fn fits(taken: &AtomicUsize, more: usize, max: usize, full: Full) -> Result<(), Full> {
    if taken.load(Ordering::Relaxed).saturating_add(more) <= max {
        Ok(())
    } else {
        Err(full)
    }
}

/// Amount that a holder has taken; given back when dropped.
#[derive(Debug)]
pub struct Taken {
    share: Arc<Share>,
    amount: usize,
}

impl Taken {
    /// Takes more, if it fits.
    ///
    /// # Errors
    /// What is full. Nothing more is taken then.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        // Added first, so that of two holders that take the last place at once at most one has it.
        self.share.add(more);
        let share = fits(&self.share.taken, 0, self.share.max, Full::Share);
        let all = share.and_then(|()| {
            fits(
                &self.share.pool.taken,
                0,
                self.share.pool.capacity,
                Full::Pool,
            )
        });
        match all {
            Ok(()) => self.amount += more,
            Err(_) => self.share.remove(more),
        }
        all
    }

    /// Takes more, even beyond the share.
    pub fn add(&mut self, more: usize) {
        self.share.add(more);
        self.amount += more;
    }

    /// Gives back everything; more can be taken again.
    pub fn clear(&mut self) {
        self.share.remove(std::mem::take(&mut self.amount));
    }

    /// Whether it is on this account.
    #[must_use]
    pub fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.share.remove(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_takes_its_share_and_leaves_the_rest_to_others() {
        let shares = Shares::new(10, 4);
        let greedy = shares.of("greedy");
        let other = shares.of("other");
        let third = shares.of("third");
        let taken = greedy.take(4).unwrap();
        assert_eq!(greedy.take(1).unwrap_err(), Full::Share);
        assert_eq!(
            shares.of("greedy").take(1).unwrap_err(),
            Full::Share,
            "it has one account"
        );
        let others = other.take(4).unwrap();
        assert_eq!(third.take(3).unwrap_err(), Full::Pool);
        assert_eq!(third.check(3), Err(Full::Pool));
        assert_eq!(shares.taken(), 8);
        drop((taken, others));
        assert_eq!((shares.taken(), greedy.taken()), (0, 0));
        assert!(third.take(3).is_ok() && greedy.has_room(4));
    }

    #[test]
    fn what_is_taken_grows_and_is_given_back_as_a_whole() {
        let shares = Shares::new(10, 10);
        let holder = shares.of("holder");
        let mut taken = holder.take(6).unwrap();
        assert_eq!((taken.grow(5), holder.taken()), (Err(Full::Share), 6));
        taken.add(5);
        assert_eq!(shares.taken(), 11);
        taken.clear();
        assert_eq!(shares.taken(), 0);
        assert!(taken.grow(10).is_ok() && taken.is_of(&holder));
    }

    #[test]
    fn a_smaller_share_lasts_as_long_as_its_account() {
        let shares = Shares::new(10, 4);
        let guests = shares.limited("guests", 1);
        let place = guests.take(1).unwrap();
        drop(guests);
        assert_eq!(
            shares.limited("guests", 1).take(1).unwrap_err(),
            Full::Share
        );
        drop(place);
        assert!(shares.of("guests").take(4).is_ok());
    }

    #[test]
    fn unused_accounts_are_forgotten() {
        let shares = Shares::new(10, 1);
        let kept = shares.of("kept");
        for number in 0..10_000 {
            drop(shares.of(&number.to_string()));
        }
        assert!(shares.accounts.lock().of.len() <= ACCOUNTS_MIN + 1);
        assert!(Arc::ptr_eq(&kept, &shares.of("kept")));
    }

    #[test]
    fn holders_that_take_at_once_never_have_more_than_there_is() {
        let shares = Shares::new(8, 8);
        let highest = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for holder in ["a", "b", "c", "d"] {
                let account = shares.of(holder);
                let highest = &highest;
                let shares = &shares;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for round in 0..10_000 {
                        mine.extend(account.take(1));
                        if round % 3 == 0 {
                            mine.pop();
                        }
                        highest.fetch_max(mine.len(), Ordering::Relaxed);
                    }
                    drop(mine);
                    let _ = shares.taken();
                });
            }
        });
        assert!(highest.load(Ordering::Relaxed) <= 8);
        assert_eq!(shares.taken(), 0);
    }
}
