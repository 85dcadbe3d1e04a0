//! What the journal's records add up to. Pure: must not know files.

use crate::record::{IssuedToken, Record, SealingKey};

/// Everything that is true after replaying the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    tokens: Vec<IssuedToken>,
    keys: Vec<SealingKey>,
}

/// Sealing keys that are kept: the current one and the one before it.
const SEALING_KEYS_KEPT: usize = 2;

impl State {
    /// Tokens that were issued and not revoked, oldest first. Expired ones are still in it.
    #[must_use]
    pub fn tokens(&self) -> &[IssuedToken] {
        &self.tokens
    }

    /// Sealing keys, newest first, at most two.
    pub fn sealing_keys(&self) -> impl Iterator<Item = &SealingKey> {
        self.keys.iter().rev()
    }

    /// Takes one record into account.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::TokenIssued(token) => self.tokens.push(token.clone()),
            Record::TokenRevoked { name, .. } => self.tokens.retain(|token| token.name != *name),
            Record::SealingKey(key) => {
                self.keys.push(key.clone());
                if self.keys.len() > SEALING_KEYS_KEPT {
                    self.keys.remove(0);
                }
            }
        }
    }

    /// The shortest list of records that adds up to this state again; what compaction writes.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let keys = self.keys.iter().cloned().map(Record::SealingKey);
        keys.chain(self.tokens.iter().cloned().map(Record::TokenIssued))
    }

    /// How many records [`State::records`] gives.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len() + self.tokens.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str) -> Record {
        Record::TokenIssued(IssuedToken {
            name: name.into(),
            sha256: "00".repeat(32),
            capabilities: None,
            topics: None,
            created_ms: 1,
            expires_ms: None,
        })
    }

    fn key(byte: &str) -> Record {
        Record::SealingKey(SealingKey { key: byte.repeat(32), created_ms: 2 })
    }

    #[test]
    fn revoking_takes_every_token_of_that_name() {
        let mut state = State::default();
        for record in
            [token("a"), token("b"), token("a"), Record::TokenRevoked { name: "a".into(), at_ms: 3 }]
        {
            state.apply(&record);
        }
        let names: Vec<_> = state.tokens().iter().map(|token| token.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }

    #[test]
    fn two_sealing_keys_are_kept_newest_first() {
        let mut state = State::default();
        for record in [key("aa"), key("bb"), key("cc")] {
            state.apply(&record);
        }
        let keys: Vec<_> = state.sealing_keys().map(|key| key.key[..2].to_owned()).collect();
        assert_eq!(keys, ["cc", "bb"]);
    }

    #[test]
    fn records_of_a_state_rebuild_it() {
        let mut state = State::default();
        for record in [key("aa"), token("a"), key("bb"), token("b")] {
            state.apply(&record);
        }
        let mut again = State::default();
        state.records().for_each(|record| again.apply(&record));
        assert_eq!(again, state);
        assert_eq!(state.records().count(), state.len());
    }
}
