//! Spot checks: uses of a rule that go to a person although the rule would decide them.

use model::OperationId;
use sha2::{Digest as _, Sha256};

/// While a rule has been used less often than this, it is checked often.
pub const OFTEN_UNTIL_USES: u32 = 30;
/// One of so many uses is checked at first.
pub const OFTEN_ONE_IN: u64 = 10;
/// One of so many uses is checked later.
pub const SELDOM_ONE_IN: u64 = 30;
/// Prefix of the bytes that are hashed, so that no other hash can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/spot/1\0";

/// Whether a use is checked. `seed` is secret, so that no proposer can tell; `uses` is the number
/// of uses of all versions before. The same operation is always answered alike.
#[must_use]
pub fn is_spot_check(seed: &[u8; 32], operation: OperationId, uses: u32) -> bool {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(seed);
    hash.update(operation.0.to_be_bytes());
    let drawn = hash
        .finalize()
        .iter()
        .take(8)
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let one_in = if uses < OFTEN_UNTIL_USES {
        OFTEN_ONE_IN
    } else {
        SELDOM_ONE_IN
    };
    drawn % one_in == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_uses_is_checked() {
        let checked = |uses: u32| {
            let operations = (0..6_000_u128).map(OperationId);
            operations
                .filter(|one| is_spot_check(&[7; 32], *one, uses))
                .count()
        };
        assert!((480..720).contains(&checked(0)));
        assert!((480..720).contains(&checked(OFTEN_UNTIL_USES - 1)));
        assert!((130..270).contains(&checked(OFTEN_UNTIL_USES)));
    }

    #[test]
    fn the_seed_decides_which() {
        let drawn = |seed: u8| -> Vec<bool> {
            (0..200_u128)
                .map(|at| is_spot_check(&[seed; 32], OperationId(at), 0))
                .collect()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
