//! Acts by source address: so many in a minute, then none until the minute is over.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use platform::Mutex;

/// The most addresses that are counted. More share one count.
pub const ADDRESSES_MAX: usize = 10_000;

const MINUTE_MS: u64 = 60_000;
/// What all addresses beyond the bound are counted as.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// A bound for each address.
#[derive(Debug)]
pub struct Limiter {
    per_minute: u32,
    counts: Mutex<HashMap<IpAddr, (u64, u32)>>,
}

impl Limiter {
    /// So many acts in a minute.
    #[must_use]
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, counts: Mutex::default() }
    }

    /// Counts one act of an address; a connection in memory has none. An address of IPv6 counts with its /64.
    ///
    /// # Errors
    /// So many milliseconds to wait.
    pub fn act(&self, from: Option<IpAddr>, now_ms: u64) -> Result<(), u64> {
        let Some(from) = from else { return Ok(()) };
        let mut counts = self.counts.lock();
        let mut at = network(from);
        if counts.len() >= ADDRESSES_MAX && !counts.contains_key(&at) {
            counts.retain(|_, (since_ms, _)| now_ms.saturating_sub(*since_ms) < MINUTE_MS);
            if counts.len() >= ADDRESSES_MAX {
                at = OTHERS;
            }
        }
        let (since_ms, count) = counts.entry(at).or_insert((now_ms, 0));
        let age_ms = now_ms.saturating_sub(*since_ms);
        if age_ms >= MINUTE_MS {
            (*since_ms, *count) = (now_ms, 0);
        } else if *count >= self.per_minute {
            return Err(MINUTE_MS - age_ms);
        }
        *count += 1;
        Ok(())
    }
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
        let (limiter, one, other) = (Limiter::new(3), [192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        (0..3).for_each(|at| assert_eq!(limiter.act(Some(one), at), Ok(())));
        assert_eq!(limiter.act(Some(one), 1_000), Err(59_000));
        assert_eq!(limiter.act(Some(other), 1_000), Ok(()));
        assert_eq!(limiter.act(Some(one), MINUTE_MS), Ok(()));
        assert_eq!(limiter.act(None, 0), Ok(()));
    }

    #[test]
    fn a_network_counts_as_one_and_the_table_is_bounded() {
        let limiter = Limiter::new(2);
        let at = |low: u128| Some(Ipv6Addr::from_bits((0x2001_0db8 << 96) + low).into());
        assert_eq!(
            [limiter.act(at(1), 0), limiter.act(at(2), 0), limiter.act(at(3), 0)],
            [Ok(()), Ok(()), Err(MINUTE_MS)]
        );
        for number in 0..2 * ADDRESSES_MAX as u32 {
            let _ = limiter.act(Some(std::net::Ipv4Addr::from_bits(number).into()), 0);
        }
        assert!(limiter.counts.lock().len() <= ADDRESSES_MAX + 1);
        assert!(limiter.act(Some([9, 9, 9, 9].into()), 0).is_err(), "all others share one count");
    }
}
