//! Bad tokens by source address: so many in a minute, then none are looked at.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use platform::Mutex;

/// Bad tokens of one address in a minute. An address of IPv6 counts with its /64.
pub const BAD_TOKENS_PER_MINUTE: u32 = 60;
/// The most addresses that are counted. More share one count.
pub const ADDRESSES_MAX: usize = 10_000;

const MINUTE_MS: u64 = 60_000;

#[derive(Clone, Copy)]
struct Count {
    since_ms: u64,
    bad: u32,
}

#[derive(Default)]
pub(super) struct Attempts(Mutex<HashMap<IpAddr, Count>>);

/// What all addresses beyond the bound are counted as.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl Attempts {
    /// How long an address has to wait, if it has sent too many bad tokens.
    pub(super) fn wait_ms(&self, from: IpAddr, now_ms: u64) -> Option<u64> {
        let counts = self.0.lock();
        let known = counts
            .get(&network(from))
            .or_else(|| (counts.len() >= ADDRESSES_MAX).then(|| counts.get(&OTHERS)).flatten())?;
        let age_ms = now_ms.saturating_sub(known.since_ms);
        (known.bad >= BAD_TOKENS_PER_MINUTE && age_ms < MINUTE_MS).then(|| MINUTE_MS - age_ms)
    }

    /// Counts a bad token.
    pub(super) fn count(&self, from: IpAddr, now_ms: u64) {
        let mut counts = self.0.lock();
        let mut at = network(from);
        if !counts.contains_key(&at) && counts.len() >= ADDRESSES_MAX {
            counts.retain(|_, count| now_ms.saturating_sub(count.since_ms) < MINUTE_MS);
            if counts.len() >= ADDRESSES_MAX {
                at = OTHERS;
            }
        }
        let count = counts.entry(at).or_insert(Count { since_ms: now_ms, bad: 0 });
        if now_ms.saturating_sub(count.since_ms) >= MINUTE_MS {
            *count = Count { since_ms: now_ms, bad: 0 };
        }
        count.bad = count.bad.saturating_add(1);
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
    fn an_address_waits_after_so_many_bad_tokens_in_a_minute() {
        let (attempts, bad, other) =
            (Attempts::default(), IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        for number in 0..BAD_TOKENS_PER_MINUTE {
            assert_eq!(attempts.wait_ms(bad, u64::from(number)), None);
            attempts.count(bad, u64::from(number));
        }
        assert_eq!(attempts.wait_ms(bad, 1_000), Some(59_000));
        assert_eq!(attempts.wait_ms(other, 1_000), None);
        assert_eq!(attempts.wait_ms(bad, MINUTE_MS), None);
        attempts.count(bad, MINUTE_MS);
        assert_eq!(attempts.wait_ms(bad, MINUTE_MS), None);
    }

    #[test]
    fn addresses_of_one_network_count_together_and_their_number_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..u128::from(BAD_TOKENS_PER_MINUTE) {
            attempts.count(Ipv6Addr::from_bits((0x2001_0db8 << 96) + number).into(), 0);
        }
        assert!(attempts.wait_ms(Ipv6Addr::from_bits((0x2001_0db8 << 96) + 999).into(), 0).is_some());
        for number in 0..3 * ADDRESSES_MAX as u32 {
            attempts.count(std::net::Ipv4Addr::from_bits(number).into(), 0);
        }
        assert!(attempts.0.lock().len() <= ADDRESSES_MAX + 1);
        assert!(attempts.wait_ms(IpAddr::from([9, 9, 9, 9]), 0).is_some());
    }
}
