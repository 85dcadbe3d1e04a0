//! Acts by source address: so many in a minute, then none until the minute is over.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::Mutex;

/// The most addresses that are counted. More share one count.
pub const ADDRESSES_MAX: usize = 10_000;

const MINUTE_MS: u64 = 60_000;
/// Address as which all addresses beyond the bound are counted.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// A bound for each address, in acts a minute. An address of IPv6 counts with its /64.
#[derive(Debug)]
pub struct Limiter {
    per_minute: u32,
    counts: Mutex<Counts>,
}

/// By address: the beginning of its minute in milliseconds, and the acts since.
type Counts = HashMap<IpAddr, (u64, u32)>;

impl Limiter {
    /// So many acts in a minute.
    #[must_use]
    pub fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            counts: Mutex::default(),
        }
    }

    /// Counts one act of an address; a connection in memory has none.
    ///
    /// # Errors
    /// So many milliseconds to wait: the act is one too many, and is not counted.
    pub fn act(&self, from: Option<IpAddr>, now_ms: u64) -> Result<(), u64> {
        let Some(from) = from else { return Ok(()) };
        let mut counts = self.counts.lock();
        match self.wait_in(&counts, from, now_ms) {
            Some(wait_ms) => Err(wait_ms),
            None => {
                count_in(&mut counts, from, now_ms);
                Ok(())
            }
        }
    }

    /// Milliseconds that an address has to wait, if it has reached the bound. Counts nothing.
    #[must_use]
    pub fn wait_ms(&self, from: IpAddr, now_ms: u64) -> Option<u64> {
        self.wait_in(&self.counts.lock(), from, now_ms)
    }

    /// Counts one act, also beyond the bound.
    pub fn count(&self, from: IpAddr, now_ms: u64) {
        count_in(&mut self.counts.lock(), from, now_ms);
    }

    fn wait_in(&self, counts: &Counts, from: IpAddr, now_ms: u64) -> Option<u64> {
        let others = || {
            (counts.len() >= ADDRESSES_MAX)
                .then(|| counts.get(&OTHERS))
                .flatten()
        };
        let (since_ms, count) = counts.get(&network(from)).or_else(others)?;
        let age_ms = now_ms.saturating_sub(*since_ms);
        (*count >= self.per_minute && age_ms < MINUTE_MS).then(|| MINUTE_MS - age_ms)
    }
}

fn count_in(counts: &mut Counts, from: IpAddr, now_ms: u64) {
    let is_over = |since_ms: u64| now_ms.saturating_sub(since_ms) >= MINUTE_MS;
    let mut at = network(from);
    if counts.len() >= ADDRESSES_MAX && !counts.contains_key(&at) {
        counts.retain(|_, (since_ms, _)| !is_over(*since_ms));
        if counts.len() >= ADDRESSES_MAX {
            at = OTHERS;
        }
    }
    let (since_ms, count) = counts.entry(at).or_insert((now_ms, 0));
    if is_over(*since_ms) {
        (*since_ms, *count) = (now_ms, 0);
    }
    *count = count.saturating_add(1);
}

fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_waits_until_its_minute_is_over() {
        let limiter = Limiter::new(3);
        let one = [192, 0, 2, 1].into();
        let other = [192, 0, 2, 2].into();
        (0..3).for_each(|at| assert_eq!(limiter.act(Some(one), at), Ok(())));
        assert_eq!(limiter.act(Some(one), 1_000), Err(59_000));
        assert_eq!(limiter.act(Some(other), 1_000), Ok(()));
        assert_eq!(limiter.act(Some(one), MINUTE_MS), Ok(()));
        assert_eq!(limiter.act(None, 0), Ok(()));
    }

    #[test]
    fn acts_beyond_the_bound_can_be_counted_and_waited_for() {
        let limiter = Limiter::new(3);
        let one = IpAddr::from([192, 0, 2, 1]);
        for at in 0..3 {
            assert_eq!(limiter.wait_ms(one, at), None);
            limiter.count(one, at);
        }
        limiter.count(one, 3);
        assert_eq!(limiter.wait_ms(one, 1_000), Some(59_000));
        assert_eq!(limiter.wait_ms(one, MINUTE_MS), None);
        limiter.count(one, MINUTE_MS);
        assert_eq!(
            limiter.wait_ms(one, MINUTE_MS),
            None,
            "a new minute has begun"
        );
    }

    #[test]
    fn a_network_counts_as_one_and_the_table_is_bounded() {
        let limiter = Limiter::new(2);
        let at = |low: u128| Some(Ipv6Addr::from_bits((0x2001_0db8 << 96) + low).into());
        assert_eq!(
            [
                limiter.act(at(1), 0),
                limiter.act(at(2), 0),
                limiter.act(at(3), 0)
            ],
            [Ok(()), Ok(()), Err(MINUTE_MS)]
        );
        for number in 0..2 * ADDRESSES_MAX as u32 {
            let _ = limiter.act(Some(std::net::Ipv4Addr::from_bits(number).into()), 0);
        }
        assert!(limiter.counts.lock().len() <= ADDRESSES_MAX + 1);
        assert!(
            limiter.act(Some([9, 9, 9, 9].into()), 0).is_err(),
            "all others share one count"
        );
        assert!(limiter.wait_ms([9, 9, 9, 8].into(), 0).is_some());
    }
}
