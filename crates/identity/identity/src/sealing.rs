//! Sealing keys: kept in the journal, replaced after thirty days, the previous one still accepted.
//!
//! Calls on the journal block on the disk. Randomness and time are arguments.

use auth::{SealKey, Sealer};
use model::Digest;
use serde::{Deserialize, Serialize};
use store::{Fold, JournalWriter, SealingKey, StoreError};

/// Age at which a start of the gateway replaces the key: thirty days, in milliseconds.
const KEY_LIFE_MS: u64 = 30 * 86_400_000;

/// Keys in the state: the current one and the one before it.
const KEYS_KEPT: usize = 2;

/// The sealing keys of the journal, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SealingKeys {
    keys: Vec<SealingKey>,
}

/// A fact about sealing keys that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum SealingRecord {
    /// A new sealing key. The newest one seals; the one before it still opens.
    SealingKey(SealingKey),
}

impl SealingKeys {
    /// The keys, newest first, at most two.
    fn newest_first(&self) -> impl Iterator<Item = &SealingKey> {
        self.keys.iter().rev()
    }

    fn sealer(&self) -> Option<Sealer> {
        let mut keys = self.newest_first().filter_map(|key| parse(&key.key));
        Some(Sealer::new(&keys.next()?, keys.next().as_ref()))
    }
}

impl Fold for SealingKeys {
    const OWNER: &'static str = "sealing";
    type Record = SealingRecord;

    fn apply(&mut self, record: &SealingRecord) {
        let SealingRecord::SealingKey(key) = record;
        self.keys.push(key.clone());
        if self.keys.len() > KEYS_KEPT {
            self.keys.remove(0);
        }
    }

    fn live(&self) -> usize {
        self.keys.len()
    }

    fn records(&mut self, _: u64) -> Vec<SealingRecord> {
        self.keys
            .iter()
            .cloned()
            .map(SealingRecord::SealingKey)
            .collect()
    }
}

/// The sealer of a data directory. Makes a key of `random` if there is none yet or the newest is
/// too old.
///
/// # Errors
/// If the journal cannot be read or written.
pub fn sealer(
    journal: &JournalWriter,
    random: &SealKey,
    now_ms: u64,
) -> Result<Sealer, StoreError> {
    let ledger = journal.ledger::<SealingKeys>()?;
    let is_fresh = |key: &SealingKey| {
        now_ms.saturating_sub(key.created_ms) < KEY_LIFE_MS && parse(&key.key).is_some()
    };
    if !ledger.state(|keys| keys.newest_first().next().is_some_and(is_fresh)) {
        let key = Digest(*random).to_string();
        ledger.append(&[SealingRecord::SealingKey(SealingKey {
            key,
            created_ms: now_ms,
        })])?;
    }
    Ok(ledger
        .state(SealingKeys::sealer)
        .unwrap_or_else(|| Sealer::new(random, None)))
}

/// The sealer of a journal that another process writes; `None` while it has no key.
///
/// # Errors
/// If the journal cannot be read.
pub fn kept_sealer(journal: &JournalWriter) -> Result<Option<Sealer>, StoreError> {
    let ledger = journal.ledger::<SealingKeys>()?;
    Ok(ledger.state(SealingKeys::sealer))
}

/// Keys are written like digests: 64 hexadecimal digits.
fn parse(hex: &str) -> Option<SealKey> {
    hex.parse::<Digest>().ok().map(|digits| digits.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_are_kept_and_have_their_golden_lines() {
        let line =
            |key: &str| format!(r#"{{"record":"sealing_key","key":"{key}","created_ms":1}}"#);
        let mut keys = SealingKeys::default();
        for key in ["aa", "bb", "cc"] {
            let record: SealingRecord = serde_json::from_str(&line(key)).unwrap();
            keys.apply(&record);
        }
        let written = keys.records(0);
        assert_eq!(written.len(), keys.live());
        let written: Vec<_> = written
            .iter()
            .map(|record| serde_json::to_string(record).unwrap())
            .collect();
        assert_eq!(written, [line("bb"), line("cc")]);
    }

    #[test]
    fn a_sealed_state_outlives_restarts_and_one_new_key() {
        let dir = tempfile::tempdir().unwrap();
        let open = |random: u8, now_ms: u64| {
            sealer(
                &JournalWriter::open(dir.path()).unwrap(),
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
