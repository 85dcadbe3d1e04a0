//! Sealing keys: kept in the journal, replaced after thirty days, the previous one still accepted.
//!
//! Calls on the journal block on the disk. Randomness and time are arguments.

use auth::{SealKey, Sealer};
use model::Digest;
use store::{Journal, Record, SealingKey, State, StoreError};

/// Age at which a start of the gateway replaces the key: thirty days, in milliseconds.
const KEY_LIFE_MS: u64 = 30 * 86_400_000;

/// The sealer of a data directory. Makes a key of `random` if there is none yet or the newest is
/// too old.
///
/// # Errors
/// If the journal cannot be written.
pub fn sealer(journal: &mut Journal, random: &SealKey, now_ms: u64) -> Result<Sealer, StoreError> {
    let newest = journal.state().sealing_keys().next();
    let fresh = newest.is_some_and(|key| {
        now_ms.saturating_sub(key.created_ms) < KEY_LIFE_MS && parse(&key.key).is_some()
    });
    if !fresh {
        let key = Digest(*random).to_string();
        journal.append(&[Record::SealingKey(SealingKey {
            key,
            created_ms: now_ms,
        })])?;
    }
    Ok(of_state(journal.state()).unwrap_or_else(|| Sealer::new(random, None)))
}

fn of_state(state: &State) -> Option<Sealer> {
    let mut keys = state.sealing_keys().filter_map(|key| parse(&key.key));
    Some(Sealer::new(&keys.next()?, keys.next().as_ref()))
}

/// Keys are written like digests: 64 hexadecimal digits.
fn parse(hex: &str) -> Option<SealKey> {
    hex.parse::<Digest>().ok().map(|digits| digits.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_state_outlives_restarts_and_one_new_key() {
        let dir = tempfile::tempdir().unwrap();
        let open = |random: u8, now_ms: u64| {
            sealer(
                &mut Journal::open(dir.path()).unwrap(),
                &[random; 32],
                now_ms,
            )
            .unwrap()
        };
        let sealed = open(1, 0).seal("session", "scout", u64::MAX, [9; 24], b"state");
        let opens = |sealer: Sealer| sealer.open("session", "scout", 1, &sealed).is_ok();
        assert!(opens(open(2, 1_000)), "a restart keeps the key");
        assert!(
            opens(open(3, KEY_LIFE_MS)),
            "the previous key is still accepted"
        );
        assert!(!opens(open(4, 2 * KEY_LIFE_MS)), "the key before it is not");
    }
}
