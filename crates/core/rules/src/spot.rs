//! Spot checks: uses of a rule that go to a person although the rule would decide them.

use sha2::{Digest as _, Sha256};

use crate::name::RuleId;

/// While a rule has been used less often than this, it is checked often.
pub const OFTEN_UNTIL_USES: u32 = 30;
/// One of so many uses is checked at first.
pub const OFTEN_ONE_IN: u64 = 10;
/// One of so many uses is checked later.
pub const SELDOM_ONE_IN: u64 = 30;
/// Prefix of the bytes that are hashed, so that no other hash can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/spot/1\0";

/// Whether a rule's next use is checked. `seed` is secret, so that no proposer can tell; `draw` is
/// [`Spent::draws`](crate::Spent::draws). The draw is the rule's and not the proposal's: a proposer
/// that withdraws a checked proposal and makes another one is checked again.
#[must_use]
pub fn is_spot_check(seed: &[u8; 32], rule: &RuleId, draw: u32) -> bool {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(seed);
    hash.update(draw.to_be_bytes());
    hash.update(rule.as_str());
    let drawn = hash
        .finalize()
        .iter()
        .take(8)
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let one_in = if draw < OFTEN_UNTIL_USES {
        OFTEN_ONE_IN
    } else {
        SELDOM_ONE_IN
    };
    drawn % one_in == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The draws below a bound that are checked.
    fn checked(seed: u8, id: &str, draws: std::ops::Range<u32>) -> Vec<u32> {
        let rule = RuleId::new(id).unwrap();
        draws
            .filter(|draw| is_spot_check(&[seed; 32], &rule, *draw))
            .collect()
    }

    #[test]
    fn a_part_of_the_uses_is_checked() {
        let often: usize = (0..200_u8)
            .map(|seed| checked(seed, "r1", 0..OFTEN_UNTIL_USES).len())
            .sum();
        assert!((480..720).contains(&often), "{often}");
        let seldom = checked(7, "r1", OFTEN_UNTIL_USES..6_000).len();
        assert!((130..270).contains(&seldom), "{seldom}");
    }

    #[test]
    fn seed_and_rule_decide_which() {
        assert_eq!(checked(1, "r1", 0..200), checked(1, "r1", 0..200));
        assert_ne!(checked(1, "r1", 0..200), checked(2, "r1", 0..200));
        assert_ne!(checked(1, "r1", 0..200), checked(1, "r2", 0..200));
    }
}
